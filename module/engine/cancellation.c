#include "engine/cancellation.h"

#include "engine/completion.h"
#include "engine/ending.h"
#include "engine/extras.h"
#include "engine/keyname.h"
#include "engine/lease.h"
#include "engine/vector.h"

/* Strictly, whoever cancels what another holds must be its holder or an operator; a cascade is
 * neither, and is sent by the engine itself. */
static bool needs_fence(ff_key *core, const ff_execution_cancel_args *a) {
    return ff_key_txn(core)->strict && !ff_str_is(a->source, W(flow_cascade));
}

/* Only a live lease protects against being cancelled by others, and only if the caller names one: what it
 * does not name is not compared. */
static ff_code check(ff_key *core, const ff_execution_cancel_args *a) {
    const ff_str *phase = ff_hash_get(core, W(lifecycle_phase));
    if (ff_str_is(phase, W(terminal))) return FF_EXECUTION_NOT_ACTIVE;
    if (!ff_str_is(phase, W(active)) || ff_str_is(a->source, W(operator_override))) return FF_OK;
    if (ff_str_is(ff_hash_get(core, W(ownership_state)), W(lease_revoked))) return FF_LEASE_REVOKED;
    if (!ff_str_is_set(a->lease_id)) return needs_fence(core, a) ? FF_FENCE_REQUIRED : FF_OK;
    bool held =
        ff_str_equal(ff_hash_get(core, W(current_lease_id)), a->lease_id) &&
        ff_str_equal(ff_hash_get(core, W(current_lease_epoch)), ff_str_or_empty(a->lease_epoch));
    return held ? FF_OK : FF_STALE_LEASE;
}

static void end_attempt(ff_txn *t, const ff_execution_cancel_keys *k,
                        const ff_execution_cancel_args *a, const ff_str *index) {
    if (ff_str_is_set(index)) {
        ff_attempt_end(ff_hash_open(t, k->attempt), W(ended_cancelled),
                       FF_CONCAT(t, FF_TEXT("cancelled: "), ff_str_text(a->reason)));
    }
    ff_attempt_close_stream(t, k->stream_meta, W(attempt_cancelled));
}

static void release_lease(ff_key *core, const ff_execution_cancel_keys *k, ff_str *index) {
    ff_txn *t = ff_key_txn(core);
    ff_fence released = {.lease_id = ff_hash_get(core, W(current_lease_id)),
                         .lease_epoch = ff_hash_get(core, W(current_lease_epoch))};
    ff_key_delete(ff_any_open(t, k->lease));
    ff_lease_note_release(t, k->history, &released, index, W(cancelled)->str);
}

/* False, with nothing staged, when the list of further waitpoints cannot be read. */
static bool close_suspension(ff_txn *t, const ff_execution_cancel_keys *k, ff_result *out) {
    const ff_closing closing = {.reason = W(cancelled)};
    ff_extras extras;
    ff_key *suspension = ff_hash_open(t, k->suspension);
    ff_str *list = ff_hash_get(suspension, W(additional_waitpoints_json));
    if (!ff_extras_parse(t, k->suspension, list, &extras, out)) return false;

    ff_key *waitpoint = ff_hash_open(t, k->waitpoint);
    ff_key *condition = ff_hash_open(t, k->condition);
    if (ff_key_exists(suspension)) ff_closing_write_suspension(suspension, &closing);
    if (ff_key_exists(waitpoint)) ff_closing_write_waitpoint(waitpoint, &closing);
    if (ff_key_exists(condition)) ff_closing_write_condition(condition, &closing);
    ff_tree_clear(t, k->suspension);
    ff_extras_close(t, &extras, &closing);
    return true;
}

/* Rule INDEX-SWEEP, sparing the terminal index. */
static void sweep_indexes(ff_key *core, const ff_execution_cancel_keys *k, ff_text tag,
                          ff_str *execution_id) {
    ff_txn *t = ff_key_txn(core);
    ff_text lane = ff_str_text(ff_str_or(ff_hash_get(core, W(lane_id)), W(default)));
    ff_str *const indexes[] = {
        k->eligible,
        k->delayed,
        ff_keyname_lane(t, tag, lane, "active"),
        ff_keyname_lane(t, tag, lane, "suspended"),
        k->blocked_dependencies,
        k->blocked_budget,
        k->blocked_quota,
        k->blocked_route,
        k->blocked_operator,
        k->lease_expiry,
        k->suspension_timeout,
        k->attempt_timeout,
        k->execution_deadline,
    };
    for (size_t i = 0; i < sizeof indexes / sizeof *indexes; i++) {
        ff_zset_remove(ff_zset_open(t, indexes[i]), execution_id);
    }
    ff_set_remove(ff_set_open(t, k->worker_leases), execution_id);
}

static void cancel(ff_key *core, const ff_execution_cancel_keys *k,
                   const ff_execution_cancel_args *a, ff_text tag) {
    ff_txn *t = ff_key_txn(core);
    ff_ending_write(core, W(cancelled), ff_ending_attempt_state(core));
    ff_hash_set(core, W(cancellation_reason), a->reason);
    ff_hash_set(core, W(cancelled_by), ff_str_is_set(a->source) ? a->source : a->execution_id);
    ff_lease_clear(core);
    FF_CLEAR(core, W(current_suspension_id), W(current_waitpoint_id));
    sweep_indexes(core, k, tag, a->execution_id);
    ff_zset_add(ff_zset_open(t, k->terminal), a->execution_id, t->now);
    ff_str *flow_id = ff_hash_get(core, W(flow_id));
    if (ff_str_is(a->source, W(flow_cascade))) {
        ff_completion_note(t, flow_id, a->execution_id);
    } else {
        ff_completion_announce(t, flow_id, a->execution_id, W(cancelled));
    }
}

ff_verdict ff_execution_cancel(ff_txn *t, const ff_execution_cancel_keys *k,
                               const ff_execution_cancel_args *a, ff_result *out) {
    ff_key *core = ff_hash_open(t, k->core);
    ff_text tag = ff_tag_of(k->core);
    if (!ff_key_exists(core)) return ff_refuse(out, FF_EXECUTION_NOT_FOUND);
    if (ff_text_is_absent(tag)) return ff_bad_input(out, "exec_core key has no hash tag");
    ff_code refused = check(core, a);
    if (refused == FF_EXECUTION_NOT_ACTIVE) return ff_refuse_not_active(out, core);
    if (refused) return ff_refuse(out, refused);
    if (a->reason == NULL) return ff_bad_input(out, "reason is required");

    ff_str *phase = ff_hash_get(core, W(lifecycle_phase));
    ff_str *index = ff_hash_get(core, W(current_attempt_index));
    bool active = ff_str_is(phase, W(active));
    bool suspended = ff_str_is(phase, W(suspended));
    if (suspended && !close_suspension(t, k, out)) return FF_DISCARD;
    if (active || suspended) end_attempt(t, k, a, index);
    if (active) release_lease(core, k, index);
    cancel(core, k, a, tag);
    ff_result_add_word(out, W(cancelled));
    if (phase) ff_result_add(out, phase);
    return ff_ok(out);
}
