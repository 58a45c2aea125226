#include "engine/edgegroup.h"

#include "base/number.h"
#include "engine/counter.h"
#include "engine/keyname.h"

bool ff_edgegroup_is_partial(ff_key *group) {
    const ff_str *variant = ff_hash_get(group, W(policy_variant));
    return ff_str_is(variant, W(any_of)) || ff_str_is(variant, W(quorum));
}

bool ff_edgegroup_enroll(ff_key *group, ff_result *out) {
    if (ff_hash_get(group, W(policy_variant))) {
        return ff_counter_add(group, W(n), 1, NULL, out);
    }
    ff_hash_set_word(group, W(policy_variant), W(all_of));
    ff_hash_set_word(group, W(n), W(one));
    ff_hash_set_word(group, W(succeeded), W(zero));
    ff_hash_set_word(group, W(group_state), W(pending));
    return true;
}

bool ff_edgegroup_count_all(ff_key *group, bool success, int64_t left, ff_result *out) {
    if (!ff_key_exists(group)) return true;
    if (!success) {
        ff_hash_set_word(group, W(group_state), W(impossible));
    } else if (left == 0) {
        ff_hash_set_word(group, W(group_state), W(satisfied));
    }
    return ff_counter_add(group, success ? W(succeeded) : W(failed), 1, NULL, out);
}

/* The counters of a partial group. */
typedef struct tally {
    double applied, succeeded, failed, skipped, needed;
} tally;

/* Any one is a quorum of 1; a quorum below that counts as 1 too. */
static bool read_needed(ff_key *group, double *needed, ff_result *out) {
    *needed = 1;
    if (ff_str_is(ff_hash_get(group, W(policy_variant)), W(any_of))) return true;
    if (!ff_counter_read(group, W(k), needed, out)) return false;
    if (*needed < 1) *needed = 1;
    return true;
}

static bool read_tally(ff_key *group, tally *sum, ff_result *out) {
    return ff_counter_read(group, W(n), &sum->applied, out) &&
           ff_counter_read(group, W(succeeded), &sum->succeeded, out) &&
           ff_counter_read(group, W(failed), &sum->failed, out) &&
           ff_counter_read(group, W(skipped), &sum->skipped, out) &&
           read_needed(group, &sum->needed, out);
}

static const ff_word *bucket_of(const ff_str *outcome) {
    if (ff_str_is(outcome, W(success))) return W(succeeded);
    return ff_str_is(outcome, W(skipped)) ? W(skipped) : W(failed);
}

static bool has_fired(ff_key *group) {
    const ff_str *state = ff_hash_get(group, W(group_state));
    return ff_str_is(state, W(satisfied)) || ff_str_is(state, W(impossible)) ||
           ff_str_is(state, W(cancelled));
}

ff_edgegroup_decision ff_edgegroup_count_partial(ff_key *group, const ff_str *outcome,
                                                 ff_result *out) {
    tally sum;
    if (!ff_counter_add(group, bucket_of(outcome), 1, NULL, out) || !read_tally(group, &sum, out)) {
        return FF_EDGEGROUP_FAULTY;
    }
    double resolved = sum.succeeded + sum.failed + sum.skipped;
    if (resolved > sum.applied) {
        ff_txn *t = ff_key_txn(group);
        ff_result_add(out, FF_CONCAT(t, FF_TEXT("edgegroup counters exceed n: "),
                                     ff_number_text(&t->arena, resolved), FF_TEXT("/"),
                                     ff_number_text(&t->arena, sum.applied)));
        return FF_EDGEGROUP_OVERCOUNTED;
    }
    if (has_fired(group)) return FF_EDGEGROUP_FIRED;
    if (sum.succeeded >= sum.needed) return FF_EDGEGROUP_SATISFIED;
    if (sum.failed + sum.skipped > sum.applied - sum.needed) return FF_EDGEGROUP_IMPOSSIBLE;
    return FF_EDGEGROUP_PENDING;
}

/* Has this execution not ended yet? One without a record, or without a phase, counts as ended. */
static bool is_running(ff_txn *t, ff_text tag, ff_text execution_id) {
    ff_str *core = ff_keyname_execution(t, tag, execution_id, "core");
    const ff_str *phase = ff_hash_peek(t, ff_str_text(core), W(lifecycle_phase));
    return ff_str_is_set(phase) && !ff_str_is(phase, W(terminal));
}

/* The upstreams that have not ended, joined by bars. */
static ff_str *list_running(ff_key *group, const ff_siblings *siblings) {
    ff_txn *t = ff_key_txn(group);
    ff_text tag = ff_tag_of(ff_key_name(group));
    ff_text flow_id = ff_str_text(siblings->flow_id);
    ff_strs edges = ff_set_members(ff_set_open(t, siblings->incoming));
    ff_buffer list;
    ff_buffer_init(&list, &t->arena);
    for (size_t i = 0; i < edges.count; i++) {
        ff_str *edge = ff_keyname_flow(t, tag, flow_id, "edge:", ff_str_text(edges.items[i]));
        ff_text upstream =
            ff_str_text(ff_hash_peek(t, ff_str_text(edge), W(upstream_execution_id)));
        if (!ff_text_is_set(upstream) || !is_running(t, tag, upstream)) continue;
        if (list.len) ff_buffer_append_byte(&list, '|');
        ff_buffer_append(&list, upstream);
    }
    return ff_str_make(t, ff_buffer_text(&list));
}

static ff_str *queue_entry(ff_txn *t, const ff_str *flow_id, const ff_str *downstream_id) {
    return FF_CONCAT(t, ff_str_text(flow_id), FF_TEXT("|"), ff_str_text(downstream_id));
}

static void ask_to_cancel_siblings(ff_key *group, const ff_word *reason,
                                   const ff_siblings *siblings) {
    ff_txn *t = ff_key_txn(group);
    bool listed = ff_str_is_set(siblings->incoming) && ff_str_is_set(siblings->flow_id);
    ff_hash_set_word(group, W(cancel_siblings_pending_flag), W(true));
    ff_hash_set_word(group, W(cancel_siblings_reason), reason);
    ff_hash_set(group, W(cancel_siblings_pending_members),
                listed ? list_running(group, siblings) : W(empty)->str);
    if (ff_str_is_set(siblings->pending_groups) && ff_str_is_set(siblings->flow_id) &&
        ff_str_is_set(siblings->downstream_id)) {
        ff_set_add(ff_set_open(t, siblings->pending_groups),
                   queue_entry(t, siblings->flow_id, siblings->downstream_id));
    }
}

void ff_edgegroup_fire(ff_key *group, const ff_word *state, ff_str *at,
                       const ff_siblings *siblings) {
    bool satisfied = state == W(satisfied);
    ff_hash_set_word(group, W(group_state), state);
    if (satisfied) ff_hash_set(group, W(satisfied_at), at);
    if (!ff_str_is(ff_hash_get(group, W(on_satisfied)), W(cancel_remaining))) return;
    ask_to_cancel_siblings(
        group, satisfied ? W(sibling_quorum_satisfied) : W(sibling_quorum_impossible), siblings);
}

static bool is_variant(const ff_str *variant) {
    return ff_str_is(variant, W(all_of)) || ff_str_is(variant, W(any_of)) ||
           ff_str_is(variant, W(quorum));
}

static ff_verdict refuse_variant(ff_result *out, const ff_str *variant) {
    ff_text got = variant ? ff_str_text(variant) : W(nil)->text;
    return ff_refuse_with(out, FF_INVALID_INPUT,
                          FF_CONCAT(out->txn, FF_TEXT("unsupported_policy_variant: "), got));
}

/* False after a refusal was put into `out`. */
static bool check_policy(const ff_edgegroup_set_policy_args *a, double threshold, ff_result *out) {
    const char *problem = NULL;
    if (!is_variant(a->variant)) {
        refuse_variant(out, a->variant);
        return false;
    }
    if (ff_str_is(a->variant, W(quorum)) && threshold < 1) {
        problem = "quorum k must be >= 1";
    } else if (!ff_str_is(a->variant, W(all_of)) &&
               !ff_str_is(a->on_satisfied, W(cancel_remaining)) &&
               !ff_str_is(a->on_satisfied, W(let_run))) {
        problem = "on_satisfied required for any_of/quorum: cancel_remaining | let_run";
    }
    if (problem) ff_bad_input(out, problem);
    return problem == NULL;
}

static void write_policy(ff_key *group, const ff_edgegroup_set_policy_args *a, double threshold) {
    ff_hash_set(group, W(policy_variant), a->variant);
    ff_hash_set(group, W(on_satisfied), a->on_satisfied);
    ff_hash_set_number(group, W(k), threshold);
    ff_hash_set_word(group, W(n), W(zero));
    ff_hash_set_word(group, W(succeeded), W(zero));
    ff_hash_set_word(group, W(failed), W(zero));
    ff_hash_set_word(group, W(skipped), W(zero));
    ff_hash_set_word(group, W(group_state), W(pending));
    ff_hash_set(group, W(created_at), a->at);
}

ff_verdict ff_edgegroup_set_policy(ff_txn *t, const ff_edgegroup_set_policy_keys *k,
                                   const ff_edgegroup_set_policy_args *a, ff_result *out) {
    double threshold;
    double applied;
    if (!ff_key_exists(ff_any_open(t, k->flow_core))) return ff_refuse(out, FF_FLOW_NOT_FOUND);
    if (!ff_str_to_number(a->k, &threshold)) threshold = 0;
    if (!check_policy(a, threshold, out) || !ff_need_keys(out, k, 2)) return FF_DISCARD;
    ff_key *group = ff_hash_open(t, k->group);
    if (!ff_counter_read(group, W(n), &applied, out)) return FF_DISCARD;
    if (applied > 0) {
        return ff_bad_input(out, "edge_group_policy_already_fixed: dependencies already staged");
    }
    if (ff_str_equal(ff_hash_get(group, W(policy_variant)), a->variant)) {
        return ff_ok_word(out, W(already_set));
    }
    if (!ff_need_arguments(out, a, 4)) return FF_DISCARD;
    write_policy(group, a, threshold);
    return ff_ok_word(out, W(set));
}

/* What drain and reconcile both need first. False after a refusal was put into `out`. */
static bool check_queue_call(const ff_edgegroup_drain_keys *k, const ff_edgegroup_drain_args *a,
                             ff_result *out) {
    if (ff_str_is_set(a->flow_id) && ff_str_is_set(a->downstream_id)) {
        return ff_need_keys(out, k, 2);
    }
    ff_refuse_with(out, FF_INVALID_ARGS,
                   ff_str_make(out->txn, FF_TEXT("flow_id and downstream_eid required")));
    return false;
}

static void forget_siblings(ff_key *group) {
    ff_hash_remove(group, W(cancel_siblings_pending_flag));
    ff_hash_remove(group, W(cancel_siblings_pending_members));
}

static ff_verdict answer(ff_result *out, const ff_word *what, const ff_word *detail) {
    ff_result_add_word(out, what);
    return ff_ok_word(out, detail);
}

ff_verdict ff_edgegroup_drain(ff_txn *t, const ff_edgegroup_drain_keys *k,
                              const ff_edgegroup_drain_args *a, ff_result *out) {
    if (!check_queue_call(k, a, out)) return FF_DISCARD;
    ff_key *queue = ff_set_open(t, k->pending_groups);
    ff_key *group = ff_hash_open(t, k->group);
    ff_str *entry = queue_entry(t, a->flow_id, a->downstream_id);
    bool queued = ff_set_has(queue, entry);
    bool exists = ff_key_exists(group);
    if (queued) ff_set_remove(queue, entry);
    if (exists) forget_siblings(group);
    if (!queued) return answer(out, W(already_drained), W(empty));
    return answer(out, exists ? W(drained) : W(drained_sans_group), W(empty));
}

static bool any_listed_running(ff_key *group) {
    ff_txn *t = ff_key_txn(group);
    ff_text tag = ff_tag_of(ff_key_name(group));
    ff_text rest = ff_str_text(ff_hash_get(group, W(cancel_siblings_pending_members)));
    ff_text sibling;
    if (ff_text_is_absent(tag)) return false;
    while (ff_text_split(&rest, '|', &sibling)) {
        if (sibling.len && is_running(t, tag, sibling)) return true;
    }
    return false;
}

ff_verdict ff_edgegroup_reconcile(ff_txn *t, const ff_edgegroup_reconcile_keys *k,
                                  const ff_edgegroup_reconcile_args *a, ff_result *out) {
    if (!check_queue_call(k, a, out)) return FF_DISCARD;
    ff_key *queue = ff_set_open(t, k->pending_groups);
    ff_str *entry = queue_entry(t, a->flow_id, a->downstream_id);
    if (!ff_set_has(queue, entry)) return answer(out, W(no_op), W(not_in_set));
    ff_key *group = ff_hash_open(t, k->group);
    bool exists = ff_key_exists(group);
    if (exists && ff_str_is(ff_hash_get(group, W(cancel_siblings_pending_flag)), W(true))) {
        if (any_listed_running(group)) return answer(out, W(no_op), W(siblings_running));
        forget_siblings(group);
        ff_set_remove(queue, entry);
        return answer(out, W(completed_drain), W(empty));
    }
    ff_set_remove(queue, entry);
    return answer(out, W(sremmed_stale), exists ? W(flag_cleared) : W(missing_edgegroup));
}
