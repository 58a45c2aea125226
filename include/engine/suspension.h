/* Suspensions: an execution gives its lease back and waits.
 *
 * The record (suspension:current) is written by the suspend; it says what is waited for, until when, and
 * what happens then. `closed_at` set means that the suspension is over: a resume by hand, a signal or a
 * timeout has ended it. The record stays until the next suspension takes its place. Beside it are the
 * waitpoints (engine/waitpoint.h), each with a condition record (engine/condition.h). */
#ifndef FF_ENGINE_SUSPENSION_H
#define FF_ENGINE_SUSPENSION_H

#include "engine/result.h"

/* ff_suspend_execution. Each extra waitpoint has three more keys (record, signals, condition) and two more
 * arguments (id, key). */
typedef struct ff_suspension_begin_keys {
    ff_str *core, *attempt, *lease, *history, *lease_expiry, *worker_leases, *suspension,
        *waitpoint, *signals, *suspension_timeout, *pending_waitpoint_expiry, *active, *suspended,
        *waitpoints, *condition, *attempt_timeout, *keystore, *idempotency;
    ff_strs extras;
} ff_suspension_begin_keys;

typedef struct ff_suspension_begin_args {
    ff_str *execution_id, *attempt_index, *attempt_id, *lease_id, *lease_epoch, *suspension_id,
        *waitpoint_id, *waitpoint_key, *reason_code, *requested_by, *timeout_at,
        *resume_condition_json, *resume_policy_json, *continuation_metadata_pointer,
        *use_pending_waitpoint, *timeout_behavior, *lease_history_maxlen, *idempotency_key,
        *dedup_ttl_ms, *num_extra_waitpoints;
    ff_strs extras;
} ff_suspension_begin_args;

ff_verdict ff_suspension_begin(ff_txn *t, const ff_suspension_begin_keys *k,
                               const ff_suspension_begin_args *a, ff_result *out);

/* ff_resume_execution */
typedef struct ff_suspension_resume_keys {
    ff_str *core, *suspension, *waitpoint, *signals, *suspension_timeout, *eligible, *delayed,
        *suspended;
} ff_suspension_resume_keys;

typedef struct ff_suspension_resume_args {
    ff_str *execution_id, *trigger_type, *resume_delay_ms;
} ff_suspension_resume_args;

ff_verdict ff_suspension_resume(ff_txn *t, const ff_suspension_resume_keys *k,
                                const ff_suspension_resume_args *a, ff_result *out);

/* ff_expire_suspension */
typedef struct ff_suspension_expire_keys {
    ff_str *core, *suspension, *waitpoint, *condition, *attempt, *stream_meta, *suspension_timeout,
        *suspended, *terminal, *eligible, *delayed, *history;
} ff_suspension_expire_keys;

typedef struct ff_suspension_expire_args {
    ff_str *execution_id;
} ff_suspension_expire_args;

ff_verdict ff_suspension_expire(ff_txn *t, const ff_suspension_expire_keys *k,
                                const ff_suspension_expire_args *a, ff_result *out);

#endif
