/* Cancellation: an execution ends from wherever it is. */
#ifndef FF_ENGINE_CANCELLATION_H
#define FF_ENGINE_CANCELLATION_H

#include "engine/result.h"

/* ff_cancel_execution */
typedef struct ff_execution_cancel_keys {
    ff_str *core, *attempt, *stream_meta, *lease, *history, *lease_expiry, *worker_leases,
        *suspension, *waitpoint, *condition, *suspension_timeout, *terminal, *attempt_timeout,
        *execution_deadline, *eligible, *delayed, *blocked_dependencies, *blocked_budget,
        *blocked_quota, *blocked_route, *blocked_operator;
} ff_execution_cancel_keys;

typedef struct ff_execution_cancel_args {
    ff_str *execution_id, *reason, *source, *lease_id, *lease_epoch;
} ff_execution_cancel_args;

ff_verdict ff_execution_cancel(ff_txn *t, const ff_execution_cancel_keys *k,
                               const ff_execution_cancel_args *a, ff_result *out);

#endif
