/* Serving a command right after it was called.
 *
 * In a cluster a command that names a key sees the keys of that key's slot only. What has to look at others is done
 * from the event loop, before the reply: one round trip, two steps. */
#ifndef FF_COMMANDS_LATER_H
#define FF_COMMANDS_LATER_H

#include "valkeymodule.h"

/* Calls `serve` with the command's arguments at once, or, in a cluster, a moment later; there a transaction or script
 * cannot wait, and gets an error. */
int ff_serve_in_any_slot(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc,
                         ValkeyModuleCmdFunc serve);

#endif
