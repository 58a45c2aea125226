/* FF.BLOCK, FF.UNBLOCK: executions that may not start now. */

#include "engine/admission.h"

#include "commands/blocking.h"
#include "commands/command.h"
#include "commands/request.h"
#include "commands/unblock.h"

const char *const ff_blocking_names[FF_BLOCKING_COUNT + 1] = {"budget", "quota", "route",
                                                              "operator", NULL};

ff_blocking ff_blocking_at(int position) {
    const ff_blocking all[FF_BLOCKING_COUNT] = {
        {"budget", "blocked:budget", W(waiting_for_budget), W(blocked_by_budget)},
        {"quota", "blocked:quota", W(waiting_for_quota), W(blocked_by_quota)},
        {"route", "blocked:route", W(waiting_for_capable_worker), W(blocked_by_route)},
        {"operator", "blocked:operator", W(paused_by_operator), W(blocked_by_operator)},
    };
    return all[position];
}

typedef struct block_options {
    int reason;
} block_options;

static const ff_option reason_rows[] = {
    FF_OPTION("REASON", FF_OPTION_CHOICE, block_options, reason, .choices = ff_blocking_names),
};

static bool read_reason(ff_request *r, ff_text text, ff_blocking *blocking) {
    for (int i = 0; i < FF_BLOCKING_COUNT; i++) {
        if (!ff_text_equal_ignoring_case(text, ff_text_of(ff_blocking_names[i]))) continue;
        *blocking = ff_blocking_at(i);
        return true;
    }
    ff_arena *arena = &r->txn.arena;
    ff_request_refuse(r, ff_arena_concat(arena,
                                         FF_TEXT("the reason must be one of budget, quota, route, "
                                                 "operator, got: "),
                                         ff_arena_printable(arena, text)));
    return false;
}

/* It moves: out of the delayed index, and of what it was blocked for before. */
static void leave_other_indexes(ff_subject *s, const ff_blocking *chosen) {
    ff_zset_remove(ff_zset_open(s->txn, ff_subject_lane_index(s, "delayed")), s->execution_id);
    for (int i = 0; i < FF_BLOCKING_COUNT; i++) {
        const char *index = ff_blocking_at(i).index;
        if (index == chosen->index) continue;
        ff_zset_remove(ff_zset_open(s->txn, ff_subject_lane_index(s, index)), s->execution_id);
    }
}

/* eid reason detail */
static ff_verdict block(ff_request *r) {
    ff_blocking blocking;
    ff_subject s;
    if (!ff_request_subject(r, &s) || !read_reason(r, r->args[1], &blocking)) return FF_DISCARD;
    if (ff_str_is(ff_hash_get(s.core, W(eligibility_state)), W(blocked_by_dependencies))) {
        ff_refuse(&r->result, FF_EXECUTION_NOT_ELIGIBLE);
        ff_request_tell_state(r, &s);
        return FF_DISCARD;
    }
    ff_admission_block_keys keys = {s.core_name, ff_subject_lane_index(&s, "eligible"),
                                    ff_subject_lane_index(&s, blocking.index)};
    ff_admission_block_args args = {s.execution_id, blocking.reason->str, r->argv[2],
                                    ff_str_now(&r->txn)};
    ff_verdict verdict = ff_admission_block(&r->txn, &keys, &args, &r->result);
    ff_request_tell_state(r, &s);
    if (r->result.code != FF_OK) return verdict;
    leave_other_indexes(&s, &blocking);
    ff_request_answer_state(r, &s);
    return verdict;
}

/* Why it is blocked; NULL when it is not, or for what nobody lifts by hand. */
static const char *index_of(ff_subject *s) {
    const ff_str *eligibility = ff_hash_get(s->core, W(eligibility_state));
    for (int i = 0; i < FF_BLOCKING_COUNT; i++) {
        ff_blocking blocking = ff_blocking_at(i);
        if (ff_str_is(eligibility, blocking.eligibility)) return blocking.index;
    }
    return NULL;
}

/* eid [REASON r] */
static ff_verdict unblock(ff_request *r) {
    block_options o = {-1};
    ff_subject s;
    if (!ff_request_subject(r, &s) ||
        !ff_request_options(r, 1, FF_OPTION_TABLE(reason_rows), &o, NULL)) {
        return FF_DISCARD;
    }
    const char *index = index_of(&s);
    ff_admission_unblock_keys keys = {s.core_name,
                                      ff_subject_lane_index(&s, index ? index : "blocked:operator"),
                                      ff_subject_lane_index(&s, "eligible")};
    ff_admission_unblock_args args = {s.execution_id, ff_str_now(&r->txn),
                                      o.reason < 0 ? NULL : ff_blocking_at(o.reason).reason->str};
    ff_verdict verdict = ff_admission_unblock(&r->txn, &keys, &args, &r->result);
    ff_request_tell_state(r, &s);
    if (r->result.code == FF_OK) ff_request_answer_state(r, &s);
    return verdict;
}

static FF_NATIVE_WRITE(block_command, 1, block);
static FF_NATIVE_WRITE(unblock_one, 1, unblock);

/* An execution id is unblocked; a partition or `*` has the unblock pass run over it. */
static int unblock_command(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    ff_reference id;
    bool asked_for_keys = ValkeyModule_IsKeysPositionRequest(ctx);
    if (argc < 2 || asked_for_keys || ff_execution_id_parse(ff_str_text(argv[1]), &id)) {
        return unblock_one(ctx, argv, argc);
    }
    return ff_unblock_pass(ctx, argv, argc);
}

#define REASON_ARGS \
    FF_WORD_ARG("budget", "BUDGET"), FF_WORD_ARG("quota", "QUOTA"), FF_WORD_ARG("route", "ROUTE"), \
        FF_WORD_ARG("operator", "OPERATOR")

static const ff_command rows[] = {
    {"ff.block", block_command, FF_OPERATOR_WRITES,
     .info = {FF_DOCUMENTED, .summary = "Keeps a runnable execution from being claimed.",
              .complexity = "O(log(N))", .arity = 4, .key_specs = FF_KEY_WRITE(1),
              .args = FF_ARGS(FF_KEY_ARG("execution-id"), FF_ONE_ARG("reason", REASON_ARGS),
                              FF_ARG("detail", STRING))}},
    {"ff.unblock", unblock_command, FF_OPERATOR_WRITES,
     .info = {FF_DOCUMENTED,
              .summary = "Lets a blocked execution go, or runs the unblock pass over partitions.",
              .complexity = "O(log(N)) for each execution looked at", .arity = -2,
              .key_specs = FF_KEY_WRITE(1),
              .args = FF_ARGS(FF_KEY_ARG("execution-id-or-partition"),
                              FF_ONE_OPTION_ARG("reason", "REASON", REASON_ARGS),
                              FF_OPTION_ARG("lane", "LANE", STRING),
                              FF_OPTION_ARG("limit", "LIMIT", INTEGER))}},
};

const ff_command_table ff_admission_commands = FF_COMMAND_TABLE(rows);
