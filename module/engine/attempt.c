#include "engine/attempt.h"

#include <math.h>

#include "engine/keyname.h"
#include "engine/vector.h"

ff_code ff_claim_check_reclaimable(ff_key *core) {
    if (!ff_key_exists(core)) return FF_EXECUTION_NOT_FOUND;
    if (!ff_str_is(ff_hash_get(core, W(lifecycle_phase)), W(active))) {
        return FF_EXECUTION_NOT_RECLAIMABLE;
    }
    const ff_str *ownership = ff_hash_get(core, W(ownership_state));
    bool lost = ff_str_is(ownership, W(lease_expired_reclaimable)) ||
                ff_str_is(ownership, W(lease_revoked));
    return lost ? FF_OK : FF_EXECUTION_NOT_RECLAIMABLE;
}

bool ff_claim_tag(const ff_str *core, ff_text *tag, ff_result *out) {
    *tag = ff_tag_of(core);
    if (ff_text_is_absent(*tag)) ff_bad_input(out, "exec_core key has no hash tag");
    return !ff_text_is_absent(*tag);
}

double ff_claim_renew_after(double ttl) { return floor(ttl * 2 / 3); }

void ff_claim_set_times(ff_claim *claim, double ttl, double renew_after) {
    ff_txn *t = ff_key_txn(claim->core);
    claim->expires_at = t->now + ttl;
    claim->expires_text = ff_str_number(t, claim->expires_at);
    claim->renewal_text = ff_str_number(t, t->now + renew_after);
}

/* A counter of the core, 0 without it. */
static bool read_counter(ff_key *core, const ff_word *field, double *count, ff_result *out) {
    if (ff_hash_number(core, field, count) != FF_NUMBER_BAD) return true;
    ff_not_a_number_field(out, field, ff_hash_get(core, field));
    return false;
}

bool ff_claim_next_epoch(ff_claim *claim, ff_result *out) {
    double epoch;
    if (!read_counter(claim->core, W(current_lease_epoch), &epoch, out)) return false;
    claim->lease_epoch = ff_str_number(out->txn, epoch + 1);
    return true;
}

bool ff_claim_next_attempt(ff_claim *claim, ff_result *out) {
    double count;
    if (!read_counter(claim->core, W(total_attempt_count), &count, out)) return false;
    claim->attempt_index = ff_str_number(out->txn, count);
    claim->attempt_count = ff_str_number(out->txn, count + 1);
    return true;
}

static void set_holder(ff_key *record, const ff_claim *claim) {
    ff_hash_set(record, W(lease_id), claim->lease_id);
    ff_hash_set(record, W(lease_epoch), claim->lease_epoch);
    ff_hash_set(record, W(worker_id), claim->worker_id);
    ff_hash_set(record, W(worker_instance_id), claim->worker_instance_id);
}

ff_key *ff_attempt_start(const ff_claim *claim, ff_text tag, const ff_word *type,
                         ff_str *attempts) {
    ff_txn *t = ff_key_txn(claim->core);
    ff_text execution_id = ff_str_text(claim->execution_id);
    ff_text index = ff_str_text(claim->attempt_index);
    ff_key *attempt = ff_hash_open(t, ff_keyname_attempt(t, tag, execution_id, index, ""));
    ff_hash_set(attempt, W(attempt_id), claim->attempt_id);
    ff_hash_set(attempt, W(execution_id), claim->execution_id);
    ff_hash_set(attempt, W(attempt_index), claim->attempt_index);
    ff_hash_set_word(attempt, W(attempt_type), type);
    ff_hash_set_word(attempt, W(attempt_state), W(started));
    ff_hash_set_now(attempt, W(created_at));
    ff_hash_set_now(attempt, W(started_at));
    set_holder(attempt, claim);
    ff_zset_add(ff_zset_open(t, attempts), claim->attempt_index, t->now);
    ff_key *usage = ff_hash_open(t, ff_keyname_attempt(t, tag, execution_id, index, ":usage"));
    ff_hash_set_word(usage, W(last_usage_report_seq), W(zero));
    ff_hash_set(claim->core, W(current_attempt_index), claim->attempt_index);
    ff_hash_set(claim->core, W(total_attempt_count), claim->attempt_count);
    ff_hash_set(claim->core, W(current_attempt_id), claim->attempt_id);
    return attempt;
}

void ff_attempt_resume(const ff_claim *claim, ff_str *attempt) {
    ff_key *record = ff_hash_open(ff_key_txn(claim->core), attempt);
    ff_hash_set_word(record, W(attempt_state), W(started));
    ff_hash_set_now(record, W(resumed_at));
    set_holder(record, claim);
    FF_CLEAR(record, W(suspended_at), W(suspension_id));
}

/* Emptied first, so that nothing of an older lease stays, be it of another type. */
static void write_lease(const ff_claim *claim, ff_str *name) {
    ff_txn *t = ff_key_txn(claim->core);
    ff_key_delete(ff_any_open(t, name));
    ff_key *lease = ff_hash_open(t, name);
    set_holder(lease, claim);
    ff_hash_set(lease, W(execution_id), claim->execution_id);
    ff_hash_set(lease, W(attempt_id), claim->attempt_id);
    ff_hash_set_now(lease, W(acquired_at));
    ff_hash_set(lease, W(expires_at), claim->expires_text);
    ff_hash_set_now(lease, W(last_renewed_at));
    ff_hash_set(lease, W(renewal_deadline), claim->renewal_text);
}

static void write_core(const ff_claim *claim) {
    ff_key *core = claim->core;
    ff_vector_set(core, &(ff_vector){W(active), W(leased), W(not_applicable), W(none), W(none),
                                     W(running_attempt), W(active), W(empty)->str});
    ff_hash_set(core, W(lease_expires_at), claim->expires_text);
    ff_hash_set(core, W(current_lease_id), claim->lease_id);
    ff_hash_set(core, W(current_lease_epoch), claim->lease_epoch);
    ff_vector_set_times(core, ff_str_now(ff_key_txn(core)));
    ff_hash_set_now(core, W(lease_last_renewed_at));
    ff_hash_set(core, W(lease_renewal_deadline), claim->renewal_text);
    ff_hash_set(core, W(current_worker_id), claim->worker_id);
    ff_hash_set(core, W(current_worker_instance_id), claim->worker_instance_id);
    ff_hash_set_now(core, W(lease_acquired_at));
    ff_hash_set(core, W(current_lane), claim->lane);
}

void ff_claim_hand_out(const ff_claim *claim, const ff_lease_places *places) {
    ff_txn *t = ff_key_txn(claim->core);
    write_lease(claim, places->record);
    write_core(claim);
    ff_zset_add(ff_zset_open(t, places->lease_expiry), claim->execution_id, claim->expires_at);
    ff_set_add(ff_set_open(t, places->worker_leases), claim->execution_id);
    ff_zset_add(ff_zset_open(t, places->active), claim->execution_id, claim->expires_at);
}

void ff_claim_clear_marks(ff_key *core) {
    FF_CLEAR(core, W(lease_expired_at), W(lease_revoked_at), W(lease_revoke_reason));
}

ff_verdict ff_claim_reply(ff_result *out, const ff_claim *claim, const ff_word *type) {
    ff_result_add(out, claim->lease_id);
    ff_result_add(out, claim->lease_epoch);
    ff_result_add(out, claim->expires_text);
    ff_result_add(out, claim->attempt_id);
    ff_result_add(out, claim->attempt_index);
    return ff_ok_word(out, type);
}
