#include "commands/later.h"

int ff_serve_in_any_slot(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc,
                         ValkeyModuleCmdFunc serve) {
    int flags = ValkeyModule_GetContextFlags(ctx);
    if (!(flags & VALKEYMODULE_CTX_FLAGS_CLUSTER)) return serve(ctx, argv, argc);
    if (flags & (VALKEYMODULE_CTX_FLAGS_MULTI | VALKEYMODULE_CTX_FLAGS_LUA |
                 VALKEYMODULE_CTX_FLAGS_DENY_BLOCKING)) {
        return ValkeyModule_ReplyWithError(
            ctx, "ERR in a cluster this command cannot be part of a transaction or script");
    }
    ValkeyModuleBlockedClient *client = ValkeyModule_BlockClient(ctx, serve, NULL, NULL, 0);
    return ValkeyModule_UnblockClient(client, NULL);
}
