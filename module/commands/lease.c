/* FF.RENEW, FF.PROGRESS, FF.REVOKE: what happens to a lease while it is held. */

#include "commands/command.h"
#include "commands/request.h"
#include "engine/progress.h"

enum { LEASE_MS = 30000, HISTORY_GRACE_MS = 5000 };

typedef struct renew_options {
    int64_t lease_ms;
} renew_options;

static const ff_option renew_rows[] = {
    FF_OPTION("LEASE", FF_OPTION_DURATION, renew_options, lease_ms, .min = 1),
};

/* eid lease epoch attempt [LEASE ms] */
static ff_verdict renew(ff_request *r) {
    renew_options o = {LEASE_MS};
    ff_subject s;
    if (!ff_request_subject(r, &s) ||
        !ff_request_options(r, 4, FF_OPTION_TABLE(renew_rows), &o, NULL)) {
        return FF_DISCARD;
    }
    ff_txn *t = &r->txn;
    ff_lease_renew_keys keys = ff_subject_renew_keys(&s);
    ff_lease_renew_args args = {
        .execution_id = s.execution_id,
        .attempt_index = ff_hash_get(s.core, W(current_attempt_index)),
        .attempt_id = r->argv[3],
        .lease_id = r->argv[1],
        .lease_epoch = r->argv[2],
        .lease_ttl_ms = ff_str_integer(t, o.lease_ms),
        .lease_history_grace_ms = ff_str_integer(t, HISTORY_GRACE_MS),
    };
    ff_verdict verdict = ff_lease_renew(t, &keys, &args, &r->result);
    if (r->result.code != FF_OK) return verdict;
    ff_answer_become_map(&r->answer);
    ff_answer_number(&r->answer, "expires_at", r->result.values[0].str);
    return verdict;
}

typedef struct progress_options {
    int64_t percent;
    ff_text message;
} progress_options;

enum { PERCENT_ROW };
static const ff_option progress_rows[] = {
    [PERCENT_ROW] = FF_OPTION("PCT", FF_OPTION_INTEGER, progress_options, percent, .max = 100),
    FF_OPTION("MESSAGE", FF_OPTION_TEXT, progress_options, message),
};

/* eid lease epoch [PCT n] [MESSAGE s] */
static ff_verdict progress(ff_request *r) {
    progress_options o = {0};
    uint64_t given;
    ff_subject s;
    if (!ff_request_subject(r, &s) ||
        !ff_request_options(r, 3, FF_OPTION_TABLE(progress_rows), &o, &given)) {
        return FF_DISCARD;
    }
    ff_progress_update_args args = {
        .execution_id = s.execution_id,
        .lease_id = r->argv[1],
        .lease_epoch = r->argv[2],
        .progress_pct = given >> PERCENT_ROW & 1 ? ff_str_integer(&r->txn, o.percent) : NULL,
        .progress_message = ff_request_str(r, o.message),
    };
    ff_verdict verdict =
        ff_progress_update(&r->txn, &(ff_progress_update_keys){s.core_name}, &args, &r->result);
    if (r->result.code == FF_OK) ff_request_answer_state(r, &s);
    return verdict;
}

typedef struct revoke_options {
    ff_text lease;
} revoke_options;

static const ff_option revoke_rows[] = {
    FF_OPTION("LEASE", FF_OPTION_NONEMPTY, revoke_options, lease),
};

/* eid reason [LEASE id] */
static ff_verdict revoke(ff_request *r) {
    revoke_options o = {0};
    ff_subject s;
    if (!ff_request_subject(r, &s) ||
        !ff_request_options(r, 2, FF_OPTION_TABLE(revoke_rows), &o, NULL)) {
        return FF_DISCARD;
    }
    ff_lease_revoke_keys keys = ff_subject_revoke_keys(&s);
    ff_str *lease_id = ff_hash_get(s.core, W(current_lease_id));
    ff_str *epoch = ff_hash_get(s.core, W(current_lease_epoch));
    ff_lease_revoke_args args = {s.execution_id, ff_request_str(r, o.lease), r->argv[1]};
    ff_verdict verdict = ff_lease_revoke(&r->txn, &keys, &args, &r->result);
    if (r->result.code >= FF_FIRST_REFUSAL) return verdict;
    ff_request_answer_status(r);
    ff_answer_text(&r->answer, "outcome", r->result.values[0].str);
    ff_answer_text(&r->answer, "lease_id", ff_str_is_set(lease_id) ? lease_id : NULL);
    ff_answer_number(&r->answer, "lease_epoch", epoch);
    return verdict;
}

static FF_NATIVE_WRITE(renew_command, 1, renew);
static FF_NATIVE_WRITE(progress_command, 1, progress);
static FF_NATIVE_WRITE(revoke_command, 1, revoke);

static const ff_command rows[] = {
    {"ff.renew", renew_command, FF_WRITES,
     .info = {FF_DOCUMENTED, .summary = "Extends the lease of an execution.",
              .complexity = "O(log(N))", .arity = -5, .key_specs = FF_KEY_WRITE(1),
              .args = FF_ARGS(FF_KEY_ARG("execution-id"), FF_LEASE_ARGS,
                              FF_OPTION_ARG("milliseconds", "LEASE", INTEGER))}},
    {"ff.progress", progress_command, FF_WRITES,
     .info = {FF_DOCUMENTED, .summary = "Notes how far the holder of a lease is.",
              .complexity = "O(1)", .arity = -4, .key_specs = FF_KEY_WRITE(1),
              .args = FF_ARGS(FF_KEY_ARG("execution-id"), FF_ARG("lease", STRING),
                              FF_ARG("epoch", INTEGER), FF_OPTION_ARG("percent", "PCT", INTEGER),
                              FF_OPTION_ARG("message", "MESSAGE", STRING))}},
    {"ff.revoke", revoke_command, FF_OPERATOR_WRITES,
     .info = {FF_DOCUMENTED,
              .summary =
                  "Takes the lease away from its holder; the next claim finds the execution.",
              .complexity = "O(log(N))", .arity = -3, .key_specs = FF_KEY_WRITE(1),
              .args = FF_ARGS(FF_KEY_ARG("execution-id"), FF_ARG("reason", STRING),
                              FF_OPTION_ARG("lease-id", "LEASE", STRING))}},
};

const ff_command_table ff_lease_commands = FF_COMMAND_TABLE(rows);
