/* Pauses: the holder of an active execution parks it, until a time or until its children end. The attempt is
 * interrupted, not ended: the execution is later claimed as resumed. */
#ifndef FF_ENGINE_PAUSE_H
#define FF_ENGINE_PAUSE_H

#include "engine/result.h"

/* Pauses an attempt; the suspension id says what for. */
void ff_attempt_suspend(ff_key *attempt, ff_str *suspension_id);

/* ff_delay_execution */
typedef struct ff_execution_delay_keys {
    ff_str *core, *attempt, *lease, *history, *lease_expiry, *worker_leases, *active, *delayed,
        *attempt_timeout;
} ff_execution_delay_keys;

typedef struct ff_execution_delay_args {
    ff_str *execution_id, *lease_id, *lease_epoch, *attempt_id, *delay_until, *source;
} ff_execution_delay_args;

ff_verdict ff_execution_delay(ff_txn *t, const ff_execution_delay_keys *k,
                              const ff_execution_delay_args *a, ff_result *out);

/* ff_move_to_waiting_children */
typedef struct ff_execution_wait_children_keys {
    ff_str *core, *attempt, *lease, *history, *lease_expiry, *worker_leases, *active,
        *blocked_dependencies, *attempt_timeout;
} ff_execution_wait_children_keys;

typedef struct ff_execution_wait_children_args {
    ff_str *execution_id, *lease_id, *lease_epoch, *attempt_id, *source;
} ff_execution_wait_children_args;

ff_verdict ff_execution_wait_children(ff_txn *t, const ff_execution_wait_children_keys *k,
                                      const ff_execution_wait_children_args *a, ff_result *out);

#endif
