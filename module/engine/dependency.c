#include "engine/dependency.h"

#include <math.h>

#include "base/number.h"
#include "engine/completion.h"
#include "engine/counter.h"
#include "engine/edgegroup.h"
#include "engine/score.h"
#include "engine/vector.h"

static bool field_is(ff_key *hash, const ff_word *field, const ff_word *value) {
    return ff_str_is(ff_hash_get(hash, field), value);
}

static void set_if_missing(ff_key *hash, const ff_word *field, const ff_word *value) {
    if (ff_hash_get(hash, field) == NULL) ff_hash_set_word(hash, field, value);
}

/* ---- Applying an edge ---- */

static void write_dependency(ff_key *dependency, ff_key *core, const ff_dependency_apply_args *a) {
    ff_hash_set(dependency, W(edge_id), a->edge_id);
    ff_hash_set(dependency, W(flow_id), a->flow_id);
    ff_hash_set(dependency, W(upstream_execution_id), a->upstream_id);
    ff_hash_set(dependency, W(downstream_execution_id),
                ff_str_or_empty(ff_hash_get(core, W(execution_id))));
    ff_hash_set(dependency, W(dependency_kind), a->dependency_kind);
    ff_hash_set_word(dependency, W(state), W(unsatisfied));
    ff_hash_set(dependency, W(data_passing_ref), a->data_passing_ref);
    ff_hash_set_empty(dependency, W(last_resolved_at));
}

static bool count_dependency(ff_txn *t, const ff_dependency_apply_keys *k,
                             const ff_dependency_apply_args *a, int64_t *unsatisfied,
                             ff_result *out) {
    ff_key *meta = ff_hash_open(t, k->meta);
    if (!ff_counter_add(meta, W(unsatisfied_required_count), 1, unsatisfied, out)) return false;
    ff_hash_set(meta, W(flow_id), a->flow_id);
    ff_hash_set(meta, W(last_flow_graph_revision), a->graph_revision);
    ff_hash_set(meta, W(last_dependency_update_at), a->at);
    ff_set_add(ff_set_open(t, k->unresolved), a->edge_id);
    ff_set_add(ff_set_open(t, k->all_edges), a->edge_id);
    return !ff_str_is_set(k->group) || ff_edgegroup_enroll(ff_hash_open(t, k->group), out);
}

/* Only the eligible index is cleaned: what is delayed or blocked for another reason as well stays there. False
 * after a refusal was put into `out`. */
static bool block(ff_key *core, const ff_dependency_apply_keys *k,
                  const ff_dependency_apply_args *a, int64_t unsatisfied, ff_result *out) {
    ff_txn *t = ff_key_txn(core);
    ff_str *id = ff_str_or_empty(ff_hash_get(core, W(execution_id)));
    double created_at;
    if (!ff_counter_read_score(core, W(created_at), &created_at, out)) return false;
    set_if_missing(core, W(ownership_state), W(unowned));
    set_if_missing(core, W(attempt_state), W(pending_first_attempt));
    ff_str *detail = FF_CONCAT(t, ff_number_text(&t->arena, (double)unsatisfied),
                               FF_TEXT(" dep(s) unresolved incl "), ff_str_text(a->edge_id));
    ff_vector_set(core, &(ff_vector){.eligibility = W(blocked_by_dependencies),
                                     .blocking = W(waiting_for_children),
                                     .detail = detail,
                                     .public_state = W(waiting_children)});
    ff_vector_set_times(core, a->at);
    ff_zset_remove(ff_zset_open(t, k->eligible), id);
    ff_zset_add(ff_zset_open(t, k->blocked), id, created_at);
    return true;
}

ff_verdict ff_dependency_apply(ff_txn *t, const ff_dependency_apply_keys *k,
                               const ff_dependency_apply_args *a, ff_result *out) {
    int64_t unsatisfied;
    ff_key *core = ff_hash_open(t, k->core);
    if (!ff_key_exists(core)) return ff_refuse(out, FF_EXECUTION_NOT_FOUND);
    ff_str *stamp = ff_hash_get(core, W(flow_id));
    if (ff_str_is_set(stamp) && !ff_str_equal(stamp, a->flow_id)) {
        return ff_refuse(out, FF_EXECUTION_ALREADY_IN_FLOW);
    }
    if (!ff_need_keys(out, k, 4)) return FF_DISCARD;
    if (ff_key_exists(ff_any_open(t, k->dependency))) return ff_ok_word(out, W(already_applied));
    if (!ff_need_keys(out, k, 7) || !ff_need_arguments(out, a, 7)) return FF_DISCARD;

    write_dependency(ff_hash_open(t, k->dependency), core, a);
    if (!count_dependency(t, k, a, &unsatisfied, out)) return FF_DISCARD;
    bool waits = field_is(core, W(lifecycle_phase), W(runnable)) &&
                 field_is(core, W(terminal_outcome), W(none));
    if (waits && !block(core, k, a, unsatisfied, out)) return FF_DISCARD;
    /* The upstream may have ended before: whoever dispatches completions looks. */
    ff_completion_note(t, a->flow_id, a->upstream_id);
    ff_result_add_number(out, (double)unsatisfied);
    return ff_ok(out);
}

/* ---- Releasing and skipping the child ---- */

/* Rule PROMOTABLE. */
static bool is_promotable(ff_key *core) {
    return field_is(core, W(lifecycle_phase), W(runnable)) &&
           field_is(core, W(ownership_state), W(unowned)) &&
           field_is(core, W(terminal_outcome), W(none)) &&
           field_is(core, W(eligibility_state), W(blocked_by_dependencies));
}

/* Rule PROMOTE. False after a refusal was put into `out`: the core gives no score. */
static bool promote(ff_key *core, ff_str *blocked, ff_str *eligible, ff_str *id, ff_str *at,
                    ff_result *out) {
    ff_txn *t = ff_key_txn(core);
    double score;
    const ff_word *faulty = ff_score_of(core, &score);
    if (faulty) {
        ff_not_a_number_field(out, faulty, ff_hash_get(core, faulty));
        return false;
    }
    const ff_str *attempt = ff_hash_get(core, W(attempt_state));
    bool never_tried = !ff_str_is_set(attempt) || ff_str_is(attempt, W(none));
    set_if_missing(core, W(ownership_state), W(unowned));
    ff_vector_set(core, &(ff_vector){.eligibility = W(eligible_now),
                                     .blocking = W(waiting_for_worker),
                                     .detail = W(empty)->str,
                                     .outcome = W(none),
                                     .attempt = never_tried ? W(pending_first_attempt) : NULL,
                                     .public_state = W(waiting)});
    ff_vector_set_times(core, at);
    ff_zset_remove(ff_zset_open(t, blocked), id);
    ff_zset_add(ff_zset_open(t, eligible), id, score);
    return true;
}

static void end_attempt(ff_txn *t, const ff_dependency_resolve_keys *k, ff_str *at) {
    ff_key *attempt = ff_hash_open(t, k->attempt);
    ff_hash_set_word(attempt, W(attempt_state), W(ended_cancelled));
    ff_hash_set(attempt, W(ended_at), at);
    ff_hash_set_word(attempt, W(failure_reason), W(dependency_impossible));
    ff_key *stream = ff_hash_open(t, k->stream_meta);
    if (!ff_key_exists(stream)) return;
    ff_hash_set(stream, W(closed_at), at);
    ff_hash_set_word(stream, W(closed_reason), W(dependency_impossible));
}

/* What becomes of the attempt of a child that is skipped; NULL leaves it as it is. */
static const ff_word *skipped_attempt_state(const ff_str *state) {
    if (ff_str_is(state, W(running_attempt)) || ff_str_is(state, W(attempt_interrupted))) {
        return W(attempt_terminal);
    }
    if (state && !ff_str_is_set(state)) return NULL;
    return W(none);
}

/* Rule SKIP, for a child that has not ended. Leases and the entries of other indexes are left for others to
 * sweep. False after a refusal was put into `out`. */
static bool skip(ff_key *core, const ff_dependency_resolve_keys *k, ff_str *at, ff_result *out) {
    ff_txn *t = ff_key_txn(core);
    ff_str *id = ff_hash_get(core, W(execution_id));
    double ended_at;
    if (!ff_str_to_number(at, &ended_at) || isnan(ended_at)) {
        ff_not_a_number(out, "now_ms", at);
        return false;
    }
    const ff_word *attempt = skipped_attempt_state(ff_hash_get(core, W(attempt_state)));
    bool ends_attempt = attempt == W(attempt_terminal);
    if (!ff_need_keys(out, k, ends_attempt ? 9 : 7)) return false;
    if (ends_attempt) end_attempt(t, k, at);
    ff_vector_set(core, &(ff_vector){W(terminal), W(unowned), W(not_applicable), W(none),
                                     W(skipped), attempt, W(skipped), W(empty)->str});
    ff_hash_set(core, W(completed_at), at);
    ff_vector_set_times(core, at);
    ff_zset_remove(ff_zset_open(t, k->blocked), ff_str_or_empty(id));
    ff_zset_add(ff_zset_open(t, k->terminal), ff_str_or_empty(id), ended_at);
    if (ff_str_is_set(id)) {
        ff_completion_announce(t, ff_hash_get(core, W(flow_id)), id, W(skipped));
    }
    return true;
}

/* ---- Resolving an edge ---- */

typedef struct resolution {
    ff_txn *t;
    const ff_dependency_resolve_keys *k;
    const ff_dependency_resolve_args *a;
    ff_key *dependency;
    ff_key *group;
    bool success;
    ff_result *out;
} resolution;

static ff_verdict answer(ff_result *out, const ff_word *what, const ff_word *detail) {
    ff_result_add_word(out, what);
    return ff_ok_word(out, detail);
}

/* Rule COPY: hands the upstream's result to the child as its payload. False after a refusal was put into
 * `out`. */
static bool copy_result(const resolution *r, ff_key *core, bool *copied) {
    *copied = false;
    if (!ff_str_is_set(ff_hash_get(r->dependency, W(data_passing_ref)))) return true;
    if (!field_is(core, W(terminal_outcome), W(none))) return true;
    if (!ff_need_keys(r->out, r->k, 11)) return false;
    if (ff_str_equal(r->k->upstream_result, r->k->payload)) {
        ff_bad_input(r->out, "the upstream's result and the child's payload must be two keys");
        return false;
    }
    *copied = ff_key_copy(r->t, r->k->upstream_result, r->k->payload);
    return true;
}

static ff_verdict finish_satisfied(const resolution *r, bool copies, bool releases) {
    const ff_dependency_resolve_keys *k = r->k;
    ff_key *core = ff_hash_open(r->t, k->core);
    bool copied = false;
    if (ff_key_exists(core)) {
        if (copies && !copy_result(r, core, &copied)) return FF_DISCARD;
        if (releases && is_promotable(core)) {
            ff_str *id = ff_str_or_empty(ff_hash_get(core, W(execution_id)));
            if (!ff_need_keys(r->out, k, 7) ||
                !promote(core, k->blocked, k->eligible, id, r->a->at, r->out)) {
                return FF_DISCARD;
            }
        }
    }
    return answer(r->out, W(satisfied), copied ? W(data_injected) : W(empty));
}

static ff_verdict finish_impossible(const resolution *r) {
    ff_key *core = ff_hash_open(r->t, r->k->core);
    bool skips = field_is(core, W(terminal_outcome), W(none));
    if (skips && !skip(core, r->k, r->a->at, r->out)) return FF_DISCARD;
    return answer(r->out, W(impossible), skips ? W(child_skipped) : W(empty));
}

/* All edges must succeed: the child goes on with the last one, and is lost with the first that fails. */
static ff_verdict resolve_all(const resolution *r) {
    int64_t left;
    ff_key *meta = ff_hash_open(r->t, r->k->meta);
    if (!ff_counter_add(meta, W(unsatisfied_required_count), -1, &left, r->out)) return FF_DISCARD;
    if (!r->success && !ff_counter_add(meta, W(impossible_required_count), 1, NULL, r->out)) {
        return FF_DISCARD;
    }
    ff_hash_set(meta, W(last_dependency_update_at), r->a->at);
    if (!ff_edgegroup_count_all(r->group, r->success, left, r->out)) return FF_DISCARD;
    return r->success ? finish_satisfied(r, true, left == 0) : finish_impossible(r);
}

/* Some edges are enough: the group decides. */
static ff_verdict resolve_partial(const resolution *r) {
    const ff_siblings siblings = {r->k->incoming, r->k->pending_groups, r->a->flow_id,
                                  r->a->downstream_id};
    switch (ff_edgegroup_count_partial(r->group, r->a->outcome, r->out)) {
    case FF_EDGEGROUP_FAULTY: break;
    case FF_EDGEGROUP_OVERCOUNTED: return ff_refuse_keeping(r->out, FF_INVARIANT_VIOLATION);
    case FF_EDGEGROUP_FIRED: return answer(r->out, W(already_fired), W(empty));
    case FF_EDGEGROUP_PENDING: return answer(r->out, W(pending), W(empty));
    case FF_EDGEGROUP_SATISFIED:
        ff_edgegroup_fire(r->group, W(satisfied), r->a->at, &siblings);
        return finish_satisfied(r, r->success, true);
    case FF_EDGEGROUP_IMPOSSIBLE:
        ff_edgegroup_fire(r->group, W(impossible), r->a->at, &siblings);
        return finish_impossible(r);
    }
    return FF_DISCARD;
}

ff_verdict ff_dependency_resolve(ff_txn *t, const ff_dependency_resolve_keys *k,
                                 const ff_dependency_resolve_args *a, ff_result *out) {
    resolution r = {.t = t, .k = k, .a = a, .out = out};
    r.dependency = ff_hash_open(t, k->dependency);
    if (!ff_key_exists(r.dependency)) return ff_refuse(out, FF_INVALID_DEPENDENCY);
    if (field_is(r.dependency, W(state), W(satisfied)) ||
        field_is(r.dependency, W(state), W(impossible))) {
        return ff_ok_word(out, W(already_resolved));
    }
    r.group = ff_hash_open(t, ff_str_is_set(k->group) ? k->group : NULL);
    if (!ff_need_arguments(out, a, 3)) return FF_DISCARD;

    r.success = ff_str_is(a->outcome, W(success));
    ff_hash_set_word(r.dependency, W(state), r.success ? W(satisfied) : W(impossible));
    ff_hash_set(r.dependency, W(last_resolved_at), a->at);
    ff_set_remove(ff_set_open(t, k->unresolved), a->edge_id);
    return ff_edgegroup_is_partial(r.group) ? resolve_partial(&r) : resolve_all(&r);
}

/* ---- Asking, and releasing by hand ---- */

ff_verdict ff_dependency_evaluate(ff_txn *t, const ff_dependency_evaluate_keys *k, ff_result *out) {
    double impossible;
    double unsatisfied;
    ff_key *core = ff_hash_open(t, k->core);
    if (!ff_key_exists(core)) return ff_ok_word(out, W(not_found));
    if (!field_is(core, W(lifecycle_phase), W(runnable))) return ff_ok_word(out, W(not_runnable));
    if (!field_is(core, W(ownership_state), W(unowned))) return ff_ok_word(out, W(owned));
    if (!field_is(core, W(terminal_outcome), W(none))) return ff_ok_word(out, W(terminal));
    if (!ff_need_keys(out, k, 2)) return FF_DISCARD;
    ff_key *meta = ff_hash_open(t, k->meta);
    if (!ff_counter_read(meta, W(impossible_required_count), &impossible, out)) return FF_DISCARD;
    if (impossible > 0) return ff_ok_word(out, W(impossible));
    if (!ff_counter_read(meta, W(unsatisfied_required_count), &unsatisfied, out)) return FF_DISCARD;
    return ff_ok_word(out, unsatisfied > 0 ? W(blocked_by_dependencies) : W(eligible));
}

static ff_code check_blocked(ff_key *core) {
    if (!ff_key_exists(core)) return FF_EXECUTION_NOT_FOUND;
    if (!field_is(core, W(lifecycle_phase), W(runnable))) return FF_NOT_RUNNABLE;
    if (!field_is(core, W(eligibility_state), W(blocked_by_dependencies))) {
        return FF_NOT_BLOCKED_BY_DEPS;
    }
    return field_is(core, W(terminal_outcome), W(none)) ? FF_OK : FF_TERMINAL;
}

ff_verdict ff_dependency_promote(ff_txn *t, const ff_dependency_promote_keys *k,
                                 const ff_dependency_promote_args *a, ff_result *out) {
    double unsatisfied;
    ff_key *core = ff_hash_open(t, k->core);
    ff_code refused = check_blocked(core);
    if (refused) return ff_refuse(out, refused);
    if (!ff_need_keys(out, k, 5)) return FF_DISCARD;
    ff_key *meta = ff_hash_open(t, k->meta);
    if (!ff_counter_read(meta, W(unsatisfied_required_count), &unsatisfied, out)) return FF_DISCARD;
    double unresolved = (double)ff_set_size(ff_set_open(t, k->unresolved));
    if (unsatisfied > 0 || unresolved > 0) {
        ff_result_add_number(out, unsatisfied);
        ff_result_add_number(out, unresolved);
        return ff_refuse(out, FF_DEPS_NOT_SATISFIED);
    }
    if (!ff_need_arguments(out, a, 2) ||
        !promote(core, k->blocked, k->eligible, a->execution_id, a->at, out)) {
        return FF_DISCARD;
    }
    return ff_ok(out);
}
