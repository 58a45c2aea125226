#ifndef FF_BASE_HMAC_H
#define FF_BASE_HMAC_H

#include "base/text.h"

#include <stdbool.h>
#include <stdint.h>

/* Rule TOKEN, the cryptographic part. */

enum { FF_HMAC_SIZE = 20, FF_HMAC_HEX = 40 };

/* A secret made ready for signing: decoded from its hex text. */
typedef struct ff_hmac_key {
    unsigned char bytes[64];
    size_t len;
} ff_hmac_key;

/* Decodes the hex text of a secret, either case; empty is a valid key; longer than 64 bytes
 * becomes its SHA-1. False (`invalid_secret`) for an odd length, a non-hex character or an absent
 * text. */
bool ff_hmac_key_decode(ff_text hex, ff_hmac_key *key);

/* HMAC-SHA1 of the pieces one after the other, as 40 lower-case hex digits, not NUL-terminated. */
void ff_hmac_sign(const ff_hmac_key *key, const ff_text *pieces, size_t count,
                  char hex[FF_HMAC_HEX]);

/* The digest of a waitpoint token: over `<waitpoint_id>|<waitpoint_key>|<created_at>`, with
 * created_at already written by FMT14. */
void ff_hmac_token_digest(const ff_hmac_key *key, ff_text waitpoint_id, ff_text waitpoint_key,
                          ff_text created_at, char hex[FF_HMAC_HEX]);

/* Same bytes; the time depends on the length only. Absent texts equal nothing. */
bool ff_hmac_equal(ff_text a, ff_text b);

#endif
