#ifndef FF_BASE_UUID_H
#define FF_BASE_UUID_H

#include "base/text.h"

#include <stdbool.h>
#include <stdint.h>

enum { FF_UUID_TEXT = 36, FF_UUID_SIMPLE_TEXT = 32 };

typedef struct ff_uuid {
    uint8_t bytes[16];
} ff_uuid;

/* Reads the 36-character hyphenated or the 32-character simple form, either case. */
bool ff_uuid_parse(ff_text text, ff_uuid *uuid);

/* Writes the hyphenated lower-case form, not NUL-terminated. */
void ff_uuid_format(const ff_uuid *uuid, char text[FF_UUID_TEXT]);

/* A version 4 UUID out of 16 random bytes. */
ff_uuid ff_uuid_v4(const uint8_t random[16]);

/* Whether the text is a UUID spelled as ff_uuid_format spells it. */
bool ff_uuid_is_canonical(ff_text text);

#endif
