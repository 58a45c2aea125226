/* FF.DELAY, FF.WAITCHILDREN: the holder of a lease puts its execution back. */

#include "claim/slot.h"
#include "commands/command.h"
#include "commands/request.h"

typedef struct delay_options {
    int64_t at, for_ms;
} delay_options;

enum { DUE = 1, AT_ROW = 0 };
static const ff_option delay_rows[] = {
    [AT_ROW] = FF_OPTION("AT", FF_OPTION_TIME, delay_options, at, .group = DUE, .required = true),
    FF_OPTION("FOR", FF_OPTION_DURATION, delay_options, for_ms, .group = DUE, .required = true),
};

/* eid lease epoch attempt AT ms|FOR ms */
static ff_verdict delay(ff_request *r) {
    delay_options o = {0};
    uint64_t given;
    ff_subject s;
    if (!ff_request_subject(r, &s) ||
        !ff_request_options(r, 4, FF_OPTION_TABLE(delay_rows), &o, &given)) {
        return FF_DISCARD;
    }
    int64_t due = given >> AT_ROW & 1 ? o.at : (int64_t)r->txn.now + o.for_ms;
    ff_execution_delay_keys keys = ff_subject_delay_keys(&s);
    ff_execution_delay_args args = {
        .execution_id = s.execution_id,
        .lease_id = r->argv[1],
        .lease_epoch = r->argv[2],
        .attempt_id = r->argv[3],
        .delay_until = ff_str_integer(&r->txn, due),
    };
    ff_verdict verdict = ff_execution_delay(&r->txn, &keys, &args, &r->result);
    if (r->result.code != FF_OK) return verdict;
    ff_slot_free(&r->txn, s.core, s.execution_id);
    ff_request_answer_state(r, &s);
    ff_answer_integer(&r->answer, "delay_until", due);
    return verdict;
}

/* eid lease epoch attempt */
static ff_verdict wait_children(ff_request *r) {
    ff_subject s;
    if (!ff_request_subject(r, &s)) return FF_DISCARD;
    ff_execution_wait_children_keys keys = ff_subject_wait_children_keys(&s);
    ff_execution_wait_children_args args = {
        .execution_id = s.execution_id,
        .lease_id = r->argv[1],
        .lease_epoch = r->argv[2],
        .attempt_id = r->argv[3],
    };
    ff_verdict verdict = ff_execution_wait_children(&r->txn, &keys, &args, &r->result);
    if (r->result.code != FF_OK) return verdict;
    ff_slot_free(&r->txn, s.core, s.execution_id);
    ff_request_answer_state(r, &s);
    return verdict;
}

static FF_NATIVE_WRITE(delay_command, 1, delay);
static FF_NATIVE_WRITE(wait_children_command, 1, wait_children);

static const ff_command rows[] = {
    {"ff.delay", delay_command, FF_WRITES,
     .info = {FF_DOCUMENTED, .summary = "Gives the lease back until a time.",
              .complexity = "O(log(N))", .arity = 7, .key_specs = FF_KEY_WRITE(1),
              .args = FF_ARGS(FF_KEY_ARG("execution-id"), FF_LEASE_ARGS,
                              FF_ONE_ARG("due",
                                         FF_ARG("unix-time-milliseconds", UNIX_TIME, .token = "AT"),
                                         FF_ARG("milliseconds", INTEGER, .token = "FOR")))}},
    {"ff.waitchildren", wait_children_command, FF_WRITES,
     .info = {FF_DOCUMENTED,
              .summary = "Gives the lease back until the executions waited for have ended.",
              .complexity = "O(log(N))", .arity = 5, .key_specs = FF_KEY_WRITE(1),
              .args = FF_ARGS(FF_KEY_ARG("execution-id"), FF_LEASE_ARGS)}},
};

const ff_command_table ff_pause_commands = FF_COMMAND_TABLE(rows);
