#include "engine/replay.h"

#include "base/number.h"
#include "engine/counter.h"
#include "engine/document.h"
#include "engine/history.h"
#include "engine/keyname.h"
#include "engine/score.h"
#include "engine/vector.h"

enum { REPLAYS_BY_DEFAULT = 10 };

/* How often the policy beside the core allows it. A policy that says nothing understandable counts as
 * none. */
static double replay_limit(ff_txn *t, const ff_str *core) {
    double limit = REPLAYS_BY_DEFAULT;
    ff_str *policy = ff_string_get(ff_string_open(t, ff_keyname_beside_core(t, core, ":policy")));
    ff_json_to_number(ff_json_member(ff_document_read(t, policy), "max_replay_count"), &limit);
    return limit;
}

/* False after a refusal was put into `out`. */
static bool check_replay(ff_key *core, double *replays, ff_result *out) {
    ff_code refused = FF_OK;
    if (!ff_key_exists(core)) {
        refused = FF_EXECUTION_NOT_FOUND;
    } else if (!ff_str_is(ff_hash_get(core, W(lifecycle_phase)), W(terminal))) {
        refused = FF_EXECUTION_NOT_TERMINAL;
    } else if (!ff_counter_read(core, W(replay_count), replays, out)) {
        return false;
    } else if (*replays >= replay_limit(ff_key_txn(core), ff_key_name(core))) {
        refused = FF_MAX_REPLAYS_EXHAUSTED;
    }
    if (refused) ff_refuse(out, refused);
    return !refused;
}

/* What both ways have in common: `vector` says where the execution goes. */
static void revive(ff_key *core, const ff_execution_replay_keys *k,
                   const ff_execution_replay_args *a, double replays, ff_vector *vector) {
    ff_txn *t = ff_key_txn(core);
    ff_str *count = ff_str_number(t, replays + 1);
    bool blocked = vector->eligibility == W(blocked_by_dependencies);
    vector->phase = W(runnable);
    vector->ownership = W(unowned);
    vector->outcome = W(none);
    vector->attempt = W(pending_replay_attempt);
    ff_vector_set(core, vector);
    ff_hash_set_word(core, W(pending_replay_attempt), W(one));
    ff_hash_set(core, W(replay_count), count);
    ff_hash_set_empty(core, W(completed_at));
    ff_vector_set_times(core, ff_str_now(t));
    ff_zset_remove(ff_zset_open(t, k->terminal), a->execution_id);
    FF_HISTORY(ff_stream_open(t, k->history), {W(event), W(replay_initiated)->str},
               {W(replay_count), count},
               {W(replay_type), (blocked ? W(skipped_flow_member) : W(normal))->str});
}

static ff_verdict replay_normally(ff_key *core, const ff_execution_replay_keys *k,
                                  const ff_execution_replay_args *a, double replays,
                                  ff_result *out) {
    double score;
    const ff_word *faulty = ff_score_of(core, &score);
    if (faulty) return ff_not_a_number_field(out, faulty, ff_hash_get(core, faulty));
    revive(core, k, a, replays,
           &(ff_vector){.eligibility = W(eligible_now),
                        .blocking = W(waiting_for_worker),
                        .detail = W(empty)->str,
                        .public_state = W(waiting)});
    ff_zset_add(ff_zset_open(out->txn, k->eligible), a->execution_id, score);
    return ff_ok_word(out, W(zero));
}

/* Reopens the edges that had become impossible. Returns how many are to be waited for. */
static int64_t reopen_edges(ff_txn *t, const ff_execution_replay_keys *k,
                            const ff_execution_replay_args *a) {
    int64_t waiting = 0;
    for (size_t i = 0; i < a->edge_ids.count; i++) {
        ff_key *dependency = ff_hash_open(t, k->dependencies.items[i]);
        const ff_str *state = ff_hash_get(dependency, W(state));
        if (ff_str_is(state, W(unsatisfied))) {
            waiting++;
        } else if (ff_str_is(state, W(impossible))) {
            waiting++;
            ff_hash_set_word(dependency, W(state), W(unsatisfied));
            ff_hash_set_empty(dependency, W(last_resolved_at));
            ff_set_add(ff_set_open(t, k->unresolved), a->edge_ids.items[i]);
        }
    }
    return waiting;
}

/* The group of a member that waits again: what its satisfied edges say, and nothing else. */
static void recount_group(ff_key *core, const ff_execution_replay_keys *k) {
    ff_txn *t = ff_key_txn(core);
    ff_text flow_id = ff_str_text(ff_hash_get(core, W(flow_id)));
    ff_text own = ff_str_text(ff_hash_get(core, W(execution_id)));
    ff_key *group =
        ff_hash_open(t, ff_keyname_flow(t, ff_tag_of(k->core), flow_id, "edgegroup:", own));
    int64_t succeeded = 0;
    if (!ff_key_exists(group)) return;
    for (size_t i = 0; i < k->dependencies.count; i++) {
        ff_key *dependency = ff_hash_open(t, k->dependencies.items[i]);
        if (ff_str_is(ff_hash_get(dependency, W(state)), W(satisfied))) succeeded++;
    }
    ff_hash_set(group, W(succeeded), ff_str_integer(t, succeeded));
    ff_hash_set_word(group, W(failed), W(zero));
    ff_hash_set_word(group, W(skipped), W(zero));
    ff_hash_set_word(group, W(group_state), W(pending));
}

/* The member waits again, even if there is nothing left to wait for. */
static ff_verdict replay_skipped_member(ff_key *core, const ff_execution_replay_keys *k,
                                        const ff_execution_replay_args *a, double replays,
                                        ff_result *out) {
    ff_txn *t = out->txn;
    double created_at;
    if (!ff_need_keys(out, k, 7)) return FF_DISCARD;
    if (k->dependencies.count < a->edge_ids.count) {
        return ff_bad_input(out, "expected the key of a dependency record for each edge id");
    }
    if (!ff_counter_read_score(core, W(created_at), &created_at, out)) return FF_DISCARD;

    ff_str *waiting = ff_str_integer(t, reopen_edges(t, k, a));
    ff_key *meta = ff_hash_open(t, k->meta);
    ff_hash_set(meta, W(unsatisfied_required_count), waiting);
    ff_hash_set_word(meta, W(impossible_required_count), W(zero));
    ff_hash_set_now(meta, W(last_dependency_update_at));
    if (t->strict) recount_group(core, k);
    ff_str *detail =
        FF_CONCAT(t, ff_str_text(waiting), FF_TEXT(" dep(s) unsatisfied after replay"));
    revive(core, k, a, replays,
           &(ff_vector){.eligibility = W(blocked_by_dependencies),
                        .blocking = W(waiting_for_children),
                        .detail = detail,
                        .public_state = W(waiting_children)});
    ff_zset_add(ff_zset_open(t, k->blocked), a->execution_id, created_at);
    ff_result_add(out, waiting);
    return ff_ok(out);
}

/* An edge that leaves the member and had become impossible with it is open again, as long as
 * what waits behind it has not ended: what was counted against its group is taken back. */
static bool reopen_outgoing(ff_key *core, ff_text tag, ff_str *edge_id, ff_result *out) {
    ff_txn *t = ff_key_txn(core);
    ff_text flow_id = ff_str_text(ff_hash_get(core, W(flow_id)));
    ff_str *edge = ff_keyname_flow(t, tag, flow_id, "edge:", ff_str_text(edge_id));
    ff_text child = ff_str_text(ff_hash_peek(t, ff_str_text(edge), W(downstream_execution_id)));
    if (!ff_text_is_set(child)) return true;
    ff_str *child_core = ff_keyname_execution(t, tag, child, "core");
    const ff_str *phase = ff_hash_peek(t, ff_str_text(child_core), W(lifecycle_phase));
    if (!ff_str_is_set(phase) || ff_str_is(phase, W(terminal))) return true;
    ff_text record = ff_arena_concat(&t->arena, FF_TEXT("dep:"), ff_str_text(edge_id));
    ff_key *dependency = ff_hash_open(t, ff_keyname_execution(t, tag, child, record.ptr));
    ff_key *group = ff_hash_open(t, ff_keyname_flow(t, tag, flow_id, "edgegroup:", child));
    if (!ff_str_is(ff_hash_get(dependency, W(state)), W(impossible)) ||
        !ff_str_is(ff_hash_get(group, W(group_state)), W(pending))) {
        return true;
    }
    bool skipped = ff_str_is(ff_hash_get(core, W(terminal_outcome)), W(skipped));
    ff_hash_set_word(dependency, W(state), W(unsatisfied));
    ff_hash_set_empty(dependency, W(last_resolved_at));
    ff_set_add(ff_set_open(t, ff_keyname_execution(t, tag, child, "deps:unresolved")), edge_id);
    return ff_counter_add(group, skipped ? W(skipped) : W(failed), -1, NULL, out);
}

static bool reopen_all_outgoing(ff_key *core, ff_result *out) {
    ff_txn *t = ff_key_txn(core);
    ff_str *flow_id = ff_hash_get(core, W(flow_id));
    ff_text own = ff_str_text(ff_hash_get(core, W(execution_id)));
    ff_text tag = ff_tag_of(ff_key_name(core));
    if (!ff_str_is_set(flow_id) || ff_text_is_absent(tag)) return true;
    ff_str *outgoing = ff_keyname_flow(t, tag, ff_str_text(flow_id), "out:", own);
    ff_strs edges = ff_set_peek(t, ff_str_text(outgoing));
    for (size_t i = 0; i < edges.count; i++) {
        if (!reopen_outgoing(core, tag, edges.items[i], out)) return false;
    }
    return true;
}

ff_verdict ff_execution_replay(ff_txn *t, const ff_execution_replay_keys *k,
                               const ff_execution_replay_args *a, ff_result *out) {
    double replays;
    ff_key *core = ff_hash_open(t, k->core);
    if (!check_replay(core, &replays, out) || !ff_need_keys(out, k, 4) ||
        !ff_need_arguments(out, a, 1)) {
        return FF_DISCARD;
    }
    bool waits = ff_str_is(ff_hash_get(core, W(terminal_outcome)), W(skipped)) &&
                 ff_str_is_set(ff_hash_get(core, W(flow_id)));
    if (t->strict && !reopen_all_outgoing(core, out)) return FF_DISCARD;
    return waits ? replay_skipped_member(core, k, a, replays, out)
                 : replay_normally(core, k, a, replays, out);
}
