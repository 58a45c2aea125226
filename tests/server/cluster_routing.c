/* Which node a native command runs on. */
#include "cluster.h"
#include "native.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

static test_server *nodes[CLUSTER_NODES];

static bool begins(const redisReply *reply, const char *prefix) {
    return reply->type == REDIS_REPLY_ERROR && strncmp(reply->str, prefix, strlen(prefix)) == 0;
}

/* What the samples name, all of the first node. */
static const char *tag, *id, *other_id, *flow, *budget, *quota;

static const char *made(const redisReply *reply, const char *member) {
    cr_assert_eq(reply->type, REDIS_REPLY_ARRAY, "%s", reply->str);
    return map_text(reply, member);
}

static void start(void) {
    cluster_start(nodes, NULL);
    flow = made(server_call(nodes[0], "FF.FLOW", "CREATE", "*", "dag"), "flow");
    budget =
        made(server_call(nodes[0], "FF.BUDGET", "CREATE", "*", "HARD", "1", "x", "9"), "budget");
    quota = made(server_call(nodes[0], "FF.QUOTA", "CREATE", "*", "CONCURRENCY", "1"), "quota");
    tag = spell("%.*s", (int)(strchr(flow, '}') + 1 - flow), flow);
    id = cluster_id(tag, 1);
    other_id = cluster_id(tag, 2);
    server_do(nodes[0], "FF.CREATE", id, "default", "job");
    server_do(nodes[0], "FF.CREATE", other_id, "default", "job");
}

/* The first node runs it, well or not; the second sends the client there. */
static void expect_routed_words(command_words words) {
    redisReply *there = server_call_words(nodes[1], words);
    cr_assert(begins(there, "MOVED "), "%s %s on the wrong node: %s", words[0], words[1],
              there->str);
    redisReply *here = server_call_words(nodes[0], words);
    cr_assert_not(begins(here, "MOVED ") || begins(here, "CROSSSLOT "), "%s %s on its own node: %s",
                  words[0], words[1], here->str);
}
#define expect_routed(...) expect_routed_words(WORDS(__VA_ARGS__))

Test(cluster_routing, executions) {
    start();
    expect_routed("FF.GET", id);
    expect_routed("FF.CREATE", cluster_id(tag, 3), "default", "job");
    expect_routed("FF.CREATE", tag, "default", "job");
    expect_routed("FF.CREATE", "*", "default", "job", "FLOW", flow);
    expect_routed("FF.RENEW", id, "l", "1", "a");
    expect_routed("FF.PROGRESS", id, "l", "1");
    expect_routed("FF.COMPLETE", id, "l", "1", "a");
    expect_routed("FF.FAIL", id, "l", "1", "a", "why");
    expect_routed("FF.DELAY", id, "l", "1", "a", "FOR", "5");
    expect_routed("FF.WAITCHILDREN", id, "l", "1", "a");
    expect_routed("FF.REVOKE", id, "why");
    expect_routed("FF.SUSPEND", id, "l", "1", "a", "REASON", "r", "CONDITION", "{}");
    expect_routed("FF.SIGNAL", id, "w", "go", "TOKEN", "t");
    expect_routed("FF.RESUME", id);
    expect_routed("FF.WAITPOINT", "CREATE", id, "l", "1", "a");
    expect_routed("FF.WAITPOINT", "CLOSE", id, "w");
    expect_routed("FF.WAITPOINT", "LIST", id);
    expect_routed("FF.WAITPOINT", "TOKEN", id, "w");
    expect_routed("FF.PRIORITY", id, "5");
    expect_routed("FF.TAG", id, "1", "a.b", "c");
    expect_routed("FF.APPEND", id, "0", "l", "1", "log", "x");
    expect_routed("FF.READ", id, "0");
    expect_routed("FF.SUMMARY", id, "0");
    expect_routed("FF.BLOCK", id, "operator", "why");
    expect_routed("FF.UNBLOCK", id);
    expect_routed("FF.CANCEL", id, "why");
    expect_routed("FF.REPLAY", id);
    expect_routed("FF.EXPIRE", id, "why");
}

Test(cluster_routing, partitions) {
    start();
    expect_routed("FF.LIST", "PARTITION", tag);
    expect_routed("FF.FLOW", "LIST", "PARTITION", tag);
    expect_routed("FF.CLAIM", "default", "w", "wi", "PARTITION", tag);
    expect_routed("FF.UNBLOCK", tag);
    expect_routed("FF.RECONCILE", tag, "index");
    expect_routed("FF.FLOW", "CREATE", tag, "dag");
    expect_routed("FF.BUDGET", "CREATE", cluster_tag(nodes, nodes[0], "b", 0), "HARD", "1", "x",
                  "1");
    expect_routed("FF.QUOTA", "CREATE", cluster_tag(nodes, nodes[0], "q", 0), "CONCURRENCY", "1");
    expect_routed("FF.RECONCILE", cluster_tag(nodes, nodes[0], "b", 0), "budget");
    expect_routed("FF.RECONCILE", cluster_tag(nodes, nodes[0], "q", 0), "quota");
}

Test(cluster_routing, references) {
    start();
    const char *far = cluster_id(cluster_tag(nodes, nodes[1], "fp", 0), 1);
    expect_routed("FF.FLOW", "ADD", flow, id);
    expect_routed("FF.FLOW", "ADD", flow, other_id);
    expect_routed("FF.FLOW", "EDGE", flow, id, other_id);
    expect_routed("FF.FLOW", "SUBMIT", flow, "{\"kind\":\"dag\",\"members\":[]}");
    expect_routed("FF.FLOW", "TAG", flow, "1", "a.b", "c");
    expect_routed("FF.FLOW", "GET", flow);
    expect_routed("FF.FLOW", "CANCEL", flow, "why");
    /* What a budget or quota counts is named, not touched: it may be anywhere. */
    expect_routed("FF.BUDGET", "SPEND", budget, far, "1", "x", "1");
    expect_routed("FF.BUDGET", "REPORT", budget, "1", "x", "1");
    expect_routed("FF.BUDGET", "RELEASE", budget, far);
    expect_routed("FF.BUDGET", "RESET", budget);
    expect_routed("FF.BUDGET", "GET", budget);
    expect_routed("FF.QUOTA", "ADMIT", quota, far);
    expect_routed("FF.QUOTA", "RELEASE", quota, far);
    expect_routed("FF.QUOTA", "GET", quota);
}

/* Every node tells a bare id's reference, the one that has it too. */
Test(cluster_routing, a_bare_id_is_answered_with_its_reference) {
    start();
    const struct {
        const char *command, *reference;
    } samples[] = {{"FF.FLOW", flow}, {"FF.BUDGET", budget}, {"FF.QUOTA", quota}};
    for (size_t i = 0; i < sizeof samples / sizeof *samples; i++) {
        const char *bare = strchr(samples[i].reference, '}') + 2;
        for (size_t n = 0; n < CLUSTER_NODES; n++) {
            redisReply *reply = server_call(nodes[n], samples[i].command, "GET", bare);
            cr_assert(begins(reply, "ERR ") && strstr(reply->str, samples[i].reference), "%s",
                      reply->str);
        }
    }
}

/* Things that would have to be of one slot, and are not: nothing is written anywhere. */
Test(cluster_routing, two_slots_in_one_command_are_refused) {
    start();
    const char *elsewhere = cluster_tag(nodes, nodes[0], "fp", atoi(tag + 4) + 1);
    const char *stranger = cluster_id(elsewhere, 7);
    server_do(nodes[0], "FF.CREATE", stranger, "default", "job");
    const char *before = server_digest(nodes[0]);
    const redisReply *replies[] = {
        server_call(nodes[0], "FF.CREATE", cluster_id(elsewhere, 8), "default", "job", "FLOW",
                    flow),
        server_call(nodes[0], "FF.CREATE", elsewhere, "default", "job", "FLOW", flow),
        server_call(nodes[0], "FF.CREATE", "*", "default", "job", "FLOW", flow, "AFTER", "1",
                    stranger),
        server_call(nodes[0], "FF.FLOW", "ADD", flow, stranger),
        server_call(nodes[0], "FF.FLOW", "EDGE", flow, id, stranger),
    };
    for (size_t i = 0; i < sizeof replies / sizeof *replies; i++) {
        cr_assert_eq(replies[i]->type, REDIS_REPLY_ERROR, "%zu was accepted", i);
    }
    cr_assert_str_eq(server_digest(nodes[0]), before);
}

/* A node picks its own partitions, and counts its own secrets. */
Test(cluster_routing, what_names_no_slot_stays_on_the_node) {
    start();
    for (size_t n = 0; n < CLUSTER_NODES; n++) {
        for (int i = 0; i < 10; i++) {
            const redisReply *replies[] = {
                server_call(nodes[n], "FF.CREATE", "*", "default", "job"),
                server_call(nodes[n], "FF.FLOW", "CREATE", "*", "dag"),
                server_call(nodes[n], "FF.BUDGET", "CREATE", "*", "HARD", "1", "x", "1"),
                server_call(nodes[n], "FF.QUOTA", "CREATE", "*", "CONCURRENCY", "1"),
            };
            const char *const members[] = {"execution_id", "flow", "budget", "quota"};
            for (size_t j = 0; j < 4; j++) {
                const char *reference = made(replies[j], members[j]);
                cr_assert_eq(server_of_key(nodes, CLUSTER_NODES, reference), nodes[n], "%s",
                             reference);
            }
        }
    }
    int64_t total = 0;
    for (size_t n = 0; n < CLUSTER_NODES; n++) {
        redisReply *reply = server_call(nodes[n], "FF.SECRET", "ROTATE", "k1", "aabb");
        total += map_integer(reply, "partitions");
    }
    cr_assert_eq(total, 256);
}

/* A command that needs other slots than its key's is refused where it could not reach them. */
Test(cluster_routing, transactions_and_scripts_reach_one_slot) {
    start();
    const command_words samples[] = {
        WORDS("FF.CLAIM", "default", "w", "wi"),
        WORDS("FF.CLAIM", "default", "w", "wi", "PARTITION", tag),
        WORDS("FF.COMPLETE", id, "l", "1", "a", "CLAIM", "default", "w", "wi"),
        WORDS("FF.UNBLOCK", "*"),
        WORDS("FF.RECONCILE", tag, "index"),
        WORDS("FF.CREATE", "*", "default", "job"),
        WORDS("FF.BUDGET", "CREATE", "*", "HARD", "1", "x", "1"),
        WORDS("FF.SECRET", "ROTATE", "k1", "aabb"),
        WORDS("FF.WORKER", "REGISTER", "w", "wi"),
    };
    const char *before = server_digest(nodes[0]);
    for (size_t i = 0; i < sizeof samples / sizeof *samples; i++) {
        server_do(nodes[0], "MULTI");
        server_call_words(nodes[0], samples[i]);
        redisReply *results = server_call(nodes[0], "EXEC");
        cr_assert_eq(results->elements, 1, "%s", results->str);
        cr_assert(begins(results->element[0], "ERR ") &&
                      strstr(results->element[0]->str, "cluster"),
                  "%s: %s", samples[i][0], results->element[0]->str);
    }
    cr_assert_str_eq(server_digest(nodes[0]), before);
}
