#include "engine/claim.h"

#include <math.h>

#include "base/number.h"
#include "engine/attempt.h"
#include "engine/document.h"
#include "engine/history.h"
#include "engine/keyname.h"
#include "engine/vector.h"

/* FF_INVALID_INPUT when the grant's expiry is no number. */
static ff_code check_grant(ff_key *grant, const ff_str *worker_id) {
    if (!ff_str_equal(ff_hash_get(grant, W(worker_id)), worker_id)) return FF_INVALID_CLAIM_GRANT;
    const ff_str *expiry = ff_hash_get(grant, W(grant_expires_at));
    double expires_at;
    if (!ff_str_is_set(expiry)) return FF_OK;
    if (!ff_str_to_number(expiry, &expires_at)) return FF_INVALID_INPUT;
    return expires_at < ff_key_txn(grant)->now ? FF_CLAIM_GRANT_EXPIRED : FF_OK;
}

static ff_verdict refuse_grant(ff_result *out, ff_code code, ff_key *grant) {
    if (code != FF_INVALID_INPUT) return ff_refuse(out, code);
    return ff_not_a_number(out, "grant_expires_at", ff_hash_get(grant, W(grant_expires_at)));
}

/* ---- A new attempt ---- */

/* Milliseconds that an argument may give: empty and exactly "0" give none. */
typedef struct duration {
    bool given;
    double ms;
} duration;

static bool read_duration(const char *name, const ff_str *text, duration *d, ff_result *out) {
    d->given = ff_str_is_set(text) && !ff_str_is(text, W(zero));
    if (!d->given || (ff_str_to_number(text, &d->ms) && !isnan(d->ms))) return true;
    ff_not_a_number(out, name, text);
    return false;
}

/* What comes with a new attempt besides its lease. */
typedef struct fresh {
    ff_str *attempts, *attempt_timeouts, *deadlines;
    const ff_str *policy_json, *timeout_ms, *deadline_at;
    ff_text tag;
    const ff_word *type;
    duration timeout;
    duration deadline;
} fresh;

static const ff_word *type_after(const ff_str *attempt_state) {
    if (ff_str_is(attempt_state, W(pending_retry_attempt))) return W(retry);
    if (ff_str_is(attempt_state, W(pending_replay_attempt))) return W(replay);
    return W(initial);
}

static bool prepare_fresh(ff_claim *claim, fresh *f, ff_result *out) {
    if (!ff_claim_tag(ff_key_name(claim->core), &f->tag, out)) return false;
    f->type = type_after(ff_hash_get(claim->core, W(attempt_state)));
    return ff_claim_next_epoch(claim, out) && ff_claim_next_attempt(claim, out) &&
           read_duration("attempt_timeout_ms", f->timeout_ms, &f->timeout, out) &&
           read_duration("execution_deadline_at", f->deadline_at, &f->deadline, out);
}

static void copy_field(ff_key *to, const ff_word *field, ff_key *from, const ff_word *source) {
    ff_hash_set(to, field, ff_str_or_empty(ff_hash_get(from, source)));
}

static void write_lineage(ff_key *attempt, ff_key *core, const ff_word *type) {
    if (type == W(retry)) {
        copy_field(attempt, W(retry_reason), core, W(pending_retry_reason));
        copy_field(attempt, W(previous_attempt_index), core, W(pending_previous_attempt_index));
    } else if (type == W(replay)) {
        copy_field(attempt, W(replay_reason), core, W(pending_replay_reason));
        copy_field(attempt, W(replay_requested_by), core, W(pending_replay_requested_by));
        copy_field(attempt, W(replayed_from_attempt_index), core,
                   W(pending_previous_attempt_index));
    }
    FF_CLEAR(core, W(pending_retry_reason), W(pending_previous_attempt_index),
             W(pending_replay_reason), W(pending_replay_requested_by));
}

static bool write_policy(const ff_claim *claim, const fresh *f, ff_result *out) {
    if (!ff_str_is_set(f->policy_json)) return true;
    ff_txn *t = out->txn;
    const ff_json *policy = ff_document_read(t, f->policy_json);
    if (ff_json_is_container(policy)) {
        if (ff_json_array_length(policy) + ff_json_object_length(policy) == 0) return true;
        ff_str *name = ff_keyname_attempt(t, f->tag, ff_str_text(claim->execution_id),
                                          ff_str_text(claim->attempt_index), ":policy");
        if (ff_document_flatten(ff_hash_open(t, name), policy)) return true;
    }
    ff_bad_input(out, "attempt_policy_json must be a JSON object");
    return false;
}

/* The last thing that may refuse is the policy: false then. */
static bool write_fresh(const ff_claim *claim, const fresh *f, ff_result *out) {
    ff_txn *t = out->txn;
    ff_key *core = claim->core;
    ff_key *attempt = ff_attempt_start(claim, f->tag, f->type, f->attempts);
    write_lineage(attempt, core, f->type);
    if (!ff_str_is_set(ff_hash_get(core, W(started_at)))) ff_hash_set_now(core, W(started_at));
    if (f->timeout.given) {
        ff_zset_add(ff_zset_open(t, f->attempt_timeouts), claim->execution_id,
                    t->now + f->timeout.ms);
    }
    if (f->deadline.given) {
        ff_zset_add(ff_zset_open(t, f->deadlines), claim->execution_id, f->deadline.ms);
    }
    return write_policy(claim, f, out);
}

static ff_code check_fresh(ff_key *core) {
    if (!ff_key_exists(core)) return FF_EXECUTION_NOT_FOUND;
    if (!ff_str_is(ff_hash_get(core, W(lifecycle_phase)), W(runnable))) {
        return FF_EXECUTION_NOT_LEASEABLE;
    }
    if (!ff_str_is(ff_hash_get(core, W(ownership_state)), W(unowned))) return FF_LEASE_CONFLICT;
    if (!ff_str_is(ff_hash_get(core, W(eligibility_state)), W(eligible_now)) ||
        !ff_str_is(ff_hash_get(core, W(terminal_outcome)), W(none))) {
        return FF_EXECUTION_NOT_LEASEABLE;
    }
    const ff_str *attempt_state = ff_hash_get(core, W(attempt_state));
    if (ff_str_is(attempt_state, W(running_attempt))) return FF_ACTIVE_ATTEMPT_EXISTS;
    if (ff_str_is(attempt_state, W(attempt_interrupted))) return FF_USE_CLAIM_RESUMED_EXECUTION;
    return FF_OK;
}

static bool prepare_claim(ff_claim *claim, fresh *f, const ff_claim_fresh_args *a, double ttl,
                          double renew_before, ff_result *out) {
    if (FF_GIVEN(a) < 9) {
        ff_too_few_arguments(out, "at least 9", FF_GIVEN(a));
    } else if (isnan(ttl)) {
        ff_not_a_number(out, "lease_ttl_ms", a->lease_ttl_ms);
    } else if (isnan(renew_before)) {
        ff_not_a_number(out, "renew_before_ms", a->renew_before_ms);
    } else {
        ff_claim_set_times(claim, ttl, renew_before);
        return prepare_fresh(claim, f, out);
    }
    return false;
}

ff_verdict ff_claim_fresh(ff_txn *t, const ff_claim_fresh_keys *k, const ff_claim_fresh_args *a,
                          ff_result *out) {
    double ttl;
    double renew_before;
    if (!ff_str_to_number(a->lease_ttl_ms, &ttl)) {
        return ff_not_a_number(out, "lease_ttl_ms", a->lease_ttl_ms);
    }
    if (!ff_str_to_number(a->renew_before_ms, &renew_before)) {
        return ff_not_a_number(out, "renew_before_ms", a->renew_before_ms);
    }
    ff_key *core = ff_hash_open(t, k->core);
    ff_code refused = check_fresh(core);
    if (refused) return ff_refuse(out, refused);
    ff_key *grant = ff_hash_open(t, k->grant);
    refused = check_grant(grant, a->worker_id);
    if (refused) return refuse_grant(out, refused, grant);
    ff_claim claim = {core,
                      a->execution_id,
                      a->worker_id,
                      a->worker_instance_id,
                      a->lane,
                      .lease_id = a->lease_id,
                      .attempt_id = a->attempt_id};
    fresh f = {k->attempts,
               k->attempt_timeouts,
               k->deadlines,
               .policy_json = a->attempt_policy_json,
               .timeout_ms = a->attempt_timeout_ms,
               .deadline_at = a->execution_deadline_at};
    if (!prepare_claim(&claim, &f, a, ttl, renew_before, out)) return FF_DISCARD;

    ff_key_delete(grant);
    if (!write_fresh(&claim, &f, out)) return FF_DISCARD;
    ff_zset_remove(ff_zset_open(t, k->eligible), a->execution_id);
    ff_claim_hand_out(
        &claim, &(ff_lease_places){k->lease, k->lease_expiry, k->worker_leases, k->active, NULL});
    FF_HISTORY(ff_stream_open(t, k->history), {W(event), W(acquired)->str},
               {W(lease_id), claim.lease_id}, {W(lease_epoch), claim.lease_epoch},
               {W(attempt_id), claim.attempt_id}, {W(attempt_index), claim.attempt_index},
               {W(worker_id), claim.worker_id});
    return ff_claim_reply(out, &claim, f.type);
}

/* ---- The same attempt again ---- */

static bool prepare_resumed(ff_claim *claim, ff_result *out) {
    claim->attempt_id = ff_hash_get(claim->core, W(current_attempt_id));
    claim->attempt_index = ff_hash_get(claim->core, W(current_attempt_index));
    if (!claim->attempt_id || !claim->attempt_index) {
        ff_bad_input(out, "current_attempt_id and current_attempt_index must be on the core");
        return false;
    }
    return ff_claim_next_epoch(claim, out);
}

static void write_resumed(const ff_claim *claim, ff_str *attempt, ff_str *history,
                          const ff_word *reason) {
    ff_attempt_resume(claim, attempt);
    ff_claim_clear_marks(claim->core);
    FF_HISTORY(ff_stream_open(ff_key_txn(claim->core), history), {W(event), W(acquired)->str},
               {W(lease_id), claim->lease_id}, {W(lease_epoch), claim->lease_epoch},
               {W(attempt_index), claim->attempt_index}, {W(attempt_id), claim->attempt_id},
               {W(worker_id), claim->worker_id}, {W(reason), reason->str});
}

static ff_code check_resumed(ff_key *core) {
    if (!ff_key_exists(core)) return FF_EXECUTION_NOT_FOUND;
    if (!ff_str_is(ff_hash_get(core, W(lifecycle_phase)), W(runnable))) {
        return FF_EXECUTION_NOT_LEASEABLE;
    }
    if (!ff_str_is(ff_hash_get(core, W(attempt_state)), W(attempt_interrupted))) {
        return FF_NOT_A_RESUMED_EXECUTION;
    }
    return FF_OK;
}

/* True when the claim is complete and nothing more can be refused. */
static bool prepare_resumed_claim(ff_claim *claim, const ff_claim_resumed_args *a, double ttl,
                                  double *timeout, ff_result *out) {
    if (!prepare_resumed(claim, out)) return false;
    if (ff_str_is_set(a->remaining_attempt_timeout_ms) &&
        !ff_str_to_number(a->remaining_attempt_timeout_ms, timeout)) {
        ff_not_a_number(out, "remaining_attempt_timeout_ms", a->remaining_attempt_timeout_ms);
        return false;
    }
    if (!isfinite(ttl)) {
        ff_not_a_number(out, "lease_ttl_ms", a->lease_ttl_ms);
        return false;
    }
    ff_claim_set_times(claim, ttl, ff_claim_renew_after(ttl));
    return true;
}

ff_verdict ff_claim_resumed(ff_txn *t, const ff_claim_resumed_keys *k,
                            const ff_claim_resumed_args *a, ff_result *out) {
    double ttl;
    double timeout = 0;
    if (!ff_str_to_number(a->lease_ttl_ms, &ttl)) {
        return ff_not_a_number(out, "lease_ttl_ms", a->lease_ttl_ms);
    }
    ff_key *core = ff_hash_open(t, k->core);
    ff_code refused = check_resumed(core);
    if (refused) return ff_refuse(out, refused);
    ff_key *grant = ff_hash_open(t, k->grant);
    refused = check_grant(grant, a->worker_id);
    if (refused == FF_CLAIM_GRANT_EXPIRED) {
        ff_key_delete(grant);
        return ff_refuse_keeping(out, refused);
    }
    if (refused) return refuse_grant(out, refused, grant);
    ff_claim claim = {core,    a->execution_id,        a->worker_id, a->worker_instance_id,
                      a->lane, .lease_id = a->lease_id};
    if (!prepare_resumed_claim(&claim, a, ttl, &timeout, out)) return FF_DISCARD;

    ff_key_delete(grant);
    write_resumed(&claim, k->attempt, k->history, W(claim_resumed));
    ff_zset_remove(ff_zset_open(t, k->eligible), a->execution_id);
    ff_claim_hand_out(
        &claim, &(ff_lease_places){k->lease, k->lease_expiry, k->worker_leases, k->active, NULL});
    if (timeout > 0) {
        ff_zset_add(ff_zset_open(t, k->attempt_timeouts), a->execution_id, t->now + timeout);
    }
    return ff_claim_reply(out, &claim, W(resumed));
}

/* ---- An operator's claim ---- */

static ff_code check_direct(ff_key *core, ff_str *grant) {
    if (!ff_key_exists(core)) return FF_EXECUTION_NOT_FOUND;
    if (!ff_str_is(ff_hash_get(core, W(lifecycle_phase)), W(runnable))) {
        return FF_EXECUTION_NOT_ELIGIBLE;
    }
    if (!ff_str_is(ff_hash_get(core, W(ownership_state)), W(unowned))) return FF_LEASE_CONFLICT;
    if (!ff_str_is(ff_hash_get(core, W(terminal_outcome)), W(none))) {
        return FF_EXECUTION_NOT_ELIGIBLE;
    }
    if (ff_str_is(ff_hash_get(core, W(attempt_state)), W(running_attempt))) {
        return FF_ACTIVE_ATTEMPT_EXISTS;
    }
    return ff_key_exists(ff_any_open(ff_key_txn(core), grant)) ? FF_GRANT_ALREADY_EXISTS : FF_OK;
}

/* True when the claim goes on; else the refusal is in `out`. */
static bool direct_fresh(ff_claim *claim, const ff_claim_direct_keys *k,
                         const ff_claim_direct_args *a, ff_key *eligible, ff_result *out) {
    double score;
    if (!ff_zset_score(eligible, a->execution_id, &score)) {
        ff_refuse(out, FF_EXECUTION_NOT_IN_ELIGIBLE_SET);
        return false;
    }
    if (!ff_str_is(ff_hash_get(claim->core, W(eligibility_state)), W(eligible_now))) {
        ff_refuse(out, FF_EXECUTION_NOT_ELIGIBLE);
        return false;
    }
    if (a->attempt_id == NULL) {
        ff_too_few_arguments(out, "at least 8", FF_GIVEN(a));
        return false;
    }
    claim->attempt_id = a->attempt_id;
    fresh f = {k->attempts,
               k->attempt_timeouts,
               k->deadlines,
               .policy_json = a->attempt_policy_json,
               .timeout_ms = a->attempt_timeout_ms,
               .deadline_at = a->execution_deadline_at};
    if (!prepare_fresh(claim, &f, out) || !write_fresh(claim, &f, out)) return false;
    FF_HISTORY(ff_stream_open(out->txn, k->history), {W(event), W(acquired)->str},
               {W(lease_id), claim->lease_id}, {W(lease_epoch), claim->lease_epoch},
               {W(attempt_id), claim->attempt_id}, {W(attempt_index), claim->attempt_index},
               {W(worker_id), claim->worker_id}, {W(reason), W(issue_grant_and_claim)->str});
    return true;
}

static bool direct_resumed(ff_claim *claim, const ff_claim_direct_keys *k, ff_result *out) {
    ff_text tag;
    if (!ff_claim_tag(k->core, &tag, out) || !prepare_resumed(claim, out)) return false;
    ff_str *attempt = ff_keyname_attempt(out->txn, tag, ff_str_text(claim->execution_id),
                                         ff_str_text(claim->attempt_index), "");
    write_resumed(claim, attempt, k->history, W(issue_grant_and_claim_resumed));
    return true;
}

ff_verdict ff_claim_direct(ff_txn *t, const ff_claim_direct_keys *k, const ff_claim_direct_args *a,
                           ff_result *out) {
    double ttl;
    int64_t expires_at;
    if (!ff_str_to_number(a->lease_ttl_ms, &ttl)) {
        return ff_not_a_number(out, "lease_ttl_ms", a->lease_ttl_ms);
    }
    ff_key *core = ff_hash_open(t, k->core);
    ff_code refused = check_direct(core, k->grant);
    if (refused) return ff_refuse(out, refused);
    /* The grant that is issued and spent in one step would expire with the lease. */
    if (!ff_number_to_integer(t->now + ttl, &expires_at)) {
        return ff_bad_input(out, "lease_ttl_ms must give a whole number of milliseconds that a key "
                                 "expiry can hold");
    }
    ff_claim claim = {core,    a->execution_id,        a->worker_id, a->worker_instance_id,
                      a->lane, .lease_id = a->lease_id};
    ff_claim_set_times(&claim, ttl, ff_claim_renew_after(ttl));
    ff_key *eligible = ff_zset_open(t, k->eligible);
    bool interrupted = ff_str_is(ff_hash_get(core, W(attempt_state)), W(attempt_interrupted));
    if (!(interrupted ? direct_resumed(&claim, k, out)
                      : direct_fresh(&claim, k, a, eligible, out))) {
        return FF_DISCARD;
    }
    ff_zset_remove(eligible, a->execution_id);
    ff_claim_hand_out(
        &claim, &(ff_lease_places){k->lease, k->lease_expiry, k->worker_leases, k->active, NULL});
    ff_result_add(out, claim.lease_id);
    ff_result_add(out, claim.lease_epoch);
    ff_result_add(out, claim.attempt_index);
    return ff_ok(out);
}
