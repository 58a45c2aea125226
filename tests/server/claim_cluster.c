/* FF.CLAIM in a cluster: own partitions only, one slot per keyed command, foreign limits. */
#include "harness.h"
#include "work.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NODES = 2 };

static test_server *nodes[NODES];

static void start(void) { server_start_cluster(nodes, NODES, NULL); }

static test_server *node_of(const char *tag) { return server_of_key(nodes, NODES, tag); }

/* The first partition of a family, from `from` on, that the node serves. */
static int partition_on(const test_server *node, const char *family, int from) {
    for (int p = from;; p++) {
        char tag[24];
        snprintf(tag, sizeof tag, "{%s:%d}", family, p);
        if (node_of(tag) == node) return p;
    }
}

/* An id of a quota policy or budget whose partition is the one given, found by asking: the tag
 * of a UUID comes from its bytes, so that a claim shows where it looks. */
static const char *id_on(int number) {
    char *id = server_keep(malloc(40));
    snprintf(id, 40, "00000000-0000-4000-8000-%012x", number);
    return id;
}

static unsigned crc16(const unsigned char *data, size_t count) {
    unsigned crc = 0;
    for (size_t i = 0; i < count; i++) {
        crc ^= (unsigned)data[i] << 8;
        for (int bit = 0; bit < 8; bit++) {
            crc = (crc & 0x8000 ? crc << 1 ^ 0x1021 : crc << 1) & 0xffff;
        }
    }
    return crc;
}

static int partition_of_id(int number, int count) {
    unsigned char raw[16] = {0, 0, 0, 0, 0, 0, 0x40, 0, 0x80};
    for (int i = 0; i < 4; i++) raw[15 - i] = (unsigned char)(number >> (8 * i));
    return (int)crc16(raw, 16) % count;
}

/* A budget or quota id whose partition is, or is not, on the node. */
static int id_number(const test_server *node, const char *family, bool here) {
    for (int number = 1;; number++) {
        char tag[24];
        snprintf(tag, sizeof tag, "{%s:%d}", family, partition_of_id(number, 32));
        if ((node_of(tag) == node) == here) return number;
    }
}

Test(claim_cluster, each_node_hands_out_its_own) {
    start();
    int total = 0;
    for (int p = 0; p < 64; p++) {
        char tag[24];
        snprintf(tag, sizeof tag, "{fp:%d}", p);
        work_create(node_of(tag), &(work){.partition = p, .number = p});
    }
    for (int n = 0; n < NODES; n++) {
        redisReply *list;
        while ((list = claim(nodes[n], "default", "w", "wi", "COUNT", "100"))->elements) {
            for (size_t i = 0; i < list->elements; i++) {
                const char *id = claimed_text(list, i, "execution_id");
                cr_assert_eq(node_of(id), nodes[n]);
            }
            total += (int)list->elements;
        }
    }
    cr_assert_eq(total, 64);
}

Test(claim_cluster, a_partition_routes_the_command) {
    start();
    work w = {.partition = partition_on(nodes[1], "fp", 0), .number = 1};
    char tag[24];
    snprintf(tag, sizeof tag, "{fp:%d}", w.partition);
    work_create(nodes[1], &w);
    server_expect_error(nodes[0], "MOVED", "FF.CLAIM", "default", "w", "wi", "PARTITION", tag);
    claim_expect(nodes[1], &w, "default", "w", "wi", "PARTITION", tag);
    claim_expect_none(nodes[1], "default", "w", "wi", "PARTITION", tag);
    redisContext *waiter = waiting(nodes[1], "default", "w", "wi", "PARTITION", tag, "BLOCK", "0");
    expect_waiters(nodes[1], 1);
    w.number++;
    work_create(nodes[1], &w);
    redisReply *list = waiting_reply(waiter);
    cr_assert_str_eq(claimed_text(list, 0, "execution_id"), work_id(&w));
}

Test(claim_cluster, refused_in_a_transaction_or_script) {
    start();
    redisContext *connection = server_connect(nodes[0]);
    connection_call(connection, "MULTI");
    connection_call(connection, "FF.CLAIM", "default", "w", "wi");
    redisReply *results = connection_call(connection, "EXEC");
    cr_assert_eq(results->element[0]->type, REDIS_REPLY_ERROR);
    cr_assert_not_null(strstr(results->element[0]->str, "transaction"));
    server_expect_error(nodes[0], "ERR", "EVAL",
                        "return redis.call('FF.CLAIM', 'default', 'w', 'wi')", "0");
}

/* Limits of the own node bind, be the command keyless or keyed; limits of another node leave the
 * candidate. */
static void expect_limits_hold(bool keyed) {
    test_server *node = nodes[0];
    int p = partition_on(node, "fp", keyed ? 40 : 0);
    char tag[24], limits[128], usage[128], quota[128], counter[160];
    snprintf(tag, sizeof tag, "{fp:%d}", p);
    work over = {.partition = p, .number = 1}, foreign = {.partition = p, .number = 2};
    work foreign_quota = {.partition = p, .number = 3}, admitted = {.partition = p, .number = 4};
    work_create(node, &over);
    work_create(node, &foreign);
    work_create(node, &foreign_quota);
    work_create(node, &admitted);
    int budget = id_number(node, "b", true);
    snprintf(limits, sizeof limits, "ff:budget:{b:%d}:%s:limits", partition_of_id(budget, 32),
             id_on(budget));
    snprintf(usage, sizeof usage, "ff:budget:{b:%d}:%s:usage", partition_of_id(budget, 32),
             id_on(budget));
    server_do(node, "HSET", limits, "hard:x", "5");
    server_do(node, "HSET", usage, "x", "6");
    server_do(node, "HSET", work_key(&over, "core"), "budget_ids", id_on(budget));
    server_do(node, "HSET", work_key(&foreign, "core"), "budget_ids",
              id_on(id_number(node, "b", false)));
    server_do(node, "HSET", work_key(&foreign_quota, "core"), "quota_policy_id",
              id_on(id_number(node, "q", false)));
    int policy = id_number(node, "q", true);
    snprintf(quota, sizeof quota, "ff:quota:{q:%d}:%s", partition_of_id(policy, 32), id_on(policy));
    snprintf(counter, sizeof counter, "%s:concurrency", quota);
    server_do(node, "HSET", quota, "active_concurrency_cap", "10");
    server_do(node, "SET", counter, "3");
    server_do(node, "HSET", work_key(&admitted, "core"), "quota_policy_id", id_on(policy));
    if (keyed) {
        claim_expect(node, &admitted, "default", "w", "wi", "PARTITION", tag);
    } else {
        claim_expect(node, &admitted, "default", "w", "wi");
    }
    cr_assert_str_eq(server_text(node, "GET", counter), "4");
    cr_assert(work_is_in(node, &over, "blocked:budget"));
    cr_assert(work_is_in(node, &foreign, "eligible"));
    cr_assert(work_is_in(node, &foreign_quota, "eligible"));
    cr_assert_eq(claims_counter(node, "left_foreign_limit"), 2);
}

Test(claim_cluster, limits_hold_for_a_keyless_command) {
    start();
    expect_limits_hold(false);
}

Test(claim_cluster, limits_hold_for_a_keyed_command) {
    start();
    expect_limits_hold(true);
}

/* While a slot is on its way nobody claims from it. */
Test(claim_cluster, a_slot_that_moves_is_left_alone) {
    start();
    work moving = {.partition = partition_on(nodes[0], "fp", 0), .number = 1};
    work steady = {.partition = partition_on(nodes[0], "fp", moving.partition + 1), .number = 2};
    work_create(nodes[0], &moving);
    work_create(nodes[0], &steady);
    char tag[24], slot[24];
    snprintf(tag, sizeof tag, "{fp:%d}", moving.partition);
    snprintf(slot, sizeof slot, "%lld",
             (long long)server_integer(nodes[0], "CLUSTER", "KEYSLOT", tag));
    const char *other = server_text(nodes[1], "CLUSTER", "MYID");
    server_do(nodes[0], "CLUSTER", "SETSLOT", slot, "MIGRATING", other);
    redisReply *list = claim(nodes[0], "default", "w", "wi", "COUNT", "10");
    cr_assert_eq(list->elements, 1);
    cr_assert_str_eq(claimed_text(list, 0, "execution_id"), work_id(&steady));
    server_do(nodes[0], "CLUSTER", "SETSLOT", slot, "STABLE");
    claim_expect(nodes[0], &moving, "default", "w", "wi");
}

/* What limits of another node hold back is not in the way of the rest. */
Test(claim_cluster, foreign_limits_hide_nothing) {
    start();
    test_server *node = nodes[0];
    work first = {.partition = partition_on(node, "fp", 0), .number = 1}, plain = first;
    char tag[24];
    snprintf(tag, sizeof tag, "{fp:%d}", first.partition);
    const char *budget = id_on(id_number(node, "b", false));
    work_create_many(node, first, 60);
    for (work w = first; w.number <= 60; w.number++) {
        server_do(node, "HSET", work_key(&w, "core"), "budget_ids", budget);
    }
    plain.number = 1000;
    work_create(node, &plain);
    redisReply *list = claim(node, "default", "w", "wi");
    for (int calls = 1; list->elements == 0; calls++) {
        cr_assert(calls < 10, "nothing is found");
        list = claim(node, "default", "w", "wi");
    }
    cr_assert_str_eq(claimed_text(list, 0, "execution_id"), work_id(&plain));
    for (int keyed = 0; keyed < 2; keyed++) {
        plain.number++;
        work_create(node, &plain);
        redisContext *waiter =
            keyed ? waiting(node, "default", "w", "wi", "BLOCK", "0", "PARTITION", tag)
                  : waiting(node, "default", "w", "wi", "BLOCK", "0");
        list = waiting_reply(waiter);
        cr_assert_str_eq(claimed_text(list, 0, "execution_id"), work_id(&plain));
    }
    cr_assert_eq(server_integer(node, "ZCARD", work_lane_key(&first, "eligible")), 60);
}

/* Who waits for a partition is sent away when it moves to another node; the others stay. */
Test(claim_cluster, waiters_do_not_stay_behind_a_partition_that_moves) {
    start();
    work w = {.partition = partition_on(nodes[0], "fp", 0), .number = 1};
    char tag[24], slot[24];
    snprintf(tag, sizeof tag, "{fp:%d}", w.partition);
    snprintf(slot, sizeof slot, "%lld",
             (long long)server_integer(nodes[0], "CLUSTER", "KEYSLOT", tag));
    redisContext *bound[2], *free_to_go;
    for (int i = 0; i < 2; i++) {
        bound[i] = waiting(nodes[0], "default", "w", "wi", "PARTITION", tag, "BLOCK", "0");
    }
    free_to_go = waiting(nodes[0], "default", "w", "wi", "BLOCK", "0");
    expect_waiters(nodes[0], 3);
    cr_assert(is_waiting(bound[0], 1500), "as long as it is here");
    const char *owner = server_text(nodes[1], "CLUSTER", "MYID");
    server_do(nodes[1], "CLUSTER", "SETSLOT", slot, "NODE", owner);
    server_do(nodes[0], "CLUSTER", "SETSLOT", slot, "NODE", owner);
    for (int i = 0; i < 2; i++) {
        redisReply *list = waiting_reply(bound[i]);
        cr_assert_eq(list->type, REDIS_REPLY_ARRAY, "%s", list->str ? list->str : "");
        cr_assert_eq(list->elements, 0);
    }
    cr_assert(is_waiting(free_to_go, 0));
    expect_waiters(nodes[0], 1);
    server_expect_error(nodes[0], "MOVED", "FF.CLAIM", "default", "w", "wi", "PARTITION", tag);
    redisContext *there = waiting(nodes[1], "default", "w", "wi", "PARTITION", tag, "BLOCK", "0");
    expect_waiters(nodes[1], 1);
    work_create(nodes[1], &w);
    redisReply *list = waiting_reply(there);
    cr_assert_str_eq(claimed_text(list, 0, "execution_id"), work_id(&w));
}
