/* The ways on which an execution comes to a worker: the attempt type says which. */
#include "harness.h"
#include "work.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int64_t now = FROZEN_START_MS;

static test_server *start(void) { return server_start(&(server_options){.frozen_clock = true}); }

static const char *text_of(int64_t value) {
    char *digits = server_keep(malloc(24));
    snprintf(digits, 24, "%lld", (long long)value);
    return digits;
}

/* What a worker holds. */
typedef struct lease {
    const char *id, *lease, *epoch, *attempt;
} lease;

#define HELD(l) (l).id, (l).lease, (l).epoch, (l).attempt

static lease claim_as(test_server *server, const char *type, int64_t index) {
    redisReply *list = claim(server, "default", "w", "wi", "TIMEOUT", "5000", "LEASE", "900000");
    cr_assert_eq(list->elements, 1, "nothing to claim as %s", type);
    cr_assert_str_eq(claimed_text(list, 0, "attempt_type"), type);
    cr_assert_eq(claimed_integer(list, 0, "attempt_index"), index);
    cr_assert_eq(claimed_integer(list, 0, "expires_at"), now + 900000);
    lease l = {claimed_text(list, 0, "execution_id"), claimed_text(list, 0, "lease_id"),
               text_of(claimed_integer(list, 0, "lease_epoch")),
               claimed_text(list, 0, "attempt_id")};
    cr_assert_str_eq(server_text(server, "ZSCORE", work_index(7, "attempt_timeout"), l.id),
                     text_of(now + 5000), "the timeout of %s", type);
    cr_assert_str_eq(server_text(server, "HGET",
                                 work_key(&(work){.partition = 7, .number = 1}, "core"),
                                 "lease_renewal_deadline"),
                     text_of(now + 600000), "two thirds of the lease of %s", type);
    claim_expect_none(server, "default", "w", "wi");
    return l;
}

static void pass_time(test_server *server, int64_t ms) {
    now += ms;
    server_set_time(server, now);
    server_do(server, "FF.SCANNER", "RUN", "delayed_promoter");
}

#define SUSPENDED \
    "REASON", "waiting_for_signal", "CONDITION", "{\"required_signal_names\":[\"go\"]}"

static void signal_it(test_server *server, const redisReply *suspended, const char *id) {
    const redisReply *door = NULL;
    for (size_t i = 0; i + 1 < suspended->elements; i += 2) {
        if (strcmp(suspended->element[i]->str, "waitpoints") == 0) {
            door = suspended->element[i + 1]->element[0];
        }
    }
    cr_assert_not_null(door);
    const char *waitpoint = NULL, *token = NULL;
    for (size_t i = 0; i + 1 < door->elements; i += 2) {
        if (strcmp(door->element[i]->str, "waitpoint_id") == 0) {
            waitpoint = door->element[i + 1]->str;
        }
        if (strcmp(door->element[i]->str, "token") == 0) token = door->element[i + 1]->str;
    }
    server_do(server, "FF.SIGNAL", id, waitpoint, "go", "TOKEN", token);
}

Test(claim_ways, each_way_back_is_found_by_the_same_command) {
    test_server *server = start();
    now = FROZEN_START_MS;
    server_do(server, "FF.SECRET", "ROTATE", "k1", "00112233445566778899aabbccddeeff", "GRACE",
              "1000");
    server_do(server, "FF.CREATE", work_id(&(work){.partition = 7, .number = 1}), "default", "job");
    lease l = claim_as(server, "initial", 0);
    redisReply *suspended = server_call(server, "FF.SUSPEND", HELD(l), SUSPENDED);
    claim_expect_none(server, "default", "w", "wi");
    pass_time(server, 10);
    signal_it(server, suspended, l.id);
    l = claim_as(server, "resumed", 0);
    server_do(server, "FF.SUSPEND", HELD(l), SUSPENDED);
    pass_time(server, 10);
    server_do(server, "FF.RESUME", l.id);
    l = claim_as(server, "resumed", 0);
    server_do(server, "FF.DELAY", HELD(l), "FOR", "100");
    claim_expect_none(server, "default", "w", "wi");
    pass_time(server, 100);
    l = claim_as(server, "resumed", 0);
    server_do(server, "FF.FAIL", HELD(l), "broken", "RETRY",
              "{\"max_retries\":1,\"backoff\":{\"type\":\"fixed\",\"delay_ms\":50}}");
    claim_expect_none(server, "default", "w", "wi");
    pass_time(server, 50);
    l = claim_as(server, "retry", 1);
    server_do(server, "FF.REVOKE", l.id, "why");
    pass_time(server, 10);
    claim_as(server, "reclaim", 2);
    pass_time(server, 900000);
    l = claim_as(server, "reclaim", 3);
    server_do(server, "FF.COMPLETE", HELD(l));
    server_do(server, "FF.REPLAY", l.id);
    l = claim_as(server, "replay", 4);
    server_do(server, "FF.COMPLETE", HELD(l));
    claim_expect_none(server, "default", "w", "wi");
}

/* A member that was reclaimed too often has failed: what depends on it hears of it, once. */
Test(claim_ways, the_reclaim_cap_ends_a_member_for_its_dependents_too) {
    test_server *server = start();
    redisReply *reply = server_call(
        server, "FF.FLOW", "SUBMIT", "{fp:7}",
        "{\"kind\":\"dag\",\"members\":[{\"name\":\"a\",\"kind\":\"k\",\"lane\":\"default\","
        "\"policy\":{\"max_reclaim_count\":0}},{\"name\":\"b\",\"kind\":\"k\",\"lane\":\"default\","
        "\"after\":[\"a\"]}]}");
    cr_assert_eq(reply->type, REDIS_REPLY_ARRAY, "%s", reply->str ? reply->str : "");
    redisReply *list = claim(server, "default", "w", "wi", "LEASE", "100");
    const char *id = claimed_text(list, 0, "execution_id");
    server_set_time(server, FROZEN_START_MS + 100);
    claim_expect_none(server, "default", "w", "wi");
    cr_assert_eq(claims_counter(server, "ended_by_reclaim_cap"), 1);
    cr_assert_eq(server_integer(server, "ZCARD", work_index(7, "lane:default:terminal")), 2,
                 "the member and what waited for it");
    cr_assert_eq(server_integer(server, "ZCARD", work_index(7, "lease_expiry")), 0);
    char core[128];
    snprintf(core, sizeof core, "ff:exec:{fp:7}:%s:core", id);
    cr_assert_str_eq(server_text(server, "HGET", core, "failure_reason"), "max_reclaims_exceeded");
}
