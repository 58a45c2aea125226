/* Whole lives, told by native commands alone. */
#include "native.h"

#include <criterion/criterion.h>
#include <string.h>

#define FLOW_ID "f1000001-0000-4000-8000-000000002039"
#define FLOW_REF FP ":" FLOW_ID
#define SUSPEND \
    "REASON", "waiting_for_approval", "CONDITION", "{\"required_signal_names\":[\"go\"]}"

static void refused_without_trace_but(test_server *server, const char *prefix,
                                      command_words words) {
    redisReply *reply = server_call_words(server, words);
    cr_assert(reply->type == REDIS_REPLY_ERROR && strncmp(reply->str, prefix, strlen(prefix)) == 0,
              "%s", reply->str);
}

Test(native_stories, retried_until_exhausted) {
    test_server *server = native_start();
    server_do(server, "FF.CREATE", native_id(1), "default", "job", "POLICY",
              "{\"retry_policy\":{\"max_retries\":2,\"backoff\":{\"type\":\"exponential\","
              "\"initial_delay_ms\":100,\"multiplier\":2}}}");
    long long now = FROZEN_START_MS;
    static const int delays[] = {100, 200};
    for (int attempt = 0; attempt < 2; attempt++) {
        held h = native_claim_next(server);
        redisReply *reply = server_call(server, "FF.FAIL", FENCE(h), "no route", "CATEGORY", "net");
        cr_assert_str_eq(map_text(reply, "state"), "delayed");
        now += delays[attempt];
        cr_assert_eq(map_integer(reply, "retry_at"), now);
        server_set_time(server, now - 1);
        cr_assert_eq(server_call(server, "FF.CLAIM", "default", "w", "wi")->elements, 0);
        server_set_time(server, now);
        server_do(server, "FF.SCANNER", "RUN", "delayed_promoter");
    }
    redisReply *claimed = server_call(server, "FF.CLAIM", "default", "w", "wi");
    cr_assert_eq(claimed->elements, 1);
    cr_assert_str_eq(map_text(claimed->element[0], "attempt_type"), "retry");
    cr_assert_eq(map_integer(claimed->element[0], "attempt_index"), 2);
    redisReply *reply =
        server_call(server, "FF.FAIL", native_id(1), map_text(claimed->element[0], "lease_id"),
                    spell("%lld", (long long)map_integer(claimed->element[0], "lease_epoch")),
                    map_text(claimed->element[0], "attempt_id"), "no route");
    cr_assert_eq(reply->elements, 2);
    cr_assert_str_eq(map_text(reply, "state"), "failed");
    reply = server_call(server, "FF.GET", native_id(1), "WITH", "attempts");
    cr_assert_eq(map_value(reply, "attempts")->elements, 3);
    cr_assert_eq(map_integer(reply, "retry_count"), 2);
    cr_assert_eq(server_call(server, "FF.CLAIM", "default", "w", "wi")->elements, 0);
}

Test(native_stories, a_wrong_an_old_and_the_right_token) {
    test_server *server = native_start();
    held h = native_claim(server, 1);
    redisReply *reply = server_call(server, "FF.SUSPEND", FENCE(h), SUSPEND);
    redisReply *old = map_value(reply, "waitpoints")->element[0];
    refused_without_trace_but(server, "INVALID_TOKEN ",
                              WORDS("FF.SIGNAL", h.id, map_text(old, "waitpoint_id"), "go", "TOKEN",
                                    "k1:0000000000000000000000000000000000000000"));
    native_field(server, 1, "public_state", "suspended");
    server_do(server, "FF.RESUME", h.id);
    h = native_claim_next(server);
    reply = server_call(server, "FF.SUSPEND", FENCE(h), SUSPEND);
    redisReply *door = map_value(reply, "waitpoints")->element[0];
    native_refused(server, "WAITPOINT_CLOSED ", "FF.SIGNAL", h.id, map_text(old, "waitpoint_id"),
                   "go", "TOKEN", map_text(old, "token"));
    refused_without_trace_but(server, "INVALID_TOKEN ",
                              WORDS("FF.SIGNAL", h.id, map_text(door, "waitpoint_id"), "go",
                                    "TOKEN", map_text(old, "token")));
    reply = server_call(server, "FF.SIGNAL", h.id, map_text(door, "waitpoint_id"), "go", "TOKEN",
                        map_text(door, "token"));
    cr_assert_str_eq(map_text(reply, "effect"), "resume_condition_satisfied");
    h = native_claim_next(server);
    server_do(server, "FF.COMPLETE", FENCE(h));
    native_field(server, 1, "public_state", "completed");
}

/* The worker dies; another takes over; whoever comes back late is refused. */
Test(native_stories, a_worker_dies) {
    test_server *server = native_start();
    server_do(server, "FF.WORKER", "REGISTER", "w", "first", "TTL", "1000");
    native_create(server, 1);
    redisReply *reply = server_call(server, "FF.CLAIM", "default", "w", "first", "LEASE", "1000");
    held dead = {native_id(1), map_text(reply->element[0], "lease_id"), "1",
                 map_text(reply->element[0], "attempt_id")};
    server_do(server, "FF.APPEND", dead.id, "0", dead.lease, dead.epoch, "log", "half");
    server_set_time(server, FROZEN_START_MS + 1000);
    reply = server_call(server, "FF.CLAIM", "default", "w", "second", "LEASE", "1000");
    cr_assert_eq(reply->elements, 1);
    cr_assert_str_eq(map_text(reply->element[0], "attempt_type"), "reclaim");
    held live = {native_id(1), map_text(reply->element[0], "lease_id"), "2",
                 map_text(reply->element[0], "attempt_id")};
    native_refused(server, "STALE_LEASE ", "FF.RENEW", FENCE(dead));
    native_refused(server, "STALE_LEASE ", "FF.COMPLETE", FENCE(dead), "RESULT", "late");
    native_refused(server, "STALE_OWNER_CANNOT_APPEND ", "FF.APPEND", dead.id, "0", dead.lease,
                   dead.epoch, "log", "other half");
    reply = server_call(server, "FF.READ", dead.id, "0");
    cr_assert_eq(map_value(reply, "entries")->elements, 1);
    cr_assert_str_eq(map_text(reply, "closed_reason"), "reclaimed");
    server_do(server, "FF.COMPLETE", FENCE(live), "RESULT", "done");
    cr_assert_str_eq(server_text(server, "GET", native_key(1, "result")), "done");
}

static void create_line(test_server *server) {
    server_do(server, "FF.FLOW", "CREATE", FLOW_REF, "order");
    server_do(server, "FF.CREATE", native_id(1), "default", "job", "FLOW", FLOW_REF);
    for (int i = 2; i <= 3; i++) {
        server_do(server, "FF.CREATE", native_id(i), "default", "job", "FLOW", FLOW_REF, "AFTER",
                  "1", native_id(i - 1));
    }
}

static void flow_is(test_server *server, const char *state) {
    server_do(server, "FF.RECONCILE", FP, "flow_summary");
    redisReply *flow = server_call(server, "FF.FLOW", "GET", FLOW_REF);
    cr_assert_str_eq(map_text(map_value(flow, "summary"), "public_flow_state"), state);
}

Test(native_stories, a_failed_flow_is_replayed) {
    test_server *server = native_start();
    create_line(server);
    held h = native_claim_next(server);
    server_do(server, "FF.FAIL", FENCE(h), "broken");
    native_field(server, 2, "public_state", "skipped");
    native_field(server, 3, "public_state", "skipped");
    for (int i = 1; i <= 3; i++) {
        redisReply *reply = server_call(server, "FF.REPLAY", native_id(i));
        cr_assert_eq(map_integer(reply, "replay_count"), 1);
        cr_assert_str_eq(map_text(reply, "state"), i == 1 ? "waiting" : "waiting_children");
    }
    for (int i = 1; i <= 3; i++) {
        h = native_claim_next(server);
        cr_assert_str_eq(h.id, native_id(i));
        server_do(server, "FF.COMPLETE", FENCE(h));
    }
    for (int i = 1; i <= 3; i++) native_field(server, i, "public_state", "completed");
    flow_is(server, "completed");
}

Test(native_stories, nothing_stays_after_the_retention) {
    test_server *server = native_start();
    server_do(server, "CONFIG", "SET", "ff.retention-ms", "60000");
    held h = native_claim(server, 1);
    server_do(server, "FF.TAG", h.id, "1", "a.b", "c");
    server_do(server, "FF.APPEND", h.id, "0", h.lease, h.epoch, "log", "x");
    redisReply *reply = server_call(server, "FF.SUSPEND", FENCE(h), SUSPEND);
    redisReply *door = map_value(reply, "waitpoints")->element[0];
    server_do(server, "FF.SIGNAL", h.id, map_text(door, "waitpoint_id"), "go", "TOKEN",
              map_text(door, "token"), "PAYLOAD", "p");
    h = native_claim_next(server);
    server_do(server, "FF.COMPLETE", FENCE(h), "RESULT", "r");
    server_set_time(server, FROZEN_START_MS + 59999);
    server_do(server, "FF.RECONCILE", FP, "retention");
    cr_assert_eq(server_call(server, "FF.GET", h.id)->type, REDIS_REPLY_ARRAY);
    server_set_time(server, FROZEN_START_MS + 60001);
    reply = server_call(server, "FF.RECONCILE", FP, "retention");
    cr_assert_eq(map_integer(reply, "processed"), 1);
    native_refused(server, "NOT_FOUND ", "FF.GET", h.id);
    cr_assert_eq(map_value(server_call(server, "FF.LIST"), "executions")->elements, 0);
    redisReply *left = server_call(server, "KEYS", spell("*%s*", native_id(1) + strlen(FP)));
    cr_assert_eq(left->elements, 0, "%s", left->elements ? left->element[0]->str : "");
}
