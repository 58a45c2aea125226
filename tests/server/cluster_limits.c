/* Budgets and quotas that another node has: never taken for "no limit", never guessed. */
#include "cluster.h"
#include "native.h"
#include "work.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static test_server *nodes[CLUSTER_NODES];

static const char *make_budget(test_server *server, const char *spent) {
    const char *budget =
        map_text(server_call(server, "FF.BUDGET", "CREATE", "*", "HARD", "1", "x", "5"), "budget");
    server_do(server, "FF.BUDGET", "REPORT", budget, "1", "x", spent);
    return budget;
}

static const char *make_quota(test_server *server) {
    return map_text(server_call(server, "FF.QUOTA", "CREATE", "*", "CONCURRENCY", "1"), "quota");
}

static const char *create_words(command_words words) {
    redisReply *reply = server_call_words(nodes[0], words);
    cr_assert_eq(reply->type, REDIS_REPLY_ARRAY, "%s", reply->str);
    return map_text(reply, "execution_id");
}
#define create(...) create_words(WORDS("FF.CREATE", "*", "default", "job", __VA_ARGS__))

static const char *lane_of(const char *id, const char *suffix) {
    return cluster_lane(spell("%.*s", (int)(strchr(id, '}') + 1 - id), id), suffix);
}

static int64_t running(const char *quota) {
    return map_integer(server_call(nodes[0], "FF.QUOTA", "GET", quota), "running");
}

Test(cluster_limits, a_claim_leaves_what_it_cannot_judge) {
    cluster_start(nodes, NULL);
    const char *foreign_budget = create("BUDGETS", "1", make_budget(nodes[1], "1"));
    const char *foreign_quota = create("QUOTA", make_quota(nodes[1]));
    const char *over = create("BUDGETS", "1", make_budget(nodes[0], "5"));
    claim_expect_none(nodes[0], "default", "w", "wi", "COUNT", "10");
    cr_assert_eq(claims_counter(nodes[0], "left_foreign_limit"), 2);
    cr_assert(cluster_has(nodes[0], lane_of(foreign_budget, "eligible"), foreign_budget));
    cr_assert(cluster_has(nodes[0], lane_of(foreign_quota, "eligible"), foreign_quota));
    cr_assert(cluster_has(nodes[0], lane_of(over, "blocked:budget"), over));
}

/* A slot of a quota on this node is taken by the claim and freed by whatever ends it. */
Test(cluster_limits, slots_of_this_node_are_freed) {
    cluster_start(nodes, NULL);
    const char *quota = make_quota(nodes[0]);
    const char *first = create("QUOTA", quota), *second = create("QUOTA", quota);
    held h = native_claim_next(nodes[0]);
    cr_assert(strcmp(h.id, first) == 0 || strcmp(h.id, second) == 0);
    cr_assert_eq(running(quota), 1);
    claim_expect_none(nodes[0], "default", "w", "wi");
    server_do(nodes[0], "FF.COMPLETE", FENCE(h));
    cluster_eventually(running(quota) == 0);
    server_do(nodes[0], "FF.UNBLOCK", "*");
    h = native_claim_next(nodes[0]);
    cr_assert_eq(running(quota), 1);
    server_do(nodes[0], "FF.FAIL", FENCE(h), "why");
    cluster_eventually(running(quota) == 0);
    create("QUOTA", quota);
    cr_assert_eq(claim(nodes[0], "default", "w", "wi", "TIMEOUT", "1")->elements, 1);
    cr_assert_eq(running(quota), 1);
    usleep(5000);
    server_do(nodes[0], "FF.SCANNER", "RUN", "attempt_timeout");
    cluster_eventually(running(quota) == 0);
}

/* One reply for both: it ends, its slot comes free, and the next of the same quota is taken. */
Test(cluster_limits, complete_and_claim_of_one_quota) {
    cluster_start(nodes, NULL);
    const char *quota = make_quota(nodes[0]);
    create("QUOTA", quota);
    create("QUOTA", quota);
    held h = native_claim_next(nodes[0]);
    redisReply *reply =
        server_call(nodes[0], "FF.COMPLETE", FENCE(h), "CLAIM", "default", "w", "wi");
    cr_assert_eq(reply->type, REDIS_REPLY_ARRAY, "%s", reply->str);
    cr_assert_str_eq(map_text(reply, "state"), "completed");
    cr_assert_eq(map_value(reply, "claimed")->elements, 1);
    cr_assert_eq(running(quota), 1);
}

Test(cluster_limits, unblock_keeps_what_it_cannot_judge) {
    cluster_start(nodes, NULL);
    const char *far = create("BUDGETS", "1", make_budget(nodes[1], "1"));
    const char *far_quota = create("QUOTA", make_quota(nodes[1]));
    const char *near = create("BUDGETS", "1", make_budget(nodes[0], "1"));
    server_do(nodes[0], "FF.BLOCK", far, "budget", "why");
    server_do(nodes[0], "FF.BLOCK", far_quota, "quota", "why");
    server_do(nodes[0], "FF.BLOCK", near, "budget", "why");
    redisReply *reply = server_call(nodes[0], "FF.UNBLOCK", "*");
    cr_assert_eq(map_integer(reply, "scanned"), 3);
    cr_assert_eq(map_integer(reply, "processed"), 1);
    cr_assert_eq(map_integer(reply, "skipped"), 2);
    cr_assert_str_eq(server_info(nodes[0], "ff_scanners", "ff_unblock_unknown"), "2");
    cr_assert(cluster_has(nodes[0], lane_of(far, "blocked:budget"), far));
    cr_assert(cluster_has(nodes[0], lane_of(far_quota, "blocked:quota"), far_quota));
    cr_assert(cluster_has(nodes[0], lane_of(near, "eligible"), near));
    /* One partition by name: the command is routed there, and judges just the same. */
    const char *tag = spell("%.*s", (int)(strchr(far, '}') + 1 - far), far);
    reply = server_call(nodes[0], "FF.UNBLOCK", tag);
    cr_assert_eq(map_integer(reply, "processed"), 0);
    cr_assert(cluster_has(nodes[0], lane_of(far, "blocked:budget"), far));
}
