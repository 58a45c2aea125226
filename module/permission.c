#include "permission.h"

#include <errno.h>
#include <string.h>

#include "store/txn.h"

static ff_permission meaning_of(const char *error, size_t length) {
    if (length >= 3 && memcmp(error, "OOM", 3) == 0) return FF_MAY_FREE;
    static const char *const node_wide[] = {"READONLY", "MISCONF", "NOREPLICAS", "MASTERDOWN",
                                            "LOADING"};
    for (size_t i = 0; i < sizeof node_wide / sizeof *node_wide; i++) {
        size_t n = strlen(node_wide[i]);
        if (length >= n && memcmp(error, node_wide[i], n) == 0) return FF_MAY_NOT;
    }
    return FF_NOT_SERVED;
}

/* A dry run of a write to a key that never exists: the server checks all that it would check for a client,
 * and in a slot that is being moved a missing key is answered with a redirection. */
static ff_permission ask_about(ValkeyModuleCtx *ctx, ValkeyModuleString *key) {
    errno = 0;
    ValkeyModuleCallReply *reply = ValkeyModule_Call(ctx, "HSET", "SMDEscc", key, "f", "v");
    ff_permission permission = errno == 0 ? FF_MAY_WRITE : FF_NOT_SERVED;
    if (reply) {
        size_t length;
        const char *error = ValkeyModule_CallReplyStringPtr(reply, &length);
        permission = error ? meaning_of(error, length) : FF_MAY_NOT;
        ValkeyModule_FreeCallReply(reply);
    }
    return permission;
}

static ff_permission ask_server(ValkeyModuleCtx *ctx, ff_partition partition) {
    char tag[FF_TAG_MAX];
    ff_tag_format(partition, tag);
    ValkeyModuleString *key = ValkeyModule_CreateStringPrintf(NULL, "ff:noop:%s", tag);
    ff_permission permission = ask_about(ctx, key);
    ValkeyModule_FreeString(NULL, key);
    return permission;
}

static bool is_cluster(ValkeyModuleCtx *ctx) {
    return ValkeyModule_GetContextFlags(ctx) & VALKEYMODULE_CTX_FLAGS_CLUSTER;
}

ff_permission ff_permission_of_node(ValkeyModuleCtx *ctx) {
    int flags = ValkeyModule_GetContextFlags(ctx);
    if (!(flags & VALKEYMODULE_CTX_FLAGS_PRIMARY) || flags & VALKEYMODULE_CTX_FLAGS_LOADING) {
        return FF_MAY_NOT;
    }
    /* A write during a pause, from a timer or a reply callback, kills the server. */
    if (ValkeyModule_AvoidReplicaTraffic()) return FF_MAY_NOT;
    if (flags & VALKEYMODULE_CTX_FLAGS_CLUSTER) return FF_MAY_WRITE;
    return ask_server(ctx, (ff_partition){FF_FAMILY_FLOW, 0});
}

ff_permission ff_permission_of_partition(ValkeyModuleCtx *ctx, ff_partition partition) {
    ff_permission node = ff_permission_of_node(ctx);
    if (node == FF_MAY_NOT || !is_cluster(ctx)) return node;
    return ask_server(ctx, partition);
}

bool ff_partition_is_served(ValkeyModuleCtx *ctx, ff_partition partition) {
    return !is_cluster(ctx) || ask_server(ctx, partition) != FF_NOT_SERVED;
}

bool ff_key_is_served(ValkeyModuleCtx *ctx, ValkeyModuleString *key) {
    return !is_cluster(ctx) || ask_about(ctx, key) != FF_NOT_SERVED;
}
