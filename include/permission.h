/* May the module write now, and here? Asked by everything that runs without a client's command around it:
 * timers, and claimers that are served after they waited. A client's own command was checked by the server
 * before it ran. Nothing of this is remembered: it is asked afresh each time. */
#ifndef FF_PERMISSION_H
#define FF_PERMISSION_H

#include "base/id.h"
#include "valkeymodule.h"

typedef enum ff_permission {
    FF_MAY_WRITE,
    FF_MAY_FREE,   /* the memory limit is reached: only what frees memory may go on */
    FF_MAY_NOT,    /* replica, loading, paused, or the server refuses writes */
    FF_NOT_SERVED, /* the slot is another node's, or on its way from or to one */
} ff_permission;

/* Whether this node may write at all. Cheap: to be asked first. */
ff_permission ff_permission_of_node(ValkeyModuleCtx *ctx);

/* Whether it may write to that partition; includes the question above. */
ff_permission ff_permission_of_partition(ValkeyModuleCtx *ctx, ff_partition partition);

/* Whether the slot of that partition is served here, and stably. Always, outside a cluster. */
bool ff_partition_is_served(ValkeyModuleCtx *ctx, ff_partition partition);

/* The same for the slot of a key without a tag. */
bool ff_key_is_served(ValkeyModuleCtx *ctx, ValkeyModuleString *key);

#endif
