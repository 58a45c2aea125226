/* Making a small hash in one go.
 *
 * The server keeps a small hash as a listpack: one block of memory in which a field is found by walking.
 * Setting n fields of a new hash one by one walks and grows it n times. So the block is made here and
 * handed over with RESTORE, which takes it as it is. What is replicated is the HSET that has the same
 * effect. */
#ifndef FF_STORE_PACKED_H
#define FF_STORE_PACKED_H

#include <stdbool.h>

#include "store/key.h"

/* Learns how large a hash the server keeps packed, and follows changes of that setting. */
void ff_packed_load(ValkeyModuleCtx *ctx);

/* Writes what is staged on a hash that does not exist. False, with nothing changed, when it had better be
 * written field by field: it exists, the fields are few, or a text is too long for the server to pack. */
bool ff_packed_write(ff_key *key);

#endif
