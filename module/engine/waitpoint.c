#include "engine/waitpoint.h"

#include <math.h>

#include "engine/extras.h"
#include "engine/keyname.h"
#include "engine/lease.h"
#include "engine/token.h"
#include "engine/vector.h"

/* What a signal looks at comes first: in a small hash a field is found by walking. */
static void write_common(ff_key *record, const ff_word *state, const ff_waitpoint *waitpoint,
                         const ff_waitpoint_owner *owner) {
    ff_hash_set_now(record, W(created_at));
    ff_hash_set(record, W(waitpoint_key), waitpoint->key);
    ff_hash_set_word(record, W(state), state);
    ff_hash_set_word(record, W(signal_count), W(zero));
    ff_hash_set_word(record, W(matched_signal_count), W(zero));
    ff_hash_set_empty(record, W(last_signal_at));
    ff_hash_set(record, W(waitpoint_id), waitpoint->id);
    ff_hash_set(record, W(execution_id), owner->execution_id);
    ff_hash_set(record, W(attempt_index), owner->attempt_index);
    ff_hash_set(record, W(suspension_id), owner->suspension_id);
    ff_hash_set(record, W(waitpoint_token), waitpoint->token);
}

void ff_waitpoint_write_active(ff_key *record, const ff_waitpoint *waitpoint,
                               const ff_waitpoint_owner *owner, ff_str *expires_at) {
    write_common(record, W(active), waitpoint, owner);
    ff_hash_set_now(record, W(activated_at));
    ff_hash_set(record, W(expires_at), expires_at);
}

static void write_pending(ff_key *record, const ff_waitpoint *waitpoint,
                          const ff_waitpoint_create_args *a) {
    const ff_waitpoint_owner owner = {a->execution_id, a->attempt_index, W(empty)->str};
    write_common(record, W(pending), waitpoint, &owner);
    ff_hash_set(record, W(expires_at), a->expires_at);
    FF_CLEAR(record, W(activated_at), W(satisfied_at), W(closed_at), W(close_reason));
}

ff_code ff_waitpoint_check_pending(ff_key *record, const ff_str *execution_id,
                                   const ff_str *attempt_index) {
    double expires_at;
    if (!ff_key_exists(record)) return FF_WAITPOINT_NOT_FOUND;
    if (!ff_str_is(ff_hash_get(record, W(state)), W(pending))) return FF_WAITPOINT_NOT_PENDING;
    if (!ff_str_equal(ff_hash_get(record, W(execution_id)), execution_id) ||
        !ff_str_equal(ff_hash_get(record, W(attempt_index)), attempt_index)) {
        return FF_INVALID_WAITPOINT_FOR_EXECUTION;
    }
    ff_str *stored = ff_hash_get(record, W(expires_at));
    if (!ff_str_is_set(stored)) return FF_OK;
    if (!ff_str_to_number(stored, &expires_at)) return FF_INVALID_INPUT;
    return expires_at <= ff_key_txn(record)->now ? FF_PENDING_WAITPOINT_EXPIRED : FF_OK;
}

static bool is_open(ff_key *record) {
    ff_str *state = ff_hash_get(record, W(state));
    return ff_str_is(state, W(pending)) || ff_str_is(state, W(active));
}

static ff_code check_creator(ff_key *core, const ff_waitpoint_create_args *a) {
    if (!ff_key_exists(core)) return FF_EXECUTION_NOT_FOUND;
    if (!ff_str_is(ff_hash_get(core, W(lifecycle_phase)), W(active))) {
        return FF_EXECUTION_NOT_ACTIVE;
    }
    if (!ff_str_is(ff_hash_get(core, W(ownership_state)), W(leased))) return FF_NO_ACTIVE_LEASE;
    if (!ff_str_equal(ff_hash_get(core, W(current_attempt_index)), a->attempt_index)) {
        return FF_STALE_LEASE;
    }
    return FF_OK;
}

ff_verdict ff_waitpoint_create(ff_txn *t, const ff_waitpoint_create_keys *k,
                               const ff_waitpoint_create_args *a, ff_result *out) {
    ff_token_signer signer;
    double expires_at;
    ff_key *core = ff_hash_open(t, k->core);
    ff_code refused = check_creator(core, a);
    if (refused == FF_EXECUTION_NOT_ACTIVE) return ff_refuse_not_active(out, core);
    if (refused) return ff_refuse(out, refused);
    ff_key *record = ff_hash_open(t, k->waitpoint);
    if (is_open(record)) return ff_refuse(out, FF_WAITPOINT_ALREADY_EXISTS);
    refused = ff_token_signer_open(t, k->keystore, &signer);
    if (refused) return ff_refuse(out, refused);
    if (FF_GIVEN(a) < 5) return ff_too_few_arguments(out, "5", FF_GIVEN(a));
    if (!ff_str_to_number(a->expires_at, &expires_at) || isnan(expires_at)) {
        return ff_not_a_number(out, "expires_at", a->expires_at);
    }

    ff_waitpoint waitpoint = {a->waitpoint_id, a->waitpoint_key, NULL};
    waitpoint.token = ff_token_mint(t, &signer, waitpoint.id, waitpoint.key);
    write_pending(record, &waitpoint, a);
    ff_zset_add(ff_zset_open(t, k->pending_waitpoint_expiry), a->waitpoint_id, expires_at);
    ff_result_add(out, waitpoint.id);
    ff_result_add(out, waitpoint.key);
    ff_result_add(out, waitpoint.token);
    return ff_ok(out);
}

/* Whether a record is that of the suspension which the waitpoint belongs to. */
static bool is_of(ff_key *suspension, ff_key *record) {
    ff_str *id = ff_hash_get(record, W(suspension_id));
    return ff_str_is_set(id) && ff_str_equal(id, ff_hash_get(suspension, W(suspension_id)));
}

/* Closing one waitpoint of a suspension closes all of them, conditions included. False after a
 * refusal. */
static bool close_strictly(ff_txn *t, const ff_waitpoint_close_keys *k, ff_key *record,
                           const ff_closing *closing, ff_result *out) {
    ff_extras extras;
    ff_key *suspension = ff_hash_open(t, ff_keyname_beside_core(t, k->core, ":suspension:current"));
    ff_waits_close_condition(t, k->waitpoint, closing);
    if (!is_of(suspension, record)) return true;
    if (!ff_extras_parse(t, ff_key_name(suspension),
                         ff_hash_get(suspension, W(additional_waitpoints_json)), &extras, out)) {
        return false;
    }
    ff_waits_close(suspension, &extras, closing);
    return true;
}

ff_verdict ff_waitpoint_close(ff_txn *t, const ff_waitpoint_close_keys *k,
                              const ff_waitpoint_close_args *a, ff_result *out) {
    ff_key *record = ff_hash_open(t, k->waitpoint);
    if (!ff_key_exists(record)) return ff_refuse(out, FF_WAITPOINT_NOT_FOUND);
    ff_str *state = ff_hash_get(record, W(state));
    if (ff_str_is(state, W(closed)) || ff_str_is(state, W(expired))) {
        return ff_ok_word(out, W(already_closed));
    }
    if (!is_open(record)) return ff_refuse(out, FF_WAITPOINT_NOT_OPEN);
    if (a->waitpoint_id == NULL) return ff_too_few_arguments(out, "1", 0);

    ff_str *reason = ff_str_or(a->reason, W(proactive_close));
    const ff_closing closing = {.reason = ff_field_str(t, reason)};
    if (t->strict && !close_strictly(t, k, record, &closing, out)) return FF_DISCARD;
    ff_closing_write_waitpoint(record, &closing);
    ff_zset_remove(ff_zset_open(t, k->pending_waitpoint_expiry), a->waitpoint_id);
    return ff_ok(out);
}
