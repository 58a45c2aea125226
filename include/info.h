/* INFO ff and FF.INFO: the same sections and fields, once as text and once as a map. */
#ifndef FF_INFO_H
#define FF_INFO_H

#include "valkeymodule.h"

void ff_info_load(ValkeyModuleCtx *ctx);
void ff_info_unload(void);

int ff_info_command(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc);

#endif
