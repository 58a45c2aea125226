/* Making small values in one go.
 *
 * The server keeps a small hash as a listpack: one block of memory in which a field is found by walking.
 * Setting n fields of a new hash one by one walks and grows it n times. A stream begins with a block of four
 * kilobytes, of which most streams here never use more than a tenth. So the block is made here, as large as
 * it must be, and handed over with RESTORE, which takes it as it is, here and on replicas. */
#ifndef FF_STORE_PACKED_H
#define FF_STORE_PACKED_H

#include <stdbool.h>

#include "store/key.h"

/* Learns how large a hash the server keeps packed, and follows changes of that setting. */
void ff_packed_load(ValkeyModuleCtx *ctx);

/* Writes and replicates what is staged on a hash that does not exist. False, with nothing changed, when it
 * had better be written field by field: it exists, the fields are few, or a text is too long for the server
 * to pack. */
bool ff_packed_write(ff_key *key);

/* Makes a stream that does not exist, with its first staged entry, whose id is filled in. False, with nothing
 * changed, when the entry had better be added the usual way. */
bool ff_packed_begin_stream(ff_key *key);

/* Replicates a stream that was made so; once all else is known to succeed. */
void ff_packed_replicate_stream(ff_key *key);

#endif
