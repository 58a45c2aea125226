/* Endings: how an execution becomes terminal. Cancellation and failure have files of their own. */
#ifndef FF_ENGINE_ENDING_H
#define FF_ENGINE_ENDING_H

#include "engine/result.h"

/* Makes the core terminal: state vector, completed_at and the times of the change. The public state is the
 * outcome, or `completed` after a success. */
void ff_ending_write(ff_key *core, const ff_word *outcome, ff_str *attempt_state);

/* The attempt state of an execution that ends without a look at its attempt: terminal if there ever was
 * one, else as stored, or `none`. */
ff_str *ff_ending_attempt_state(ff_key *core);

/* Ends an attempt in that state; no failure reason is written when it is NULL. The record is made if it
 * was not there. */
void ff_attempt_end(ff_key *attempt, const ff_word *state, ff_str *failure_reason);

/* Closes an attempt's stream, over an earlier close too, if its record exists. */
void ff_attempt_close_stream(ff_txn *t, ff_str *stream_meta, const ff_word *reason);

/* ff_complete_execution */
typedef struct ff_execution_complete_keys {
    ff_str *core, *attempt, *lease_expiry, *worker_leases, *terminal, *lease, *history, *active,
        *stream_meta, *result, *attempt_timeout, *execution_deadline;
} ff_execution_complete_keys;

typedef struct ff_execution_complete_args {
    ff_str *execution_id, *lease_id, *lease_epoch, *attempt_id, *result_payload, *source;
} ff_execution_complete_args;

ff_verdict ff_execution_complete(ff_txn *t, const ff_execution_complete_keys *k,
                                 const ff_execution_complete_args *a, ff_result *out);

/* ff_expire_execution: the caller has found that its time is up; nothing is compared with the clock. */
typedef struct ff_execution_expire_keys {
    ff_str *core, *attempt, *stream_meta, *lease, *history, *lease_expiry, *worker_leases, *active,
        *terminal, *attempt_timeout, *execution_deadline, *suspended, *suspension_timeout,
        *suspension;
} ff_execution_expire_keys;

typedef struct ff_execution_expire_args {
    ff_str *execution_id, *reason;
} ff_execution_expire_args;

ff_verdict ff_execution_expire(ff_txn *t, const ff_execution_expire_keys *k,
                               const ff_execution_expire_args *a, ff_result *out);

#endif
