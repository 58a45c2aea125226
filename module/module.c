/* The module's way in: what it needs of the server, and the tables it hands over. */

#include <stdbool.h>

#include "base/arena.h"
#include "claim/claim.h"
#include "commands/command.h"
#include "commands/tail.h"
#include "compat/function.h"
#include "config.h"
#include "info.h"
#include "presence.h"
#include "requirements.h"
#include "scan/runner.h"
#include "store/audience.h"
#include "store/event.h"
#include "store/packed.h"
#include "store/words.h"
#include "version.h"
#include "watch.h"
#include "worker_registry.h"

#define EXPORT __attribute__((visibility("default")))

static bool loaded;

/* Runs when the server lets go of the library: after MODULE UNLOAD, and after a load that failed. */
__attribute__((destructor)) static void unload(void) {
    if (!loaded) return;
    ff_runner_unload();
    ff_claim_unload();
    ff_watch_unload();
    ff_presence_unload();
    ff_workers_forget();
    ff_config_unload();
    ff_info_unload();
    ff_functions_unload();
    ff_words_unload();
}

EXPORT int ValkeyModule_OnLoad(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc);

EXPORT int ValkeyModule_OnLoad(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    if (ValkeyModule_Init(ctx, "ff", FF_VERSION_NUMBER, VALKEYMODULE_APIVER_1) != VALKEYMODULE_OK) {
        return VALKEYMODULE_ERR;
    }
    if (!ff_requirements_met(ctx)) return VALKEYMODULE_ERR;
    /* Keys are opened for writing before it is known whether they will be written. */
    ValkeyModule_SetModuleOptions(ctx, VALKEYMODULE_OPTIONS_HANDLE_IO_ERRORS |
                                           VALKEYMODULE_OPTION_NO_IMPLICIT_SIGNAL_MODIFIED);
    ff_arena_set_allocator(ValkeyModule_Alloc, ValkeyModule_Free);
    loaded = true;
    ff_words_load();
    ff_functions_load();
    ff_packed_load(ctx);
    ff_audience_load(ctx);
    ff_event_load(ctx);
    ff_info_load(ctx);
    if (ff_commands_load(ctx) != VALKEYMODULE_OK) return VALKEYMODULE_ERR;
    if (ff_config_load(ctx, argv, argc) != VALKEYMODULE_OK) return VALKEYMODULE_ERR;
    if (ff_claim_load(ctx) != VALKEYMODULE_OK) return VALKEYMODULE_ERR;
    ff_presence_load();
    ff_workers_load();
    ff_tail_load();
    if (ff_runner_load(ctx) != VALKEYMODULE_OK) return VALKEYMODULE_ERR;
    return ff_watch_load(ctx);
}
