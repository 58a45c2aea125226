#include "engine/flow.h"

#include "base/number.h"
#include "engine/counter.h"
#include "engine/tag.h"

ff_code ff_flow_check_open(ff_key *core) {
    if (!ff_key_exists(core)) return FF_FLOW_NOT_FOUND;
    const ff_str *state = ff_hash_get(core, W(public_flow_state));
    bool ended = ff_str_is(state, W(cancelled)) || ff_str_is(state, W(completed)) ||
                 ff_str_is(state, W(failed));
    return ended ? FF_FLOW_ALREADY_TERMINAL : FF_OK;
}

ff_verdict ff_flow_create(ff_txn *t, const ff_flow_create_keys *k, const ff_flow_create_args *a,
                          ff_result *out) {
    if (!ff_need_arguments(out, a, 1)) return FF_DISCARD;
    ff_set_add(ff_set_open(t, k->flow_index), a->flow_id);
    ff_result_add(out, a->flow_id);
    if (ff_key_exists(ff_any_open(t, k->core))) return ff_succeed(out, FF_ALREADY_SATISFIED);
    if (!ff_need_arguments(out, a, 3)) return FF_DISCARD;

    ff_key *core = ff_hash_open(t, k->core);
    ff_hash_set(core, W(flow_id), a->flow_id);
    ff_hash_set(core, W(flow_kind), a->flow_kind);
    ff_hash_set(core, W(namespace), a->namespace);
    ff_hash_set_word(core, W(graph_revision), W(zero));
    ff_hash_set_word(core, W(node_count), W(zero));
    ff_hash_set_word(core, W(edge_count), W(zero));
    ff_hash_set_word(core, W(public_flow_state), W(open));
    ff_hash_set_now(core, W(created_at));
    ff_hash_set_now(core, W(last_mutation_at));
    return ff_ok(out);
}

/* Kept: the flow index was healed before this was found out. */
static ff_verdict refuse_other_flow(ff_result *out, ff_str *flow_id) {
    out->word =
        FF_CONCAT(out->txn, FF_TEXT("already_member_of_different_flow:"), ff_str_text(flow_id));
    return ff_refuse_keeping(out, FF_ALREADY_MEMBER_OF_DIFFERENT_FLOW);
}

static ff_verdict count_member(ff_key *core, ff_result *out) {
    int64_t node_count;
    if (!ff_counter_add(core, W(node_count), 1, &node_count, out) ||
        !ff_counter_add(core, W(graph_revision), 1, NULL, out)) {
        return FF_DISCARD;
    }
    ff_hash_set_now(core, W(last_mutation_at));
    ff_result_add_number(out, (double)node_count);
    return ff_ok(out);
}

ff_verdict ff_flow_add(ff_txn *t, const ff_flow_add_keys *k, const ff_flow_add_args *a,
                       ff_result *out) {
    ff_key *core = ff_hash_open(t, k->core);
    ff_code refused = ff_flow_check_open(core);
    if (refused) return ff_refuse(out, refused);
    if (!ff_need_keys(out, k, 4)) return FF_DISCARD;
    ff_key *execution = ff_hash_open(t, k->execution_core);
    if (!ff_key_exists(execution)) return ff_refuse(out, FF_EXECUTION_NOT_FOUND);
    if (!ff_need_arguments(out, a, 1)) return FF_DISCARD;
    ff_set_add(ff_set_open(t, k->flow_index), a->flow_id);
    ff_str *stamp = ff_hash_get(execution, W(flow_id));
    if (ff_str_is_set(stamp) && !ff_str_equal(stamp, a->flow_id)) {
        return refuse_other_flow(out, stamp);
    }
    if (!ff_need_arguments(out, a, 2)) return FF_DISCARD;

    ff_key *members = ff_set_open(t, k->members);
    ff_hash_set(execution, W(flow_id), a->flow_id);
    ff_result_add(out, a->execution_id);
    if (ff_set_has(members, a->execution_id)) {
        ff_result_add(out, ff_str_or(ff_hash_get(core, W(node_count)), W(zero)));
        return ff_succeed(out, FF_ALREADY_SATISFIED);
    }
    ff_set_add(members, a->execution_id);
    return count_member(core, out);
}

/* A whole number of milliseconds that a double holds exactly; 30 seconds when none is given. */
static bool read_grace(const ff_str *text, double *grace) {
    const double most = 9007199254740991.0;
    *grace = 30000;
    if (!ff_str_is_set(text)) return true;
    return ff_str_to_number(text, grace) && *grace >= 0 && *grace <= most &&
           ff_number_is_whole(*grace);
}

/* Notes down that every member is still to be cancelled, by others from `due` on. */
static void owe_cancels(ff_txn *t, const ff_flow_cancel_keys *k, const ff_flow_cancel_args *a,
                        ff_strs members, double due) {
    ff_key *pending = ff_set_open(t, k->pending_cancels);
    for (size_t i = 0; i < members.count; i++) ff_set_add(pending, members.items[i]);
    ff_zset_add(ff_zset_open(t, k->cancel_backlog), a->flow_id, due);
}

ff_verdict ff_flow_cancel(ff_txn *t, const ff_flow_cancel_keys *k, const ff_flow_cancel_args *a,
                          ff_result *out) {
    double grace;
    if (!read_grace(a->grace_ms, &grace)) return ff_refuse(out, FF_INVALID_GRACE_MS);
    if (!ff_need_keys(out, k, 1)) return FF_DISCARD;
    ff_key *core = ff_hash_open(t, k->core);
    ff_code refused = ff_flow_check_open(core);
    if (refused) return ff_refuse(out, refused);
    if (!ff_need_arguments(out, a, 3) || !ff_need_keys(out, k, 2)) return FF_DISCARD;
    ff_strs members = ff_set_members(ff_set_open(t, k->members));
    if (members.count && ff_str_is(a->policy, W(cancel_all))) {
        if (!ff_need_keys(out, k, 5)) return FF_DISCARD;
        owe_cancels(t, k, a, members, t->now + grace);
    }

    ff_hash_set_word(core, W(public_flow_state), W(cancelled));
    ff_hash_set_now(core, W(cancelled_at));
    ff_hash_set_now(core, W(last_mutation_at));
    ff_hash_set(core, W(cancel_reason), a->reason);
    ff_hash_set(core, W(cancellation_policy), a->policy);
    ff_result_add(out, a->policy);
    for (size_t i = 0; i < members.count; i++) ff_result_add(out, members.items[i]);
    return ff_ok(out);
}

ff_verdict ff_flow_ack_cancel(ff_txn *t, const ff_flow_ack_cancel_keys *k,
                              const ff_flow_ack_cancel_args *a, ff_result *out) {
    if (!ff_need_arguments(out, a, 1)) return FF_DISCARD;
    ff_key *pending = ff_set_open(t, k->pending_cancels);
    ff_set_remove(pending, a->execution_id);
    if (ff_set_size(pending) > 0) return ff_ok(out);
    if (!ff_need_keys(out, k, 2) || !ff_need_arguments(out, a, 2)) return FF_DISCARD;
    ff_zset_remove(ff_zset_open(t, k->cancel_backlog), a->flow_id);
    return ff_ok(out);
}

/* Tags used to be fields of the core: moves them where they belong, once. */
static void migrate_tags(ff_key *core, ff_key *tags) {
    if (ff_str_is(ff_hash_get(core, W(tags_migrated)), W(one))) return;
    const ff_word *field;
    ff_str *value;
    size_t cursor = 0;
    while (ff_hash_next(core, &cursor, &field, &value)) {
        if (!ff_tag_name_is_valid(field->text)) continue;
        ff_hash_set(tags, field, value);
        ff_hash_remove(core, field);
    }
    ff_hash_set_word(core, W(tags_migrated), W(one));
}

ff_verdict ff_flow_tag(ff_txn *t, const ff_flow_tag_keys *k, const ff_flow_tag_args *a,
                       ff_result *out) {
    if (!ff_tags_check(&a->pairs, ff_any_open(t, k->core), FF_FLOW_NOT_FOUND, out) ||
        !ff_need_keys(out, k, 2)) {
        return FF_DISCARD;
    }
    ff_key *core = ff_hash_open(t, k->core);
    ff_key *tags = ff_hash_open(t, k->tags);
    migrate_tags(core, tags);
    ff_tags_write(tags, &a->pairs, out);
    ff_hash_set_now(core, W(last_mutation_at));
    return ff_ok(out);
}
