#include "store/event.h"

#include "store/server_event.h"
#include "store/setting.h"

static bool others_listen = true;
static ff_event_listener *own_listener;

static bool clients_may_listen(ValkeyModuleCtx *ctx) {
    char room[FF_SETTING_MAX];
    return ff_setting_read(ctx, "notify-keyspace-events", room).len > 0;
}

/* An entry of the list begins with "name" and the name. The module itself is missing while it is loaded. */
static bool is_this_module(ValkeyModuleCallReply *entry) {
    size_t length;
    ValkeyModuleCallReply *name = ValkeyModule_CallReplyArrayElement(entry, 1);
    const char *text = name ? ValkeyModule_CallReplyStringPtr(name, &length) : NULL;
    return text && ff_text_equal(ff_text_make(text, length), FF_TEXT("ff"));
}

static bool modules_may_listen(ValkeyModuleCtx *ctx) {
    ValkeyModuleCallReply *modules = ValkeyModule_Call(ctx, "MODULE", "c", "LIST");
    if (modules == NULL) return true;
    size_t others = ValkeyModule_CallReplyLength(modules);
    for (size_t i = 0; i < ValkeyModule_CallReplyLength(modules); i++) {
        if (is_this_module(ValkeyModule_CallReplyArrayElement(modules, i))) others--;
    }
    ValkeyModule_FreeCallReply(modules);
    return others > 0;
}

static void ask(ValkeyModuleCtx *ctx) {
    others_listen = clients_may_listen(ctx) || modules_may_listen(ctx);
}

static void on_change(ValkeyModuleCtx *ctx, uint64_t sub, void *data) {
    (void)sub;
    (void)data;
    ask(ctx);
}

void ff_event_load(ValkeyModuleCtx *ctx) {
    ff_server_event_hear(ctx, ValkeyModuleEvent_Config, on_change);
    ff_server_event_hear(ctx, ValkeyModuleEvent_ModuleChange, on_change);
    ask(ctx);
}

void ff_event_hear(ff_event_listener *listener) { own_listener = listener; }

void ff_event_send(ValkeyModuleCtx *ctx, int type, const char *event, ff_str *key) {
    if (others_listen || own_listener == NULL) {
        ValkeyModule_NotifyKeyspaceEvent(ctx, type, event, key);
    } else {
        own_listener(ctx, key);
    }
}
