/* FF.CALL and FF.CALL_RO. */
#ifndef FF_COMPAT_CALL_H
#define FF_COMPAT_CALL_H

#include "valkeymodule.h"

int ff_call_command(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc);
int ff_call_ro_command(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc);

#endif
