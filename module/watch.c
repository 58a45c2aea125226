#include "watch.h"

#include "store/event.h"
#include "store/server_event.h"

enum {
    LISTENERS_MAX = 4,
    WALK_PERIOD_MS = 1,
    WALK_KEYS = 200, /* keys looked at in one slice of the walk */
};

typedef struct listener_list {
    ff_watch_listener *items[LISTENERS_MAX];
    size_t count;
} listener_list;

static listener_list of_writes;
static listener_list of_keys;
static void (*of_flush[LISTENERS_MAX])(void);
static size_t flush_count;
static void (*of_vanishing)(ValkeyModuleCtx *ctx);
static ValkeyModuleScanCursor *walk; /* NULL once it is over */

static void add(listener_list *list, ff_watch_listener *listener) {
    if (list->count < LISTENERS_MAX) list->items[list->count++] = listener;
}

static void tell(const listener_list *list, ValkeyModuleCtx *ctx, ValkeyModuleString *key) {
    for (size_t i = 0; i < list->count; i++) list->items[i](ctx, key);
}

void ff_watch_writes(ff_watch_listener *listener) { add(&of_writes, listener); }

void ff_watch_keys(ff_watch_listener *listener) { add(&of_keys, listener); }

void ff_watch_flush(void (*listener)(void)) {
    if (flush_count < LISTENERS_MAX) of_flush[flush_count++] = listener;
}

void ff_watch_vanishing(void (*listener)(ValkeyModuleCtx *ctx)) { of_vanishing = listener; }

static bool is_ours(ValkeyModuleString *key) {
    return ff_text_starts_with(ff_str_text(key), FF_TEXT("ff:"));
}

static void see_write(ValkeyModuleCtx *ctx, ValkeyModuleString *key) {
    if (!is_ours(key) || ValkeyModule_GetSelectedDb(ctx) != 0) return;
    tell(&of_keys, ctx, key);
    tell(&of_writes, ctx, key);
}

static int on_key_event(ValkeyModuleCtx *ctx, int type, const char *event,
                        ValkeyModuleString *key) {
    (void)type;
    (void)event;
    see_write(ctx, key);
    return VALKEYMODULE_OK;
}

static void walked_key(ValkeyModuleCtx *ctx, ValkeyModuleString *name, ValkeyModuleKey *key,
                       void *looked_at) {
    (void)key;
    if (is_ours(name)) tell(&of_keys, ctx, name);
    ++*(int *)looked_at;
}

static void walk_slice(ValkeyModuleCtx *ctx, void *data) {
    (void)data;
    int looked_at = 0;
    while (looked_at < WALK_KEYS) {
        if (!ValkeyModule_Scan(ctx, walk, walked_key, &looked_at)) {
            ValkeyModule_ScanCursorDestroy(walk);
            walk = NULL;
            return;
        }
    }
    ValkeyModule_CreateTimer(ctx, WALK_PERIOD_MS, walk_slice, NULL);
}

static void start_walk(ValkeyModuleCtx *ctx) {
    if (walk) {
        ValkeyModule_ScanCursorRestart(walk);
        return;
    }
    walk = ValkeyModule_ScanCursorCreate();
    ValkeyModule_CreateTimer(ctx, 0, walk_slice, NULL);
}

bool ff_watch_is_complete(void) { return walk == NULL; }

static void on_flush(ValkeyModuleCtx *ctx, uint64_t sub, void *data) {
    const ValkeyModuleFlushInfo *info = data;
    if (sub != VALKEYMODULE_SUBEVENT_FLUSHDB_END || (info->dbnum != -1 && info->dbnum != 0)) return;
    for (size_t i = 0; i < flush_count; i++) of_flush[i]();
    if (of_vanishing) of_vanishing(ctx);
}

static void on_swap(ValkeyModuleCtx *ctx, uint64_t sub, void *data) {
    (void)sub;
    (void)data;
    start_walk(ctx);
    if (of_vanishing) of_vanishing(ctx);
}

int ff_watch_load(ValkeyModuleCtx *ctx) {
    int types = VALKEYMODULE_NOTIFY_ALL | VALKEYMODULE_NOTIFY_LOADED;
    if (ValkeyModule_SubscribeToKeyspaceEvents(ctx, types, on_key_event) != VALKEYMODULE_OK) {
        return VALKEYMODULE_ERR;
    }
    ff_event_hear(see_write);
    ff_server_event_hear(ctx, ValkeyModuleEvent_FlushDB, on_flush);
    ff_server_event_hear(ctx, ValkeyModuleEvent_SwapDB, on_swap);
    start_walk(ctx);
    return VALKEYMODULE_OK;
}

void ff_watch_unload(void) {
    if (walk) ValkeyModule_ScanCursorDestroy(walk);
    walk = NULL;
}
