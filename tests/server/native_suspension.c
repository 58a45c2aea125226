/* FF.SUSPEND, FF.SIGNAL, FF.RESUME, FF.WAITPOINT */
#include "native.h"

#include <criterion/criterion.h>
#include <string.h>

#define GO "{\"required_signal_names\":[\"go\"]}"
#define SUSPEND "REASON", "waiting_for_approval", "CONDITION", GO

typedef struct door {
    const char *id, *key, *token;
} door;

static door door_of(const redisReply *map) {
    return (door){map_text(map, "waitpoint_id"), map_text(map, "waitpoint_key"),
                  map_text(map, "token")};
}

static door suspended_on(const redisReply *reply, size_t position) {
    redisReply *doors = map_value(reply, "waitpoints");
    cr_assert_gt(doors->elements, position);
    return door_of(doors->element[position]);
}

/* Creates, claims and suspends an execution, waiting for the signal `go`. */
static door suspend(test_server *server, int number) {
    held h = native_claim(server, number);
    redisReply *reply = server_call(server, "FF.SUSPEND", FENCE(h), SUSPEND);
    cr_assert_neq(reply->type, REDIS_REPLY_ERROR, "%s", reply->str);
    return suspended_on(reply, 0);
}

static void condition_is(test_server *server, door d, const char *closed) {
    const char *key = spell("ff:wp:" FP ":%s:condition", d.id);
    cr_assert_str_eq(server_text(server, "HGET", key, "closed"), closed);
}

static void state_is(test_server *server, door d, const char *state) {
    cr_assert_str_eq(server_text(server, "HGET", spell("ff:wp:" FP ":%s", d.id), "state"), state);
}

Test(native_suspension, suspend_and_signal) {
    test_server *server = native_start();
    held h = native_claim(server, 1);
    redisReply *reply = server_call(server, "FF.SUSPEND", FENCE(h), SUSPEND, "TIMEOUT", "60000",
                                    "cancel", "CONTINUATION_METADATA_POINTER", "step 2");
    cr_assert_str_eq(map_text(reply, "status"), "OK");
    cr_assert_str_eq(map_text(reply, "state"), "suspended");
    door d = suspended_on(reply, 0);
    const char *record = native_key(1, "suspension:current");
    cr_assert_str_eq(server_text(server, "HGET", record, "suspension_id"),
                     map_text(reply, "suspension_id"));
    cr_assert_str_eq(server_text(server, "HGET", record, "requested_by"), "worker");
    cr_assert_str_eq(server_text(server, "HGET", record, "timeout_at"), "1767225660000");
    cr_assert_str_eq(server_text(server, "HGET", record, "timeout_behavior"), "cancel");
    native_field(server, 1, "blocking_reason", "waiting_for_approval");

    reply = server_call(server, "FF.SIGNAL", native_id(1), d.id, "other", "TOKEN", d.token);
    cr_assert_str_eq(map_text(reply, "effect"), "no_op");
    cr_assert_str_eq(map_text(reply, "state"), "suspended");
    reply =
        server_call(server, "FF.SIGNAL", native_id(1), d.id, "go", "TOKEN", d.token, "PAYLOAD",
                    "{}", "SOURCE", "webhook", "svc", "CATEGORY", "approval", "CORRELATION", "c1");
    cr_assert_str_eq(map_text(reply, "status"), "OK");
    cr_assert_str_eq(map_text(reply, "effect"), "resume_condition_satisfied");
    cr_assert_str_eq(map_text(reply, "state"), "waiting");
    const char *signal = spell("ff:signal:" FP ":%s", map_text(reply, "signal_id"));
    cr_assert_str_eq(server_text(server, "HGET", signal, "source_identity"), "svc");
    cr_assert_str_eq(server_text(server, "GET", spell("%s:payload", signal)), "{}");
    held again = native_claim_next(server);
    cr_assert_str_eq(again.attempt, h.attempt);
}

Test(native_suspension, suspend_refusals) {
    test_server *server = native_start();
    held h = native_claim(server, 1);
    native_refused(server, "ERR wrong number of arguments", "FF.SUSPEND", FENCE(h), "REASON", "x");
    native_refused(server, "ERR option CONDITION is required", "FF.SUSPEND", FENCE(h), "REASON",
                   "x", "REQUESTED_BY", "me");
    native_refused(server, "ERR option REASON is required", "FF.SUSPEND", FENCE(h), "CONDITION", GO,
                   "REQUESTED_BY", "me");
    native_refused(server, "ERR option TIMEOUT needs behaviour", "FF.SUSPEND", FENCE(h), SUSPEND,
                   "TIMEOUT", "5");
    native_refused(server, "ERR TIMEOUT behaviour must be one of fail", "FF.SUSPEND", FENCE(h),
                   SUSPEND, "TIMEOUT", "5", "explode");
    native_refused(server, "ERR options WAITPOINT_KEY and USE_PENDING_WAITPOINT exclude",
                   "FF.SUSPEND", FENCE(h), SUSPEND, "WAITPOINT_KEY", "k", "USE_PENDING_WAITPOINT",
                   "w");
    native_refused(server, "ERR NUM_EXTRA_WAITPOINTS announces 2 values, but 1 follow",
                   "FF.SUSPEND", FENCE(h), SUSPEND, "NUM_EXTRA_WAITPOINTS", "2", "k");
    native_refused(server, "ADDITIONAL_WAITPOINT_BINDING_MALFORMED ", "FF.SUSPEND", FENCE(h),
                   SUSPEND, "NUM_EXTRA_WAITPOINTS", "1", "");
    native_refused(server, "ERR CONDITION must be a JSON object", "FF.SUSPEND", FENCE(h), "REASON",
                   "x", "CONDITION", "not json");
    native_refused(server, "NOT_FOUND no such waitpoint", "FF.SUSPEND", FENCE(h), SUSPEND,
                   "USE_PENDING_WAITPOINT", "w");
    server_do(server, "HSET", SECRET_KEY, "secret:k1", "xyz");
    native_refused(server, "INVALID_SECRET ", "FF.SUSPEND", FENCE(h), SUSPEND);
    server_do(server, "DEL", SECRET_KEY);
    native_refused(server, "HMAC_SECRET_NOT_INITIALIZED ", "FF.SUSPEND", FENCE(h), SUSPEND);
}

Test(native_suspension, suspend_idempotently) {
    test_server *server = native_start();
    held h = native_claim(server, 1);
    redisReply *first = server_call(server, "FF.SUSPEND", FENCE(h), SUSPEND, "IDEMPOTENCY_KEY", "k",
                                    "DEDUP_TTL_MS", "5000");
    const char *record = spell("ff:dedup:suspend:" FP ":%s:k", native_id(1));
    cr_assert_eq(server_integer(server, "PTTL", record), 5000);
    redisReply *second =
        server_call(server, "FF.SUSPEND", FENCE(h), SUSPEND, "IDEMPOTENCY_KEY", "k");
    cr_assert_str_eq(map_text(second, "suspension_id"), map_text(first, "suspension_id"));
    cr_assert_str_eq(suspended_on(second, 0).token, suspended_on(first, 0).token);
    native_refused(server, "EXECUTION_NOT_ACTIVE ", "FF.SUSPEND", FENCE(h), SUSPEND,
                   "IDEMPOTENCY_KEY", "other");
}

Test(native_suspension, signal_refusals) {
    test_server *server = native_start();
    door d = suspend(server, 1);
    native_refused(server, "ERR option TOKEN is required", "FF.SIGNAL", native_id(1), d.id, "go",
                   "PAYLOAD", "x");
    native_refused(server, "ERR option SOURCE needs id", "FF.SIGNAL", native_id(1), d.id, "go",
                   "TOKEN", d.token, "SOURCE", "x");
    native_refused(server, "NOT_FOUND no such execution", "FF.SIGNAL", native_id(9), d.id, "go",
                   "TOKEN", d.token);
    native_refused(server, "INVALID_TOKEN ", "FF.SIGNAL", native_id(1), "nowhere", "go", "TOKEN",
                   d.token);
    /* A refused token is noted on the execution. */
    static const char *const tokens[][2] = {
        {"", "MISSING_TOKEN "},
        {"k1:", "INVALID_TOKEN "},
        {"k1:0000000000000000000000000000000000000000", "INVALID_TOKEN "},
        {"k2:0000000000000000000000000000000000000000", "INVALID_TOKEN "},
    };
    for (size_t i = 0; i < sizeof tokens / sizeof *tokens; i++) {
        redisReply *reply =
            server_call(server, "FF.SIGNAL", native_id(1), d.id, "go", "TOKEN", tokens[i][0]);
        cr_assert(reply->type == REDIS_REPLY_ERROR &&
                      strncmp(reply->str, tokens[i][1], strlen(tokens[i][1])) == 0,
                  "%s: %s", tokens[i][0], reply->str);
    }
    native_field(server, 1, "last_hmac_validation_failed_at", "1767225600000");
    server_do(server, "HSET", SECRET_KEY, "current_kid", "k2", "secret:k2", "ff", "expires_at:k1",
              "1767225599999");
    redisReply *reply =
        server_call(server, "FF.SIGNAL", native_id(1), d.id, "go", "TOKEN", d.token);
    cr_assert_eq(strncmp(reply->str, "TOKEN_EXPIRED ", 14), 0, "%s", reply->str);
    server_do(server, "HSET", SECRET_KEY, "current_kid", "k1");
    server_do(server, "FF.CANCEL", native_id(1), "why");
    native_refused(server, "TARGET_NOT_SIGNALABLE ", "FF.SIGNAL", native_id(1), d.id, "go", "TOKEN",
                   d.token);
}

/* The token is good for the waitpoint; the execution must be the one that waits at it. */
Test(native_suspension, a_signal_to_another_execution) {
    test_server *server = native_start();
    door d = suspend(server, 1);
    door other = suspend(server, 3);
    native_create(server, 2);
    native_refused(server, "INVALID_WAITPOINT_FOR_EXECUTION ", "FF.SIGNAL", native_id(2), d.id,
                   "go", "TOKEN", d.token);
    native_refused(server, "INVALID_WAITPOINT_FOR_EXECUTION ", "FF.SIGNAL", native_id(3), d.id,
                   "go", "TOKEN", d.token);
    held h = native_claim_next(server);
    redisReply *pending = server_call(server, "FF.WAITPOINT", "CREATE", FENCE(h));
    native_refused(server, "INVALID_WAITPOINT_FOR_EXECUTION ", "FF.SIGNAL", native_id(1),
                   map_text(pending, "waitpoint_id"), "go", "TOKEN", map_text(pending, "token"));
    redisReply *reply =
        server_call(server, "FF.SIGNAL", native_id(3), other.id, "go", "TOKEN", other.token);
    cr_assert_str_eq(map_text(reply, "effect"), "resume_condition_satisfied");
}

Test(native_suspension, signal_once) {
    test_server *server = native_start();
    held h = native_claim(server, 1);
    redisReply *reply = server_call(server, "FF.SUSPEND", FENCE(h), "REASON", "x", "CONDITION",
                                    "{\"required_signal_names\":[\"go\",\"go\"],"
                                    "\"signal_match_mode\":\"all\"}");
    door d = suspended_on(reply, 0);
    redisReply *first = server_call(server, "FF.SIGNAL", native_id(1), d.id, "go", "TOKEN", d.token,
                                    "IDEMPOTENT", "s1");
    cr_assert_str_eq(map_text(first, "effect"), "appended_to_waitpoint");
    redisReply *second = server_call(server, "FF.SIGNAL", native_id(1), d.id, "go", "TOKEN",
                                     d.token, "IDEMPOTENT", "s1");
    cr_assert_str_eq(map_text(second, "status"), "DUPLICATE");
    cr_assert_str_eq(map_text(second, "signal_id"), map_text(first, "signal_id"));
    cr_assert(map_is_null(second, "effect"));
}

Test(native_suspension, a_pending_waitpoint_keeps_signals) {
    test_server *server = native_start();
    held h = native_claim(server, 1);
    redisReply *reply =
        server_call(server, "FF.WAITPOINT", "CREATE", FENCE(h), "KEY", "approve", "TTL", "1000");
    door d = door_of(reply);
    cr_assert_str_eq(d.key, "approve");
    cr_assert_eq(map_integer(reply, "expires_at"), FROZEN_START_MS + 1000);
    reply = server_call(server, "FF.SIGNAL", native_id(1), d.id, "go", "TOKEN", d.token);
    cr_assert_str_eq(map_text(reply, "effect"), "buffered_for_pending_waitpoint");
    reply = server_call(server, "FF.SUSPEND", FENCE(h), SUSPEND, "USE_PENDING_WAITPOINT", d.id);
    cr_assert_str_eq(map_text(reply, "status"), "ALREADY_SATISFIED");
    cr_assert_str_eq(map_text(reply, "state"), "active");
    cr_assert_str_eq(suspended_on(reply, 0).id, d.id);
    condition_is(server, d, "1");
    server_do(server, "FF.RENEW", FENCE(h));

    d = door_of(server_call(server, "FF.WAITPOINT", "CREATE", FENCE(h)));
    cr_assert_str_eq(d.key, spell("wpk:%s", d.id));
    reply = server_call(server, "FF.SUSPEND", FENCE(h), SUSPEND, "USE_PENDING_WAITPOINT", d.id);
    cr_assert_str_eq(map_text(reply, "status"), "OK");
    cr_assert_str_eq(map_text(reply, "state"), "suspended");
    reply = server_call(server, "FF.SIGNAL", native_id(1), d.id, "go", "TOKEN", d.token);
    cr_assert_str_eq(map_text(reply, "effect"), "resume_condition_satisfied");
}

Test(native_suspension, pending_waitpoints_that_cannot_be_used) {
    test_server *server = native_start();
    held h = native_claim(server, 1);
    door d = door_of(server_call(server, "FF.WAITPOINT", "CREATE", FENCE(h), "TTL", "1000"));
    server_set_time(server, FROZEN_START_MS + 1000);
    native_refused(server, "PENDING_WAITPOINT_EXPIRED ", "FF.SUSPEND", FENCE(h), SUSPEND,
                   "USE_PENDING_WAITPOINT", d.id);
    held other = native_claim(server, 2);
    native_refused(server, "INVALID_WAITPOINT_FOR_EXECUTION ", "FF.SUSPEND", FENCE(other), SUSPEND,
                   "USE_PENDING_WAITPOINT", d.id);
    server_do(server, "FF.WAITPOINT", "CLOSE", h.id, d.id);
    native_refused(server, "WAITPOINT_NOT_PENDING ", "FF.SUSPEND", FENCE(h), SUSPEND,
                   "USE_PENDING_WAITPOINT", d.id);
    native_refused(server, "TARGET_NOT_SIGNALABLE ", "FF.SIGNAL", h.id, d.id, "go", "TOKEN",
                   d.token);
}

Test(native_suspension, waitpoints) {
    test_server *server = native_start();
    door d = suspend(server, 1);
    redisReply *list = server_call(server, "FF.WAITPOINT", "LIST", native_id(1));
    cr_assert_eq(list->elements, 1);
    redisReply *one = list->element[0];
    cr_assert_str_eq(map_text(one, "waitpoint_id"), d.id);
    cr_assert_str_eq(map_text(one, "state"), "active");
    cr_assert_eq(map_integer(one, "created_at"), FROZEN_START_MS);
    cr_assert_eq(map_integer(one, "signal_count"), 0);
    cr_assert(map_is_null(one, "closed_at"));
    cr_assert(map_value(one, "token") == NULL);
    redisReply *token = server_call(server, "FF.WAITPOINT", "TOKEN", native_id(1), d.id);
    cr_assert_str_eq(map_text(token, "token"), d.token);

    native_refused(server, "NOT_FOUND no such execution", "FF.WAITPOINT", "LIST", native_id(9));
    native_refused(server, "NOT_FOUND no such waitpoint", "FF.WAITPOINT", "TOKEN", native_id(1),
                   "nowhere");
    native_create(server, 2);
    native_refused(server, "INVALID_WAITPOINT_FOR_EXECUTION ", "FF.WAITPOINT", "TOKEN",
                   native_id(2), d.id);
    native_refused(server, "INVALID_WAITPOINT_FOR_EXECUTION ", "FF.WAITPOINT", "CLOSE",
                   native_id(2), d.id);
    native_refused(server, "NOT_FOUND no such waitpoint", "FF.WAITPOINT", "CLOSE", native_id(1),
                   "nowhere");
    native_refused(server, "ERR ", "FF.WAITPOINT", "OPEN", native_id(1));
    native_refused(server, "ERR wrong number of arguments", "FF.WAITPOINT");
    server_do(server, "HSET", spell("ff:wp:" FP ":%s", d.id), "state", "odd");
    native_refused(server, "WAITPOINT_NOT_OPEN ", "FF.WAITPOINT", "CLOSE", native_id(1), d.id);
}

/* The wire function leaves the condition open, so that the token can end the next suspension. */
Test(native_suspension, closing_closes_the_condition) {
    test_server *server = native_start();
    door d = suspend(server, 1);
    redisReply *reply = server_call(server, "FF.WAITPOINT", "CLOSE", native_id(1), d.id, "REASON",
                                    "changed my mind");
    cr_assert_str_eq(map_text(reply, "outcome"), "closed");
    state_is(server, d, "closed");
    condition_is(server, d, "1");
    cr_assert_str_eq(server_text(server, "HGET", spell("ff:wp:" FP ":%s", d.id), "close_reason"),
                     "changed my mind");
    native_refused(server, "WAITPOINT_CLOSED ", "FF.SIGNAL", native_id(1), d.id, "go", "TOKEN",
                   d.token);
    reply = server_call(server, "FF.WAITPOINT", "CLOSE", native_id(1), d.id);
    cr_assert_str_eq(map_text(reply, "outcome"), "already_closed");
}

/* A call of the wire function on the current suspension of an execution of lane `default`. */
static void resume_by_wire(test_server *server, int number, door d) {
    server_do(server, "FF.CALL", "ff_resume_execution", "8", native_key(number, "core"),
              native_key(number, "suspension:current"), spell("ff:wp:" FP ":%s", d.id),
              spell("ff:wp:" FP ":%s:signals", d.id), native_index("suspension_timeout"),
              native_lane("eligible"), native_lane("delayed"), native_lane("suspended"),
              native_id(number), "operator", "0");
}

Test(native_suspension, resume) {
    test_server *server = native_start();
    native_refused(server, "NOT_FOUND ", "FF.RESUME", native_id(1));
    door old = suspend(server, 1);
    redisReply *reply = server_call(server, "FF.RESUME", native_id(1));
    cr_assert_str_eq(map_text(reply, "state"), "waiting");
    cr_assert(map_value(reply, "delay_until") == NULL);
    state_is(server, old, "closed");
    condition_is(server, old, "1");
    native_refused(server, "EXECUTION_NOT_SUSPENDED ", "FF.RESUME", native_id(1));
    native_refused(server, "ERR DELAY must be an integer", "FF.RESUME", native_id(1), "DELAY",
                   "-1");

    /* The next suspension: the old token is of no use. */
    held h = native_claim_next(server);
    server_do(server, "FF.SUSPEND", FENCE(h), SUSPEND);
    native_refused(server, "WAITPOINT_CLOSED ", "FF.SIGNAL", native_id(1), old.id, "go", "TOKEN",
                   old.token);
}

/* What a wire function has left open does not fool a native signal either. */
Test(native_suspension, an_old_token_of_a_wire_resume) {
    test_server *server = native_start();
    door old = suspend(server, 1);
    resume_by_wire(server, 1, old);
    condition_is(server, old, "0");
    held h = native_claim_next(server);
    redisReply *reply = server_call(server, "FF.SUSPEND", FENCE(h), SUSPEND);
    cr_assert_str_eq(map_text(reply, "state"), "suspended");
    native_refused(server, "WAITPOINT_CLOSED ", "FF.SIGNAL", native_id(1), old.id, "go", "TOKEN",
                   old.token);
    native_field(server, 1, "public_state", "suspended");
}

/* A resume with a delay is due when it says, and is promoted then. */
Test(native_suspension, resume_with_a_delay) {
    test_server *server = native_start();
    suspend(server, 1);
    redisReply *reply = server_call(server, "FF.RESUME", native_id(1), "DELAY", "500");
    cr_assert_str_eq(map_text(reply, "state"), "delayed");
    cr_assert_eq(map_integer(reply, "delay_until"), FROZEN_START_MS + 500);
    native_field(server, 1, "delay_until", "1767225600500");
    door d = suspend(server, 2);
    reply = server_call(server, "FF.SIGNAL", native_id(2), d.id, "go", "TOKEN", d.token, "DELAY",
                        "500");
    cr_assert_str_eq(map_text(reply, "state"), "delayed");
    native_field(server, 2, "delay_until", "1767225600500");
    server_set_time(server, FROZEN_START_MS + 500);
    redisReply *promoted =
        server_call(server, "FF.CALL", "ff_promote_delayed", "3", native_key(1, "core"),
                    native_lane("delayed"), native_lane("eligible"), native_id(1), "1767225600500");
    cr_assert_str_eq(promoted->element[2]->str, "promoted");
}

#define TREE(first, second) \
    "{\"composite\":true,\"v\":1,\"tree\":{\"kind\":\"Count\",\"count_kind\":\"DistinctWaitpoints\"," \
    "\"n\":1,\"path\":\"\",\"matcher\":null,\"waitpoints\":[\"" first "\",\"" second "\"]}}"

/* Whatever ends a suspension closes all its waitpoints. */
Test(native_suspension, further_waitpoints) {
    test_server *server = native_start();
    held h = native_claim(server, 1);
    redisReply *reply =
        server_call(server, "FF.SUSPEND", FENCE(h), "REASON", "x", "CONDITION", TREE("a", "b"),
                    "WAITPOINT_KEY", "a", "NUM_EXTRA_WAITPOINTS", "1", "b");
    door first = suspended_on(reply, 0);
    door second = suspended_on(reply, 1);
    cr_assert_str_eq(second.key, "b");
    cr_assert_eq(server_call(server, "FF.WAITPOINT", "LIST", native_id(1))->elements, 2);
    reply = server_call(server, "FF.SIGNAL", native_id(1), second.id, "x", "TOKEN", second.token);
    cr_assert_str_eq(map_text(reply, "effect"), "resume_condition_satisfied");
    condition_is(server, first, "1");
    state_is(server, first, "closed");

    h = native_claim_next(server);
    reply = server_call(server, "FF.SUSPEND", FENCE(h), SUSPEND, "NUM_EXTRA_WAITPOINTS", "1", "b");
    first = suspended_on(reply, 0);
    second = suspended_on(reply, 1);
    server_do(server, "FF.SIGNAL", native_id(1), first.id, "go", "TOKEN", first.token);
    state_is(server, second, "closed");
    condition_is(server, second, "1");

    h = native_claim_next(server);
    reply = server_call(server, "FF.SUSPEND", FENCE(h), SUSPEND, "NUM_EXTRA_WAITPOINTS", "1", "b");
    first = suspended_on(reply, 0);
    second = suspended_on(reply, 1);
    server_do(server, "FF.WAITPOINT", "CLOSE", native_id(1), second.id);
    state_is(server, first, "closed");
    condition_is(server, first, "1");
    condition_is(server, second, "1");
}

/* Cancelling and expiring close the real waitpoint, since its key is derived. */
Test(native_suspension, the_end_closes_the_waitpoint) {
    test_server *server = native_start();
    door d = suspend(server, 1);
    server_do(server, "FF.CANCEL", native_id(1), "why");
    state_is(server, d, "closed");
    condition_is(server, d, "1");
    d = suspend(server, 2);
    server_do(server, "FF.EXPIRE", native_id(2), "late");
    state_is(server, d, "closed");
    condition_is(server, d, "1");
}

Test(native_suspension, maps_on_resp3) {
    test_server *server = native_start();
    held h = native_claim(server, 1);
    resp3_connection *connection = resp3_connect(server);
    resp3_value *reply = resp3_call(connection, "FF.SUSPEND", FENCE(h), SUSPEND);
    cr_assert_eq(reply->kind, '%');
    const resp3_value *doors = resp3_member(reply, "waitpoints");
    cr_assert_eq(doors->kind, '*');
    cr_assert_eq(doors->items[0].kind, '%');
    reply = resp3_call(connection, "FF.WAITPOINT", "LIST", native_id(1));
    cr_assert_eq(reply->items[0].kind, '%');
    cr_assert_eq(resp3_member(&reply->items[0], "closed_at")->kind, '_');
    reply = resp3_call(connection, "FF.RESUME", native_id(1));
    cr_assert_eq(reply->kind, '%');
}
