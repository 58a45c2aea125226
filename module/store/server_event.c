#include "store/server_event.h"

#include <stddef.h>

enum { LISTENERS_MAX = 16 };

static struct {
    uint64_t event;
    ff_server_event_listener *tell;
} listeners[LISTENERS_MAX];
static size_t listener_count;

static void tell_all(ValkeyModuleCtx *ctx, ValkeyModuleEvent event, uint64_t sub, void *data) {
    for (size_t i = 0; i < listener_count; i++) {
        if (listeners[i].event == event.id) listeners[i].tell(ctx, sub, data);
    }
}

void ff_server_event_hear(ValkeyModuleCtx *ctx, ValkeyModuleEvent event,
                          ff_server_event_listener *listener) {
    if (listener_count == LISTENERS_MAX) return;
    listeners[listener_count].event = event.id;
    listeners[listener_count++].tell = listener;
    ValkeyModule_SubscribeToServerEvent(ctx, event, tell_all);
}
