/* FF.APPEND, FF.READ, FF.SUMMARY: the output of an attempt. */

#include "engine/frame.h"

#include "base/number.h"
#include "commands/command.h"
#include "commands/tail.h"
#include "engine/keyname.h"
#include "engine/summary.h"

enum { READ_COUNT = 100, READ_MOST = 10000 };

static bool read_index(ff_request *r, ff_str **index) {
    int64_t number;
    ff_text error;
    if (ff_argument_integer("attempt-index", r->args[1], 0, INT64_C(1) << 53, &number,
                            &r->txn.arena, &error)) {
        *index = r->argv[1];
        return true;
    }
    ff_request_refuse(r, error);
    return false;
}

typedef struct append_options {
    ff_text encoding, correlation_id, source, attempt_id, patch_kind, alpha;
    int64_t ts, retention, payload_most, ttl, window_floor, window_ceiling;
    int mode;
} append_options;

static const char *const modes[] = {"durable", "summary", "best_effort", NULL};

enum { TS, RETENTION, PAYLOAD_MOST, TTL, WINDOW_FLOOR, WINDOW_CEILING };
static const ff_option append_rows[] = {
    [TS] = FF_OPTION("TS", FF_OPTION_TIME, append_options, ts),
    [RETENTION] = FF_OPTION("RETENTION_MAXLEN", FF_OPTION_INTEGER, append_options, retention,
                            .max = INT32_MAX),
    [PAYLOAD_MOST] = FF_OPTION("MAX_PAYLOAD_BYTES", FF_OPTION_INTEGER, append_options, payload_most,
                               .max = INT32_MAX),
    [TTL] = FF_OPTION("TTL_MS", FF_OPTION_DURATION, append_options, ttl),
    [WINDOW_FLOOR] = FF_OPTION("WINDOW_FLOOR", FF_OPTION_INTEGER, append_options, window_floor,
                               .min = 1, .max = INT32_MAX),
    [WINDOW_CEILING] = FF_OPTION("WINDOW_CEILING", FF_OPTION_INTEGER, append_options,
                                 window_ceiling, .min = 1, .max = INT32_MAX),
    FF_OPTION("ENCODING", FF_OPTION_TEXT, append_options, encoding),
    FF_OPTION("CORRELATION_ID", FF_OPTION_TEXT, append_options, correlation_id),
    FF_OPTION("SOURCE", FF_OPTION_TEXT, append_options, source),
    FF_OPTION("ATTEMPT_ID", FF_OPTION_TEXT, append_options, attempt_id),
    FF_OPTION("MODE", FF_OPTION_CHOICE, append_options, mode, .choices = modes),
    FF_OPTION("PATCH_KIND", FF_OPTION_TEXT, append_options, patch_kind),
    FF_OPTION("ALPHA", FF_OPTION_NONEMPTY, append_options, alpha),
};

/* A number that was given, NULL otherwise: the engine knows the defaults. */
static ff_str *number_if_given(ff_request *r, uint64_t given, int row, int64_t value) {
    return given >> row & 1 ? ff_str_integer(&r->txn, value) : NULL;
}

static bool check_alpha(ff_request *r, ff_text alpha) {
    double value;
    if (ff_text_is_absent(alpha)) return true;
    if (ff_number_parse(alpha, &value) && value > 0 && value <= 1) return true;
    ff_request_refuse(r, ff_arena_concat(&r->txn.arena,
                                         FF_TEXT("ALPHA must be a number above 0 and at most 1, "
                                                 "got: "),
                                         ff_arena_printable(&r->txn.arena, alpha)));
    return false;
}

static ff_frame_append_args append_args(ff_request *r, ff_subject *s, const append_options *o,
                                        uint64_t given) {
    ff_str *attempt = ff_request_str(r, o->attempt_id);
    return (ff_frame_append_args){
        .execution_id = s->execution_id,
        .attempt_index = r->argv[1],
        .lease_id = r->argv[2],
        .lease_epoch = r->argv[3],
        .frame_type = r->argv[4],
        .ts = number_if_given(r, given, TS, o->ts),
        .payload = r->argv[5],
        .encoding = ff_request_str(r, o->encoding),
        .correlation_id = ff_request_str(r, o->correlation_id),
        .source = ff_request_str(r, o->source),
        .retention_maxlen = number_if_given(r, given, RETENTION, o->retention),
        .attempt_id = attempt ? attempt : ff_hash_get(s->core, W(current_attempt_id)),
        .max_payload_bytes = number_if_given(r, given, PAYLOAD_MOST, o->payload_most),
        .mode = ff_str_make(&r->txn, ff_text_of(modes[o->mode])),
        .patch_kind = ff_request_str(r, o->patch_kind),
        .ttl_ms = number_if_given(r, given, TTL, o->ttl),
        .window_floor = number_if_given(r, given, WINDOW_FLOOR, o->window_floor),
        .window_ceiling = number_if_given(r, given, WINDOW_CEILING, o->window_ceiling),
        .alpha = ff_request_str(r, o->alpha),
    };
}

static ff_frame_append_keys append_keys(ff_subject *s, ff_text index) {
    ff_txn *t = s->txn;
    ff_text id = ff_str_text(s->execution_id);
    return (ff_frame_append_keys){
        .core = s->core_name,
        .stream =
            FF_CONCAT(t, FF_TEXT("ff:stream:"), s->tag, FF_TEXT(":"), id, FF_TEXT(":"), index),
        .meta = ff_keyname_stream_meta(t, s->tag, id, index),
        .summary = ff_keyname_attempt(t, s->tag, id, index, ":summary"),
    };
}

/* eid attempt-index lease epoch type payload … */
static ff_verdict append(ff_request *r) {
    append_options o = {0};
    uint64_t given;
    ff_str *index;
    ff_subject s;
    if (!ff_request_subject(r, &s) || !read_index(r, &index) ||
        !ff_request_options(r, 6, FF_OPTION_TABLE(append_rows), &o, &given) ||
        !check_alpha(r, o.alpha)) {
        return FF_DISCARD;
    }
    if (!ff_key_exists(s.core)) return ff_refuse(&r->result, FF_EXECUTION_NOT_FOUND);
    ff_frame_append_keys keys = append_keys(&s, ff_str_text(index));
    ff_frame_append_args args = append_args(r, &s, &o, given);
    ff_verdict verdict = ff_frame_append(&r->txn, &keys, &args, &r->result);
    if (r->result.code != FF_OK) return verdict;
    ff_answer_become_map(&r->answer);
    ff_answer_text(&r->answer, "id", r->result.values[0].str);
    ff_answer_number(&r->answer, "frames", r->result.values[1].str);
    ff_answer_number(&r->answer, "summary_version", r->result.values[2].str);
    return verdict;
}

typedef struct read_options {
    ff_text from;
    int64_t count, block;
    int visibility;
} read_options;

static const char *const visibilities[] = {"all", "exclude_best_effort", NULL};

enum { BLOCK_ROW };
static const ff_option read_rows[] = {
    [BLOCK_ROW] = FF_OPTION("BLOCK", FF_OPTION_DURATION, read_options, block),
    FF_OPTION("FROM", FF_OPTION_TEXT, read_options, from),
    FF_OPTION("COUNT", FF_OPTION_INTEGER, read_options, count, .min = 1, .max = READ_MOST),
    FF_OPTION("VISIBILITY", FF_OPTION_CHOICE, read_options, visibility, .choices = visibilities),
};

/* A stream id, in full or without its sequence. */
static bool is_stream_id(ff_text text) {
    ff_text part;
    uint64_t value;
    int parts = 0;
    while (ff_text_split(&text, '-', &part)) {
        if (part.len == 0 || part.ptr[0] == '+' || !ff_unsigned_parse(part, &value)) return false;
        parts++;
    }
    return parts <= 2;
}

/* False after a refusal. */
static bool read_from(ff_request *r, ff_subject *s, ff_str *index, ff_text text, ff_str **from) {
    ff_txn *t = &r->txn;
    ff_text exclusive = ff_text_slice(text, 1, text.len);
    if (ff_text_equal(text, FF_TEXT("$"))) {
        ff_str *meta =
            ff_keyname_stream_meta(t, s->tag, ff_str_text(s->execution_id), ff_str_text(index));
        ff_str *last = ff_hash_get(ff_hash_open(t, meta), W(last_sequence));
        text = ff_str_is_set(last) ? ff_arena_concat(&t->arena, FF_TEXT("("), ff_str_text(last))
                                   : FF_TEXT("-");
    } else if (!ff_text_equal(text, FF_TEXT("-")) && !is_stream_id(text) &&
               !(ff_text_starts_with(text, FF_TEXT("(")) && is_stream_id(exclusive))) {
        ff_request_refuse(r, ff_arena_concat(&t->arena,
                                             FF_TEXT("FROM must be a stream id, '(' and a stream "
                                                     "id, '-' or '$', got: "),
                                             ff_arena_printable(&t->arena, text)));
        return false;
    }
    *from = ff_str_make(t, text);
    return true;
}

static bool may_block(ff_request *r) {
    return !(ValkeyModule_GetContextFlags(r->ctx) &
             (VALKEYMODULE_CTX_FLAGS_MULTI | VALKEYMODULE_CTX_FLAGS_LUA |
              VALKEYMODULE_CTX_FLAGS_DENY_BLOCKING));
}

/* eid attempt-index [FROM id] [COUNT n] [BLOCK ms] [VISIBILITY v] */
static ff_verdict read(ff_request *r) {
    read_options o = {.from = FF_TEXT("-"), .count = READ_COUNT};
    uint64_t given;
    ff_tail tail = {0};
    ff_subject s;
    if (!ff_request_subject(r, &s) || !read_index(r, &tail.index) ||
        !ff_request_options(r, 2, FF_OPTION_TABLE(read_rows), &o, &given) ||
        !read_from(r, &s, tail.index, o.from, &tail.from)) {
        return FF_DISCARD;
    }
    tail.execution_id = s.execution_id;
    tail.count = o.count;
    tail.without_best_effort = o.visibility > 0;
    if (!ff_tail_read(&r->txn, &tail, &r->answer, &r->result) && given >> BLOCK_ROW & 1 &&
        !ff_txn_error(&r->txn) && may_block(r)) {
        ff_tail_wait(r->ctx, &tail, o.block);
        r->deferred = true;
    }
    return FF_COMMIT;
}

/* eid attempt-index */
static ff_verdict summary(ff_request *r) {
    ff_str *index;
    ff_subject s;
    if (!ff_request_subject(r, &s) || !read_index(r, &index)) return FF_DISCARD;
    if (!ff_key_exists(s.core)) return ff_refuse(&r->result, FF_EXECUTION_NOT_FOUND);
    ff_frame_append_keys keys = append_keys(&s, ff_str_text(index));
    ff_verdict verdict = ff_summary_read(&r->txn, &(ff_summary_read_keys){keys.summary},
                                         &(ff_summary_read_args){0}, &r->result);
    const ff_value *values = r->result.values;
    ff_answer_become_map(&r->answer);
    ff_answer_text(&r->answer, "document", ff_str_is_set(values[0].str) ? values[0].str : NULL);
    ff_answer_number(&r->answer, "version", values[1].str);
    ff_answer_text(&r->answer, "patch_kind", ff_str_is_set(values[2].str) ? values[2].str : NULL);
    ff_answer_number(&r->answer, "last_updated_ms", values[3].str);
    ff_answer_number(&r->answer, "first_applied_ms", values[4].str);
    return verdict;
}

static FF_NATIVE_WRITE(append_command, 1, append);
static FF_NATIVE_READ(read_command, 1, read);
static FF_NATIVE_READ(summary_command, 1, summary);

static const ff_command rows[] = {
    {"ff.append", append_command, FF_WRITES,
     .info = {FF_DOCUMENTED, .summary = "Appends a frame to the output of the running attempt.",
              .complexity = "O(1); O(N) with the size of the document in summary mode", .arity = -7,
              .key_specs = FF_KEY_WRITE(1),
              .args = FF_ARGS(FF_KEY_ARG("execution-id"), FF_ARG("attempt-index", INTEGER),
                              FF_ARG("lease", STRING), FF_ARG("epoch", INTEGER),
                              FF_ARG("type", STRING), FF_ARG("payload", STRING),
                              FF_ONE_OPTION_ARG("mode", "MODE", FF_WORD_ARG("durable", "DURABLE"),
                                                FF_WORD_ARG("summary", "SUMMARY"),
                                                FF_WORD_ARG("best-effort", "BEST_EFFORT")),
                              FF_OPTION_ARG("encoding", "ENCODING", STRING),
                              FF_OPTION_ARG("correlation-id", "CORRELATION_ID", STRING),
                              FF_OPTION_ARG("source", "SOURCE", STRING),
                              FF_OPTION_ARG("unix-time-milliseconds", "TS", UNIX_TIME),
                              FF_OPTION_ARG("retention-maxlen", "RETENTION_MAXLEN", INTEGER),
                              FF_OPTION_ARG("max-payload-bytes", "MAX_PAYLOAD_BYTES", INTEGER),
                              FF_OPTION_ARG("attempt-id", "ATTEMPT_ID", STRING),
                              FF_OPTION_ARG("patch-kind", "PATCH_KIND", STRING),
                              FF_OPTION_ARG("ttl", "TTL_MS", INTEGER),
                              FF_OPTION_ARG("window-floor", "WINDOW_FLOOR", INTEGER),
                              FF_OPTION_ARG("window-ceiling", "WINDOW_CEILING", INTEGER),
                              FF_OPTION_ARG("alpha", "ALPHA", DOUBLE))}},
    {"ff.read", read_command, .flags = "readonly getkeys-api blocking",
     .categories = "read blocking",
     .info = {FF_DOCUMENTED,
              .summary = "Returns frames of an attempt's output, waiting for more if asked to.",
              .complexity = "O(N) with N the number of frames returned", .arity = -3,
              .key_specs = FF_KEY_READ(1),
              .args = FF_ARGS(
                  FF_KEY_ARG("execution-id"), FF_ARG("attempt-index", INTEGER),
                  FF_OPTION_ARG("id", "FROM", STRING), FF_OPTION_ARG("count", "COUNT", INTEGER),
                  FF_OPTION_ARG("milliseconds", "BLOCK", INTEGER),
                  FF_ONE_OPTION_ARG("visibility", "VISIBILITY", FF_WORD_ARG("all", "ALL"),
                                    FF_WORD_ARG("exclude-best-effort", "EXCLUDE_BEST_EFFORT")))}},
    {"ff.summary", summary_command, FF_READS,
     .info = {FF_DOCUMENTED, .summary = "Returns the summary document of an attempt.",
              .complexity = "O(1)", .arity = 3, .key_specs = FF_KEY_READ(1),
              .args = FF_ARGS(FF_KEY_ARG("execution-id"), FF_ARG("attempt-index", INTEGER))}},
};

const ff_command_table ff_frame_commands = FF_COMMAND_TABLE(rows);
