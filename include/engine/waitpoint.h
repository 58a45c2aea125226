/* Waitpoints: named doors on which signals may knock.
 *
 * A waitpoint is born active, together with the suspension that waits on it; or pending, announced by a
 * worker that still runs, so that signals which come early are kept. A pending one becomes active when
 * the worker suspends on it. It ends closed. Whoever signals it must show its token (engine/token.h). */
#ifndef FF_ENGINE_WAITPOINT_H
#define FF_ENGINE_WAITPOINT_H

#include "engine/result.h"

typedef struct ff_waitpoint {
    ff_str *id, *key, *token;
} ff_waitpoint;

/* Whom a waitpoint belongs to. */
typedef struct ff_waitpoint_owner {
    ff_str *execution_id, *attempt_index, *suspension_id;
} ff_waitpoint_owner;

/* Writes the record of a waitpoint that is active from now on, over whatever is there. */
void ff_waitpoint_write_active(ff_key *record, const ff_waitpoint *waitpoint,
                               const ff_waitpoint_owner *owner, ff_str *expires_at);

/* Rule PENDING-CHECK: FF_OK, the refusal, or FF_INVALID_INPUT when the stored expiry is no number. */
ff_code ff_waitpoint_check_pending(ff_key *record, const ff_str *execution_id,
                                   const ff_str *attempt_index);

/* ff_create_pending_waitpoint */
typedef struct ff_waitpoint_create_keys {
    ff_str *core, *waitpoint, *pending_waitpoint_expiry, *keystore;
} ff_waitpoint_create_keys;

typedef struct ff_waitpoint_create_args {
    ff_str *execution_id, *attempt_index, *waitpoint_id, *waitpoint_key, *expires_at;
} ff_waitpoint_create_args;

ff_verdict ff_waitpoint_create(ff_txn *t, const ff_waitpoint_create_keys *k,
                               const ff_waitpoint_create_args *a, ff_result *out);

/* ff_close_waitpoint */
typedef struct ff_waitpoint_close_keys {
    ff_str *core, *waitpoint, *pending_waitpoint_expiry;
} ff_waitpoint_close_keys;

typedef struct ff_waitpoint_close_args {
    ff_str *waitpoint_id, *reason;
} ff_waitpoint_close_args;

ff_verdict ff_waitpoint_close(ff_txn *t, const ff_waitpoint_close_keys *k,
                              const ff_waitpoint_close_args *a, ff_result *out);

#endif
