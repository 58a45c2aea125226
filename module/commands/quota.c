/* FF.QUOTA: how many executions may start in a time, and how many may run at once. */

#include "engine/quota.h"
#include "commands/command.h"
#include "commands/place.h"
#include "engine/keyname.h"

/* A quota policy by its reference. */
typedef struct quota {
    ff_reference reference;
    ff_str *id;
    ff_str *definition, *window, *concurrency, *admitted_set;
} quota;

static ff_str *key_of(ff_txn *t, const quota *q, ff_text suffix) {
    return FF_CONCAT(t, FF_TEXT("ff:quota:"), q->reference.tag, FF_TEXT(":"), ff_str_text(q->id),
                     suffix);
}

static void name_keys(ff_txn *t, quota *q) {
    q->id = ff_reference_id(t, &q->reference);
    q->definition = key_of(t, q, FF_TEXT(""));
    q->window = key_of(t, q, FF_TEXT(":window:requests_per_window"));
    q->concurrency = key_of(t, q, FF_TEXT(":concurrency"));
    q->admitted_set = key_of(t, q, FF_TEXT(":admitted_set"));
}

static ff_str *guard_of(ff_txn *t, const quota *q, ff_str *execution_id) {
    return key_of(t, q,
                  ff_arena_concat(&t->arena, FF_TEXT(":admitted:"), ff_str_text(execution_id)));
}

/* The policy that the first argument names; false after a refusal. */
static bool open_quota(ff_request *r, quota *q) {
    if (!ff_request_reference(r, r->args[0], FF_FAMILY_QUOTA, &q->reference)) return false;
    name_keys(&r->txn, q);
    if (ff_key_exists(ff_hash_open(&r->txn, q->definition))) return true;
    ff_request_refuse_with(r, "NOT_FOUND", FF_TEXT("no such quota policy"));
    return false;
}

/* The execution that the second argument names, in its usual form; NULL after a refusal. */
static ff_str *read_execution(ff_request *r) {
    ff_reference id;
    return ff_request_execution_id(r, r->args[1], &id) ? ff_reference_str(&r->txn, &id) : NULL;
}

/* ---- CREATE ---- */

typedef struct create_options {
    int64_t rate, seconds, concurrency;
} create_options;

enum { SECONDS_MOST = 366 * 24 * 60 * 60 };

static const ff_option create_rows[] = {
    FF_OPTION("RATE", FF_OPTION_INTEGER, create_options, rate, .min = 1, .max = INT32_MAX),
    FF_OPTION_THEN(FF_OPTION_INTEGER, create_options, seconds, .label = "seconds", .min = 1,
                   .max = SECONDS_MOST),
    FF_OPTION("CONCURRENCY", FF_OPTION_INTEGER, create_options, concurrency, .min = 1,
              .max = INT32_MAX),
};

/* where|ref [RATE n seconds] [CONCURRENCY n] */
static ff_verdict create(ff_request *r) {
    create_options o = {0};
    quota q;
    ff_txn *t = &r->txn;
    if (!ff_request_place(r, r->args[0], FF_FAMILY_QUOTA, &q.reference) ||
        !ff_request_options(r, 1, FF_OPTION_TABLE(create_rows), &o, NULL)) {
        return FF_DISCARD;
    }
    if (o.rate == 0 && o.concurrency == 0) {
        return ff_request_refuse(r, FF_TEXT("a quota policy needs RATE or CONCURRENCY"));
    }
    name_keys(t, &q);
    ff_quota_create_keys keys = {q.definition, q.window, q.concurrency, q.admitted_set,
                                 ff_keyname_index(t, q.reference.tag, "quota_policies")};
    ff_quota_create_args args = {q.id, ff_str_integer(t, o.seconds), ff_str_integer(t, o.rate),
                                 ff_str_integer(t, o.concurrency), ff_str_now(t)};
    ff_verdict verdict = ff_quota_create(t, &keys, &args, &r->result);
    if (r->result.code >= FF_FIRST_REFUSAL) return verdict;
    ff_answer_become_map(&r->answer);
    ff_answer_text(&r->answer, "quota", ff_reference_str(t, &q.reference));
    ff_answer_integer(&r->answer, "created", r->result.code == FF_OK);
    return verdict;
}

/* ---- ADMIT and RELEASE ---- */

static ff_str *limit_of(ff_key *definition, const ff_word *field) {
    return ff_str_or(ff_hash_get(definition, field), W(zero));
}

/* Whether the execution holds a slot of a policy that counts them: it keeps the one it has until it is
 * released, however long that takes. */
static bool holds_slot(ff_txn *t, const quota *q, ff_str *cap, ff_str *execution_id) {
    double number;
    return ff_str_to_number(cap, &number) && number > 0 &&
           ff_set_has(ff_set_open(t, q->admitted_set), execution_id);
}

/* ref eid */
static ff_verdict admit(ff_request *r) {
    quota q;
    ff_txn *t = &r->txn;
    ff_str *execution_id = read_execution(r);
    if (execution_id == NULL || !open_quota(r, &q)) return FF_DISCARD;
    ff_key *definition = ff_hash_open(t, q.definition);
    ff_quota_admit_keys keys = {q.window, q.concurrency, q.definition,
                                guard_of(t, &q, execution_id), q.admitted_set};
    ff_quota_admit_args args = {
        .now_ms = ff_str_now(t),
        .window_seconds = limit_of(definition, W(requests_per_window_seconds)),
        .rate_limit = limit_of(definition, W(max_requests_per_window)),
        .concurrency_cap = limit_of(definition, W(active_concurrency_cap)),
        .execution_id = execution_id,
        .jitter_ms = ff_hash_get(definition, W(jitter_ms)),
    };
    ff_verdict verdict = holds_slot(t, &q, args.concurrency_cap, execution_id)
                             ? ff_succeed(&r->result, FF_ALREADY_ADMITTED)
                             : ff_quota_admit(t, &keys, &args, &r->result);
    if (r->result.code >= FF_FIRST_REFUSAL) return verdict;
    ff_request_answer_status(r);
    if (r->result.code == FF_RATE_EXCEEDED) {
        ff_answer_number(&r->answer, "retry_after", r->result.values[0].str);
    }
    return verdict;
}

/* ref eid */
static ff_verdict release(ff_request *r) {
    quota q;
    ff_txn *t = &r->txn;
    ff_str *execution_id = read_execution(r);
    if (execution_id == NULL || !open_quota(r, &q)) return FF_DISCARD;
    ff_answer_become_map(&r->answer);
    if (!ff_set_has(ff_set_open(t, q.admitted_set), execution_id)) {
        ff_answer_word(&r->answer, "status", W(not_admitted));
        return FF_DISCARD;
    }
    ff_quota_release_keys keys = {guard_of(t, &q, execution_id), q.admitted_set, q.concurrency};
    ff_quota_release_args args = {execution_id};
    ff_verdict verdict = ff_quota_release(t, &keys, &args, &r->result);
    if (r->result.code == FF_OK) ff_answer_text(&r->answer, "status", r->result.values[0].str);
    return verdict;
}

/* ---- GET ---- */

/* A limit of 0 is none. */
static void answer_limit(ff_answer *map, const char *name, ff_str *limit) {
    double number;
    bool none = ff_str_to_number(limit, &number) && !(number > 0);
    ff_answer_number(map, name, none ? NULL : limit);
}

/* Admissions that the window still counts. */
static int64_t count_window(ff_txn *t, const quota *q, ff_str *seconds) {
    double width;
    if (!ff_str_to_number(seconds, &width)) return 0;
    return (int64_t)ff_zset_count_above(ff_zset_open(t, q->window), t->now - width * 1000);
}

/* ref */
static ff_verdict get(ff_request *r) {
    quota q;
    ff_txn *t = &r->txn;
    if (!open_quota(r, &q)) return FF_DISCARD;
    ff_key *definition = ff_hash_open(t, q.definition);
    ff_str *seconds = ff_hash_get(definition, W(requests_per_window_seconds));
    ff_answer_become_map(&r->answer);
    ff_answer_text(&r->answer, "quota", ff_reference_str(t, &q.reference));
    answer_limit(&r->answer, "rate", ff_hash_get(definition, W(max_requests_per_window)));
    answer_limit(&r->answer, "window_seconds", seconds);
    answer_limit(&r->answer, "concurrency", ff_hash_get(definition, W(active_concurrency_cap)));
    ff_answer_integer(&r->answer, "in_window", count_window(t, &q, seconds));
    ff_answer_number(&r->answer, "running",
                     ff_str_or(ff_string_get(ff_string_open(t, q.concurrency)), W(zero)));
    ff_answer_integer(&r->answer, "admitted", (int64_t)ff_set_size(ff_set_open(t, q.admitted_set)));
    ff_answer_number(&r->answer, "created_at", ff_hash_get(definition, W(created_at)));
    return FF_DISCARD;
}

static FF_NATIVE_WRITE(create_command, 2, create);
static FF_NATIVE_WRITE(admit_command, 2, admit);
static FF_NATIVE_WRITE(release_command, 2, release);
static FF_NATIVE_READ(get_command, 2, get);

static const ff_command rows[] = {
    {"ff.quota", FF_CONTAINER_OF("quota policies")},
    {"ff.quota|create", create_command, FF_WRITES,
     .info = {FF_DOCUMENTED, .summary = "Defines a quota policy.", .complexity = "O(1)",
              .arity = -3, .key_specs = FF_KEY_WRITE(2),
              .args = FF_ARGS(FF_KEY_ARG("where"),
                              FF_BLOCK_ARG("rate", "RATE", FF_ARG("requests", INTEGER),
                                           FF_ARG("seconds", INTEGER)),
                              FF_OPTION_ARG("concurrency", "CONCURRENCY", INTEGER))}},
    {"ff.quota|admit", admit_command, FF_WRITES,
     .info = {FF_DOCUMENTED,
              .summary = "Admits an execution under a quota policy, if its limits allow it.",
              .complexity =
                  "O(log(N)+M) with N the admissions in the window and M those that left it",
              .arity = 4, .key_specs = FF_KEY_WRITE(2),
              .args = FF_ARGS(FF_KEY_ARG("quota"), FF_ARG("execution-id", STRING))}},
    {"ff.quota|release", release_command, FF_FREES,
     .info = {FF_DOCUMENTED, .summary = "Gives the slot of an admitted execution back.",
              .complexity = "O(1)", .arity = 4, .key_specs = FF_KEY_WRITE(2),
              .args = FF_ARGS(FF_KEY_ARG("quota"), FF_ARG("execution-id", STRING))}},
    {"ff.quota|get", get_command, FF_READS,
     .info = {FF_DOCUMENTED, .summary = "Returns the limits of a quota policy and what is in use.",
              .complexity = "O(log(N)) with N the admissions in the window", .arity = 3,
              .key_specs = FF_KEY_READ(2), .args = FF_ARGS(FF_KEY_ARG("quota"))}},
};

const ff_command_table ff_quota_commands = FF_COMMAND_TABLE(rows);
