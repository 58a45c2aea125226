/* FF.SUSPEND, FF.RESUME: an execution waits for signals, or is sent on by hand. */

#include "engine/suspension.h"
#include "claim/slot.h"
#include "commands/command.h"
#include "commands/request.h"
#include "engine/document.h"
#include "engine/keyname.h"
#include "engine/mint.h"

enum { EXTRAS_MOST = 1000, GRACE_MS = 60000 };
#define REMEMBER_MS_MOST INT64_C(604800000)

static const char *const behaviours[] = {
    "fail", "cancel", "expire", "auto_resume", "auto_resume_with_timeout_signal", "escalate", NULL};

static const char resume_policy[] =
    "{\"close_waitpoint_on_resume\":true,\"consume_matched_signals\":true,"
    "\"resume_target\":\"runnable\",\"retain_signal_buffer_until_closed\":false}";

typedef struct suspend_options {
    ff_text reason, condition, requested_by, resume_policy, continuation, idempotency_key,
        waitpoint_key, pending;
    int64_t timeout, history_maxlen, remember_ms;
    int behaviour;
    ff_text_list extra_keys;
} suspend_options;

enum { TIMEOUT_ROW = 2, MAXLEN_ROW = 4, REMEMBER_ROW = 5 };
enum { FIRST_WAITPOINT = 1 };
static const ff_option suspend_rows[] = {
    FF_OPTION("REASON", FF_OPTION_NONEMPTY, suspend_options, reason, .required = true),
    FF_OPTION("CONDITION", FF_OPTION_NONEMPTY, suspend_options, condition, .required = true),
    [TIMEOUT_ROW] = FF_OPTION("TIMEOUT", FF_OPTION_DURATION, suspend_options, timeout, .min = 1),
    FF_OPTION_THEN(FF_OPTION_CHOICE, suspend_options, behaviour, .label = "behaviour",
                   .choices = behaviours),
    [MAXLEN_ROW] = FF_OPTION("LEASE_HISTORY_MAXLEN", FF_OPTION_INTEGER, suspend_options,
                             history_maxlen, .max = INT32_MAX),
    [REMEMBER_ROW] =
        FF_OPTION("DEDUP_TTL_MS", FF_OPTION_DURATION, suspend_options, remember_ms, .min = 1),
    FF_OPTION("REQUESTED_BY", FF_OPTION_NONEMPTY, suspend_options, requested_by),
    FF_OPTION("RESUME_POLICY_JSON", FF_OPTION_TEXT, suspend_options, resume_policy),
    FF_OPTION("CONTINUATION_METADATA_POINTER", FF_OPTION_TEXT, suspend_options, continuation),
    FF_OPTION("IDEMPOTENCY_KEY", FF_OPTION_NONEMPTY, suspend_options, idempotency_key),
    FF_OPTION("WAITPOINT_KEY", FF_OPTION_NONEMPTY, suspend_options, waitpoint_key,
              .group = FIRST_WAITPOINT),
    FF_OPTION("USE_PENDING_WAITPOINT", FF_OPTION_NONEMPTY, suspend_options, pending,
              .group = FIRST_WAITPOINT),
    FF_OPTION("NUM_EXTRA_WAITPOINTS", FF_OPTION_LIST, suspend_options, extra_keys,
              .max = EXTRAS_MOST),
};

/* A suspension that is being put together. */
typedef struct suspending {
    ff_request *r;
    ff_subject s;
    suspend_options o;
    uint64_t given;
    ff_suspension_begin_keys keys;
    ff_suspension_begin_args args;
} suspending;

static bool is_given(const suspending *g, int row) { return g->given >> row & 1; }

/* Ids are minted, and so are keys that the caller does not choose. */
static ff_str *key_of(ff_txn *t, ff_str *waitpoint_id, ff_text chosen) {
    if (!ff_text_is_absent(chosen)) return ff_str_make(t, chosen);
    return FF_CONCAT(t, FF_TEXT("wpk:"), ff_str_text(waitpoint_id));
}

static ff_str *waitpoint_part(suspending *g, ff_str *waitpoint_id, const char *suffix) {
    return ff_keyname_waitpoint(g->s.txn, g->s.tag, ff_str_text(waitpoint_id), suffix);
}

static void name_first_waitpoint(suspending *g) {
    ff_txn *t = g->s.txn;
    ff_str *pending = ff_request_str(g->r, g->o.pending);
    g->args.waitpoint_id = pending ? pending : ff_mint_id(t);
    g->args.waitpoint_key = key_of(t, g->args.waitpoint_id, g->o.waitpoint_key);
    g->args.use_pending_waitpoint = pending ? W(one)->str : W(empty)->str;
    g->keys.waitpoint = waitpoint_part(g, g->args.waitpoint_id, "");
    g->keys.signals = waitpoint_part(g, g->args.waitpoint_id, ":signals");
    g->keys.condition = waitpoint_part(g, g->args.waitpoint_id, ":condition");
}

/* Each further waitpoint has three keys and two arguments. */
static void name_extra_waitpoints(suspending *g) {
    ff_txn *t = g->s.txn;
    size_t count = g->o.extra_keys.count;
    ff_str **keys = ff_arena_array(&t->arena, 3 * count, sizeof *keys);
    ff_str **args = ff_arena_array(&t->arena, 2 * count, sizeof *args);
    for (size_t i = 0; i < count; i++) {
        ff_str *id = ff_mint_id(t);
        args[2 * i] = id;
        args[2 * i + 1] = ff_str_make(t, g->o.extra_keys.items[i]);
        keys[3 * i] = waitpoint_part(g, id, "");
        keys[3 * i + 1] = waitpoint_part(g, id, ":signals");
        keys[3 * i + 2] = waitpoint_part(g, id, ":condition");
    }
    g->args.num_extra_waitpoints = ff_str_integer(t, (int64_t)count);
    g->args.extras = (ff_strs){args, 2 * count};
    g->keys.extras = (ff_strs){keys, 3 * count};
}

/* An outcome is remembered for a while longer than the suspension may last. */
static int64_t remember_ms(const suspending *g) {
    if (is_given(g, REMEMBER_ROW)) return g->o.remember_ms;
    int64_t longest = is_given(g, TIMEOUT_ROW) ? g->o.timeout + GRACE_MS : REMEMBER_MS_MOST;
    return longest < REMEMBER_MS_MOST ? longest : REMEMBER_MS_MOST;
}

static ff_str *idempotency_record(suspending *g) {
    if (ff_text_is_absent(g->o.idempotency_key)) return NULL;
    return FF_CONCAT(g->s.txn, FF_TEXT("ff:dedup:suspend:"), g->s.tag, FF_TEXT(":"),
                     ff_str_text(g->s.execution_id), FF_TEXT(":"), g->o.idempotency_key);
}

static void fill_keys(suspending *g) {
    ff_subject *s = &g->s;
    g->keys = (ff_suspension_begin_keys){
        .core = s->core_name,
        .attempt = ff_subject_attempt(s, ""),
        .lease = ff_subject_key(s, "lease:current"),
        .history = ff_subject_key(s, "lease:history"),
        .lease_expiry = ff_subject_index(s, "lease_expiry"),
        .worker_leases = ff_subject_worker_leases(s, ff_subject_instance(s)),
        .suspension = ff_subject_key(s, "suspension:current"),
        .suspension_timeout = ff_subject_index(s, "suspension_timeout"),
        .pending_waitpoint_expiry = ff_subject_index(s, "pending_waitpoint_expiry"),
        .active = ff_subject_lane_index(s, "active"),
        .suspended = ff_subject_lane_index(s, "suspended"),
        .waitpoints = ff_subject_key(s, "waitpoints"),
        .attempt_timeout = ff_subject_index(s, "attempt_timeout"),
        .keystore = ff_subject_keystore(s),
        .idempotency = idempotency_record(g),
    };
}

static void fill_args(suspending *g) {
    ff_request *r = g->r;
    ff_txn *t = &r->txn;
    const suspend_options *o = &g->o;
    bool timed = is_given(g, TIMEOUT_ROW);
    g->args = (ff_suspension_begin_args){
        .execution_id = g->s.execution_id,
        .attempt_index = ff_hash_get(g->s.core, W(current_attempt_index)),
        .attempt_id = r->argv[3],
        .lease_id = r->argv[1],
        .lease_epoch = r->argv[2],
        .suspension_id = ff_mint_id(t),
        .reason_code = ff_str_make(t, o->reason),
        .requested_by = ff_str_or(ff_request_str(r, o->requested_by), W(worker)),
        .timeout_at = timed ? ff_str_integer(t, (int64_t)t->now + o->timeout) : W(empty)->str,
        .resume_condition_json = ff_str_make(t, o->condition),
        .resume_policy_json = ff_str_make(t, o->resume_policy),
        .continuation_metadata_pointer = ff_str_or_empty(ff_request_str(r, o->continuation)),
        .timeout_behavior = ff_str_make(t, ff_text_of(behaviours[o->behaviour])),
        .lease_history_maxlen =
            is_given(g, MAXLEN_ROW) ? ff_str_integer(t, o->history_maxlen) : NULL,
        .idempotency_key = ff_request_str(r, o->idempotency_key),
        .dedup_ttl_ms = ff_str_integer(t, remember_ms(g)),
    };
}

static void answer_waitpoint(ff_answer *list, const ff_value *triple) {
    ff_answer *map = ff_answer_add(list);
    ff_answer_become_map(map);
    ff_answer_text(map, "waitpoint_id", triple[0].str);
    ff_answer_text(map, "waitpoint_key", triple[1].str);
    ff_answer_text(map, "token", triple[2].str);
}

/* The engine answers: suspension id; id, key and token of the first waitpoint; how many more;
 * theirs. */
static void answer_suspension(ff_request *r, ff_subject *s) {
    const ff_value *values = r->result.values;
    ff_request_answer_status(r);
    ff_answer_text(&r->answer, "state", ff_hash_get(s->core, W(public_state)));
    ff_answer_text(&r->answer, "suspension_id", values[0].str);
    ff_answer *list = ff_answer_member(&r->answer, FF_TEXT("waitpoints"));
    ff_answer_become_list(list);
    answer_waitpoint(list, &values[1]);
    for (size_t i = 5; i + 2 < r->result.count; i += 3) answer_waitpoint(list, &values[i]);
}

/* A condition that a caller hands in is an object. */
static bool check_condition(suspending *g) {
    ff_str *condition = ff_str_make(&g->r->txn, g->o.condition);
    if (ff_json_is_object(ff_document_read(&g->r->txn, condition))) return true;
    ff_request_refuse(g->r, FF_TEXT("CONDITION must be a JSON object"));
    return false;
}

/* eid lease epoch attempt REASON code CONDITION json [TIMEOUT ms behaviour] … */
static ff_verdict suspend(ff_request *r) {
    suspending g = {.r = r, .o = {.resume_policy = ff_text_of(resume_policy)}};
    if (!ff_request_subject(r, &g.s) ||
        !ff_request_options(r, 4, FF_OPTION_TABLE(suspend_rows), &g.o, &g.given) ||
        !check_condition(&g)) {
        return FF_DISCARD;
    }
    fill_keys(&g);
    fill_args(&g);
    name_first_waitpoint(&g);
    name_extra_waitpoints(&g);
    ff_verdict verdict = ff_suspension_begin(&r->txn, &g.keys, &g.args, &r->result);
    if (r->result.code >= FF_FIRST_REFUSAL) return verdict;
    bool left = ff_str_is(ff_hash_get(g.s.core, W(lifecycle_phase)), W(suspended));
    if (left) ff_slot_free(&r->txn, g.s.core, g.s.execution_id);
    answer_suspension(r, &g.s);
    return verdict;
}

typedef struct resume_options {
    int64_t delay;
} resume_options;

static const ff_option resume_rows[] = {
    FF_OPTION("DELAY", FF_OPTION_DURATION, resume_options, delay),
};

/* eid [DELAY ms] */
static ff_verdict resume(ff_request *r) {
    resume_options o = {0};
    ff_subject s;
    if (!ff_request_subject(r, &s) ||
        !ff_request_options(r, 1, FF_OPTION_TABLE(resume_rows), &o, NULL)) {
        return FF_DISCARD;
    }
    ff_suspension_resume_keys keys = {
        .core = s.core_name,
        .suspension = ff_subject_key(&s, "suspension:current"),
        .waitpoint = ff_subject_waitpoint(&s, ""),
        .signals = ff_subject_waitpoint(&s, ":signals"),
        .suspension_timeout = ff_subject_index(&s, "suspension_timeout"),
        .eligible = ff_subject_lane_index(&s, "eligible"),
        .delayed = ff_subject_lane_index(&s, "delayed"),
        .suspended = ff_subject_lane_index(&s, "suspended"),
    };
    ff_suspension_resume_args args = {s.execution_id, W(operator)->str,
                                      ff_str_integer(&r->txn, o.delay)};
    ff_verdict verdict = ff_suspension_resume(&r->txn, &keys, &args, &r->result);
    if (r->result.code != FF_OK) return verdict;
    ff_request_answer_state(r, &s);
    if (o.delay > 0) {
        ff_answer_number(&r->answer, "delay_until", ff_hash_get(s.core, W(delay_until)));
    }
    return verdict;
}

static FF_NATIVE_WRITE(suspend_command, 1, suspend);
static FF_NATIVE_WRITE(resume_command, 1, resume);

#define BEHAVIOUR_ARGS \
    FF_ONE_ARG("behaviour", FF_WORD_ARG("fail", "FAIL"), FF_WORD_ARG("cancel", "CANCEL"), \
               FF_WORD_ARG("expire", "EXPIRE"), FF_WORD_ARG("auto-resume", "AUTO_RESUME"), \
               FF_WORD_ARG("auto-resume-with-timeout-signal", "AUTO_RESUME_WITH_TIMEOUT_SIGNAL"), \
               FF_WORD_ARG("escalate", "ESCALATE"))

static const ff_command rows[] = {
    {"ff.suspend", suspend_command, FF_WRITES,
     .info = {FF_DOCUMENTED, .summary = "Gives the lease back and waits for signals.",
              .complexity = "O(log(N)+M) with M the number of waitpoints", .arity = -9,
              .key_specs = FF_KEY_WRITE(1),
              .args =
                  FF_ARGS(FF_KEY_ARG("execution-id"), FF_LEASE_ARGS,
                          FF_ARG("code", STRING, .token = "REASON"),
                          FF_ARG("condition", STRING, .token = "CONDITION"),
                          FF_BLOCK_ARG("timeout", "TIMEOUT", FF_ARG("milliseconds", INTEGER),
                                       BEHAVIOUR_ARGS),
                          FF_OPTION_ARG("requested-by", "REQUESTED_BY", STRING),
                          FF_OPTION_ARG("resume-policy", "RESUME_POLICY_JSON", STRING),
                          FF_OPTION_ARG("pointer", "CONTINUATION_METADATA_POINTER", STRING),
                          FF_OPTION_ARG("waitpoint-key", "WAITPOINT_KEY", STRING),
                          FF_OPTION_ARG("waitpoint-id", "USE_PENDING_WAITPOINT", STRING),
                          FF_BLOCK_ARG("extra", "NUM_EXTRA_WAITPOINTS", FF_ARG("count", INTEGER),
                                       FF_MANY_ARG("waitpoint-key", STRING)),
                          FF_OPTION_ARG("idempotency-key", "IDEMPOTENCY_KEY", STRING),
                          FF_OPTION_ARG("dedup-ttl", "DEDUP_TTL_MS", INTEGER),
                          FF_OPTION_ARG("maxlen", "LEASE_HISTORY_MAXLEN", INTEGER))}},
    {"ff.resume", resume_command, FF_WRITES,
     .info = {FF_DOCUMENTED, .summary = "Ends a suspension by hand and closes all its waitpoints.",
              .complexity = "O(log(N)+M) with M the number of waitpoints", .arity = -2,
              .key_specs = FF_KEY_WRITE(1),
              .args = FF_ARGS(FF_KEY_ARG("execution-id"),
                              FF_OPTION_ARG("milliseconds", "DELAY", INTEGER))}},
};

const ff_command_table ff_suspension_commands = FF_COMMAND_TABLE(rows);
