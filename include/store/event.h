/* Keyspace events of the module's own writes.
 *
 * An event that goes through the server costs about a thousand instructions, nearly all of them for the way
 * back into this module, which watches its own keys; a claim sends ten. While nobody else can be listening,
 * because `notify-keyspace-events` is empty and no other module is loaded, the module's listener is called
 * directly. */
#ifndef FF_STORE_EVENT_H
#define FF_STORE_EVENT_H

#include "store/txn.h"

/* Learns who else may be listening, and follows changes of that. */
void ff_event_load(ValkeyModuleCtx *ctx);

/* The one who is told of each event that does not go through the server. */
typedef void ff_event_listener(ValkeyModuleCtx *ctx, ff_str *key);
void ff_event_hear(ff_event_listener *listener);

void ff_event_send(ValkeyModuleCtx *ctx, int type, const char *event, ff_str *key);

#endif
