#include <ctype.h>
#include <string.h>

#include "commands/request.h"

/* What a refusal means to the person who reads it. Details of the result follow after a colon. */
static const char *const sentences[FF_CODE_COUNT] = {
    [FF_ACTIVE_ATTEMPT_EXISTS] = "an attempt is running already",
    [FF_ADDITIONAL_WAITPOINT_BINDING_MALFORMED] = "a further waitpoint needs both an id and a key",
    [FF_ALREADY_MEMBER_OF_DIFFERENT_FLOW] = "the execution belongs to another flow",
    [FF_ALREADY_SUSPENDED] = "the execution has an open suspension",
    [FF_CAPABILITY_MISMATCH] = "the worker lacks capabilities that the execution requires",
    [FF_CLAIM_GRANT_EXPIRED] = "the claim grant has expired",
    [FF_CORRUPTION] = "a stored value cannot be read",
    [FF_CYCLE_DETECTED] = "the edge would close a cycle",
    [FF_DEPENDENCY_ALREADY_EXISTS] = "an edge with that id exists",
    [FF_DEPS_NOT_SATISFIED] = "dependencies are still unresolved",
    [FF_EXECUTION_ALREADY_IN_FLOW] = "the execution belongs to another flow",
    [FF_EXECUTION_NOT_ACTIVE] = "the execution is not active",
    [FF_EXECUTION_NOT_ELIGIBLE] = "the execution is not in a state that allows this",
    [FF_EXECUTION_NOT_FOUND] = "no such execution",
    [FF_EXECUTION_NOT_IN_ELIGIBLE_SET] = "the execution is not queued in that lane",
    [FF_EXECUTION_NOT_IN_FLOW] = "both ends of an edge must be members of the flow",
    [FF_EXECUTION_NOT_LEASEABLE] = "the execution cannot be claimed now",
    [FF_EXECUTION_NOT_RECLAIMABLE] = "the execution has no lapsed or revoked lease to take over",
    [FF_EXECUTION_NOT_SUSPENDED] = "the execution is not suspended",
    [FF_EXECUTION_NOT_TERMINAL] = "only an execution that has ended can be replayed",
    [FF_FENCE_REQUIRED] = "lease id, epoch and attempt id are needed",
    [FF_FLOW_ALREADY_TERMINAL] = "the flow has ended",
    [FF_FLOW_NOT_FOUND] = "no such flow",
    [FF_GRANT_ALREADY_EXISTS] = "a claim grant for the execution is out",
    [FF_HMAC_SECRET_NOT_INITIALIZED] =
        "the partition has no signing secret: install one with FF.SECRET ROTATE",
    [FF_INVALID_ARGS] = "an argument is missing",
    [FF_INVALID_BLOCKING_REASON] = "not a reason to block for",
    [FF_INVALID_CAPABILITIES] = "not a valid list of capabilities",
    [FF_INVALID_CLAIM_GRANT] = "there is no claim grant for this worker",
    [FF_INVALID_DEPENDENCY] = "no such dependency",
    [FF_INVALID_GRACE_MS] = "the grace period must be a whole number of milliseconds",
    [FF_INVALID_INPUT] = "an argument or a stored value cannot be used",
    [FF_INVALID_KEYS_MISSING_HMAC] = "the key of the signing secrets is missing",
    [FF_INVALID_KID] = "a key id must not be empty nor contain a colon",
    [FF_INVALID_LEASE_FOR_SUSPEND] = "the attempt is not the current one",
    [FF_INVALID_POLICY_JSON] = "not a valid policy document",
    [FF_INVALID_SECRET] = "the stored signing secret is not hexadecimal",
    [FF_INVALID_SECRET_HEX] = "a secret is an even number of hexadecimal digits",
    [FF_INVALID_TAG_KEY] = "a tag name is a lower-case word, a dot, and more",
    [FF_INVALID_TOKEN] = "the token is not good for this waitpoint",
    [FF_INVALID_WAITPOINT_FOR_EXECUTION] = "the waitpoint belongs to another execution or attempt",
    [FF_INVARIANT_VIOLATION] = "stored counters contradict each other",
    [FF_LEASE_CONFLICT] = "somebody else holds the lease",
    [FF_LEASE_EXPIRED] = "the lease has run out",
    [FF_LEASE_REVOKED] = "the lease was revoked",
    [FF_MAX_REPLAYS_EXHAUSTED] = "the execution was replayed as often as its policy allows",
    [FF_MAX_RETRIES_EXHAUSTED] = "the execution was reclaimed as often as its policy allows",
    [FF_MISSING_TOKEN] = "a token is needed",
    [FF_NO_ACTIVE_LEASE] = "the execution has no live lease",
    [FF_NOT_A_RESUMED_EXECUTION] = "the execution was not interrupted",
    [FF_NOT_BLOCKED_BY_DEPS] = "the execution is not waiting for dependencies",
    [FF_NOT_RUNNABLE] = "the execution is not runnable",
    [FF_PARTIAL_FENCE_TRIPLE] = "lease id, epoch and attempt id go together",
    [FF_PENDING_WAITPOINT_EXPIRED] = "the pending waitpoint has expired",
    [FF_RETENTION_LIMIT_EXCEEDED] = "the payload of the frame is too large",
    [FF_ROTATION_CONFLICT] = "that key id has another secret",
    [FF_SELF_REFERENCING_EDGE] = "an edge needs two different executions",
    [FF_SIGNAL_LIMIT_EXCEEDED] = "the execution has received as many signals as it may",
    [FF_STALE_GRAPH_REVISION] = "the flow's graph has changed meanwhile",
    [FF_STALE_LEASE] = "lease id, epoch and attempt id are not those of the live lease",
    [FF_STALE_OWNER_CANNOT_APPEND] = "only the holder of the live lease may append",
    [FF_STREAM_CLOSED] = "the attempt's stream is closed",
    [FF_TARGET_NOT_SIGNALABLE] = "the execution does not take signals now",
    [FF_TERMINAL] = "the execution has ended",
    [FF_TOKEN_EXPIRED] = "the token's signing secret is no longer in use",
    [FF_USE_CLAIM_RESUMED_EXECUTION] = "the execution was interrupted and must be resumed",
    [FF_USE_PENDING_WITH_EXTRAS_UNSUPPORTED] =
        "a pending waitpoint cannot be combined with further waitpoints",
    [FF_WAITPOINT_ALREADY_EXISTS] = "the waitpoint is open already",
    [FF_WAITPOINT_CLOSED] = "the waitpoint is closed",
    [FF_WAITPOINT_NOT_FOUND] = "no such waitpoint",
    [FF_WAITPOINT_NOT_OPEN] = "the waitpoint is not open",
    [FF_WAITPOINT_NOT_PENDING] = "the waitpoint is not pending",
    [FF_WAITPOINT_NOT_TOKEN_BOUND] = "the pending waitpoint has no token",
    [FF_WAITPOINT_PENDING_USE_BUFFER_SCRIPT] = "the waitpoint is pending: nobody waits at it yet",
};

enum { LABELS_MOST = 4 };

/* What the details are called, where that is not plain. */
static const char *const labels[FF_CODE_COUNT][LABELS_MOST] = {
    [FF_EXECUTION_NOT_ACTIVE] = {"outcome ", "epoch ", "phase ", "attempt "},
};

/* Every …_not_found is one word to a person. */
static ff_text word_of(ff_txn *t, ff_code code) {
    const char *word = ff_code_word(code);
    size_t length = strlen(word);
    const char *not_found = "not_found";
    size_t tail = strlen(not_found);
    if (length > tail && strcmp(word + length - tail, not_found) == 0) return FF_TEXT("NOT_FOUND");
    char *upper = ff_arena_bytes(&t->arena, length);
    for (size_t i = 0; i < length; i++) upper[i] = (char)toupper((unsigned char)word[i]);
    return ff_text_make(upper, length);
}

/* A sentence, and its details after a colon. */
typedef struct line {
    ff_txn *t;
    ff_buffer text;
    bool has_details;
} line;

static void add_detail(line *l, const char *label, ff_text detail) {
    if (detail.len == 0) return;
    ff_buffer_append(&l->text, l->has_details ? FF_TEXT(", ") : FF_TEXT(": "));
    ff_buffer_append(&l->text, ff_text_of(label ? label : ""));
    ff_buffer_append(&l->text, ff_arena_printable(&l->t->arena, detail));
    l->has_details = true;
}

ff_text ff_refusal_text(ff_txn *t, const ff_result *result) {
    line l = {.t = t};
    ff_buffer_init(&l.text, &t->arena);
    ff_buffer_append(&l.text, word_of(t, result->code));
    ff_buffer_append_byte(&l.text, ' ');
    ff_buffer_append(&l.text, ff_text_of(sentences[result->code]));
    ff_text word = ff_str_text(result->word);
    add_detail(&l, NULL, ff_text_slice(word, ff_text_find(word, ':', 0) + 1, word.len));
    for (size_t i = 0; i < result->count; i++) {
        const char *label = i < LABELS_MOST ? labels[result->code][i] : NULL;
        add_detail(&l, label, ff_str_text(result->values[i].str));
    }
    return ff_buffer_text(&l.text);
}
