#include "engine/ending.h"

#include "engine/completion.h"
#include "engine/extras.h"
#include "engine/keyname.h"
#include "engine/lease.h"
#include "engine/vector.h"

void ff_ending_write(ff_key *core, const ff_word *outcome, ff_str *attempt_state) {
    ff_vector_set(core,
                  &(ff_vector){.phase = W(terminal),
                               .ownership = W(unowned),
                               .eligibility = W(not_applicable),
                               .blocking = W(none),
                               .detail = W(empty)->str,
                               .outcome = outcome,
                               .public_state = outcome == W(success) ? W(completed) : outcome});
    ff_hash_set(core, W(attempt_state), attempt_state);
    ff_hash_set_now(core, W(completed_at));
    ff_vector_set_times(core, ff_str_now(ff_key_txn(core)));
}

ff_str *ff_ending_attempt_state(ff_key *core) {
    if (ff_str_is_set(ff_hash_get(core, W(current_attempt_index)))) return W(attempt_terminal)->str;
    return ff_str_or(ff_hash_get(core, W(attempt_state)), W(none));
}

void ff_attempt_end(ff_key *attempt, const ff_word *state, ff_str *failure_reason) {
    ff_hash_set_word(attempt, W(attempt_state), state);
    ff_hash_set_now(attempt, W(ended_at));
    if (failure_reason) ff_hash_set(attempt, W(failure_reason), failure_reason);
}

void ff_attempt_close_stream(ff_txn *t, ff_str *stream_meta, const ff_word *reason) {
    ff_key *meta = ff_hash_open(t, stream_meta);
    if (!ff_key_exists(meta)) return;
    ff_hash_set_now(meta, W(closed_at));
    ff_hash_set_word(meta, W(closed_reason), reason);
}

ff_verdict ff_execution_complete(ff_txn *t, const ff_execution_complete_keys *k,
                                 const ff_execution_complete_args *a, ff_result *out) {
    ff_fence fence = {a->lease_id, a->lease_epoch, a->attempt_id};
    ff_verdict verdict;
    ff_key *core = ff_hash_open(t, k->core);
    if (!ff_lease_gate(core, k->history, &fence, a->source, out, &verdict)) return verdict;

    ff_attempt_end(ff_hash_open(t, k->attempt), W(ended_success), NULL);
    ff_attempt_close_stream(t, k->stream_meta, W(attempt_success));
    if (ff_str_is_set(a->result_payload)) {
        ff_string_set(ff_any_open(t, k->result), a->result_payload, 0);
    }
    ff_ending_write(core, W(success), W(attempt_terminal)->str);
    FF_CLEAR(core, W(lease_expired_at), W(lease_revoked_at), W(lease_revoke_reason));
    ff_zset_add(ff_zset_open(t, k->terminal), a->execution_id, t->now);
    ff_lease_release(core,
                     &(ff_lease_places){k->lease, k->lease_expiry, k->worker_leases, k->active,
                                        k->attempt_timeout},
                     a->execution_id);
    ff_zset_remove(ff_zset_open(t, k->execution_deadline), a->execution_id);
    fence.attempt_id = NULL;
    ff_lease_note_release(t, k->history, &fence, ff_hash_get(core, W(current_attempt_index)),
                          W(completed)->str);
    ff_completion_announce(t, ff_hash_get(core, W(flow_id)), a->execution_id, W(success));
    return ff_ok_word(out, W(completed));
}

/* The index of its lane that a runnable execution is in, by what it waits for. */
static const struct {
    const ff_word *eligibility;
    const char *index;
} runnable_indexes[] = {
    {W(eligible_now), "eligible"},
    {W(not_eligible_until_time), "delayed"},
    {W(blocked_by_dependencies), "blocked:dependencies"},
    {W(blocked_by_budget), "blocked:budget"},
    {W(blocked_by_quota), "blocked:quota"},
    {W(blocked_by_route), "blocked:route"},
    {W(blocked_by_operator), "blocked:operator"},
};
enum { RUNNABLE_INDEXES = sizeof runnable_indexes / sizeof *runnable_indexes };

/* One expiration on its way through the phases. */
typedef struct expiration {
    ff_txn *t;
    const ff_execution_expire_keys *k;
    ff_key *core;
    ff_str *execution_id;
    ff_str *reason;
    ff_str *index;    /* of the attempt */
    ff_str *instance; /* the worker's */
    ff_text tag;
} expiration;

static void end_attempt(const expiration *e) {
    if (!ff_str_is_set(e->index)) return;
    ff_attempt_end(ff_hash_open(e->t, e->k->attempt), W(ended_failure), e->reason);
}

static ff_str *close_reason(const expiration *e) {
    return FF_CONCAT(e->t, FF_TEXT("expired:"), ff_str_text(e->reason));
}

static void leave_active(const expiration *e) {
    ff_txn *t = e->t;
    end_attempt(e);
    ff_attempt_close_stream(t, e->k->stream_meta, W(expired));
    ff_key_delete(ff_any_open(t, e->k->lease));
    ff_zset_remove(ff_zset_open(t, e->k->lease_expiry), e->execution_id);
    ff_set_remove(ff_set_open(t, e->k->worker_leases), e->execution_id);
    if (ff_str_is_set(e->instance)) {
        ff_str *leases = ff_keyname_worker_leases(t, e->tag, ff_str_text(e->instance));
        ff_set_remove(ff_set_open(t, leases), e->execution_id);
    }
    ff_zset_remove(ff_zset_open(t, e->k->active), e->execution_id);
    ff_fence released = {.lease_id = ff_hash_get(e->core, W(current_lease_id)),
                         .lease_epoch = ff_hash_get(e->core, W(current_lease_epoch))};
    ff_lease_note_release(t, e->k->history, &released, e->index, close_reason(e));
}

/* What cannot be read of the list of further waitpoints stays as it is. */
static void close_waits(const expiration *e, ff_key *suspension) {
    const ff_closing closing = {.reason = ff_field_str(e->t, close_reason(e))};
    ff_result ignored = {.txn = e->t};
    ff_extras extras;
    ff_str *list = ff_hash_get(suspension, W(additional_waitpoints_json));
    ff_extras_parse(e->t, e->k->suspension, list, &extras, &ignored);
    ff_waits_close(suspension, &extras, &closing);
    ff_tree_clear(e->t, e->k->suspension);
}

static void leave_suspended(const expiration *e) {
    ff_txn *t = e->t;
    end_attempt(e);
    ff_key *suspension = ff_hash_open(t, e->k->suspension);
    if (t->strict) close_waits(e, suspension);
    if (ff_key_exists(suspension)) {
        ff_hash_set_now(suspension, W(closed_at));
        ff_hash_set(suspension, W(close_reason), close_reason(e));
    }
    ff_attempt_close_stream(t, e->k->stream_meta, W(expired));
    ff_zset_remove(ff_zset_open(t, e->k->suspended), e->execution_id);
    ff_zset_remove(ff_zset_open(t, e->k->suspension_timeout), e->execution_id);
}

static void leave_index(const expiration *e, ff_text lane, const char *index) {
    ff_key *key = ff_zset_open(e->t, ff_keyname_lane(e->t, e->tag, lane, index));
    ff_zset_remove(key, e->execution_id);
}

static void leave_runnable(const expiration *e) {
    ff_str *current = ff_str_or(ff_hash_get(e->core, W(current_lane)), W(default));
    ff_str *home = ff_hash_get(e->core, W(lane_id));
    ff_text lane = ff_str_text(home ? home : current);
    const ff_str *eligibility = ff_hash_get(e->core, W(eligibility_state));
    for (size_t i = 0; i < RUNNABLE_INDEXES; i++) {
        if (ff_str_is(eligibility, runnable_indexes[i].eligibility)) {
            leave_index(e, lane, runnable_indexes[i].index);
            return;
        }
    }
    for (size_t i = 0; i < RUNNABLE_INDEXES; i++) leave_index(e, lane, runnable_indexes[i].index);
}

static void leave_timeouts(const expiration *e) {
    ff_zset_remove(ff_zset_open(e->t, e->k->attempt_timeout), e->execution_id);
    ff_zset_remove(ff_zset_open(e->t, e->k->execution_deadline), e->execution_id);
}

static void expire(const expiration *e) {
    ff_key *core = e->core;
    ff_ending_write(core, W(expired), ff_ending_attempt_state(core));
    ff_hash_set(core, W(failure_reason), e->reason);
    FF_CLEAR(core, W(current_lease_id), W(current_worker_id), W(current_worker_instance_id),
             W(lease_expires_at), W(current_suspension_id), W(current_waitpoint_id));
    leave_timeouts(e);
    ff_zset_add(ff_zset_open(e->t, e->k->terminal), e->execution_id, e->t->now);
    ff_completion_announce(e->t, ff_hash_get(core, W(flow_id)), e->execution_id, W(expired));
}

ff_verdict ff_execution_expire(ff_txn *t, const ff_execution_expire_keys *k,
                               const ff_execution_expire_args *a, ff_result *out) {
    if (a->execution_id == NULL) return ff_too_few_arguments(out, "at least 1", 0);
    ff_key *core = ff_hash_open(t, k->core);
    ff_str *phase = ff_hash_get(core, W(lifecycle_phase));
    expiration e = {t,
                    k,
                    core,
                    a->execution_id,
                    ff_str_or(a->reason, W(attempt_timeout)),
                    .index = ff_hash_get(core, W(current_attempt_index)),
                    .instance = ff_hash_get(core, W(current_worker_instance_id)),
                    .tag = ff_tag_of(k->core)};
    if (!ff_key_exists(core) || ff_str_is(phase, W(terminal))) {
        leave_timeouts(&e);
        return ff_ok_word(out, ff_key_exists(core) ? W(already_terminal) : W(not_found_cleaned));
    }
    bool active = ff_str_is(phase, W(active));
    bool runnable = ff_str_is(phase, W(runnable));
    if (ff_text_is_absent(e.tag) && (runnable || (active && ff_str_is_set(e.instance)))) {
        return ff_bad_input(out, "exec_core key has no hash tag");
    }
    if (active) leave_active(&e);
    if (runnable) leave_runnable(&e);
    if (ff_str_is(phase, W(suspended))) leave_suspended(&e);
    expire(&e);
    ff_result_add_word(out, W(expired));
    if (phase) ff_result_add(out, phase);
    return ff_ok(out);
}
