/* Whether anybody hears what is replicated: a replica, a backlog kept for one, or the AOF.
 *
 * Preparing the command for a write costs about as much as a small write, and the server throws it away when
 * nobody is there. The API cannot be asked cheaply, so the answer is kept, and thrown away itself whenever it
 * may change: a new replica needs a snapshot, and no snapshot is made without a fork; a changed role and loaded
 * data may bring a backlog. Until the fork, a replica that has asked for a snapshot needs nothing: what is
 * written meanwhile is in the snapshot. */
#ifndef FF_STORE_AUDIENCE_H
#define FF_STORE_AUDIENCE_H

#include <stdbool.h>

#include "valkeymodule.h"

void ff_audience_load(ValkeyModuleCtx *ctx);

/* To be asked once per transaction. */
bool ff_audience_is_there(ValkeyModuleCtx *ctx);

/* Replicates a command, as ValkeyModule_Replicate does. Without an audience the change is only counted, so
 * that the server's save points see it. */
#define FF_REPLICATE(t, ...) \
    ((t)->heard ? ValkeyModule_Replicate((t)->ctx, __VA_ARGS__) \
                : ValkeyModule_ReplicateVerbatim((t)->ctx))

#endif
