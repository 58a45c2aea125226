/* Workers: who claims executions.
 *
 * A worker instance announces itself with its lanes and capabilities and then sends heartbeats. Two keys
 * live as long as its time to live: `alive`, which says that it is there, and `caps`, which says what it
 * can do. The index of instances has no expiry: it keeps those that are gone. */
#ifndef FF_ENGINE_WORKER_H
#define FF_ENGINE_WORKER_H

#include "engine/result.h"

/* ff_register_worker. A key that is NULL is left out: in a cluster it may belong to another node. */
typedef struct ff_worker_register_keys {
    ff_str *alive, *caps, *workers;
} ff_worker_register_keys;

typedef struct ff_worker_register_args {
    ff_str *instance_id, *worker_id, *lanes_csv, *caps_csv, *ttl_ms, *now_ms;
} ff_worker_register_args;

ff_verdict ff_worker_register(ff_txn *t, const ff_worker_register_keys *k,
                              const ff_worker_register_args *a, ff_result *out);

/* ff_heartbeat_worker. A NULL alive key is left out likewise; without the caps nobody is registered. */
typedef struct ff_worker_heartbeat_keys {
    ff_str *alive, *caps;
} ff_worker_heartbeat_keys;

typedef struct ff_worker_heartbeat_args {
    ff_str *now_ms;
} ff_worker_heartbeat_args;

ff_verdict ff_worker_heartbeat(ff_txn *t, const ff_worker_heartbeat_keys *k,
                               const ff_worker_heartbeat_args *a, ff_result *out);

/* Takes a worker out, keys that are NULL excepted. Whether it was there is not looked at. */
void ff_worker_dismiss(ff_txn *t, const ff_worker_register_keys *k, ff_str *instance_id);

#endif
