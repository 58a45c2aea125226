#include "claim/slot.h"

#include "engine/quota.h"
#include "permission.h"
#include "presence.h"

/* A slot to be given back once the command is over. */
typedef struct freed {
    struct freed *next;
    ff_str *policy_id;
    ff_str *execution_id;
} freed;

static ValkeyModuleCtx *own_ctx;
static freed *first;
static freed *last;

void ff_slot_load(ValkeyModuleCtx *ctx) {
    own_ctx = ValkeyModule_GetDetachedThreadSafeContext(ctx);
}

void ff_slot_unload(void) {
    if (own_ctx) ValkeyModule_FreeThreadSafeContext(own_ctx);
    own_ctx = NULL;
}

ff_text ff_quota_tag(ff_txn *t, ff_text policy_id, ff_partition *home) {
    uint16_t count = ff_partition_count(FF_FAMILY_QUOTA);
    *home = (ff_partition){FF_FAMILY_QUOTA, ff_partition_of_id(policy_id, count)};
    return ff_tag_text(&t->arena, *home);
}

ff_str *ff_quota_key(ff_txn *t, ff_text tag, ff_text policy_id, const char *suffix,
                     ff_text execution_id) {
    return FF_CONCAT(t, FF_TEXT("ff:quota:"), tag, FF_TEXT(":"), policy_id, ff_text_of(suffix),
                     execution_id);
}

static void release(ff_txn *t, ff_text policy_id, ff_str *execution_id) {
    ff_partition home;
    ff_text tag = ff_quota_tag(t, policy_id, &home);
    ff_quota_release_keys keys = {
        .guard = ff_quota_key(t, tag, policy_id, ":admitted:", ff_str_text(execution_id)),
        .admitted_set = ff_quota_key(t, tag, policy_id, ":admitted_set", FF_TEXT_ABSENT),
        .concurrency = ff_quota_key(t, tag, policy_id, ":concurrency", FF_TEXT_ABSENT),
    };
    /* A release that is not tied to an admission would take somebody else's slot. */
    if (!ff_set_has(ff_set_open(t, keys.admitted_set), execution_id)) return;
    ff_result result = {.txn = t};
    ff_quota_release(t, &keys, &(ff_quota_release_args){execution_id}, &result);
}

static void release_alone(ValkeyModuleCtx *ctx, const freed *f) {
    ff_txn t;
    ff_partition home;
    ff_txn_begin(&t, ctx, false);
    ff_text policy_id = ff_str_text(f->policy_id);
    ff_quota_tag(&t, policy_id, &home);
    ff_permission permission = ff_permission_of_partition(ctx, home);
    if (permission == FF_MAY_WRITE || permission == FF_MAY_FREE) {
        release(&t, policy_id, f->execution_id);
        ff_txn_commit(&t);
    } else {
        ff_txn_discard(&t);
    }
    ff_txn_end(&t);
}

static void release_queued(ValkeyModuleCtx *ctx, void *data) {
    (void)data;
    while (first) {
        freed *f = first;
        first = f->next;
        release_alone(ctx, f);
        ValkeyModule_FreeString(NULL, f->policy_id);
        ValkeyModule_FreeString(NULL, f->execution_id);
        ValkeyModule_Free(f);
    }
    last = NULL;
}

static void queue(ff_str *policy_id, ff_str *execution_id) {
    freed *f = ValkeyModule_Alloc(sizeof *f);
    *f = (freed){NULL, ValkeyModule_CreateStringFromString(NULL, policy_id),
                 ValkeyModule_CreateStringFromString(NULL, execution_id)};
    if (last) {
        last->next = f;
    } else {
        first = f;
        ValkeyModule_CreateTimer(own_ctx, 0, release_queued, NULL);
    }
    last = f;
}

void ff_slot_free(ff_txn *t, ff_key *core, ff_str *execution_id) {
    ff_str *policy_id = ff_hash_get(core, W(quota_policy_id));
    if (!ff_str_is_set(policy_id)) return;
    if (ValkeyModule_GetContextFlags(t->ctx) & VALKEYMODULE_CTX_FLAGS_CLUSTER) {
        queue(policy_id, execution_id);
    } else {
        release(t, ff_str_text(policy_id), execution_id);
    }
}
