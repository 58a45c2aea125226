/* Slots that move, and nodes that fail over: everybody acts on what is theirs at that moment. */
#include "cluster.h"
#include "native.h"
#include "work.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#define PROMPT_SCANNERS \
    "ff.scanners yes\nff.delayed-promoter-interval-ms 100\nff.lease-expiry-interval-ms 100\n" \
    "ff.execution-deadline-interval-ms 100"

static test_server *nodes[CLUSTER_NODES];

static bool is_state(test_server *server, const char *id, const char *state) {
    redisReply *value = server_call(server, "HGET", cluster_core(id), "public_state");
    return value->type == REDIS_REPLY_STRING && strcmp(value->str, state) == 0;
}

static const char *soon(int ms) {
    struct timeval now;
    gettimeofday(&now, NULL);
    return spell("%lld", (long long)now.tv_sec * 1000 + now.tv_usec / 1000 + ms);
}

Test(cluster_moves, scanners_act_on_their_own_partitions) {
    cluster_start(nodes, PROMPT_SCANNERS);
    const char *ids[CLUSTER_NODES];
    for (size_t n = 0; n < CLUSTER_NODES; n++) {
        ids[n] = cluster_id(cluster_tag(nodes, nodes[n], "fp", 3), 1);
        server_do(nodes[n], "FF.CREATE", ids[n], "default", "job", "DELAY", "200");
    }
    for (size_t n = 0; n < CLUSTER_NODES; n++) {
        cluster_eventually(is_state(nodes[n], ids[n], "waiting"));
        cr_assert_str_eq(server_info(nodes[n], "ff_scanners", "ff_delayed_promoter_processed"),
                         "1");
        server_do(nodes[n], "FF.EXPIRE", ids[n], "why");
    }
}

/* While a slot is on its way neither node touches it; whoever has it in the end does. */
static void expect_left_alone_while_moving(bool moved) {
    cluster_start(nodes, PROMPT_SCANNERS);
    const char *tag = cluster_tag(nodes, nodes[0], "fp", 0);
    const char *delayed = cluster_id(tag, 1), *late = cluster_id(tag, 2);
    server_do(nodes[0], "FF.CREATE", delayed, "default", "job", "DELAY", "300");
    server_do(nodes[0], "FF.CREATE", late, "other", "job", "DEADLINE", soon(300));
    cluster_begin_move(nodes[0], nodes[1], tag);
    usleep(900000);
    cr_assert(is_state(nodes[0], delayed, "delayed"), "nobody promotes it meanwhile");
    cr_assert(is_state(nodes[0], late, "waiting"), "nobody ends it meanwhile");
    for (size_t n = 0; n < CLUSTER_NODES; n++) {
        claim_expect_none(nodes[n], "other", "w", "wi");
        claim_expect_none(nodes[n], "default", "w", "wi");
    }
    cluster_end_move(nodes[0], nodes[1], tag, moved);
    test_server *owner = nodes[moved ? 1 : 0];
    cluster_eventually(is_state(owner, delayed, "waiting"));
    cluster_eventually(is_state(owner, late, "expired"));
    redisReply *list = claim(owner, "default", "w", "wi");
    cr_assert_eq(list->elements, 1);
    cr_assert_str_eq(claimed_text(list, 0, "execution_id"), delayed);
    claim_expect_none(nodes[moved ? 0 : 1], "default", "w", "wi");
}

Test(cluster_moves, a_slot_that_stays) { expect_left_alone_while_moving(false); }

Test(cluster_moves, a_slot_that_arrives) { expect_left_alone_while_moving(true); }

/* A claimer that waits on the node that a slot comes to is served from it. */
Test(cluster_moves, a_waiting_claimer_gets_what_arrives) {
    cluster_start(nodes, NULL);
    const char *tag = cluster_tag(nodes, nodes[0], "fp", 0);
    server_do(nodes[0], "FF.CREATE", cluster_id(tag, 1), "default", "job");
    redisContext *waiter = waiting(nodes[1], "default", "w", "wi", "BLOCK", "0");
    expect_waiters(nodes[1], 1);
    cluster_begin_move(nodes[0], nodes[1], tag);
    cluster_end_move(nodes[0], nodes[1], tag, true);
    redisReply *list = waiting_reply(waiter);
    cr_assert_eq(list->type, REDIS_REPLY_ARRAY, "%s", list->str);
    cr_assert_str_eq(claimed_text(list, 0, "execution_id"), cluster_id(tag, 1));
}

/* `*` never picks a partition that is on its way. */
Test(cluster_moves, nothing_is_created_in_a_moving_slot) {
    cluster_start(nodes, "ff.flow-partitions 8");
    int count = 0;
    const char *tags[8];
    for (int p = 0; p < 8; p++) {
        const char *tag = spell("{fp:%d}", p);
        if (server_of_key(nodes, CLUSTER_NODES, tag) == nodes[0]) tags[count++] = tag;
    }
    cr_assert_gt(count, 1, "the test needs two partitions on the first node");
    cluster_begin_move(nodes[0], nodes[1], tags[0]);
    for (int i = 0; i < 40; i++) {
        redisReply *reply = server_call(nodes[0], "FF.CREATE", "*", "default", "job");
        cr_assert_eq(reply->type, REDIS_REPLY_ARRAY, "%s", reply->str);
        cr_assert_neq(strncmp(map_text(reply, "execution_id"), tags[0], strlen(tags[0])), 0);
    }
    cluster_end_move(nodes[0], nodes[1], tags[0], false);
}

static bool is_primary(test_server *server) {
    return strcmp(server_info(server, "replication", "role"), "master") == 0;
}

static bool knows(test_server *server, const char *node) {
    return strstr(server_text(server, "CLUSTER", "NODES"), node) != NULL;
}

static bool is_linked(test_server *replica) {
    const char *status = server_info(replica, "replication", "master_link_status");
    return status && strcmp(status, "up") == 0;
}

static test_server *start_replica_of(test_server *primary) {
    test_server *replica =
        server_start(&(server_options){.cluster = true, .config = PROMPT_SCANNERS});
    const char *id = server_text(primary, "CLUSTER", "MYID");
    server_do(replica, "CLUSTER", "MEET", "127.0.0.1", spell("%d", server_port(primary)));
    cluster_eventually(knows(replica, id));
    cluster_eventually(server_call(replica, "CLUSTER", "REPLICATE", id)->type != REDIS_REPLY_ERROR);
    cluster_eventually(is_linked(replica));
    for (size_t i = 0; i < CLUSTER_NODES; i++) {
        cluster_eventually(knows(nodes[i], server_text(replica, "CLUSTER", "MYID")));
    }
    server_do(replica, "READONLY");
    return replica;
}

/* An election that is held while the nodes still get to know each other may come to nothing: it is asked for
 * again. */
static void fail_over(test_server *primary, test_server *replica) {
    for (int elections = 0; elections < 10; elections++) {
        server_call(replica, "CLUSTER", "FAILOVER");
        for (int tries = 0; tries < 300; tries++) {
            if (is_primary(replica) && !is_primary(primary)) return;
            usleep(10000);
        }
    }
    cr_assert_fail("the replica does not take over");
}

/* The replica takes over with all that its primary knew: claims, waiters, leases, scanners. */
Test(cluster_moves, a_replica_takes_over) {
    cluster_start(nodes, PROMPT_SCANNERS);
    test_server *replica = start_replica_of(nodes[0]);
    const char *tag = cluster_tag(nodes, nodes[0], "fp", 0);
    const char *ready = cluster_id(tag, 1), *delayed = cluster_id(tag, 2);
    const char *held_id = cluster_id(tag, 3);
    /* It must have heard of all nodes before it serves reads. */
    cluster_eventually(server_call(replica, "EXISTS", cluster_core(held_id))->type !=
                       REDIS_REPLY_ERROR);
    server_do(nodes[0], "FF.CREATE", held_id, "default", "job");
    cr_assert_eq(claim(nodes[0], "default", "w", "wi", "LEASE", "1500")->elements, 1);
    server_do(nodes[0], "FF.CREATE", ready, "default", "job");
    server_do(nodes[0], "FF.CREATE", delayed, "later", "job", "DELAY", "2500");
    redisContext *waiter = waiting(nodes[0], "nothing", "w", "wi", "BLOCK", "0");
    expect_waiters(nodes[0], 1);
    server_expect_same_data(nodes[0], replica);
    fail_over(nodes[0], replica);
    redisReply *reply = waiting_reply(waiter);
    cr_assert_eq(reply->type, REDIS_REPLY_ERROR);
    redisReply *list = claim(replica, "default", "w", "wi2");
    cr_assert_eq(list->elements, 1);
    cr_assert_str_eq(claimed_text(list, 0, "execution_id"), ready);
    cluster_eventually(
        strcmp(server_text(replica, "HGET", cluster_core(held_id), "ownership_state"),
               "lease_expired_reclaimable") == 0);
    list = claim(replica, "default", "w", "wi2");
    cr_assert_str_eq(claimed_text(list, 0, "execution_id"), held_id);
    cr_assert_eq(claimed_integer(list, 0, "lease_epoch"), 2);
    list = waiting_reply(waiting(replica, "later", "w", "wi2", "BLOCK", "0"));
    cr_assert_str_eq(claimed_text(list, 0, "execution_id"), delayed);
    server_do(nodes[0], "READONLY");
    server_expect_same_data(replica, nodes[0]);
}
