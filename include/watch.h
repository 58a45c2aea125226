/* Watching the keyspace: every write to a key of ours, whoever makes it.
 *
 * Keyspace events reach the module for its own writes and for everybody else's: plain commands, scripts, a
 * replication stream, RDB and AOF loading, slots that arrive. One subscription serves all who want to know,
 * since each one costs the server a context for every event. What was there before the module was loaded,
 * or came with SWAPDB, is found by a walk over the keyspace in slices. Database 0 only. */
#ifndef FF_WATCH_H
#define FF_WATCH_H

#include <stdbool.h>

#include "valkeymodule.h"

/* Called inside the write: it must not write itself. */
typedef void ff_watch_listener(ValkeyModuleCtx *ctx, ValkeyModuleString *key);

/* Told of every write to a key that begins with "ff:". */
void ff_watch_writes(ff_watch_listener *listener);

/* Told of writes, and of every such key that the walk finds. */
void ff_watch_keys(ff_watch_listener *listener);

/* Told when all data is gone. */
void ff_watch_flush(void (*listener)(void));

/* Told when keys may have gone without an event for each: flushed, or swapped away. */
void ff_watch_vanishing(void (*listener)(ValkeyModuleCtx *ctx));

/* Whether the walk is over. */
bool ff_watch_is_complete(void);

/* To be called when all have said what they want to know. */
int ff_watch_load(ValkeyModuleCtx *ctx);
void ff_watch_unload(void);

#endif
