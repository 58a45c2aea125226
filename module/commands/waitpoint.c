/* FF.WAITPOINT: the doors on which signals knock. */

#include "engine/waitpoint.h"

#include "commands/command.h"
#include "commands/request.h"
#include "engine/keyname.h"
#include "engine/mint.h"

enum { TTL_MS = 300000, LISTED_MOST = 1000 };

typedef struct create_options {
    ff_text key;
    int64_t ttl;
} create_options;

static const ff_option create_rows[] = {
    FF_OPTION("KEY", FF_OPTION_NONEMPTY, create_options, key),
    FF_OPTION("TTL", FF_OPTION_DURATION, create_options, ttl, .min = 1),
};

static ff_str *record_name(ff_subject *s, ff_str *waitpoint_id) {
    return ff_keyname_waitpoint(s->txn, s->tag, ff_str_text(waitpoint_id), "");
}

/* Only the holder of the live lease may announce a waitpoint. */
static bool hold_lease(ff_request *r, ff_subject *s, ff_verdict *verdict) {
    ff_fence fence = {r->argv[1], r->argv[2], r->argv[3]};
    return ff_lease_gate(s->core, ff_subject_key(s, "lease:history"), &fence, NULL, &r->result,
                         verdict);
}

/* eid lease epoch attempt [KEY key] [TTL ms] */
static ff_verdict create(ff_request *r) {
    create_options o = {.ttl = TTL_MS};
    ff_verdict verdict;
    ff_subject s;
    if (!ff_request_subject(r, &s) ||
        !ff_request_options(r, 4, FF_OPTION_TABLE(create_rows), &o, NULL)) {
        return FF_DISCARD;
    }
    if (!hold_lease(r, &s, &verdict)) return verdict;
    ff_txn *t = &r->txn;
    ff_str *id = ff_mint_id(t);
    int64_t expires_at = (int64_t)t->now + o.ttl;
    ff_waitpoint_create_keys keys = {s.core_name, record_name(&s, id),
                                     ff_subject_index(&s, "pending_waitpoint_expiry"),
                                     ff_subject_keystore(&s)};
    ff_waitpoint_create_args args = {
        s.execution_id, ff_hash_get(s.core, W(current_attempt_index)), id,
        ff_text_is_absent(o.key) ? FF_CONCAT(t, FF_TEXT("wpk:"), ff_str_text(id))
                                 : ff_str_make(t, o.key),
        ff_str_integer(t, expires_at)};
    verdict = ff_waitpoint_create(t, &keys, &args, &r->result);
    if (r->result.code != FF_OK) return verdict;
    ff_set_add(ff_set_open(t, ff_subject_key(&s, "waitpoints")), id);
    ff_answer_become_map(&r->answer);
    ff_answer_text(&r->answer, "waitpoint_id", r->result.values[0].str);
    ff_answer_text(&r->answer, "waitpoint_key", r->result.values[1].str);
    ff_answer_text(&r->answer, "token", r->result.values[2].str);
    ff_answer_integer(&r->answer, "expires_at", expires_at);
    return verdict;
}

/* The record of a waitpoint of this very execution; NULL after a refusal. */
static ff_key *open_own(ff_request *r, ff_subject *s) {
    ff_code refused = FF_OK;
    ff_key *record = ff_hash_open(&r->txn, record_name(s, r->argv[1]));
    if (!ff_key_exists(s->core)) {
        refused = FF_EXECUTION_NOT_FOUND;
    } else if (!ff_key_exists(record)) {
        refused = FF_WAITPOINT_NOT_FOUND;
    } else if (!ff_str_equal(ff_hash_get(record, W(execution_id)), s->execution_id)) {
        refused = FF_INVALID_WAITPOINT_FOR_EXECUTION;
    }
    if (!refused) return record;
    ff_refuse(&r->result, refused);
    return NULL;
}

typedef struct close_options {
    ff_text reason;
} close_options;

static const ff_option close_rows[] = {
    FF_OPTION("REASON", FF_OPTION_NONEMPTY, close_options, reason),
};

/* eid waitpoint [REASON r] */
static ff_verdict close(ff_request *r) {
    close_options o = {0};
    ff_subject s;
    if (!ff_request_subject(r, &s) ||
        !ff_request_options(r, 2, FF_OPTION_TABLE(close_rows), &o, NULL) || !open_own(r, &s)) {
        return FF_DISCARD;
    }
    ff_waitpoint_close_keys keys = {s.core_name, record_name(&s, r->argv[1]),
                                    ff_subject_index(&s, "pending_waitpoint_expiry")};
    ff_waitpoint_close_args args = {r->argv[1], ff_request_str(r, o.reason)};
    ff_verdict verdict = ff_waitpoint_close(&r->txn, &keys, &args, &r->result);
    if (r->result.code != FF_OK) return verdict;
    bool was_closed = r->result.count > 0;
    ff_answer_become_map(&r->answer);
    ff_answer_text(&r->answer, "outcome", (was_closed ? W(already_closed) : W(closed))->str);
    return verdict;
}

static void answer_text(ff_answer *map, const char *name, ff_key *record, const ff_word *field) {
    ff_str *value = ff_hash_get(record, field);
    ff_answer_text(map, name, ff_str_is_set(value) ? value : NULL);
}

static void answer_record(ff_answer *map, ff_key *record) {
    ff_answer_become_map(map);
    answer_text(map, "waitpoint_id", record, W(waitpoint_id));
    answer_text(map, "waitpoint_key", record, W(waitpoint_key));
    answer_text(map, "state", record, W(state));
    answer_text(map, "suspension_id", record, W(suspension_id));
    ff_answer_number(map, "attempt_index", ff_hash_get(record, W(attempt_index)));
    ff_answer_number(map, "created_at", ff_hash_get(record, W(created_at)));
    ff_answer_number(map, "activated_at", ff_hash_get(record, W(activated_at)));
    ff_answer_number(map, "expires_at", ff_hash_get(record, W(expires_at)));
    ff_answer_number(map, "closed_at", ff_hash_get(record, W(closed_at)));
    answer_text(map, "close_reason", record, W(close_reason));
    ff_answer_number(map, "signal_count", ff_hash_get(record, W(signal_count)));
    ff_answer_number(map, "matched_signal_count", ff_hash_get(record, W(matched_signal_count)));
    ff_answer_number(map, "last_signal_at", ff_hash_get(record, W(last_signal_at)));
}

/* eid */
static ff_verdict list(ff_request *r) {
    ff_subject s;
    if (!ff_request_subject(r, &s)) return FF_DISCARD;
    if (!ff_key_exists(s.core)) return ff_refuse(&r->result, FF_EXECUTION_NOT_FOUND);
    ff_strs ids = ff_set_members(ff_set_open(&r->txn, ff_subject_key(&s, "waitpoints")));
    ff_answer_become_list(&r->answer);
    for (size_t i = 0; i < ids.count && i < LISTED_MOST; i++) {
        ff_key *record = ff_hash_open(&r->txn, record_name(&s, ids.items[i]));
        if (ff_key_exists(record)) answer_record(ff_answer_add(&r->answer), record);
    }
    return FF_COMMIT;
}

/* eid waitpoint */
static ff_verdict token(ff_request *r) {
    ff_subject s;
    if (!ff_request_subject(r, &s)) return FF_DISCARD;
    ff_key *record = open_own(r, &s);
    if (record == NULL) return FF_DISCARD;
    ff_answer_become_map(&r->answer);
    answer_text(&r->answer, "waitpoint_id", record, W(waitpoint_id));
    answer_text(&r->answer, "waitpoint_key", record, W(waitpoint_key));
    answer_text(&r->answer, "state", record, W(state));
    answer_text(&r->answer, "token", record, W(waitpoint_token));
    return FF_COMMIT;
}

static FF_NATIVE_WRITE(create_command, 2, create);
static FF_NATIVE_WRITE(close_command, 2, close);
static FF_NATIVE_READ(list_command, 2, list);
static FF_NATIVE_READ(token_command, 2, token);

static const ff_command rows[] = {
    {"ff.waitpoint", FF_CONTAINER_OF("the waitpoints of an execution")},
    {"ff.waitpoint|create", create_command, FF_WRITES,
     .info = {FF_DOCUMENTED,
              .summary = "Announces a waitpoint before the execution suspends; signals are kept.",
              .complexity = "O(log(N))", .arity = -6, .key_specs = FF_KEY_WRITE(2),
              .args = FF_ARGS(FF_KEY_ARG("execution-id"), FF_LEASE_ARGS,
                              FF_OPTION_ARG("waitpoint-key", "KEY", STRING),
                              FF_OPTION_ARG("milliseconds", "TTL", INTEGER))}},
    {"ff.waitpoint|close", close_command, FF_WRITES,
     .info = {FF_DOCUMENTED,
              .summary = "Closes a waitpoint, and with it all others of the same suspension.",
              .complexity = "O(log(N)+M) with M the number of waitpoints", .arity = -4,
              .key_specs = FF_KEY_WRITE(2),
              .args = FF_ARGS(FF_KEY_ARG("execution-id"), FF_ARG("waitpoint-id", STRING),
                              FF_OPTION_ARG("reason", "REASON", STRING))}},
    {"ff.waitpoint|list", list_command, FF_READS,
     .info = {FF_DOCUMENTED, .summary = "Returns the waitpoints of an execution.",
              .complexity = "O(N) with N the number of waitpoints", .arity = 3,
              .key_specs = FF_KEY_READ(2), .args = FF_ARGS(FF_KEY_ARG("execution-id"))}},
    {"ff.waitpoint|token", token_command, FF_READS,
     .info = {FF_DOCUMENTED, .summary = "Returns the token that signals to a waitpoint must show.",
              .complexity = "O(1)", .arity = 4, .key_specs = FF_KEY_READ(2),
              .args = FF_ARGS(FF_KEY_ARG("execution-id"), FF_ARG("waitpoint-id", STRING))}},
};

const ff_command_table ff_waitpoint_commands = FF_COMMAND_TABLE(rows);
