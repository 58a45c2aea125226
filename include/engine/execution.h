/* Executions: the unit of work.
 *
 * An execution is a `core` hash, a few keys beside it (payload, result, policy, tags) and its entries in the
 * indexes of its partition. It is born runnable; a claim makes it active; it ends terminal. In between it
 * may wait: delayed, blocked, suspended. */
#ifndef FF_ENGINE_EXECUTION_H
#define FF_ENGINE_EXECUTION_H

#include "engine/result.h"

/* ff_create_execution */
typedef struct ff_execution_create_keys {
    ff_str *core, *payload, *policy, *tags, *schedule, *idempotency, *deadlines, *all_executions;
} ff_execution_create_keys;

typedef struct ff_execution_create_args {
    ff_str *execution_id, *namespace, *lane_id, *execution_kind, *priority, *creator_identity,
        *policy_json, *input_payload, *delay_until, *dedup_ttl_ms, *tags_json,
        *execution_deadline_at, *partition_id;
} ff_execution_create_args;

ff_verdict ff_execution_create(ff_txn *t, const ff_execution_create_keys *k,
                               const ff_execution_create_args *a, ff_result *out);

#endif
