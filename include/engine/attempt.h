/* Attempts, and the leases they run under.
 *
 * An attempt is one run at an execution: a record numbered from 0, started by a claim and ended
 * by whatever ends the run. An attempt that was paused (delayed, suspended) is taken up again by
 * a later claim and stays the same attempt. Either way the worker gets a new lease, whose epoch
 * is one above that of the lease before. */
#ifndef FF_ENGINE_ATTEMPT_H
#define FF_ENGINE_ATTEMPT_H

#include "engine/lease.h"

/* A worker taking an execution. All claims fill it in while they check; what follows the checks
 * writes from it and refuses nothing. */
typedef struct ff_claim {
    ff_key *core;
    ff_str *execution_id, *worker_id, *worker_instance_id, *lane;
    ff_str *lease_id, *lease_epoch;
    ff_str *attempt_id, *attempt_index;
    ff_str *attempt_count; /* with a new attempt: how many there are then */
    double expires_at;
    ff_str *expires_text, *renewal_text;
} ff_claim;

/* Whether another worker may take an active execution over: FF_OK once its lease was marked as
 * expired, or revoked. */
ff_code ff_claim_check_reclaimable(ff_key *core);

/* Rule TAG over the key of the core. False after a refusal was put into `out`, when it has none. */
bool ff_claim_tag(const ff_str *core, ff_text *tag, ff_result *out);

/* Where no time is given for it, a lease is to be renewed after two thirds, cut to milliseconds. */
double ff_claim_renew_after(double ttl);

/* When the lease ends, and when its holder should renew it, both from now. Must not be nan. */
void ff_claim_set_times(ff_claim *claim, double ttl, double renew_after);

/* Fill in what the core counts on: the next epoch, and the number of a new attempt. False after a
 * refusal was put into `out`, when no number is stored there. */
bool ff_claim_next_epoch(ff_claim *claim, ff_result *out);
bool ff_claim_next_attempt(ff_claim *claim, ff_result *out);

/* Starts a new attempt: its record, its usage, its place among the attempts, and what the core
 * says of it. The record is returned, for what tells where the attempt comes from. */
ff_key *ff_attempt_start(const ff_claim *claim, ff_text tag, const ff_word *type, ff_str *attempts);

/* Takes up the paused attempt whose record is named. */
void ff_attempt_resume(const ff_claim *claim, ff_str *attempt);

/* Hands out the lease: its record, the core, the places (attempt timeouts excepted). What the
 * core says of the lease before must have been read. */
void ff_claim_hand_out(const ff_claim *claim, const ff_lease_places *places);

/* The reply of all claims but the operator's. */
ff_verdict ff_claim_reply(ff_result *out, const ff_claim *claim, const ff_word *type);

/* Empties what the core says about how the lease before ended. */
void ff_claim_clear_marks(ff_key *core);

#endif
