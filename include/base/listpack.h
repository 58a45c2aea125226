/* The server's packed form of a small hash, and the envelope in which RESTORE takes it. */
#ifndef FF_BASE_LISTPACK_H
#define FF_BASE_LISTPACK_H

#include "base/arena.h"
#include "base/text.h"

/* Appends the payload of RESTORE for a hash of `count` texts: field, value, field, value, … Texts must be
 * shorter than 4096 bytes, and the whole shorter than 2^32. */
ff_text ff_listpack_payload(ff_arena *arena, const ff_text *texts, size_t count);

#endif
