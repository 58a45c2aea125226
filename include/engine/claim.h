/* Claims: how a worker comes to run an execution.
 *
 * A claim spends a grant (engine/grant.h) made out to the worker, and gives it a lease on an
 * attempt: on a new one when the execution waited for its first attempt, a retry or a replay; on
 * the same one when the attempt was paused; and on a new one again when another worker lost its
 * lease. An operator needs no grant. */
#ifndef FF_ENGINE_CLAIM_H
#define FF_ENGINE_CLAIM_H

#include "engine/result.h"

/* ff_claim_execution. Attempt, usage and policy keys are built here; those passed are not looked
 * at. */
typedef struct ff_claim_fresh_keys {
    ff_str *core, *grant, *eligible, *lease_expiry, *worker_leases, *attempt, *attempt_usage,
        *attempt_policy, *attempts, *lease, *history, *active, *attempt_timeouts, *deadlines;
} ff_claim_fresh_keys;

typedef struct ff_claim_fresh_args {
    ff_str *execution_id, *worker_id, *worker_instance_id, *lane, *capability_snapshot_hash,
        *lease_id, *lease_ttl_ms, *renew_before_ms, *attempt_id, *attempt_policy_json,
        *attempt_timeout_ms, *execution_deadline_at;
} ff_claim_fresh_args;

ff_verdict ff_claim_fresh(ff_txn *t, const ff_claim_fresh_keys *k, const ff_claim_fresh_args *a,
                          ff_result *out);

/* ff_claim_resumed_execution. The deadlines are not used. */
typedef struct ff_claim_resumed_keys {
    ff_str *core, *grant, *eligible, *lease_expiry, *worker_leases, *attempt, *lease, *history,
        *active, *attempt_timeouts, *deadlines;
} ff_claim_resumed_keys;

typedef struct ff_claim_resumed_args {
    ff_str *execution_id, *worker_id, *worker_instance_id, *lane, *capability_snapshot_hash,
        *lease_id, *lease_ttl_ms, *remaining_attempt_timeout_ms;
} ff_claim_resumed_args;

ff_verdict ff_claim_resumed(ff_txn *t, const ff_claim_resumed_keys *k,
                            const ff_claim_resumed_args *a, ff_result *out);

/* ff_reclaim_execution. The new attempt's keys are built here, the attempt policy is not used.
 * Over the cap of reclaims the execution ends as failed instead, and the call is refused. */
typedef struct ff_claim_reclaim_keys {
    ff_str *core, *grant, *old_attempt, *old_stream_meta, *new_attempt, *new_attempt_usage,
        *attempts, *lease, *history, *lease_expiry, *worker_leases, *active, *attempt_timeouts,
        *deadlines;
} ff_claim_reclaim_keys;

typedef struct ff_claim_reclaim_args {
    ff_str *execution_id, *worker_id, *worker_instance_id, *lane, *lease_id, *lease_ttl_ms,
        *attempt_id, *attempt_policy_json, *max_reclaim_count;
} ff_claim_reclaim_args;

ff_verdict ff_claim_reclaim(ff_txn *t, const ff_claim_reclaim_keys *k,
                            const ff_claim_reclaim_args *a, ff_result *out);

/* ff_issue_grant_and_claim: an operator's claim, of a new or a paused attempt. */
typedef struct ff_claim_direct_keys {
    ff_str *core, *grant, *eligible, *lease_expiry, *worker_leases, *attempts, *lease, *history,
        *active, *attempt_timeouts, *deadlines;
} ff_claim_direct_keys;

typedef struct ff_claim_direct_args {
    ff_str *execution_id, *worker_id, *worker_instance_id, *lane, *capability_snapshot_hash,
        *lease_id, *lease_ttl_ms, *attempt_id, *attempt_policy_json, *attempt_timeout_ms,
        *execution_deadline_at;
} ff_claim_direct_args;

ff_verdict ff_claim_direct(ff_txn *t, const ff_claim_direct_keys *k, const ff_claim_direct_args *a,
                           ff_result *out);

#endif
