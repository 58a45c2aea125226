/* Corners of the wire functions: keys that a call must not touch, the order of members, and the choice among
 * many matchers and waitpoints. */
#include "harness.h"
#include "wire.h"

#include <criterion/criterion.h>
#include <string.h>

#define WAITPOINT_KEY(id, suffix) "ff:wp:" TAG ":" id suffix
#define SUSPENSION EXEC_KEY("suspension:current")
#define KEYSTORE "ff:sec:" TAG ":waitpoint_hmac"

static test_server *start(void) { return server_start(&(server_options){.frozen_clock = true}); }

static const char *reply_text(const redisReply *reply, size_t position) {
    cr_assert_eq(reply->type, REDIS_REPLY_ARRAY, "%s", reply->str ? reply->str : "no array");
    cr_assert_gt(reply->elements, position);
    return reply->element[position]->str;
}

/* Positive entries are given back; others leave the usage alone, whatever it is. */
Test(wire_corners, release_without_spend_leaves_usage_alone) {
    test_server *server = start();
    server_do(server, "SET", "{b:1}:usage", "of another type");
    server_do(server, "HSET", "{b:1}:ledger", "tokens", "-3", "calls", "none");
    redisReply *reply = server_call(server, "FF.CALL", "ff_release_budget", "3", "{b:1}:usage",
                                    "{b:1}:ledger", "{b:1}:index", "budget", EID);
    cr_assert_str_eq(reply_text(reply, 2), "released");
    cr_assert_eq(server_integer(server, "EXISTS", "{b:1}:ledger"), 0);

    server_do(server, "HSET", "{b:1}:ledger", "tokens", "3");
    server_expect_error(server, "WRONGTYPE", "FF.CALL", "ff_release_budget", "3", "{b:1}:usage",
                        "{b:1}:ledger", "{b:1}:index", "budget", EID);
}

/* Only an edge that is reopened goes into the set of unresolved ones. */
Test(wire_corners, replay_without_reopened_edges_leaves_unresolved_alone) {
    test_server *server = start();
    server_do(server, "HSET", EXEC_KEY("core"), "lifecycle_phase", "terminal", "terminal_outcome",
              "skipped", "flow_id", "flow");
    server_do(server, "SET", EXEC_KEY("deps:unresolved"), "of another type");
    redisReply *reply =
        server_call(server, "FF.CALL", "ff_replay_execution", "7", EXEC_KEY("core"),
                    INDEX_KEY("lane:l:terminal"), INDEX_KEY("lane:l:eligible"),
                    EXEC_KEY("lease:history"), INDEX_KEY("lane:l:blocked:dependencies"),
                    EXEC_KEY("deps:meta"), EXEC_KEY("deps:unresolved"), EID, "0");
    cr_assert_str_eq(reply_text(reply, 2), "0");
    cr_assert_str_eq(server_text(server, "GET", EXEC_KEY("deps:unresolved")), "of another type");
}

/* Suspends on waitpoint w1 with key k1, and on w2 with key k2; the token of w1. */
static const char *suspend(test_server *server, const char *condition, const char *pending) {
    wire_write_lease(server);
    server_do(server, "HSET", KEYSTORE, "current_kid", "kid", "secret:kid", "00ff");
    redisReply *reply = server_call(
        server, "FF.CALL", "ff_suspend_execution", "21", EXEC_KEY("core"), EXEC_KEY("attempt"),
        EXEC_KEY("lease:current"), EXEC_KEY("lease:history"), INDEX_KEY("lease_expiry"),
        INDEX_KEY("worker:w:leases"), SUSPENSION, WAITPOINT_KEY("w1", ""),
        WAITPOINT_KEY("w1", ":signals"), INDEX_KEY("suspension_timeout"),
        INDEX_KEY("pending_waitpoint_expiry"), INDEX_KEY("lane:l:active"),
        INDEX_KEY("lane:l:suspended"), EXEC_KEY("waitpoints"), WAITPOINT_KEY("w1", ":condition"),
        INDEX_KEY("attempt_timeout"), KEYSTORE, "ff:noop:" TAG, WAITPOINT_KEY("w2", ""),
        WAITPOINT_KEY("w2", ":signals"), WAITPOINT_KEY("w2", ":condition"), EID, "0", "attempt-1",
        "lease-1", "1", "suspension", "w1", "k1", "waiting_for_signal", "worker", "", condition,
        "{}", "", pending, "fail", "1000", "", "0", *pending ? "0" : "1", "w2", "k2");
    return reply_text(reply, 5);
}

static const char *deliver(test_server *server, const char *signal_id, const char *token) {
    redisReply *reply = server_call(
        server, "FF.CALL", "ff_deliver_signal", "15", EXEC_KEY("core"),
        WAITPOINT_KEY("w1", ":condition"), WAITPOINT_KEY("w1", ":signals"), EXEC_KEY("signals"),
        "ff:signal:" TAG ":s", "ff:signal:" TAG ":s:payload", "ff:noop:" TAG,
        WAITPOINT_KEY("w1", ""), SUSPENSION, INDEX_KEY("lane:l:eligible"),
        INDEX_KEY("lane:l:suspended"), INDEX_KEY("lane:l:delayed"), INDEX_KEY("suspension_timeout"),
        KEYSTORE, "ff:part:" TAG ":signal_delivery", signal_id, EID, "w1", "go", "c", "t", "i", "",
        "json", "", "", "waitpoint", "", "0", "0", "1000", "0", token);
    return reply_text(reply, 3);
}

static const char count_of_three[] =
    "{\"composite\":true,\"tree\":{\"kind\":\"Count\",\"count_kind\":\"DistinctSignals\",\"n\":3,"
    "\"waitpoints\":[\"k2\",\"k1\",\"k1\"],\"path\":\"\"}}";

static const char *satisfiers_of(const char *const ids[3]) {
    test_server *server = start();
    const char *token = suspend(server, count_of_three, "");
    cr_assert_str_eq(deliver(server, ids[0], token), "appended_to_waitpoint");
    cr_assert_str_eq(deliver(server, ids[1], token), "appended_to_waitpoint");
    cr_assert_str_eq(deliver(server, ids[2], token), "resume_condition_satisfied");
    return server_text(server, "HGET", SUSPENSION, "all_satisfier_signals");
}

/* As SMEMBERS would give them after the last one was added: whole numbers by value, others as they came. */
Test(wire_corners, satisfiers_come_in_the_order_of_the_set) {
    cr_assert_str_eq(satisfiers_of((const char *const[]){"10", "9", "-1"}),
                     "[\"-1\",\"9\",\"10\"]");
    cr_assert_str_eq(satisfiers_of((const char *const[]){"b", "10", "9"}), "[\"b\",\"10\",\"9\"]");
}

Test(wire_corners, member_map_names_each_waitpoint_once) {
    test_server *server = start();
    suspend(server,
            "{\"composite\":true,\"tree\":{\"kind\":\"AllOf\",\"path\":\"\",\"members\":["
            "{\"kind\":\"Single\",\"waitpoint_key\":\"k1\",\"path\":\"a\"},"
            "{\"kind\":\"Count\",\"waitpoints\":[\"k2\",\"k1\",\"k2\",\"k3\",5],\"path\":\"b\"},"
            "{\"kind\":\"NeverBySignal\",\"waitpoint_key\":\"k1\",\"path\":\"c\"},"
            "{\"kind\":\"AllOf\",\"path\":\"d\",\"members\":["
            "{\"kind\":\"Single\",\"waitpoint_key\":\"k2\",\"path\":\"e\"}]}]}}",
            "");
    const char *map = EXEC_KEY("suspension:current:member_map");
    cr_assert_eq(server_integer(server, "HLEN", map), 4);
    cr_assert_str_eq(server_text(server, "HGET", map, "wp:k1:a"), "a");
    cr_assert_str_eq(server_text(server, "HGET", map, "wp:k1:b"), "b");
    cr_assert_str_eq(server_text(server, "HGET", map, "wp:k2:b"), "b");
    cr_assert_str_eq(server_text(server, "HGET", map, "wp:k2:e"), "e");
    cr_assert_eq(server_integer(server, "SCARD", EXEC_KEY("waitpoints")), 2);
}

static void buffer(test_server *server, const char *name, const char *id) {
    server_do(server, "XADD", WAITPOINT_KEY("w1", ":signals"), "*", "signal_name", name,
              "signal_id", id);
}

static void expect_matcher(test_server *server, const char *field, const char *signal_id) {
    cr_assert_str_eq(server_text(server, "HGET", WAITPOINT_KEY("w1", ":condition"), field),
                     signal_id, "%s", field);
}

/* Each buffered signal goes to the first matcher, in order, that is free and takes its name. */
Test(wire_corners, buffered_signals_take_matchers_in_order) {
    test_server *server = start();
    server_do(server, "HSET", WAITPOINT_KEY("w1", ""), "state", "pending", "execution_id", EID,
              "attempt_index", "0", "waitpoint_id", "w1", "waitpoint_key", "k1", "waitpoint_token",
              "kid:token");
    buffer(server, "a", "1");
    buffer(server, "7", "2");
    buffer(server, "a", "3");
    buffer(server, "a", "4");
    buffer(server, "", "5");
    suspend(server,
            "{\"required_signal_names\":[\"a\",7,\"\",\"a\",\"b\",\"\"],"
            "\"signal_match_mode\":\"all\"}",
            "1");
    expect_matcher(server, "matcher:0:signal_id", "1");
    expect_matcher(server, "matcher:1:signal_id", "");
    expect_matcher(server, "matcher:2:signal_id", "2");
    expect_matcher(server, "matcher:3:signal_id", "3");
    expect_matcher(server, "matcher:4:signal_id", "");
    expect_matcher(server, "matcher:5:signal_id", "4");
    expect_matcher(server, "satisfied_count", "4");
}
