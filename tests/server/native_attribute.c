/* FF.PRIORITY, FF.TAG, FF.REPLAY, FF.BLOCK, FF.UNBLOCK */
#include "native.h"

#include <criterion/criterion.h>
#include <string.h>

#define FLOW_ID "f1000001-0000-4000-8000-000000002039"
#define FLOW_REF FP ":" FLOW_ID

Test(native_attribute, priority) {
    test_server *server = native_start();
    native_create(server, 1);
    redisReply *reply = server_call(server, "FF.PRIORITY", native_id(1), "70");
    cr_assert_eq(map_integer(reply, "priority"), 70);
    cr_assert_eq(map_integer(reply, "previous_priority"), 0);
    native_field(server, 1, "priority", "70");
    cr_assert_str_eq(server_text(server, "ZSCORE", native_lane("eligible"), native_id(1)),
                     "-68232774400000");
    native_refused(server, "ERR priority must be an integer between 0 and 9000, got: 9001",
                   "FF.PRIORITY", native_id(1), "9001");
    native_refused(server, "ERR priority must be", "FF.PRIORITY", native_id(1), "high");
    native_refused(server, "NOT_FOUND ", "FF.PRIORITY", native_id(9), "1");
    held h = native_claim_next(server);
    native_refused(server, "EXECUTION_NOT_ELIGIBLE ", "FF.PRIORITY", h.id, "1");
}

Test(native_attribute, tag) {
    test_server *server = native_start();
    native_create(server, 1);
    redisReply *reply =
        server_call(server, "FF.TAG", native_id(1), "2", "team.name", "x", "a.b", "");
    cr_assert_eq(map_integer(reply, "tags"), 2);
    cr_assert_str_eq(server_text(server, "HGET", native_key(1, "tags"), "team.name"), "x");
    native_refused(server, "INVALID_TAG_KEY ", "FF.TAG", native_id(1), "1", "Team", "x");
    native_refused(server, "NOT_FOUND ", "FF.TAG", native_id(9), "1", "a.b", "x");
    native_refused(server, "ERR 2 tags need 4 values, but 2 follow", "FF.TAG", native_id(1), "2",
                   "a.b", "x");
    native_refused(server, "ERR 1 tags need 2 values, but 3 follow", "FF.TAG", native_id(1), "1",
                   "a.b", "x", "c.d");
    native_refused(server, "ERR the count of tags", "FF.TAG", native_id(1), "0", "a.b", "x");
    native_refused(server, "ERR the count of tags", "FF.TAG", native_id(1), "x", "a.b", "x");
}

Test(native_attribute, replay) {
    test_server *server = native_start();
    held h = native_claim(server, 1);
    native_refused(server, "EXECUTION_NOT_TERMINAL ", "FF.REPLAY", h.id);
    native_refused(server, "NOT_FOUND ", "FF.REPLAY", native_id(9));
    server_do(server, "FF.FAIL", FENCE(h), "broken");
    redisReply *reply = server_call(server, "FF.REPLAY", h.id);
    cr_assert_str_eq(map_text(reply, "state"), "waiting");
    cr_assert_eq(map_integer(reply, "waits_for"), 0);
    cr_assert_eq(map_integer(reply, "replay_count"), 1);
    h = native_claim_next(server);
    server_do(server, "FF.COMPLETE", FENCE(h));
    server_do(server, "SET", native_key(1, "policy"), "{\"max_replay_count\":1}");
    native_refused(server, "MAX_REPLAYS_EXHAUSTED ", "FF.REPLAY", h.id);
}

/* 1 and 2 come before 3, which asks for as many of them as `policy` says. */
static void make_flow(test_server *server, const char *policy, const char *k) {
    server_do(server, "FF.FLOW", "CREATE", FLOW_REF, "order");
    for (int i = 1; i <= 3; i++) {
        server_do(server, "FF.CREATE", native_id(i), i < 3 ? "default" : "last", "job", "FLOW",
                  FLOW_REF);
    }
    for (int i = 1; i <= 2; i++) {
        redisReply *reply = k ? server_call(server, "FF.FLOW", "EDGE", FLOW_REF, native_id(i),
                                            native_id(3), "POLICY", policy, k)
                              : server_call(server, "FF.FLOW", "EDGE", FLOW_REF, native_id(i),
                                            native_id(3), "POLICY", policy);
        cr_assert_neq(reply->type, REDIS_REPLY_ERROR, "%s", reply->str);
    }
}

static void group_is(test_server *server, const char *field, const char *wanted) {
    const char *key = spell("ff:flow:" FP ":" FLOW_ID ":edgegroup:%s", native_id(3));
    cr_assert_str_eq(server_text(server, "HGET", key, field), wanted, "%s", field);
}

static void end_next(test_server *server, const char *how) {
    held h = native_claim_next(server);
    if (strcmp(how, "complete") == 0) {
        server_do(server, "FF.COMPLETE", FENCE(h));
    } else {
        server_do(server, "FF.FAIL", FENCE(h), "broken");
    }
}

/* The wire function leaves the group impossible, and the member waits for ever. */
Test(native_attribute, replay_of_a_skipped_member) {
    test_server *server = native_start();
    make_flow(server, "all_of", NULL);
    end_next(server, "complete");
    end_next(server, "fail");
    native_field(server, 3, "public_state", "skipped");
    group_is(server, "group_state", "impossible");

    redisReply *reply = server_call(server, "FF.REPLAY", native_id(3));
    cr_assert_str_eq(map_text(reply, "state"), "waiting_children");
    cr_assert_eq(map_integer(reply, "waits_for"), 1);
    group_is(server, "group_state", "pending");
    group_is(server, "succeeded", "1");
    group_is(server, "failed", "0");
    server_do(server, "FF.REPLAY", native_id(2));
    end_next(server, "complete");
    native_field(server, 3, "public_state", "waiting");
    group_is(server, "group_state", "satisfied");
    group_is(server, "succeeded", "2");
}

/* An upstream that was replayed first is over when the member comes back: it need not be waited
 * for. */
Test(native_attribute, replay_after_the_upstream) {
    test_server *server = native_start();
    make_flow(server, "all_of", NULL);
    end_next(server, "complete");
    end_next(server, "fail");
    server_do(server, "FF.REPLAY", native_id(2));
    end_next(server, "complete");
    native_field(server, 3, "public_state", "skipped");
    redisReply *reply = server_call(server, "FF.REPLAY", native_id(3));
    cr_assert_str_eq(map_text(reply, "state"), "waiting");
    cr_assert_eq(map_integer(reply, "waits_for"), 0);
    cr_assert(native_in(server, native_index("lane:last:eligible"), 3));
    group_is(server, "group_state", "satisfied");
}

/* An upstream that comes back is no longer counted as failed where it is still waited for. */
Test(native_attribute, replay_of_an_upstream) {
    test_server *server = native_start();
    make_flow(server, "any_of", NULL);
    end_next(server, "fail");
    group_is(server, "failed", "1");
    server_do(server, "FF.REPLAY", native_id(1));
    group_is(server, "failed", "0");
    cr_assert_eq(server_integer(server, "SCARD", native_key(3, "deps:unresolved")), 2);
    end_next(server, "fail");
    native_field(server, 3, "public_state", "waiting_children");
    end_next(server, "complete");
    native_field(server, 3, "public_state", "waiting");
}

Test(native_attribute, replay_of_a_quorum) {
    test_server *server = native_start();
    make_flow(server, "quorum", "2");
    end_next(server, "fail");
    native_field(server, 3, "public_state", "skipped");
    end_next(server, "complete");
    server_do(server, "FF.REPLAY", native_id(1));
    redisReply *reply = server_call(server, "FF.REPLAY", native_id(3));
    cr_assert_eq(map_integer(reply, "waits_for"), 1);
    end_next(server, "complete");
    native_field(server, 3, "public_state", "waiting");
}

Test(native_attribute, block_and_unblock) {
    static const char *const reasons[][3] = {
        {"budget", "blocked_by_budget", "blocked:budget"},
        {"quota", "blocked_by_quota", "blocked:quota"},
        {"route", "blocked_by_route", "blocked:route"},
        {"OPERATOR", "blocked_by_operator", "blocked:operator"},
    };
    test_server *server = native_start();
    server_do(server, "FF.CREATE", native_id(1), "default", "job", "DELAY", "1000");
    for (size_t i = 0; i < 4; i++) {
        redisReply *reply =
            server_call(server, "FF.BLOCK", native_id(1), reasons[i][0], "for a while");
        cr_assert_str_eq(map_text(reply, "state"), "rate_limited");
        native_field(server, 1, "eligibility_state", reasons[i][1]);
        native_field(server, 1, "blocking_detail", "for a while");
        for (size_t j = 0; j < 4; j++) {
            cr_assert_eq(native_in(server, native_lane(reasons[j][2]), 1), i == j);
        }
        cr_assert(!native_in(server, native_lane("delayed"), 1));
    }
    native_refused(server, "EXECUTION_NOT_ELIGIBLE ", "FF.UNBLOCK", native_id(1), "REASON",
                   "budget");
    redisReply *reply = server_call(server, "FF.UNBLOCK", native_id(1), "reason", "operator");
    cr_assert_str_eq(map_text(reply, "state"), "waiting");
    cr_assert(native_in(server, native_lane("eligible"), 1));
    cr_assert(!native_in(server, native_lane("blocked:operator"), 1));
    server_do(server, "FF.BLOCK", native_id(1), "route", "");
    server_do(server, "FF.UNBLOCK", native_id(1));
    native_claim_next(server);
}

Test(native_attribute, block_refusals) {
    test_server *server = native_start();
    held h = native_claim(server, 1);
    native_refused(server, "ERR the reason must be one of budget, quota, route, operator, got: fun",
                   "FF.BLOCK", h.id, "fun", "x");
    native_refused(
        server, "EXECUTION_NOT_ELIGIBLE the execution is not in a state that allows this: active",
        "FF.BLOCK", h.id, "budget", "x");
    native_refused(server, "NOT_FOUND ", "FF.BLOCK", native_id(9), "budget", "x");
    native_refused(server, "NOT_FOUND ", "FF.UNBLOCK", native_id(9));
    native_refused(server, "EXECUTION_NOT_ELIGIBLE ", "FF.UNBLOCK", h.id);
    native_refused(server, "ERR unknown option 'WHY'", "FF.UNBLOCK", h.id, "WHY", "x");
    native_refused(server, "ERR 'x' is no partition", "FF.UNBLOCK", "x");
    native_refused(server, "ERR '{fp:256}' is no partition", "FF.UNBLOCK", "{fp:256}");
    native_refused(server, "ERR REASON must be one of budget, quota, route, got: operator",
                   "FF.UNBLOCK", "*", "REASON", "operator");
    server_do(server, "FF.COMPLETE", FENCE(h));
    native_refused(server, "EXECUTION_NOT_ACTIVE ", "FF.BLOCK", h.id, "budget", "x");
    /* What waits for others is not to be let go by lifting a block. */
    server_do(server, "FF.FLOW", "CREATE", FLOW_REF, "order");
    native_create(server, 2);
    server_do(server, "FF.FLOW", "ADD", FLOW_REF, native_id(2));
    server_do(server, "FF.CREATE", native_id(3), "default", "job", "FLOW", FLOW_REF, "AFTER", "1",
              native_id(2));
    native_refused(server, "EXECUTION_NOT_ELIGIBLE ", "FF.BLOCK", native_id(3), "operator", "x");
}

/* The other meaning of FF.UNBLOCK. */
Test(native_attribute, unblock_pass) {
    test_server *server = native_start();
    native_create(server, 1);
    native_create(server, 2);
    server_do(server, "FF.BLOCK", native_id(1), "budget", "x");
    server_do(server, "FF.BLOCK", native_id(2), "operator", "x");
    redisReply *reply = server_call(server, "FF.UNBLOCK", FP, "REASON", "quota");
    cr_assert_eq(map_integer(reply, "scanned"), 0);
    reply = server_call(server, "FF.UNBLOCK", FP, "LANE", "other");
    cr_assert_eq(map_integer(reply, "scanned"), 0);
    reply = server_call(server, "FF.UNBLOCK", "*", "REASON", "budget", "LIMIT", "10");
    cr_assert_eq(map_integer(reply, "scanned"), 1);
    cr_assert_eq(map_integer(reply, "processed"), 1);
    cr_assert_eq(map_integer(reply, "errors"), 0);
    native_field(server, 1, "public_state", "waiting");
    native_field(server, 2, "public_state", "rate_limited");
}
