/* FF.BUDGET and FF.QUOTA. */
#include <criterion/criterion.h>
#include <string.h>

#include "native.h"

static const char *create_budget(test_server *server) {
    redisReply *reply =
        server_call(server, "FF.BUDGET", "CREATE", "{b:3}", "HARD", "1", "tokens", "100", "SOFT",
                    "2", "tokens", "60", "calls", "5", "RESET", "1000", "SCOPE", "team", "blue");
    cr_assert_eq(reply->type, REDIS_REPLY_ARRAY, "%s", reply->str);
    cr_assert_eq(map_integer(reply, "created"), 1);
    cr_assert_eq(map_integer(reply, "next_reset_at"), FROZEN_START_MS + 1000);
    return map_text(reply, "budget");
}

/* The key of a budget or quota policy. */
static const char *key_of(const char *family, const char *reference, const char *suffix) {
    const char *close = strchr(reference, '}');
    return spell("ff:%s:%.*s:%s%s", family, (int)(close - reference + 1), reference, close + 2,
                 suffix);
}

static int64_t usage(test_server *server, const char *budget, const char *dimension) {
    redisReply *got = server_call(server, "FF.BUDGET", "GET", budget);
    return map_integer(map_value(map_value(got, "dimensions"), dimension), "usage");
}

static void expect_status(const redisReply *reply, const char *status) {
    cr_assert_str_eq(map_text(reply, "status"), status);
}

/* Spent up to the soft limit, over it, refused at the hard one, reset. */
Test(native_budget, breach_and_reset) {
    test_server *server = native_start();
    const char *budget = create_budget(server);
    expect_status(
        server_call(server, "FF.BUDGET", "SPEND", budget, native_id(1), "1", "tokens", "60"), "OK");
    redisReply *reply =
        server_call(server, "FF.BUDGET", "SPEND", budget, native_id(2), "1", "tokens", "40");
    expect_status(reply, "SOFT_BREACH");
    cr_assert_str_eq(map_text(reply, "dimension"), "tokens");
    cr_assert_eq(map_integer(reply, "usage"), 100);
    cr_assert_eq(map_integer(reply, "limit"), 60);
    reply = server_call(server, "FF.BUDGET", "SPEND", budget, native_id(2), "2", "calls", "1",
                        "tokens", "1");
    expect_status(reply, "HARD_BREACH");
    cr_assert_eq(map_integer(reply, "limit"), 100);
    cr_assert_eq(usage(server, budget, "calls"), 0, "a breach counts nothing");
    expect_status(server_call(server, "FF.BUDGET", "RELEASE", budget, native_id(1)), "released");
    expect_status(server_call(server, "FF.BUDGET", "RELEASE", budget, native_id(1)), "noop");
    cr_assert_eq(usage(server, budget, "tokens"), 40);

    server_set_time(server, FROZEN_START_MS + 300);
    reply = server_call(server, "FF.BUDGET", "RESET", budget);
    cr_assert_eq(map_integer(reply, "reset_count"), 1);
    cr_assert_eq(map_integer(reply, "next_reset_at"), FROZEN_START_MS + 1300);
    cr_assert_eq(usage(server, budget, "tokens"), 0);
    redisReply *got = server_call(server, "FF.BUDGET", "GET", budget);
    cr_assert_eq(map_integer(got, "breach_count"), 1);
    cr_assert_eq(map_integer(got, "soft_breach_count"), 1);
    cr_assert(map_is_null(got, "last_breach_at"));
    cr_assert_str_eq(map_text(got, "scope_type"), "team");
    redisReply *calls = map_value(map_value(got, "dimensions"), "calls");
    cr_assert(map_is_null(calls, "hard"));
    cr_assert_eq(map_integer(calls, "soft"), 5);
}

Test(native_budget, report_and_dedup) {
    test_server *server = native_start();
    const char *budget = create_budget(server);
    expect_status(server_call(server, "FF.BUDGET", "REPORT", budget, "2", "calls", "1", "new", "7",
                              "DEDUP", "k"),
                  "OK");
    expect_status(
        server_call(server, "FF.BUDGET", "REPORT", budget, "1", "calls", "1", "dedup", "k"),
        "ALREADY_APPLIED");
    expect_status(server_call(server, "FF.BUDGET", "SPEND", budget, native_id(1), "1", "calls", "1",
                              "DEDUP", "k"),
                  "ALREADY_APPLIED");
    cr_assert_eq(usage(server, budget, "calls"), 1);
    cr_assert_eq(usage(server, budget, "new"), 7);
    cr_assert_eq(server_integer(server, "PTTL", "ff:usagededup:{b:3}:k"), 86400000);
    expect_status(server_call(server, "FF.BUDGET", "REPORT", budget, "1", "new", "-9"), "OK");
    cr_assert_eq(usage(server, budget, "new"), -2);
}

Test(native_budget, refusals) {
    test_server *server = native_start();
    const char *budget = create_budget(server);
    redisReply *again =
        server_call(server, "FF.BUDGET", "CREATE", budget, "HARD", "1", "tokens", "7");
    cr_assert_eq(map_integer(again, "created"), 0);
    native_refused(server, "ERR a budget needs HARD or SOFT", "FF.BUDGET", "CREATE", "*");
    native_refused(server, "ERR the limit of t must be", "FF.BUDGET", "CREATE", "*", "HARD", "1",
                   "t", "0");
    native_refused(server, "ERR the limit of t must be", "FF.BUDGET", "CREATE", "*", "SOFT", "1",
                   "t", "x");
    native_refused(server, "ERR the dimension t is given more than once", "FF.BUDGET", "CREATE",
                   "*", "HARD", "2", "t", "1", "t", "2");
    native_refused(server, "ERR a dimension must not be empty", "FF.BUDGET", "CREATE", "*", "HARD",
                   "1", "", "1");
    native_refused(server, "ERR the count of HARD", "FF.BUDGET", "CREATE", "*", "HARD", "65", "t",
                   "1");
    native_refused(server, "ERR HARD announces 4 values", "FF.BUDGET", "CREATE", "*", "HARD", "2",
                   "t", "1");
    native_refused(server, "ERR RESET", "FF.BUDGET", "CREATE", "*", "HARD", "1", "t", "1", "RESET",
                   "0");
    native_refused(server, "ERR '{fp:3}' is not a partition", "FF.BUDGET", "CREATE", "{fp:3}",
                   "HARD", "1", "t", "1");
    native_refused(server, "ERR the count of dimensions", "FF.BUDGET", "SPEND", budget,
                   native_id(1), "0", "t", "1");
    native_refused(server, "ERR 2 dimensions need 4 values", "FF.BUDGET", "SPEND", budget,
                   native_id(1), "2", "t", "1");
    native_refused(server, "ERR the delta of t must be", "FF.BUDGET", "SPEND", budget, native_id(1),
                   "1", "t", "1.5");
    native_refused(server, "ERR the dimension t is given", "FF.BUDGET", "SPEND", budget,
                   native_id(1), "2", "t", "60", "t", "60");
    native_refused(server, "ERR 'x' is not an execution id", "FF.BUDGET", "SPEND", budget, "x", "1",
                   "t", "1");
    native_refused(server, "ERR", "FF.BUDGET", "SPEND", budget, native_id(1), "1", "t", "1",
                   "DEDUP");
    native_refused(server, "ERR", "FF.BUDGET", "REPORT", budget, "1", "t", "1", "TWICE", "x");
    native_refused(server, "ERR the tag of '{b:4}:", "FF.BUDGET", "GET",
                   spell("{b:4}%s", strchr(budget, '}') + 1));
    server_do(server, "SET", key_of("budget", budget, ":usage"), "text");
    native_refused(server, "WRONGTYPE", "FF.BUDGET", "REPORT", budget, "1", "t", "1");
}

/* The wire functions make a ghost of a budget that was never created; these do not, and do not
 * see one. */
Test(native_budget, no_ghosts) {
    test_server *server = native_start();
    const char *nobody = map_text(
        server_call(server, "FF.BUDGET", "CREATE", "*", "HARD", "1", "tokens", "1"), "budget");
    const char *definition = key_of("budget", nobody, "");
    server_do(server, "DEL", definition, key_of("budget", nobody, ":limits"));
    for (int ghost = 0; ghost < 2; ghost++) {
        native_refused(server, "NOT_FOUND no such budget", "FF.BUDGET", "SPEND", nobody,
                       native_id(1), "1", "tokens", "1");
        native_refused(server, "NOT_FOUND no such budget", "FF.BUDGET", "REPORT", nobody, "1",
                       "tokens", "1");
        native_refused(server, "NOT_FOUND no such budget", "FF.BUDGET", "RESET", nobody);
        native_refused(server, "NOT_FOUND no such budget", "FF.BUDGET", "RELEASE", nobody,
                       native_id(1));
        native_refused(server, "NOT_FOUND no such budget", "FF.BUDGET", "GET", nobody);
        server_do(server, "FF.CALL", "ff_report_usage_and_check", "3",
                  key_of("budget", nobody, ":usage"), key_of("budget", nobody, ":limits"),
                  definition, "1", "tokens", "1", "1767225600000");
        cr_assert_eq(server_integer(server, "EXISTS", definition), 1,
                     "the wire function makes one");
    }
}

Test(native_budget, resp3_and_transactions) {
    test_server *server = native_start();
    const char *budget = create_budget(server);
    resp3_connection *connection = resp3_connect(server);
    const resp3_value *got = resp3_call(connection, "FF.BUDGET", "GET", budget);
    cr_assert_eq(got->kind, '%');
    const resp3_value *tokens = resp3_member(resp3_member(got, "dimensions"), "tokens");
    cr_assert(tokens->kind == '%' && resp3_member(tokens, "hard")->kind == ':');
    server_do(server, "MULTI");
    server_do(server, "FF.BUDGET", "SPEND", budget, native_id(1), "1", "tokens", "100");
    server_do(server, "FF.BUDGET", "SPEND", budget, native_id(1), "1", "tokens", "1");
    redisReply *replies = server_call(server, "EXEC");
    expect_status(replies->element[0], "SOFT_BREACH");
    expect_status(replies->element[1], "HARD_BREACH");
}

/* ---- Quotas ---- */

static const char *create_quota(test_server *server, const char *rate, const char *seconds,
                                const char *concurrency) {
    redisReply *reply =
        rate && concurrency ? server_call(server, "FF.QUOTA", "CREATE", "{q:5}", "CONCURRENCY",
                                          concurrency, "RATE", rate, seconds)
        : rate ? server_call(server, "FF.QUOTA", "CREATE", "{q:5}", "RATE", rate, seconds)
               : server_call(server, "FF.QUOTA", "CREATE", "{q:5}", "CONCURRENCY", concurrency);
    cr_assert_eq(reply->type, REDIS_REPLY_ARRAY, "%s", reply->str);
    cr_assert_eq(map_integer(reply, "created"), 1);
    return map_text(reply, "quota");
}

static redisReply *admit(test_server *server, const char *quota, int number) {
    return server_call(server, "FF.QUOTA", "ADMIT", quota, native_id(number));
}

Test(native_quota, by_rate) {
    test_server *server = native_start();
    const char *quota = create_quota(server, "2", "10", NULL);
    expect_status(admit(server, quota, 1), "ADMITTED");
    expect_status(admit(server, quota, 1), "ALREADY_ADMITTED");
    server_set_time(server, FROZEN_START_MS + 4000);
    expect_status(admit(server, quota, 2), "ADMITTED");
    redisReply *reply = admit(server, quota, 3);
    expect_status(reply, "RATE_EXCEEDED");
    cr_assert_eq(map_integer(reply, "retry_after"), 6000);
    redisReply *got = server_call(server, "FF.QUOTA", "GET", quota);
    cr_assert_eq(map_integer(got, "rate"), 2);
    cr_assert_eq(map_integer(got, "window_seconds"), 10);
    cr_assert_eq(map_integer(got, "in_window"), 2);
    cr_assert(map_is_null(got, "concurrency"));
    server_set_time(server, FROZEN_START_MS + 10001);
    cr_assert_eq(map_integer(server_call(server, "FF.QUOTA", "GET", quota), "in_window"), 1);
    expect_status(admit(server, quota, 3), "ADMITTED");
}

Test(native_quota, by_concurrency) {
    test_server *server = native_start();
    const char *quota = create_quota(server, NULL, NULL, "2");
    expect_status(admit(server, quota, 1), "ADMITTED");
    expect_status(admit(server, quota, 1), "ALREADY_ADMITTED");
    expect_status(admit(server, quota, 2), "ADMITTED");
    expect_status(admit(server, quota, 3), "CONCURRENCY_EXCEEDED");
    cr_assert_eq(map_integer(server_call(server, "FF.QUOTA", "GET", quota), "running"), 2);
    expect_status(server_call(server, "FF.QUOTA", "RELEASE", quota, native_id(1)), "released");
    expect_status(server_call(server, "FF.QUOTA", "RELEASE", quota, native_id(1)), "not_admitted");
    cr_assert_eq(map_integer(server_call(server, "FF.QUOTA", "GET", quota), "running"), 1,
                 "a slot is given back once");
    expect_status(admit(server, quota, 3), "ADMITTED");
}

/* A slot is held until it is released, also when the window of the rate is over. */
Test(native_quota, slots_outlive_windows) {
    test_server *server = native_start();
    const char *quota = create_quota(server, "5", "1", "1");
    expect_status(admit(server, quota, 1), "ADMITTED");
    server_set_time(server, FROZEN_START_MS + 5000);
    expect_status(admit(server, quota, 1), "ALREADY_ADMITTED");
    expect_status(admit(server, quota, 2), "CONCURRENCY_EXCEEDED");
    cr_assert_eq(map_integer(server_call(server, "FF.QUOTA", "GET", quota), "running"), 1);
}

Test(native_quota, refusals) {
    test_server *server = native_start();
    const char *quota = create_quota(server, "1", "1", NULL);
    redisReply *again = server_call(server, "FF.QUOTA", "CREATE", quota, "CONCURRENCY", "9");
    cr_assert_eq(map_integer(again, "created"), 0);
    native_refused(server, "ERR a quota policy needs", "FF.QUOTA", "CREATE", "*");
    native_refused(server, "ERR option RATE needs seconds", "FF.QUOTA", "CREATE", "*", "RATE", "1");
    native_refused(server, "ERR RATE", "FF.QUOTA", "CREATE", "*", "RATE", "0", "1");
    native_refused(server, "ERR CONCURRENCY", "FF.QUOTA", "CREATE", "*", "CONCURRENCY", "-1");
    native_refused(server, "ERR", "FF.QUOTA", "CREATE", "*", "RATE", "1", "1", "RATE", "1", "1");
    native_refused(server, "ERR '{b:1}' is not a partition", "FF.QUOTA", "CREATE", "{b:1}", "RATE",
                   "1", "1");
    native_refused(server, "ERR 'x' is not an execution id", "FF.QUOTA", "ADMIT", quota, "x");
    const char *nobody =
        map_text(server_call(server, "FF.QUOTA", "CREATE", "*", "CONCURRENCY", "1"), "quota");
    server_do(server, "DEL", key_of("quota", nobody, ""));
    native_refused(server, "NOT_FOUND no such quota", "FF.QUOTA", "ADMIT", nobody, native_id(1));
    native_refused(server, "NOT_FOUND no such quota", "FF.QUOTA", "RELEASE", nobody, native_id(1));
    native_refused(server, "NOT_FOUND no such quota", "FF.QUOTA", "GET", nobody);
    server_do(server, "SET", key_of("quota", quota, ":window:requests_per_window"), "text");
    native_refused(server, "WRONGTYPE", "FF.QUOTA", "ADMIT", quota, native_id(1));
}

Test(native_limits, replicas) {
    test_server *server = native_start();
    test_server *replica = server_start_replica(server, NULL);
    const char *budget = create_budget(server);
    const char *quota = create_quota(server, "5", "10", "2");
    server_do(server, "FF.BUDGET", "SPEND", budget, native_id(1), "1", "tokens", "5", "DEDUP", "d");
    server_do(server, "FF.BUDGET", "SPEND", budget, native_id(1), "1", "tokens", "500");
    server_do(server, "FF.BUDGET", "RESET", budget);
    server_do(server, "FF.BUDGET", "RELEASE", budget, native_id(1));
    for (int i = 1; i <= 3; i++) admit(server, quota, i);
    server_do(server, "FF.QUOTA", "RELEASE", quota, native_id(1));
    server_expect_same_data(server, replica);
    cr_assert_eq(usage(replica, budget, "tokens"), 0);
    cr_assert_eq(map_integer(server_call(replica, "FF.QUOTA", "GET", quota), "running"), 1);
    server_expect_error(replica, "READONLY", "FF.BUDGET", "RESET", budget);
    server_expect_error(replica, "READONLY", "FF.QUOTA", "ADMIT", quota, native_id(4));
}
