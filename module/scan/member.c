#include "scan/member.h"

#include "base/id.h"
#include "claim/slot.h"
#include "engine/dependency.h"
#include "engine/keyname.h"
#include "engine/subject.h"
#include "engine/vector.h"

static bool is_eligibility(ff_subject *s, const ff_word *state) {
    return ff_str_is(ff_hash_get(s->core, W(eligibility_state)), state);
}

/* A child that was created with a delay waits for that too: its dependencies are no reason to start early. */
static void hold_back(ff_subject *s, ff_str *eligible) {
    ff_txn *t = s->txn;
    double due;
    ff_str *until = ff_hash_get(s->core, W(delay_until));
    if (!ff_str_to_number(until, &due) || !(due > t->now)) return;
    ff_vector_set(
        s->core, &(ff_vector){.eligibility = W(not_eligible_until_time),
                              .blocking = W(waiting_for_delay),
                              .detail = FF_CONCAT(t, FF_TEXT("delayed until "), ff_str_text(until)),
                              .public_state = W(delayed)});
    ff_zset_remove(ff_zset_open(t, eligible), s->execution_id);
    ff_zset_add(ff_zset_open(t, ff_subject_lane_index(s, "delayed")), s->execution_id, due);
}

/* The wire function ends a child that can never run and leaves the rest to others. Ours also takes back what the
 * child had in hand: its lease, its place in the indexes, its slot of a quota. */
static void take_back(ff_subject *s) {
    static const char *const lane_indexes[] = {"eligible", "delayed", "suspended"};
    static const char *const indexes[] = {"execution_deadline", "suspension_timeout"};
    ff_txn *t = s->txn;
    const ff_lease_places places = {
        .record = ff_subject_key(s, "lease:current"),
        .lease_expiry = ff_subject_index(s, "lease_expiry"),
        .worker_leases = ff_subject_worker_leases(s, ff_subject_instance(s)),
        .active = ff_subject_lane_index(s, "active"),
        .attempt_timeout = ff_subject_index(s, "attempt_timeout"),
    };
    ff_slot_free(t, s->core, s->execution_id);
    ff_lease_release(s->core, &places, s->execution_id);
    for (size_t i = 0; i < sizeof lane_indexes / sizeof *lane_indexes; i++) {
        ff_zset_remove(ff_zset_open(t, ff_subject_lane_index(s, lane_indexes[i])), s->execution_id);
    }
    for (size_t i = 0; i < sizeof indexes / sizeof *indexes; i++) {
        ff_zset_remove(ff_zset_open(t, ff_subject_index(s, indexes[i])), s->execution_id);
    }
}

static bool has_outcome(ff_subject *s, const ff_word *outcome) {
    return ff_str_is(ff_hash_get(s->core, W(terminal_outcome)), outcome);
}

ff_verdict ff_member_resolve(ff_txn *t, const ff_member_edge *edge, ff_result *out) {
    ff_subject child;
    ff_text id = ff_str_text(edge->child_id);
    ff_text flow_id = ff_str_text(edge->flow_id);
    ff_text upstream = ff_str_text(edge->upstream_id);
    ff_subject_open(t, edge->tag, edge->child_id, &child);
    ff_dependency_resolve_keys k = {
        .core = child.core_name,
        .meta = ff_subject_key(&child, "deps:meta"),
        .unresolved = ff_subject_key(&child, "deps:unresolved"),
        .dependency =
            FF_CONCAT(t, ff_str_text(ff_subject_key(&child, "dep:")), ff_str_text(edge->edge_id)),
        .eligible = ff_subject_lane_index(&child, "eligible"),
        .terminal = ff_subject_lane_index(&child, "terminal"),
        .blocked = ff_subject_lane_index(&child, "blocked:dependencies"),
        .attempt = ff_subject_attempt(&child, ""),
        .stream_meta = ff_subject_stream_meta(&child),
        .payload = ff_subject_key(&child, "payload"),
        .upstream_result = ff_keyname_execution(t, edge->tag, upstream, "result"),
        .group = ff_keyname_flow(t, edge->tag, flow_id, "edgegroup:", id),
        .incoming = ff_keyname_flow(t, edge->tag, flow_id, "in:", id),
        .pending_groups = ff_keyname_index(t, edge->tag, "pending_cancel_groups"),
    };
    ff_dependency_resolve_args a = {edge->edge_id, edge->outcome, ff_str_now(t), edge->flow_id,
                                    edge->child_id};
    bool was_blocked = is_eligibility(&child, W(blocked_by_dependencies));
    bool was_open = has_outcome(&child, W(none));
    ff_verdict verdict = ff_dependency_resolve(t, &k, &a, out);
    if (was_open && has_outcome(&child, W(skipped)) && !was_blocked) take_back(&child);
    if (was_blocked && is_eligibility(&child, W(eligible_now))) hold_back(&child, k.eligible);
    return verdict;
}

ff_member_fate ff_member_cancel(ff_txn *t, ff_text tag, ff_str *execution_id, ff_str *reason) {
    ff_subject s;
    ff_result result = {.txn = t};
    ff_subject_open(t, tag, execution_id, &s);
    ff_execution_cancel_keys k = ff_subject_cancel_keys(&s);
    ff_execution_cancel_args a = {execution_id, reason, W(operator_override)->str, W(empty)->str,
                                  W(empty)->str};
    ff_verdict verdict = ff_execution_cancel(t, &k, &a, &result);
    if (ff_txn_error(t)) return FF_MEMBER_TRY_AGAIN;
    if (result.code == FF_EXECUTION_NOT_ACTIVE) return FF_MEMBER_ENDED;
    if (result.code == FF_EXECUTION_NOT_FOUND) return FF_MEMBER_GONE;
    if (verdict != FF_COMMIT || result.code >= FF_FIRST_REFUSAL) return FF_MEMBER_TRY_AGAIN;
    ff_slot_free(t, s.core, execution_id);
    return FF_MEMBER_CANCELLED;
}

ff_str *ff_member_outcome(ff_txn *t, ff_text tag, ff_text execution_id) {
    ff_text core = ff_str_text(ff_keyname_execution(t, tag, execution_id, "core"));
    ff_txn_state before = t->state;
    const ff_str *phase = ff_hash_peek(t, core, W(lifecycle_phase));
    ff_str *outcome =
        ff_str_is(phase, W(terminal)) ? ff_hash_peek(t, core, W(terminal_outcome)) : NULL;
    t->state = before;
    return ff_str_is_set(outcome) && !ff_str_is(outcome, W(none)) ? outcome : NULL;
}

bool ff_member_is_local(ff_text execution_id, ff_text tag) {
    ff_reference id;
    return ff_execution_id_parse(execution_id, &id) && ff_text_equal(id.tag, tag);
}
