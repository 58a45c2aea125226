/* Another module: counts the keyspace events of keys that begin with "ff:". LISTENER.COUNT replies the number. */
#include <string.h>

#include "valkeymodule.h"

static long long heard;

static int on_event(ValkeyModuleCtx *ctx, int type, const char *event, ValkeyModuleString *key) {
    (void)ctx;
    (void)type;
    (void)event;
    size_t length;
    const char *name = ValkeyModule_StringPtrLen(key, &length);
    if (length > 3 && memcmp(name, "ff:", 3) == 0) heard++;
    return VALKEYMODULE_OK;
}

static int count_command(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    (void)argv;
    (void)argc;
    return ValkeyModule_ReplyWithLongLong(ctx, heard);
}

int ValkeyModule_OnLoad(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc);

int ValkeyModule_OnLoad(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    (void)argv;
    (void)argc;
    if (ValkeyModule_Init(ctx, "listener", 1, VALKEYMODULE_APIVER_1) != VALKEYMODULE_OK ||
        ValkeyModule_CreateCommand(ctx, "listener.count", count_command, "readonly", 0, 0, 0) !=
            VALKEYMODULE_OK) {
        return VALKEYMODULE_ERR;
    }
    return ValkeyModule_SubscribeToKeyspaceEvents(ctx, VALKEYMODULE_NOTIFY_ALL, on_event);
}
