/* FF.UNBLOCK has two meanings: of one execution (commands/admission.c), and this. */
#ifndef FF_COMMANDS_UNBLOCK_H
#define FF_COMMANDS_UNBLOCK_H

#include "valkeymodule.h"

/* FF.UNBLOCK {fp:N}|* [LANE l] [REASON budget|quota|route] [LIMIT n]: runs the unblock pass now.
 * Gets the whole command, of which the first argument is no execution id; refuses what else it
 * may be, and replies. */
int ff_unblock_pass(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc);

#endif
