#include "store/audience.h"

#include "store/server_event.h"

static enum { UNKNOWN, NOBODY, SOMEBODY } audience;

static void forget(ValkeyModuleCtx *ctx, uint64_t sub, void *data) {
    (void)ctx;
    (void)sub;
    (void)data;
    audience = UNKNOWN;
}

void ff_audience_load(ValkeyModuleCtx *ctx) {
    ff_server_event_hear(ctx, ValkeyModuleEvent_ForkChild, forget);
    ff_server_event_hear(ctx, ValkeyModuleEvent_ReplicaChange, forget);
    ff_server_event_hear(ctx, ValkeyModuleEvent_ReplicationRoleChanged, forget);
    ff_server_event_hear(ctx, ValkeyModuleEvent_Loading, forget);
}

static bool replicates(ValkeyModuleCtx *ctx) {
    ValkeyModuleServerInfoData *info = ValkeyModule_GetServerInfo(ctx, "replication");
    int no_replicas = 0;
    int no_backlog = 0;
    unsigned long long replicas =
        ValkeyModule_ServerInfoGetFieldUnsigned(info, "connected_slaves", &no_replicas);
    unsigned long long backlog =
        ValkeyModule_ServerInfoGetFieldUnsigned(info, "repl_backlog_active", &no_backlog);
    ValkeyModule_FreeServerInfo(ctx, info);
    /* On doubt there is somebody. */
    return no_replicas || no_backlog || replicas > 0 || backlog > 0;
}

bool ff_audience_is_there(ValkeyModuleCtx *ctx) {
    if (ValkeyModule_GetContextFlags(ctx) & VALKEYMODULE_CTX_FLAGS_AOF) return true;
    if (audience == UNKNOWN) audience = replicates(ctx) ? SOMEBODY : NOBODY;
    return audience == SOMEBODY;
}
