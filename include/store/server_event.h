/* Server events: a changed role, a fork, a setting.
 *
 * The server keeps one callback for each event and module: a second subscription replaces the first without a
 * word. So whoever wants to know says so here. */
#ifndef FF_STORE_SERVER_EVENT_H
#define FF_STORE_SERVER_EVENT_H

#include "valkeymodule.h"

typedef void ff_server_event_listener(ValkeyModuleCtx *ctx, uint64_t sub, void *data);

void ff_server_event_hear(ValkeyModuleCtx *ctx, ValkeyModuleEvent event,
                          ff_server_event_listener *listener);

#endif
