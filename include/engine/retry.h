/* Failure and retry: an attempt that fails leads to another one later, or ends its execution. */
#ifndef FF_ENGINE_RETRY_H
#define FF_ENGINE_RETRY_H

#include "engine/result.h"

/* ff_fail_execution */
typedef struct ff_execution_fail_keys {
    ff_str *core, *attempt, *lease_expiry, *worker_leases, *terminal, *delayed, *lease, *history,
        *active, *stream_meta, *attempt_timeout, *execution_deadline;
} ff_execution_fail_keys;

typedef struct ff_execution_fail_args {
    ff_str *execution_id, *lease_id, *lease_epoch, *attempt_id, *failure_reason, *failure_category,
        *retry_policy_json, *source;
} ff_execution_fail_args;

ff_verdict ff_execution_fail(ff_txn *t, const ff_execution_fail_keys *k,
                             const ff_execution_fail_args *a, ff_result *out);

#endif
