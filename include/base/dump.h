/* Small values in the form that DUMP gives and RESTORE takes. */
#ifndef FF_BASE_DUMP_H
#define FF_BASE_DUMP_H

#include "base/arena.h"
#include "base/text.h"

/* No text may be longer, and the whole must be shorter than 2^32. */
enum { FF_DUMP_TEXT_MAX = 4095 };

/* A packed hash of `count` texts: field, value, field, value, … */
ff_text ff_dump_hash(ff_arena *arena, const ff_text *texts, size_t count);

/* A stream whose only entry, `ms`-0, has `count` texts: field, value, field, value, … */
ff_text ff_dump_stream(ff_arena *arena, uint64_t ms, const ff_text *texts, size_t count);

#endif
