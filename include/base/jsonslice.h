#ifndef FF_BASE_JSONSLICE_H
#define FF_BASE_JSONSLICE_H

#include "base/text.h"

#include <stdbool.h>

/* Pieces of a JSON text as they are spelled, for values that are passed on and not looked into: reading and
 * writing them anew would lose digits and empty arrays. The text must be one that ff_json_parse takes. */

/* The value of a member, the last one of that name; absent when there is none, when its name is spelled
 * with escapes, and when the text is no object. */
ff_text ff_json_slice_member(ff_text object, ff_text name);

/* Takes the next element off an array. Start with `rest` the array's whole text. */
bool ff_json_slice_next(ff_text *rest, ff_text *element);

#endif
