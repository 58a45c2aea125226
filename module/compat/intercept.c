#include "compat/intercept.h"

#include "compat/function.h"
#include "config.h"

static ValkeyModuleCommandFilter *filter;

/* Runs before every command of every client while it is registered: the cheapest tests come first. */
static void intercept(ValkeyModuleCommandFilterCtx *ctx) {
    if (ValkeyModule_CommandFilterArgsCount(ctx) < 3) return;
    ff_text command = ff_str_text(ValkeyModule_CommandFilterArgGet(ctx, 0));
    if (command.len != 5 && command.len != 8) return;
    bool readonly = ff_text_equal_ignoring_case(command, FF_TEXT("fcall_ro"));
    if (!readonly && !ff_text_equal_ignoring_case(command, FF_TEXT("fcall"))) return;
    if (!ff_function_find(ff_str_text(ValkeyModule_CommandFilterArgGet(ctx, 1)))) return;
    ff_text served = readonly ? FF_TEXT("FF.CALL_RO") : FF_TEXT("FF.CALL");
    ValkeyModule_CommandFilterArgReplace(ctx, 0,
                                         ValkeyModule_CreateString(NULL, served.ptr, served.len));
}

void ff_intercept_apply(ValkeyModuleCtx *ctx) {
    if (ff_config.intercept_fcall && filter == NULL) {
        filter = ValkeyModule_RegisterCommandFilter(ctx, intercept, VALKEYMODULE_CMDFILTER_NOSELF);
    } else if (!ff_config.intercept_fcall && filter) {
        ValkeyModule_UnregisterCommandFilter(ctx, filter);
        filter = NULL;
    }
}
