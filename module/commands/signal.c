/* FF.SIGNAL: somebody outside sends a signal to a waitpoint. */

#include "engine/signal.h"

#include "commands/command.h"
#include "commands/request.h"
#include "engine/keyname.h"
#include "engine/mint.h"

enum { SIGNALS_KEPT = 1000, SIGNALS_MOST = 10000 };
#define REMEMBER_MS INT64_C(86400000)

typedef struct signal_options {
    ff_text token, payload, encoding, source_type, source_identity, idempotency_key, category,
        correlation_id;
    int64_t delay;
} signal_options;

static const ff_option signal_rows[] = {
    FF_OPTION("TOKEN", FF_OPTION_TEXT, signal_options, token, .required = true),
    FF_OPTION("PAYLOAD", FF_OPTION_TEXT, signal_options, payload),
    FF_OPTION("ENCODING", FF_OPTION_TEXT, signal_options, encoding),
    FF_OPTION("SOURCE", FF_OPTION_TEXT, signal_options, source_type, .label = "type"),
    FF_OPTION_THEN(FF_OPTION_TEXT, signal_options, source_identity, .label = "id"),
    FF_OPTION("IDEMPOTENT", FF_OPTION_NONEMPTY, signal_options, idempotency_key),
    FF_OPTION("CATEGORY", FF_OPTION_TEXT, signal_options, category),
    FF_OPTION("CORRELATION", FF_OPTION_TEXT, signal_options, correlation_id),
    FF_OPTION("DELAY", FF_OPTION_DURATION, signal_options, delay),
};

static ff_str *or_empty(ff_request *r, ff_text text) {
    return ff_str_or_empty(ff_request_str(r, text));
}

static ff_signal_args make_args(ff_request *r, ff_subject *s, const signal_options *o) {
    ff_txn *t = &r->txn;
    return (ff_signal_args){
        .signal_id = ff_mint_id(t),
        .execution_id = s->execution_id,
        .waitpoint_id = r->argv[1],
        .signal_name = r->argv[2],
        .signal_category = ff_str_make(t, o->category),
        .source_type = ff_str_make(t, o->source_type),
        .source_identity = or_empty(r, o->source_identity),
        .payload = or_empty(r, o->payload),
        .payload_encoding = ff_str_make(t, o->encoding),
        .idempotency_key = or_empty(r, o->idempotency_key),
        .correlation_id = or_empty(r, o->correlation_id),
        .target_scope = ff_str_make(t, FF_TEXT("waitpoint")),
        .created_at = W(empty)->str,
        .dedup_ttl_ms = ff_str_integer(t, REMEMBER_MS),
        .resume_delay_ms = ff_str_integer(t, o->delay),
        .signal_maxlen = ff_str_integer(t, SIGNALS_KEPT),
        .max_signals_per_execution = ff_str_integer(t, SIGNALS_MOST),
        .waitpoint_token = ff_str_make(t, o->token),
    };
}

static ff_str *signal_key(ff_subject *s, ff_str *signal_id, ff_text suffix) {
    return FF_CONCAT(s->txn, FF_TEXT("ff:signal:"), s->tag, FF_TEXT(":"), ff_str_text(signal_id),
                     suffix);
}

static ff_signal_keys common_keys(ff_subject *s, const ff_signal_args *a) {
    ff_txn *t = s->txn;
    ff_text waitpoint = ff_str_text(a->waitpoint_id);
    return (ff_signal_keys){
        .core = s->core_name,
        .condition = ff_keyname_waitpoint(t, s->tag, waitpoint, ":condition"),
        .waitpoint_signals = ff_keyname_waitpoint(t, s->tag, waitpoint, ":signals"),
        .execution_signals = ff_subject_key(s, "signals"),
        .signal = signal_key(s, a->signal_id, FF_TEXT("")),
        .payload = signal_key(s, a->signal_id, FF_TEXT(":payload")),
        .deduplication = FF_CONCAT(t, FF_TEXT("ff:sigdedup:"), s->tag, FF_TEXT(":"), waitpoint,
                                   FF_TEXT(":"), ff_str_text(a->idempotency_key)),
        .waitpoint = ff_keyname_waitpoint(t, s->tag, waitpoint, ""),
    };
}

static ff_verdict deliver(ff_request *r, ff_subject *s, const ff_signal_keys *common,
                          const ff_signal_args *args) {
    ff_signal_deliver_keys keys = {
        .common = *common,
        .suspension = ff_subject_key(s, "suspension:current"),
        .eligible = ff_subject_lane_index(s, "eligible"),
        .suspended = ff_subject_lane_index(s, "suspended"),
        .delayed = ff_subject_lane_index(s, "delayed"),
        .suspension_timeout = ff_subject_index(s, "suspension_timeout"),
        .keystore = ff_subject_keystore(s),
        .deliveries = FF_CONCAT(s->txn, FF_TEXT("ff:part:"), s->tag, FF_TEXT(":signal_delivery")),
    };
    return ff_signal_deliver(&r->txn, &keys, args, &r->result);
}

/* The token is good for the waitpoint, whoever is said to wait at it. */
static bool belongs_to(ff_key *waitpoint, ff_subject *s) {
    if (!ff_key_exists(s->core) || !ff_key_exists(waitpoint)) return true;
    return ff_str_equal(ff_hash_get(waitpoint, W(execution_id)), s->execution_id);
}

/* For a waitpoint at which nobody waits yet the signal is kept. */
static ff_verdict send(ff_request *r, ff_subject *s, const ff_signal_args *args) {
    ff_signal_keys common = common_keys(s, args);
    ff_key *waitpoint = ff_hash_open(&r->txn, common.waitpoint);
    if (!belongs_to(waitpoint, s)) {
        return ff_refuse(&r->result, FF_INVALID_WAITPOINT_FOR_EXECUTION);
    }
    if (!ff_str_is(ff_hash_get(waitpoint, W(state)), W(pending))) {
        return deliver(r, s, &common, args);
    }
    return ff_signal_buffer(&r->txn, &(ff_signal_buffer_keys){common, ff_subject_keystore(s)}, args,
                            &r->result);
}

/* eid waitpoint name TOKEN t [PAYLOAD b] [SOURCE type id] [IDEMPOTENT k] … */
static ff_verdict signal(ff_request *r) {
    signal_options o = {.encoding = FF_TEXT("json"),
                        .source_type = FF_TEXT("external"),
                        .category = FF_TEXT("external")};
    ff_subject s;
    if (!ff_request_subject(r, &s) ||
        !ff_request_options(r, 3, FF_OPTION_TABLE(signal_rows), &o, NULL)) {
        return FF_DISCARD;
    }
    ff_signal_args args = make_args(r, &s, &o);
    ff_verdict verdict = send(r, &s, &args);
    if (r->result.code >= FF_FIRST_REFUSAL) return verdict;
    bool accepted = r->result.code == FF_OK;
    ff_request_answer_status(r);
    ff_answer_text(&r->answer, "signal_id", r->result.values[0].str);
    ff_answer_text(&r->answer, "effect", accepted ? r->result.values[1].str : NULL);
    ff_answer_text(&r->answer, "state", ff_hash_get(s.core, W(public_state)));
    return verdict;
}

static FF_NATIVE_WRITE(signal_command, 1, signal);

static const ff_command rows[] = {
    {"ff.signal", signal_command, FF_WRITES,
     .info = {FF_DOCUMENTED, .summary = "Sends a signal to a waitpoint of an execution.",
              .complexity = "O(log(N)+M) with M the size of the condition", .arity = -6,
              .key_specs = FF_KEY_WRITE(1),
              .args = FF_ARGS(
                  FF_KEY_ARG("execution-id"), FF_ARG("waitpoint-id", STRING),
                  FF_ARG("name", STRING), FF_ARG("token", STRING, .token = "TOKEN"),
                  FF_OPTION_ARG("payload", "PAYLOAD", STRING),
                  FF_OPTION_ARG("encoding", "ENCODING", STRING),
                  FF_BLOCK_ARG("source", "SOURCE", FF_ARG("type", STRING), FF_ARG("id", STRING)),
                  FF_OPTION_ARG("idempotency-key", "IDEMPOTENT", STRING),
                  FF_OPTION_ARG("category", "CATEGORY", STRING),
                  FF_OPTION_ARG("correlation-id", "CORRELATION", STRING),
                  FF_OPTION_ARG("milliseconds", "DELAY", INTEGER))}},
};

const ff_command_table ff_signal_commands = FF_COMMAND_TABLE(rows);
