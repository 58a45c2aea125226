/* Leases: the right to run an execution, for a time.
 *
 * A lease is an id, an epoch that only grows, and a time at which it runs out. The triple (lease id,
 * epoch, attempt id) fences every call of a worker: one that lost its lease without noticing can do no
 * harm. An execution stays `active` while its lease is live, has run out, or was revoked; what tells
 * them apart is `ownership_state`. */
#ifndef FF_ENGINE_LEASE_H
#define FF_ENGINE_LEASE_H

#include "engine/result.h"

typedef struct ff_fence {
    ff_str *lease_id;
    ff_str *lease_epoch;
    ff_str *attempt_id;
} ff_fence;

/* Rule FENCE-STRICT: FF_OK when all three are set, else the refusal. */
ff_code ff_fence_require(const ff_fence *fence);

/* Rule FENCE-OVERRIDE: an empty fence is filled in from the core if the source is operator_override. */
ff_code ff_fence_resolve(ff_key *core, ff_fence *fence, const ff_str *source);

/* Rule LEASE-CHECK: FF_OK when the fence names the live lease of the core. FF_INVALID_INPUT when the stored
 * expiry is no number. */
ff_code ff_lease_check(ff_key *core, const ff_fence *fence);

/* Has the lease of the core run out? FF_OK: no. FF_LEASE_EXPIRED, or FF_INVALID_INPUT as above. */
ff_code ff_lease_check_expiry(ff_key *core);

/* Answers a refusal of the checks above: adds the details of execution_not_active, and marks a lapsed
 * lease as expired (rule MARK-EXPIRED), which is kept although the call is refused. */
ff_verdict ff_lease_refuse(ff_result *out, ff_code code, ff_key *core, ff_str *history,
                           int64_t history_maxlen);

/* Rule GATE: core exists, FENCE-OVERRIDE, LEASE-CHECK-MARK. True when the caller may go on; otherwise the
 * refusal is in `out`, and `verdict` is what the operation must return. */
bool ff_lease_gate(ff_key *core, ff_str *history, ff_fence *fence, const ff_str *source,
                   ff_result *out, ff_verdict *verdict);

/* Adds the four details of execution_not_active and refuses. */
ff_verdict ff_refuse_not_active(ff_result *out, ff_key *core);

/* Rule MARK-EXPIRED. */
void ff_lease_mark_expired_now(ff_key *core, ff_str *history, int64_t history_maxlen);

/* Where a live lease shows, apart from the core. */
typedef struct ff_lease_places {
    ff_str *record, *lease_expiry, *worker_leases, *active, *attempt_timeout;
} ff_lease_places;

/* Empties the fields of the core that tell of the lease and its holder. Epoch and attempt stay, and so
 * does what an earlier expiry or revocation has left. */
void ff_lease_clear(ff_key *core);

/* Gives the lease up: ff_lease_clear, and the execution leaves the places. */
void ff_lease_release(ff_key *core, const ff_lease_places *places, ff_str *execution_id);

/* The history entry `released`. Without an attempt id in the fence it has no such field. */
void ff_lease_note_release(ff_txn *t, ff_str *history, const ff_fence *fence, ff_str *attempt_index,
                           ff_str *reason);

/* ff_renew_lease */
typedef struct ff_lease_renew_keys {
    ff_str *core, *lease, *history, *lease_expiry;
} ff_lease_renew_keys;

typedef struct ff_lease_renew_args {
    ff_str *execution_id, *attempt_index, *attempt_id, *lease_id, *lease_epoch, *lease_ttl_ms,
        *lease_history_grace_ms;
} ff_lease_renew_args;

ff_verdict ff_lease_renew(ff_txn *t, const ff_lease_renew_keys *k, const ff_lease_renew_args *a,
                          ff_result *out);

/* ff_mark_lease_expired_if_due. Every outcome is a success. */
typedef struct ff_lease_mark_expired_keys {
    ff_str *core, *lease, *lease_expiry, *history;
} ff_lease_mark_expired_keys;

typedef struct ff_lease_mark_expired_args {
    ff_str *execution_id;
} ff_lease_mark_expired_args;

ff_verdict ff_lease_mark_expired(ff_txn *t, const ff_lease_mark_expired_keys *k,
                                 const ff_lease_mark_expired_args *a, ff_result *out);

/* ff_revoke_lease */
typedef struct ff_lease_revoke_keys {
    ff_str *core, *lease, *history, *lease_expiry, *worker_leases;
} ff_lease_revoke_keys;

typedef struct ff_lease_revoke_args {
    ff_str *execution_id, *expected_lease_id, *reason;
} ff_lease_revoke_args;

ff_verdict ff_lease_revoke(ff_txn *t, const ff_lease_revoke_keys *k, const ff_lease_revoke_args *a,
                           ff_result *out);

#endif
