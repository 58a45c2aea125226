#include "engine/execution.h"

#include <math.h>

#include "base/number.h"
#include "engine/document.h"
#include "engine/policy.h"
#include "engine/score.h"
#include "engine/vector.h"

/* What a creation has worked out before it writes. */
typedef struct creation {
    double priority;
    ff_text capabilities;
    bool delayed;
    double delay_until;
    bool has_deadline;
    double deadline;
    bool remembered; /* an idempotency record is to be written */
    int64_t remember_ms;
} creation;

static bool is_idempotent(const ff_execution_create_keys *k) {
    return ff_str_is_set(k->idempotency) &&
           !ff_text_contains(ff_str_text(k->idempotency), FF_TEXT("ff:noop:"));
}

/* The execution id that an earlier creation has left, NULL when this is the first. */
static ff_str *find_duplicate(ff_txn *t, const ff_execution_create_keys *k,
                              const ff_execution_create_args *a) {
    if (is_idempotent(k)) {
        ff_str *earlier = ff_string_get(ff_string_open(t, k->idempotency));
        if (earlier) return earlier;
    }
    return ff_key_exists(ff_any_open(t, k->core)) ? ff_str_or_empty(a->execution_id) : NULL;
}

static bool read_times(ff_txn *t, const ff_execution_create_args *a, creation *c, ff_result *out) {
    if (ff_str_is_set(a->delay_until)) {
        if (!ff_str_to_number(a->delay_until, &c->delay_until)) {
            ff_not_a_number(out, "delay_until", a->delay_until);
            return false;
        }
        c->delayed = c->delay_until > t->now;
    }
    c->has_deadline = ff_str_is_set(a->execution_deadline_at);
    if (c->has_deadline &&
        (!ff_str_to_number(a->execution_deadline_at, &c->deadline) || isnan(c->deadline))) {
        ff_not_a_number(out, "execution_deadline_at", a->execution_deadline_at);
        return false;
    }
    return true;
}

static bool read_remember(const ff_execution_create_keys *k, const ff_execution_create_args *a,
                          creation *c, ff_result *out) {
    double ttl;
    if (!is_idempotent(k) || !ff_str_to_number(a->dedup_ttl_ms, &ttl) || !(ttl > 0)) return true;
    if (!ff_number_to_integer(ttl, &c->remember_ms)) {
        ff_refuse_with(out, FF_INVALID_INPUT,
                       FF_CONCAT(out->txn,
                                 FF_TEXT("dedup_ttl_ms must be a whole number of milliseconds, "
                                         "got: "),
                                 ff_str_text(a->dedup_ttl_ms)));
        return false;
    }
    c->remembered = true;
    return true;
}

/* In a small hash a field is found by walking, so the order in which the fields are first written decides what
 * later calls cost: what every transition touches comes first, what a claim reads next, the rest last. */
static void write_state(ff_key *core, const ff_execution_create_args *a, const creation *c) {
    ff_txn *t = ff_key_txn(core);
    ff_vector vector = {W(runnable),     W(unowned),
                        W(eligible_now), W(waiting_for_worker),
                        W(none),         W(pending_first_attempt),
                        W(waiting),      W(empty)->str};
    if (c->delayed) {
        vector.eligibility = W(not_eligible_until_time);
        vector.blocking = W(waiting_for_delay);
        vector.public_state = W(delayed);
        vector.detail = FF_CONCAT(t, FF_TEXT("delayed until "), ff_str_text(a->delay_until));
    }
    ff_vector_set(core, &vector);
}

static void write_lease_fields(ff_key *core, const ff_execution_create_args *a) {
    FF_CLEAR(core, W(lease_expires_at), W(current_lease_id));
    ff_hash_set_word(core, W(current_lease_epoch), W(zero));
    FF_CLEAR(core, W(current_attempt_id), W(current_attempt_index));
    ff_vector_set_times(core, ff_str_now(ff_key_txn(core)));
    FF_CLEAR(core, W(lease_last_renewed_at), W(lease_renewal_deadline), W(current_worker_id),
             W(current_worker_instance_id), W(lease_revoked_at), W(lease_acquired_at),
             W(started_at), W(completed_at), W(flow_id));
    ff_hash_set_word(core, W(total_attempt_count), W(zero));
    ff_hash_set(core, W(current_lane), a->lane_id);
    FF_CLEAR(core, W(pending_retry_reason), W(pending_previous_attempt_index),
             W(pending_replay_reason), W(pending_replay_requested_by), W(lease_expired_at),
             W(lease_revoke_reason));
}

static void write_identity(ff_key *core, const ff_execution_create_args *a, const creation *c) {
    ff_txn *t = ff_key_txn(core);
    if (c->capabilities.len) {
        ff_hash_set(core, W(required_capabilities), ff_str_make(t, c->capabilities));
    }
    ff_hash_set(core, W(namespace), a->namespace);
    ff_hash_set(core, W(execution_kind), a->execution_kind);
    ff_hash_set(core, W(priority), ff_str_server_number(t, c->priority));
    ff_hash_set(core, W(lane_id), a->lane_id);
    ff_hash_set_now(core, W(created_at));
    ff_hash_set(core, W(execution_id), a->execution_id);
    ff_hash_set(core, W(partition_id), a->partition_id);
    ff_hash_set(core, W(creator_identity), a->creator_identity);
}

static void write_rest(ff_key *core, const ff_execution_create_args *a, const creation *c) {
    FF_CLEAR(core, W(progress_pct), W(progress_message), W(progress_updated_at),
             W(current_suspension_id), W(current_waitpoint_id));
    ff_hash_set(core, W(delay_until), c->delayed ? a->delay_until : W(empty)->str);
    ff_hash_set_word(core, W(retry_count), W(zero));
    ff_hash_set_word(core, W(replay_count), W(zero));
    ff_hash_set_word(core, W(lease_reclaim_count), W(zero));
}

static void write_documents(ff_txn *t, const ff_execution_create_keys *k,
                            const ff_execution_create_args *a) {
    if (ff_str_is_set(a->input_payload)) {
        ff_string_set(ff_any_open(t, k->payload), a->input_payload, 0);
    }
    if (ff_str_is_set(a->policy_json)) ff_string_set(ff_any_open(t, k->policy), a->policy_json, 0);
}

static bool write_tags(ff_txn *t, const ff_execution_create_keys *k,
                       const ff_execution_create_args *a, ff_result *out) {
    if (!ff_str_is_set(a->tags_json)) return true;
    const ff_json *tags = ff_document_read(t, a->tags_json);
    if (!ff_json_is_container(tags)) return true;
    if (ff_json_array_length(tags) + ff_json_object_length(tags) == 0) return true;
    if (ff_document_flatten(ff_hash_open(t, k->tags), tags)) return true;
    ff_bad_input(out, "tags_json holds a number that cannot be written");
    return false;
}

static void write_indexes(ff_txn *t, const ff_execution_create_keys *k,
                          const ff_execution_create_args *a, const creation *c) {
    double score = c->delayed ? c->delay_until : ff_score(c->priority, t->now);
    ff_zset_add(ff_zset_open(t, k->schedule), a->execution_id, score);
    ff_set_add(ff_set_open(t, k->all_executions), a->execution_id);
    if (c->has_deadline) {
        ff_zset_add(ff_zset_open(t, k->deadlines), a->execution_id, c->deadline);
    }
    if (c->remembered) {
        ff_string_set(ff_any_open(t, k->idempotency), a->execution_id, c->remember_ms);
    }
}

ff_verdict ff_execution_create(ff_txn *t, const ff_execution_create_keys *k,
                               const ff_execution_create_args *a, ff_result *out) {
    creation c = {0};
    if (!ff_str_to_number(a->priority, &c.priority)) {
        return ff_not_a_number(out, "priority", a->priority);
    }
    c.priority = ff_priority_clamp(c.priority);
    ff_str *duplicate = find_duplicate(t, k, a);
    if (duplicate) {
        ff_result_add(out, duplicate);
        return ff_succeed(out, FF_DUPLICATE);
    }
    if (!ff_policy_required_capabilities(t, a->policy_json, &c.capabilities, out)) {
        return FF_DISCARD;
    }
    if (FF_GIVEN(a) < 13) return ff_too_few_arguments(out, "13", FF_GIVEN(a));
    if (!read_times(t, a, &c, out) || !read_remember(k, a, &c, out)) return FF_DISCARD;
    if (isnan(c.priority)) return ff_not_a_number(out, "priority", a->priority);

    ff_key *core = ff_hash_open(t, k->core);
    write_state(core, a, &c);
    write_lease_fields(core, a);
    write_identity(core, a, &c);
    write_rest(core, a, &c);
    write_documents(t, k, a);
    if (!write_tags(t, k, a, out)) return FF_DISCARD;
    write_indexes(t, k, a, &c);
    ff_result_add(out, a->execution_id);
    return ff_ok_word(out, c.delayed ? W(delayed) : W(waiting));
}
