/* FF.COMPLETE, FF.FAIL, FF.CANCEL, FF.EXPIRE: how an execution ends, or fails and is tried
 * again. */

#include "claim/slot.h"
#include "claim/waiter.h"
#include "commands/command.h"
#include "commands/request.h"
#include "engine/document.h"

typedef struct complete_options {
    ff_text result;
    ff_text_list claim;
} complete_options;

enum { CLAIM_ROW };
static const ff_option complete_rows[] = {
    [CLAIM_ROW] = FF_OPTION("CLAIM", FF_OPTION_REST, complete_options, claim),
    FF_OPTION("RESULT", FF_OPTION_TEXT, complete_options, result),
};

/* The reply to a worker that had to wait for its next execution. */
static void tell_claimed(ValkeyModuleCtx *ctx, const ff_answer *claimed, void *data) {
    (void)data;
    ValkeyModule_ReplyWithMap(ctx, 2);
    ValkeyModule_ReplyWithCString(ctx, "state");
    ValkeyModule_ReplyWithString(ctx, W(completed)->str);
    ValkeyModule_ReplyWithCString(ctx, "claimed");
    ff_answer_send(ctx, claimed);
}

/* Takes the next execution, now that this one has ended. */
static void claim_next(ff_request *r) {
    const ff_claim_teller teller = {.send = tell_claimed};
    ff_answer *list = ff_answer_member(&r->answer, FF_TEXT("claimed"));
    ff_answer_become_list(list);
    r->deferred = !ff_claim_serve(r->ctx, r->then_data, true, list, &teller);
}

/* What follows CLAIM is what FF.CLAIM takes; false after a refusal. */
static bool read_claim(ff_request *r, ff_text_list words, ff_claim_order *order) {
    if (words.count < 3) {
        ff_request_refuse(r, FF_TEXT("option CLAIM needs a lane, a worker and an instance"));
        return false;
    }
    if (!ff_claim_order_parse(&r->txn.arena, words.items, words.count, order, &r->error)) {
        return false;
    }
    if (ff_claim_is_possible(r->ctx)) return true;
    ff_request_refuse(r, FF_TEXT("in a cluster CLAIM cannot be part of a transaction or script"));
    return false;
}

/* eid lease epoch attempt [RESULT bytes] [CLAIM lane worker instance …] */
static ff_verdict complete(ff_request *r) {
    complete_options o = {0};
    uint64_t given;
    ff_claim_order *order = ff_arena_zeroed(&r->txn.arena, sizeof *order);
    ff_subject s;
    if (!ff_request_subject(r, &s) ||
        !ff_request_options(r, 4, FF_OPTION_TABLE(complete_rows), &o, &given)) {
        return FF_DISCARD;
    }
    bool claims = given >> CLAIM_ROW & 1;
    if (claims && !read_claim(r, o.claim, order)) return FF_DISCARD;
    ff_execution_complete_keys keys = ff_subject_complete_keys(&s);
    ff_execution_complete_args args = {
        .execution_id = s.execution_id,
        .lease_id = r->argv[1],
        .lease_epoch = r->argv[2],
        .attempt_id = r->argv[3],
        .result_payload = ff_request_str(r, o.result),
    };
    ff_verdict verdict = ff_execution_complete(&r->txn, &keys, &args, &r->result);
    if (r->result.code != FF_OK) return verdict;
    ff_slot_free(&r->txn, s.core, s.execution_id);
    ff_request_answer_state(r, &s);
    if (claims) {
        r->then = claim_next;
        r->then_data = order;
    }
    return verdict;
}

typedef struct fail_options {
    ff_text category;
    ff_text retry;
} fail_options;

static const ff_option fail_rows[] = {
    FF_OPTION("CATEGORY", FF_OPTION_TEXT, fail_options, category),
    FF_OPTION("RETRY", FF_OPTION_TEXT, fail_options, retry),
};

/* The member `retry_policy` of the execution's own policy; NULL when there is none. */
static ff_str *own_retry_policy(ff_request *r, ff_subject *s) {
    ff_txn *t = &r->txn;
    ff_str *policy = ff_string_get(ff_string_open(t, ff_subject_key(s, "policy")));
    const ff_json *member = ff_json_member(ff_document_read(t, policy), "retry_policy");
    if (!ff_json_is_object(member)) return NULL;
    ff_text text = ff_json_write(&t->arena, member);
    return ff_text_is_absent(text) ? NULL : ff_str_make(t, text);
}

/* A retry policy that a caller hands in is an object; false after a refusal. */
static bool read_retry_policy(ff_request *r, ff_subject *s, ff_text given, ff_str **policy) {
    if (ff_text_is_absent(given)) {
        *policy = own_retry_policy(r, s);
        return true;
    }
    *policy = ff_str_make(&r->txn, given);
    if (ff_json_is_object(ff_document_read(&r->txn, *policy))) return true;
    ff_request_refuse(r, FF_TEXT("RETRY must be a JSON object"));
    return false;
}

/* eid lease epoch attempt reason [CATEGORY c] [RETRY json] */
static ff_verdict fail(ff_request *r) {
    fail_options o = {0};
    ff_str *policy;
    ff_subject s;
    if (!ff_request_subject(r, &s) ||
        !ff_request_options(r, 5, FF_OPTION_TABLE(fail_rows), &o, NULL) ||
        !read_retry_policy(r, &s, o.retry, &policy)) {
        return FF_DISCARD;
    }
    ff_execution_fail_keys keys = ff_subject_fail_keys(&s);
    ff_execution_fail_args args = {
        .execution_id = s.execution_id,
        .lease_id = r->argv[1],
        .lease_epoch = r->argv[2],
        .attempt_id = r->argv[3],
        .failure_reason = r->argv[4],
        .failure_category = ff_request_str(r, o.category),
        .retry_policy_json = policy,
    };
    ff_verdict verdict = ff_execution_fail(&r->txn, &keys, &args, &r->result);
    if (r->result.code != FF_OK) return verdict;
    ff_slot_free(&r->txn, s.core, s.execution_id);
    ff_request_answer_state(r, &s);
    if (r->result.count > 1) ff_answer_number(&r->answer, "retry_at", r->result.values[1].str);
    return verdict;
}

typedef struct cancel_options {
    ff_text lease, epoch;
    bool by_operator;
} cancel_options;

static const ff_option cancel_rows[] = {
    FF_OPTION("LEASE", FF_OPTION_NONEMPTY, cancel_options, lease),
    FF_OPTION_THEN(FF_OPTION_NONEMPTY, cancel_options, epoch, .label = "epoch"),
    FF_OPTION("OPERATOR", FF_OPTION_FLAG, cancel_options, by_operator),
};

/* eid reason [LEASE lease epoch] [OPERATOR] */
static ff_verdict cancel(ff_request *r) {
    cancel_options o = {0};
    ff_subject s;
    if (!ff_request_subject(r, &s) ||
        !ff_request_options(r, 2, FF_OPTION_TABLE(cancel_rows), &o, NULL)) {
        return FF_DISCARD;
    }
    ff_execution_cancel_keys keys = ff_subject_cancel_keys(&s);
    ff_execution_cancel_args args = {
        .execution_id = s.execution_id,
        .reason = r->argv[1],
        .source = o.by_operator ? W(operator_override)->str : NULL,
        .lease_id = ff_request_str(r, o.lease),
        .lease_epoch = ff_request_str(r, o.epoch),
    };
    ff_verdict verdict = ff_execution_cancel(&r->txn, &keys, &args, &r->result);
    if (r->result.code == FF_FENCE_REQUIRED) {
        return ff_request_refuse_with(r, "FENCE_REQUIRED",
                                      FF_TEXT("an active execution is cancelled with LEASE lease "
                                              "epoch, or with OPERATOR"));
    }
    if (r->result.code != FF_OK) return verdict;
    ff_slot_free(&r->txn, s.core, s.execution_id);
    ff_request_answer_state(r, &s);
    if (r->result.count > 1) ff_answer_text(&r->answer, "previous_phase", r->result.values[1].str);
    return verdict;
}

/* eid reason */
static ff_verdict expire(ff_request *r) {
    ff_subject s;
    if (!ff_request_subject(r, &s)) return FF_DISCARD;
    if (!ff_key_exists(s.core)) return ff_refuse(&r->result, FF_EXECUTION_NOT_FOUND);
    ff_execution_expire_keys keys = ff_subject_expire_keys(&s);
    ff_execution_expire_args args = {s.execution_id, r->argv[1]};
    ff_verdict verdict = ff_execution_expire(&r->txn, &keys, &args, &r->result);
    if (r->result.code != FF_OK) return verdict;
    ff_slot_free(&r->txn, s.core, s.execution_id);
    ff_request_answer_state(r, &s);
    ff_answer_text(&r->answer, "outcome", r->result.values[0].str);
    return verdict;
}

static FF_NATIVE_WRITE(complete_command, 1, complete);
static FF_NATIVE_WRITE(fail_command, 1, fail);
static FF_NATIVE_WRITE(cancel_command, 1, cancel);
static FF_NATIVE_WRITE(expire_command, 1, expire);

static const ff_command rows[] = {
    {"ff.complete", complete_command, .flags = "write deny-oom blocking getkeys-api",
     .categories = "write blocking",
     .info = {FF_DOCUMENTED,
              .summary =
                  "Ends an execution with success, resolves what depends on it, and may take "
                  "the next one.",
              .complexity = "O(log(N)) plus O(log(N)) for each dependent", .arity = -5,
              .key_specs = FF_KEY_WRITE(1),
              .args = FF_ARGS(FF_KEY_ARG("execution-id"), FF_LEASE_ARGS,
                              FF_OPTION_ARG("result", "RESULT", STRING),
                              FF_BLOCK_ARG("claim", "CLAIM", FF_ARG("lane", STRING),
                                           FF_ARG("worker", STRING), FF_ARG("instance", STRING),
                                           FF_ARG("option", STRING,
                                                  .flags = VALKEYMODULE_CMD_ARG_OPTIONAL |
                                                           VALKEYMODULE_CMD_ARG_MULTIPLE)))}},
    {"ff.fail", fail_command, FF_WRITES,
     .info = {FF_DOCUMENTED,
              .summary = "Ends an attempt: tried again by policy, or failed for good.",
              .complexity = "O(log(N)) plus O(log(N)) for each dependent", .arity = -6,
              .key_specs = FF_KEY_WRITE(1),
              .args = FF_ARGS(FF_KEY_ARG("execution-id"), FF_LEASE_ARGS, FF_ARG("reason", STRING),
                              FF_OPTION_ARG("category", "CATEGORY", STRING),
                              FF_OPTION_ARG("policy", "RETRY", STRING))}},
    {"ff.cancel", cancel_command, FF_WRITES,
     .info = {FF_DOCUMENTED, .summary = "Ends an execution as cancelled, wherever it is.",
              .complexity = "O(log(N)) plus O(log(N)) for each dependent", .arity = -3,
              .key_specs = FF_KEY_WRITE(1),
              .args = FF_ARGS(
                  FF_KEY_ARG("execution-id"), FF_ARG("reason", STRING),
                  FF_BLOCK_ARG("fence", "LEASE", FF_ARG("lease", STRING), FF_ARG("epoch", INTEGER)),
                  FF_FLAG_ARG("operator", "OPERATOR"))}},
    {"ff.expire", expire_command, FF_OPERATOR_WRITES,
     .info = {FF_DOCUMENTED, .summary = "Ends an execution as expired, wherever it is.",
              .complexity = "O(log(N)) plus O(log(N)) for each dependent", .arity = 3,
              .key_specs = FF_KEY_WRITE(1),
              .args = FF_ARGS(FF_KEY_ARG("execution-id"), FF_ARG("reason", STRING))}},
};

const ff_command_table ff_ending_commands = FF_COMMAND_TABLE(rows);
