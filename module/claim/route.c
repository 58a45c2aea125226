#include "claim/route.h"

#include <string.h>

#include "presence.h"
#include "store/txn.h"

/* Keys that expire tell nobody before they are looked at: what was read is believed for this long. */
enum { BELIEVED_MS = 1000, NAMESPACES_MAX = 64 };

/* The workers of one namespace as their keys had them. */
typedef struct roster {
    double read_at;
    uint64_t generation;
    ff_arena arena;
    ff_text namespace;
    ff_capability_set *workers;
    size_t count;
} roster;

static uint64_t generation; /* moves with each write to a key of a worker */
static roster rosters[NAMESPACES_MAX];
static size_t roster_count;

static bool is_worker_key(ff_text key) {
    const ff_text record = FF_TEXT("ff:worker:");
    const ff_text index = FF_TEXT("ff:idx:");
    const ff_text ending = FF_TEXT(":workers");
    if (ff_text_starts_with(key, record)) return true;
    return ff_text_starts_with(key, index) && key.len > ending.len &&
           ff_text_equal(ff_text_slice(key, key.len - ending.len, key.len), ending);
}

static int on_key_event(ValkeyModuleCtx *ctx, int type, const char *event,
                        ValkeyModuleString *key) {
    (void)ctx;
    (void)type;
    (void)event;
    if (is_worker_key(ff_str_text(key))) generation++;
    return VALKEYMODULE_OK;
}

static void on_flush(ValkeyModuleCtx *ctx, ValkeyModuleEvent event, uint64_t sub, void *data) {
    (void)ctx;
    (void)event;
    (void)sub;
    (void)data;
    generation++;
}

int ff_route_load(ValkeyModuleCtx *ctx) {
    ValkeyModule_SubscribeToServerEvent(ctx, ValkeyModuleEvent_SwapDB, on_flush);
    int types = VALKEYMODULE_NOTIFY_HASH | VALKEYMODULE_NOTIFY_SET | VALKEYMODULE_NOTIFY_GENERIC |
                VALKEYMODULE_NOTIFY_EXPIRED | VALKEYMODULE_NOTIFY_EVICTED;
    return ValkeyModule_SubscribeToKeyspaceEvents(ctx, types, on_key_event);
}

void ff_route_unload(void) {
    for (size_t i = 0; i < roster_count; i++) ff_arena_release(&rosters[i].arena);
    roster_count = 0;
}

static void read_workers(ValkeyModuleCtx *ctx, roster *r) {
    ff_txn t;
    ff_txn_begin(&t, ctx, true);
    ff_text index = ff_arena_concat(&t.arena, FF_TEXT("ff:idx:"), r->namespace,
                                    FF_TEXT(":workers"));
    ff_strs instances = ff_set_peek(&t, index);
    r->workers = ff_arena_array(&r->arena, instances.count, sizeof *r->workers);
    for (size_t i = 0; i < instances.count; i++) {
        ff_text record =
            ff_arena_concat(&t.arena, FF_TEXT("ff:worker:"), r->namespace, FF_TEXT(":"),
                            ff_str_text(instances.items[i]), FF_TEXT(":caps"));
        ff_str *csv = ff_hash_peek(&t, record, W(caps_csv));
        ff_capability_set *set = &r->workers[r->count];
        if (!csv) continue;
        if (!ff_capability_parse(&r->arena, ff_arena_dup(&r->arena, ff_str_text(csv)), set)) {
            r->count++;
        }
    }
    ff_txn_discard(&t);
    ff_txn_end(&t);
}

static roster *find(ff_text namespace) {
    for (size_t i = 0; i < roster_count; i++) {
        if (ff_text_equal(rosters[i].namespace, namespace)) return &rosters[i];
    }
    return NULL;
}

/* The first one makes room when there are too many. */
static roster *make(void) {
    if (roster_count < NAMESPACES_MAX) return &rosters[roster_count++];
    return &rosters[0];
}

static const roster *roster_of(ValkeyModuleCtx *ctx, double now, ff_text namespace) {
    roster *r = find(namespace);
    if (r && r->generation == generation && now >= r->read_at && now - r->read_at < BELIEVED_MS) {
        return r;
    }
    if (!r) r = make();
    ff_arena_release(&r->arena);
    *r = (roster){.read_at = now, .generation = generation};
    ff_arena_init(&r->arena, NULL, 0);
    r->namespace = ff_arena_dup(&r->arena, namespace);
    read_workers(ctx, r);
    return r;
}

bool ff_route_has_worker(ValkeyModuleCtx *ctx, double now, ff_text namespace,
                         const ff_capability_set *required) {
    if (ff_text_is_absent(namespace)) return false;
    const roster *r = roster_of(ctx, now, namespace);
    for (size_t i = 0; i < r->count; i++) {
        if (ff_capability_covers(&r->workers[i], required)) return true;
    }
    return false;
}
