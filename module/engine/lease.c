#include "engine/lease.h"

#include <math.h>

#include "base/number.h"
#include "engine/history.h"
#include "engine/keyname.h"
#include "engine/vector.h"

static int parts_set(const ff_fence *fence) {
    return ff_str_is_set(fence->lease_id) + ff_str_is_set(fence->lease_epoch) +
           ff_str_is_set(fence->attempt_id);
}

ff_code ff_fence_require(const ff_fence *fence) {
    switch (parts_set(fence)) {
    case 3: return FF_OK;
    case 0: return FF_FENCE_REQUIRED;
    default: return FF_PARTIAL_FENCE_TRIPLE;
    }
}

ff_code ff_fence_resolve(ff_key *core, ff_fence *fence, const ff_str *source) {
    ff_code refused = ff_fence_require(fence);
    if (refused != FF_FENCE_REQUIRED || !ff_str_is(source, W(operator_override))) return refused;
    fence->lease_id = ff_hash_get(core, W(current_lease_id));
    fence->lease_epoch = ff_hash_get(core, W(current_lease_epoch));
    fence->attempt_id = ff_hash_get(core, W(current_attempt_id));
    return FF_OK;
}

ff_code ff_lease_check_expiry(ff_key *core) {
    double expires_at;
    if (ff_hash_number(core, W(lease_expires_at), &expires_at) == FF_NUMBER_BAD) {
        return FF_INVALID_INPUT;
    }
    return expires_at <= ff_key_txn(core)->now ? FF_LEASE_EXPIRED : FF_OK;
}

ff_code ff_lease_check(ff_key *core, const ff_fence *fence) {
    if (!ff_str_is(ff_hash_get(core, W(lifecycle_phase)), W(active))) {
        return FF_EXECUTION_NOT_ACTIVE;
    }
    if (ff_str_is(ff_hash_get(core, W(ownership_state)), W(lease_revoked))) return FF_LEASE_REVOKED;
    ff_code refused = ff_lease_check_expiry(core);
    if (refused) return refused;
    if (!ff_str_equal(ff_hash_get(core, W(current_lease_id)), fence->lease_id) ||
        !ff_str_equal(ff_hash_get(core, W(current_lease_epoch)), fence->lease_epoch) ||
        !ff_str_equal(ff_hash_get(core, W(current_attempt_id)), fence->attempt_id)) {
        return FF_STALE_LEASE;
    }
    return FF_OK;
}

ff_verdict ff_refuse_not_active(ff_result *out, ff_key *core) {
    out->count = 0;
    ff_result_add(out, ff_hash_get(core, W(terminal_outcome)));
    ff_result_add(out, ff_hash_get(core, W(current_lease_epoch)));
    ff_result_add(out, ff_hash_get(core, W(lifecycle_phase)));
    ff_result_add(out, ff_hash_get(core, W(current_attempt_id)));
    return ff_refuse(out, FF_EXECUTION_NOT_ACTIVE);
}

ff_verdict ff_lease_refuse(ff_result *out, ff_code code, ff_key *core, ff_str *history,
                           int64_t history_maxlen) {
    switch (code) {
    case FF_EXECUTION_NOT_ACTIVE: return ff_refuse_not_active(out, core);
    case FF_INVALID_INPUT:
        return ff_not_a_number(out, "lease_expires_at", ff_hash_get(core, W(lease_expires_at)));
    case FF_LEASE_EXPIRED:
        ff_lease_mark_expired_now(core, history, history_maxlen);
        return ff_refuse_keeping(out, code);
    default: return ff_refuse(out, code);
    }
}

bool ff_lease_gate(ff_key *core, ff_str *history, ff_fence *fence, const ff_str *source,
                   ff_result *out, ff_verdict *verdict) {
    ff_code refused = FF_EXECUTION_NOT_FOUND;
    if (ff_key_exists(core)) refused = ff_fence_resolve(core, fence, source);
    if (!refused) refused = ff_lease_check(core, fence);
    if (!refused) return true;
    *verdict = ff_lease_refuse(out, refused, core, history, FF_HISTORY_MAXLEN);
    return false;
}

/* The name of the attempt's stream record, taken from the core key: the tag up to its first closing
 * brace, one character skipped, then the execution id up to the first ":core". NULL when the key is not
 * made like that. */
static ff_str *stream_meta_beside(ff_key *core, ff_text index) {
    ff_text name = ff_str_text(ff_key_name(core));
    size_t open = ff_text_find(name, '{', 0);
    size_t close = ff_text_find(name, '}', open);
    if (close == name.len) return NULL;
    ff_text tag = ff_text_slice(name, open, close + 1);
    ff_text rest = ff_text_slice(name, close + 2, name.len);
    const ff_text ending = FF_TEXT(":core");
    for (size_t i = 0; i + ending.len <= rest.len; i++) {
        if (ff_text_equal(ff_text_slice(rest, i, i + ending.len), ending)) {
            return ff_keyname_stream_meta(ff_key_txn(core), tag, ff_text_slice(rest, 0, i), index);
        }
    }
    return NULL;
}

static void close_stream(ff_key *core, const ff_str *index) {
    if (!ff_str_is_set(index)) return;
    ff_str *name = stream_meta_beside(core, ff_str_text(index));
    if (name == NULL) return;
    ff_key *meta = ff_hash_open(ff_key_txn(core), name);
    if (!ff_key_exists(meta) || ff_str_is_set(ff_hash_get(meta, W(closed_at)))) return;
    ff_hash_set_now(meta, W(closed_at));
    ff_hash_set_word(meta, W(closed_reason), W(lease_expired));
}

static void keep_or(ff_key *core, const ff_word *field, const ff_word *absent) {
    if (ff_hash_get(core, field) == NULL) ff_hash_set_word(core, field, absent);
}

void ff_lease_mark_expired_now(ff_key *core, ff_str *history, int64_t history_maxlen) {
    if (ff_str_is(ff_hash_get(core, W(ownership_state)), W(lease_expired_reclaimable))) return;
    ff_txn *t = ff_key_txn(core);
    keep_or(core, W(lifecycle_phase), W(active));
    keep_or(core, W(eligibility_state), W(not_applicable));
    keep_or(core, W(terminal_outcome), W(none));
    ff_vector_set(core, &(ff_vector){.ownership = W(lease_expired_reclaimable),
                                     .blocking = W(waiting_for_worker),
                                     .detail = W(lease_expired_detail)->str,
                                     .attempt = W(attempt_interrupted),
                                     .public_state = W(active)});
    ff_hash_set_now(core, W(lease_expired_at));
    ff_hash_set_now(core, W(last_mutation_at));
    ff_str *index = ff_hash_get(core, W(current_attempt_index));
    const ff_pair entry[] = {
        {W(event), W(expired)->str},
        {W(lease_id), ff_hash_get(core, W(current_lease_id))},
        {W(lease_epoch), ff_hash_get(core, W(current_lease_epoch))},
        {W(attempt_index), index},
        {W(attempt_id), ff_hash_get(core, W(current_attempt_id))},
        {W(worker_id), ff_hash_get(core, W(current_worker_id))},
        {W(worker_instance_id), ff_hash_get(core, W(current_worker_instance_id))},
    };
    ff_history_add(ff_stream_open(t, history), history_maxlen, entry, sizeof entry / sizeof *entry);
    close_stream(core, index);
}

void ff_lease_clear(ff_key *core) {
    FF_CLEAR(core, W(lease_expires_at), W(current_lease_id), W(lease_last_renewed_at),
             W(lease_renewal_deadline), W(current_worker_id), W(current_worker_instance_id));
}

void ff_lease_release(ff_key *core, const ff_lease_places *places, ff_str *execution_id) {
    ff_txn *t = ff_key_txn(core);
    ff_lease_clear(core);
    ff_key_delete(ff_any_open(t, places->record));
    ff_zset_remove(ff_zset_open(t, places->lease_expiry), execution_id);
    ff_set_remove(ff_set_open(t, places->worker_leases), execution_id);
    ff_zset_remove(ff_zset_open(t, places->active), execution_id);
    ff_zset_remove(ff_zset_open(t, places->attempt_timeout), execution_id);
}

void ff_lease_note_release(ff_txn *t, ff_str *history, const ff_fence *fence, ff_str *attempt_index,
                           ff_str *reason) {
    ff_pair entry[6] = {
        {W(event), W(released)->str},
        {W(lease_id), fence->lease_id},
        {W(lease_epoch), fence->lease_epoch},
        {W(attempt_index), attempt_index},
    };
    size_t count = 4;
    if (fence->attempt_id) entry[count++] = (ff_pair){W(attempt_id), fence->attempt_id};
    entry[count++] = (ff_pair){W(reason), reason};
    ff_history_add(ff_stream_open(t, history), FF_HISTORY_MAXLEN, entry, count);
}

static ff_code check_renewal(ff_key *core, const ff_lease_renew_args *a) {
    const ff_fence fence = {a->lease_id, a->lease_epoch, a->attempt_id};
    if (!ff_key_exists(core)) return FF_EXECUTION_NOT_FOUND;
    ff_code refused = ff_fence_require(&fence);
    if (refused) return refused;
    if (!ff_str_is(ff_hash_get(core, W(lifecycle_phase)), W(active))) {
        return FF_EXECUTION_NOT_ACTIVE;
    }
    if (ff_str_is(ff_hash_get(core, W(ownership_state)), W(lease_revoked)) ||
        ff_str_is_set(ff_hash_get(core, W(lease_revoked_at)))) {
        return FF_LEASE_REVOKED;
    }
    refused = ff_lease_check_expiry(core);
    if (refused) return refused;
    if (!ff_str_equal(ff_hash_get(core, W(current_attempt_index)), a->attempt_index) ||
        !ff_str_equal(ff_hash_get(core, W(current_attempt_id)), a->attempt_id) ||
        !ff_str_equal(ff_hash_get(core, W(current_lease_id)), a->lease_id) ||
        !ff_str_equal(ff_hash_get(core, W(current_lease_epoch)), a->lease_epoch)) {
        return FF_STALE_LEASE;
    }
    return FF_OK;
}

ff_verdict ff_lease_renew(ff_txn *t, const ff_lease_renew_keys *k, const ff_lease_renew_args *a,
                          ff_result *out) {
    double ttl;
    double grace;
    int64_t record_expires_at;
    if (!ff_str_to_number(a->lease_ttl_ms, &ttl)) {
        return ff_not_a_number(out, "lease_ttl_ms", a->lease_ttl_ms);
    }
    if (!ff_str_to_number(a->lease_history_grace_ms, &grace)) {
        return ff_not_a_number(out, "lease_history_grace_ms", a->lease_history_grace_ms);
    }
    ff_key *core = ff_hash_open(t, k->core);
    ff_code refused = check_renewal(core, a);
    if (refused) return ff_lease_refuse(out, refused, core, k->history, FF_HISTORY_MAXLEN);
    double expires_at = t->now + ttl;
    if (!ff_number_to_integer(expires_at + grace, &record_expires_at)) {
        return ff_bad_input(out, "lease_ttl_ms and lease_history_grace_ms must give a whole number "
                                 "of milliseconds that a key expiry can hold");
    }

    ff_str *expires_text = ff_str_number(t, expires_at);
    ff_str *deadline_text = ff_str_number(t, t->now + floor(ttl * 2 / 3));
    ff_hash_set_now(core, W(lease_last_renewed_at));
    ff_hash_set(core, W(lease_renewal_deadline), deadline_text);
    ff_hash_set(core, W(lease_expires_at), expires_text);
    ff_hash_set_now(core, W(last_mutation_at));
    ff_key *lease = ff_hash_open(t, k->lease);
    ff_hash_set_now(lease, W(last_renewed_at));
    ff_hash_set(lease, W(renewal_deadline), deadline_text);
    ff_hash_set(lease, W(expires_at), expires_text);
    ff_key_expire_at(lease, record_expires_at);
    ff_zset_add(ff_zset_open(t, k->lease_expiry), a->execution_id, expires_at);
    ff_result_add(out, expires_text);
    return ff_ok(out);
}

static ff_verdict already(ff_result *out, const ff_word *state) {
    ff_result_add_word(out, state);
    return ff_succeed(out, FF_ALREADY_SATISFIED);
}

/* Nothing is left to expire: the entry that led here goes. */
static ff_verdict drop_entry(ff_txn *t, const ff_lease_mark_expired_keys *k,
                             const ff_lease_mark_expired_args *a, ff_result *out,
                             const ff_word *state) {
    if (a->execution_id == NULL) return ff_too_few_arguments(out, "1", 0);
    ff_zset_remove(ff_zset_open(t, k->lease_expiry), a->execution_id);
    return already(out, state);
}

ff_verdict ff_lease_mark_expired(ff_txn *t, const ff_lease_mark_expired_keys *k,
                                 const ff_lease_mark_expired_args *a, ff_result *out) {
    ff_key *core = ff_hash_open(t, k->core);
    if (!ff_key_exists(core)) return drop_entry(t, k, a, out, W(execution_not_found));
    if (!ff_str_is(ff_hash_get(core, W(lifecycle_phase)), W(active))) {
        return drop_entry(t, k, a, out, W(not_active));
    }
    const ff_str *ownership = ff_hash_get(core, W(ownership_state));
    if (ff_str_is(ownership, W(lease_expired_reclaimable))) return already(out, W(already_expired));
    if (ff_str_is(ownership, W(lease_revoked))) return already(out, W(already_revoked));
    if (ff_str_is(ownership, W(unowned))) return drop_entry(t, k, a, out, W(unowned));
    double expires_at;
    if (ff_hash_number(core, W(lease_expires_at), &expires_at) == FF_NUMBER_BAD) {
        return ff_lease_refuse(out, FF_INVALID_INPUT, core, k->history, FF_HISTORY_MAXLEN);
    }
    if (expires_at > t->now) return already(out, W(not_yet_expired));
    ff_lease_mark_expired_now(core, k->history, FF_HISTORY_MAXLEN);
    return ff_ok_word(out, W(marked_expired));
}

static ff_verdict refuse_unexpected(ff_result *out, const ff_str *expected, const ff_str *current) {
    return ff_refuse_with(out, FF_STALE_LEASE,
                          FF_CONCAT(out->txn, FF_TEXT("expected "), ff_str_text(expected),
                                    FF_TEXT(" but current is "), ff_str_text(current)));
}

static void write_revocation(ff_key *core, ff_str *reason) {
    ff_txn *t = ff_key_txn(core);
    keep_or(core, W(eligibility_state), W(not_applicable));
    ff_vector_set(
        core, &(ff_vector){.phase = W(active),
                           .ownership = W(lease_revoked),
                           .blocking = W(waiting_for_worker),
                           .detail = FF_CONCAT(t, FF_TEXT("lease revoked: "), ff_str_text(reason)),
                           .outcome = W(none),
                           .attempt = W(attempt_interrupted),
                           .public_state = W(active)});
    ff_hash_set_now(core, W(lease_revoked_at));
    ff_hash_set(core, W(lease_revoke_reason), reason);
    ff_hash_set_now(core, W(last_mutation_at));
}

ff_verdict ff_lease_revoke(ff_txn *t, const ff_lease_revoke_keys *k, const ff_lease_revoke_args *a,
                           ff_result *out) {
    ff_key *core = ff_hash_open(t, k->core);
    if (!ff_key_exists(core)) return ff_refuse(out, FF_EXECUTION_NOT_FOUND);
    if (!ff_str_is(ff_hash_get(core, W(lifecycle_phase)), W(active))) {
        return ff_refuse_not_active(out, core);
    }
    const ff_str *ownership = ff_hash_get(core, W(ownership_state));
    if (ff_str_is(ownership, W(lease_revoked))) return already(out, W(already_revoked));
    if (ff_str_is(ownership, W(lease_expired_reclaimable))) return already(out, W(already_expired));
    if (!ff_str_is(ownership, W(leased))) return ff_refuse(out, FF_NO_ACTIVE_LEASE);
    ff_str *lease_id = ff_hash_get(core, W(current_lease_id));
    if (ff_str_is_set(a->expected_lease_id) && !ff_str_equal(a->expected_lease_id, lease_id)) {
        return refuse_unexpected(out, a->expected_lease_id, lease_id);
    }
    if (a->execution_id == NULL) return ff_too_few_arguments(out, "at least 1", 0);

    ff_str *epoch = ff_hash_get(core, W(current_lease_epoch));
    ff_str *reason = ff_str_or(a->reason, W(operator));
    write_revocation(core, reason);
    ff_key_delete(ff_any_open(t, k->lease));
    ff_key *lease_expiry = ff_zset_open(t, k->lease_expiry);
    if (t->strict) {
        /* Due now: that is where a claim looks for executions to take over. */
        ff_zset_add(lease_expiry, a->execution_id, t->now);
    } else {
        ff_zset_remove(lease_expiry, a->execution_id);
    }
    ff_set_remove(ff_set_open(t, k->worker_leases), a->execution_id);
    FF_HISTORY(ff_stream_open(t, k->history), {W(event), W(revoked)->str}, {W(lease_id), lease_id},
               {W(lease_epoch), epoch},
               {W(attempt_index), ff_hash_get(core, W(current_attempt_index))},
               {W(attempt_id), ff_hash_get(core, W(current_attempt_id))},
               {W(worker_id), ff_hash_get(core, W(current_worker_id))},
               {W(worker_instance_id), ff_hash_get(core, W(current_worker_instance_id))},
               {W(reason), reason});
    ff_result_add_word(out, W(revoked));
    ff_result_add(out, lease_id);
    ff_result_add(out, epoch);
    return ff_ok(out);
}
