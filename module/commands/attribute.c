/* FF.PRIORITY, FF.TAG, FF.REPLAY: changing an execution from outside. */

#include "commands/command.h"
#include "commands/creation.h"
#include "commands/request.h"
#include "engine/keyname.h"
#include "engine/replay.h"
#include "engine/schedule.h"
#include "engine/tag.h"
#include "scan/member.h"

/* eid n */
static ff_verdict priority(ff_request *r) {
    int64_t value;
    ff_text error;
    ff_subject s;
    if (!ff_request_subject(r, &s)) return FF_DISCARD;
    if (!ff_argument_integer("priority", r->args[1], 0, FF_CREATION_PRIORITY_MOST, &value,
                             &r->txn.arena, &error)) {
        return ff_request_refuse(r, error);
    }
    ff_schedule_change_priority_keys keys = {s.core_name, ff_subject_lane_index(&s, "eligible")};
    ff_schedule_change_priority_args args = {s.execution_id, r->argv[1]};
    ff_verdict verdict = ff_schedule_change_priority(&r->txn, &keys, &args, &r->result);
    ff_request_tell_state(r, &s);
    if (r->result.code != FF_OK) return verdict;
    ff_answer_become_map(&r->answer);
    ff_answer_number(&r->answer, "priority", r->result.values[1].str);
    ff_answer_number(&r->answer, "previous_priority", r->result.values[0].str);
    return verdict;
}

/* eid n name value [name value …] */
static ff_verdict tag(ff_request *r) {
    int64_t count;
    ff_text error;
    ff_subject s;
    if (!ff_request_subject(r, &s)) return FF_DISCARD;
    if (!ff_argument_integer("the count of tags", r->args[1], 1, INT32_MAX, &count, &r->txn.arena,
                             &error)) {
        return ff_request_refuse(r, error);
    }
    if ((size_t)count * 2 != r->argc - 2) {
        return ff_request_refuse(r, ff_arena_printf(&r->txn.arena,
                                                    "%zu tags need %zu values, but %zu follow",
                                                    (size_t)count, (size_t)count * 2, r->argc - 2));
    }
    ff_execution_tag_keys keys = {s.core_name, ff_subject_key(&s, "tags")};
    ff_execution_tag_args args = {.pairs = {r->argv + 2, r->argc - 2}};
    ff_verdict verdict = ff_execution_tag(&r->txn, &keys, &args, &r->result);
    if (r->result.code != FF_OK) return verdict;
    ff_answer_become_map(&r->answer);
    ff_answer_number(&r->answer, "tags", r->result.values[0].str);
    return verdict;
}

/* The edges that enter the execution, with the key of each one's record. */
static void find_edges(ff_subject *s, ff_strs *ids, ff_strs *records) {
    ff_txn *t = s->txn;
    *ids = ff_set_members(ff_set_open(t, ff_subject_key(s, "deps:all_edges")));
    *records = (ff_strs){ff_arena_array(&t->arena, ids->count, sizeof(ff_str *)), ids->count};
    for (size_t i = 0; i < ids->count; i++) {
        ff_text suffix = ff_arena_concat(&t->arena, FF_TEXT("dep:"), ff_str_text(ids->items[i]));
        records->items[i] = ff_subject_key(s, suffix.ptr);
    }
}

/* Edges whose upstream has succeeded meanwhile are not waited for: nobody would resolve them. */
static bool settle_edges(ff_request *r, ff_subject *s, const ff_strs *edges,
                         const ff_strs *records) {
    ff_txn *t = &r->txn;
    for (size_t i = 0; i < edges->count; i++) {
        ff_result settled = {.txn = t};
        ff_key *record = ff_hash_open(t, records->items[i]);
        ff_str *upstream = ff_hash_get(record, W(upstream_execution_id));
        if (upstream == NULL || !ff_str_is(ff_hash_get(record, W(state)), W(unsatisfied))) continue;
        ff_str *outcome = ff_member_outcome(t, s->tag, ff_str_text(upstream));
        if (!ff_str_is(outcome, W(success))) continue;
        ff_member_edge edge = {s->tag,          ff_hash_get(s->core, W(flow_id)),
                               edges->items[i], upstream,
                               s->execution_id, outcome};
        if (ff_member_resolve(t, &edge, &settled) == FF_COMMIT) continue;
        r->result = settled;
        return false;
    }
    return true;
}

/* eid */
static ff_verdict replay(ff_request *r) {
    ff_subject s;
    if (!ff_request_subject(r, &s)) return FF_DISCARD;
    ff_execution_replay_keys keys = {
        .core = s.core_name,
        .terminal = ff_subject_lane_index(&s, "terminal"),
        .eligible = ff_subject_lane_index(&s, "eligible"),
        .history = ff_subject_key(&s, "lease:history"),
        .blocked = ff_subject_lane_index(&s, "blocked:dependencies"),
        .meta = ff_subject_key(&s, "deps:meta"),
        .unresolved = ff_subject_key(&s, "deps:unresolved"),
    };
    ff_execution_replay_args args = {s.execution_id, ff_str_now(&r->txn), {0}};
    find_edges(&s, &args.edge_ids, &keys.dependencies);
    ff_verdict verdict = ff_execution_replay(&r->txn, &keys, &args, &r->result);
    if (r->result.code != FF_OK) return verdict;
    bool waits = ff_str_is(ff_hash_get(s.core, W(eligibility_state)), W(blocked_by_dependencies));
    if (waits && !settle_edges(r, &s, &args.edge_ids, &keys.dependencies)) return FF_DISCARD;
    waits = ff_str_is(ff_hash_get(s.core, W(eligibility_state)), W(blocked_by_dependencies));
    size_t open = waits ? ff_set_size(ff_set_open(&r->txn, keys.unresolved)) : 0;
    ff_request_answer_state(r, &s);
    ff_answer_integer(&r->answer, "waits_for", (int64_t)open);
    ff_answer_number(&r->answer, "replay_count", ff_hash_get(s.core, W(replay_count)));
    return verdict;
}

static FF_NATIVE_WRITE(priority_command, 1, priority);
static FF_NATIVE_WRITE(tag_command, 1, tag);
static FF_NATIVE_WRITE(replay_command, 1, replay);

static const ff_command rows[] = {
    {"ff.priority", priority_command, FF_WRITES,
     .info = {FF_DOCUMENTED,
              .summary = "Changes the priority of an execution that waits for a worker.",
              .complexity = "O(log(N))", .arity = 3, .key_specs = FF_KEY_WRITE(1),
              .args = FF_ARGS(FF_KEY_ARG("execution-id"), FF_ARG("priority", INTEGER))}},
    {"ff.tag", tag_command, FF_WRITES,
     .info = {FF_DOCUMENTED, .summary = "Sets tags of an execution.",
              .complexity = "O(N) with N the number of tags", .arity = -5,
              .key_specs = FF_KEY_WRITE(1),
              .args = FF_ARGS(
                  FF_KEY_ARG("execution-id"), FF_ARG("count", INTEGER),
                  FF_ARG("tag", BLOCK, .flags = VALKEYMODULE_CMD_ARG_MULTIPLE,
                         .subargs = FF_ARGS(FF_ARG("name", STRING), FF_ARG("value", STRING))))}},
    {"ff.replay", replay_command, FF_WRITES,
     .info = {FF_DOCUMENTED,
              .summary = "Brings an execution that has ended back for another attempt.",
              .complexity = "O(log(N)+E) with E the number of edges of the execution", .arity = 2,
              .key_specs = FF_KEY_WRITE(1), .args = FF_ARGS(FF_KEY_ARG("execution-id"))}},
};

const ff_command_table ff_attribute_commands = FF_COMMAND_TABLE(rows);
