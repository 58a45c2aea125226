#include <math.h>

#include "engine/attempt.h"
#include "engine/claim.h"
#include "engine/completion.h"
#include "engine/document.h"
#include "engine/history.h"
#include "engine/keyname.h"
#include "engine/vector.h"

enum { CAP_DEFAULT = 100 };

/* How often the execution may be reclaimed: what its policy says, else the argument, else 100. The
 * argument must be a number even where the policy decides. */
static bool read_cap(ff_txn *t, const ff_claim_reclaim_keys *k, const ff_claim_reclaim_args *a,
                     double *cap, ff_result *out) {
    *cap = CAP_DEFAULT;
    if (a->max_reclaim_count && !ff_str_to_number(a->max_reclaim_count, cap)) {
        ff_not_a_number(out, "max_reclaim_count", a->max_reclaim_count);
        return false;
    }
    ff_str *policy =
        ff_string_get(ff_string_open(t, ff_keyname_beside_core(t, k->core, ":policy")));
    const ff_json *member = ff_json_member(ff_document_read(t, policy), "max_reclaim_count");
    if (!member || ff_json_to_number(member, cap)) return true;
    ff_bad_input(out, "max_reclaim_count of the policy must be a number");
    return false;
}

static void end_core(ff_key *core) {
    ff_vector_set(core, &(ff_vector){W(terminal), W(unowned), W(not_applicable), W(none), W(failed),
                                     W(attempt_terminal), W(failed), W(empty)->str});
    ff_hash_set_word(core, W(failure_reason), W(max_reclaims_exceeded));
    ff_hash_set_now(core, W(completed_at));
    FF_CLEAR(core, W(current_lease_id), W(current_worker_id), W(current_worker_instance_id));
    ff_vector_set_times(core, ff_str_now(ff_key_txn(core)));
}

static ff_str *home_lane(ff_key *core) {
    ff_str *lane = ff_hash_get(core, W(lane_id));
    return ff_str_or(lane ? lane : ff_hash_get(core, W(current_lane)), W(default));
}

/* Ends the execution. Unlike any other end it leaves the attempt as it is and publishes nothing. */
static ff_verdict end_over_cap(ff_key *core, const ff_claim_reclaim_keys *k, ff_str *execution_id,
                               double cap, ff_result *out) {
    ff_txn *t = out->txn;
    ff_text tag;
    if (!ff_claim_tag(k->core, &tag, out)) return FF_DISCARD;
    const ff_str *instance = ff_hash_get(core, W(current_worker_instance_id));
    if (ff_str_is_set(instance)) {
        ff_str *leases = ff_keyname_worker_leases(t, tag, ff_str_text(instance));
        ff_set_remove(ff_set_open(t, leases), execution_id);
    }
    ff_str *terminal = ff_keyname_lane(t, tag, ff_str_text(home_lane(core)), "terminal");
    end_core(core);
    ff_key_delete(ff_any_open(t, k->lease));
    ff_zset_remove(ff_zset_open(t, k->lease_expiry), execution_id);
    ff_set_remove(ff_set_open(t, k->worker_leases), execution_id);
    ff_zset_remove(ff_zset_open(t, k->active), execution_id);
    ff_zset_remove(ff_zset_open(t, k->attempt_timeouts), execution_id);
    ff_zset_remove(ff_zset_open(t, k->deadlines), execution_id);
    ff_zset_add(ff_zset_open(t, terminal), execution_id, t->now);
    ff_completion_note(t, ff_hash_get(core, W(flow_id)), execution_id);
    ff_result_add_number(out, cap);
    return ff_refuse_keeping(out, FF_MAX_RETRIES_EXHAUSTED);
}

/* True when the claim is complete and nothing more can be refused. */
static bool prepare(ff_claim *claim, const ff_claim_reclaim_args *a, double ttl, ff_text *tag,
                    ff_result *out) {
    if (!ff_claim_tag(ff_key_name(claim->core), tag, out)) return false;
    if (!ff_claim_next_epoch(claim, out) || !ff_claim_next_attempt(claim, out)) return false;
    if (a->attempt_id == NULL) {
        ff_too_few_arguments(out, "at least 7", FF_GIVEN(a));
        return false;
    }
    if (isnan(ttl)) {
        ff_not_a_number(out, "lease_ttl_ms", a->lease_ttl_ms);
        return false;
    }
    ff_claim_set_times(claim, ttl, ff_claim_renew_after(ttl));
    return true;
}

static void end_old_attempt(ff_txn *t, const ff_claim_reclaim_keys *k, ff_str *reason) {
    ff_key *attempt = ff_hash_open(t, k->old_attempt);
    ff_hash_set_word(attempt, W(attempt_state), W(interrupted_reclaimed));
    ff_hash_set_now(attempt, W(ended_at));
    ff_hash_set(attempt, W(failure_reason), reason);
    ff_key *meta = ff_hash_open(t, k->old_stream_meta);
    if (!ff_key_exists(meta)) return;
    ff_hash_set_now(meta, W(closed_at));
    ff_hash_set_word(meta, W(closed_reason), W(reclaimed));
}

static void leave_old_worker(ff_key *core, const ff_claim *claim, ff_text tag) {
    const ff_str *instance = ff_hash_get(core, W(current_worker_instance_id));
    if (!ff_str_is_set(instance) || ff_str_equal(instance, claim->worker_instance_id)) return;
    ff_txn *t = ff_key_txn(core);
    ff_str *leases = ff_keyname_worker_leases(t, tag, ff_str_text(instance));
    ff_set_remove(ff_set_open(t, leases), claim->execution_id);
}

static void take_over(const ff_claim *claim, const ff_claim_reclaim_keys *k, ff_text tag,
                      double reclaims) {
    ff_key *core = claim->core;
    ff_txn *t = ff_key_txn(core);
    ff_str *previous = ff_str_or(ff_hash_get(core, W(current_attempt_index)), W(zero));
    ff_str *old_epoch = ff_hash_get(core, W(current_lease_epoch));
    ff_str *reason =
        FF_CONCAT(t, FF_TEXT("lease_"), ff_str_text(ff_hash_get(core, W(ownership_state))));
    end_old_attempt(t, k, reason);
    ff_key *attempt = ff_attempt_start(claim, tag, W(reclaim), k->attempts);
    ff_hash_set(attempt, W(reclaim_reason), reason);
    ff_hash_set(attempt, W(previous_attempt_index), previous);
    leave_old_worker(core, claim, tag);
    ff_claim_clear_marks(core);
    ff_hash_set_number(core, W(lease_reclaim_count), reclaims + 1);
    FF_HISTORY(ff_stream_open(t, k->history), {W(event), W(reclaimed)->str},
               {W(old_lease_epoch), old_epoch}, {W(new_lease_id), claim->lease_id},
               {W(new_lease_epoch), claim->lease_epoch}, {W(new_attempt_id), claim->attempt_id},
               {W(new_attempt_index), claim->attempt_index}, {W(worker_id), claim->worker_id});
}

ff_verdict ff_claim_reclaim(ff_txn *t, const ff_claim_reclaim_keys *k,
                            const ff_claim_reclaim_args *a, ff_result *out) {
    double ttl;
    double reclaims;
    double cap;
    if (!ff_str_to_number(a->lease_ttl_ms, &ttl)) {
        return ff_not_a_number(out, "lease_ttl_ms", a->lease_ttl_ms);
    }
    ff_key *core = ff_hash_open(t, k->core);
    ff_code refused = ff_claim_check_reclaimable(core);
    if (refused) return ff_refuse(out, refused);
    if (ff_hash_number(core, W(lease_reclaim_count), &reclaims) == FF_NUMBER_BAD) {
        return ff_not_a_number_field(out, W(lease_reclaim_count),
                                     ff_hash_get(core, W(lease_reclaim_count)));
    }
    if (!read_cap(t, k, a, &cap, out)) return FF_DISCARD;
    if (reclaims >= cap) return end_over_cap(core, k, a->execution_id, cap, out);
    ff_key *grant = ff_hash_open(t, k->grant);
    if (!ff_str_equal(ff_hash_get(grant, W(worker_id)), a->worker_id)) {
        return ff_refuse(out, FF_INVALID_CLAIM_GRANT);
    }
    ff_claim claim = {core,
                      a->execution_id,
                      a->worker_id,
                      a->worker_instance_id,
                      a->lane,
                      .lease_id = a->lease_id,
                      .attempt_id = a->attempt_id};
    ff_text tag;
    if (!prepare(&claim, a, ttl, &tag, out)) return FF_DISCARD;

    ff_key_delete(grant);
    take_over(&claim, k, tag, reclaims);
    ff_claim_hand_out(
        &claim, &(ff_lease_places){k->lease, k->lease_expiry, k->worker_leases, k->active, NULL});
    return ff_claim_reply(out, &claim, W(reclaim));
}
