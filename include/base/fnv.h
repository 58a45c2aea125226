#ifndef FF_BASE_FNV_H
#define FF_BASE_FNV_H

#include "base/text.h"

#include <stdint.h>

/* FNV-1a, 64 bits. */
uint64_t ff_fnv1a(ff_text text);

/* (Low 16 bits of the hash) mod `modulus`, which must not be 0. */
uint16_t ff_fnv1a_mod(ff_text text, uint16_t modulus);

/* The XOR of both halves of the hash as 8 lower-case hex digits, not NUL-terminated: a short name
 * for a capability list in logs. */
void ff_fnv1a_digest(ff_text text, char hex[8]);

#endif
