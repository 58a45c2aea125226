/* Claims as replicas, append only files and restarted servers see them. */
#include "harness.h"
#include "work.h"

#include <criterion/criterion.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void make_quota(test_server *server) {
    server_do(server, "HSET", "ff:quota:{q:0}:pool", "max_requests_per_window", "3",
              "active_concurrency_cap", "9");
}

/* All that a claim can do: hand out, park for each reason, resume, reclaim, end, grant. */
static void do_everything(test_server *server) {
    make_quota(server);
    server_do(server, "HSET", "ff:budget:{b:0}:team:limits", "hard:x", "1");
    server_do(server, "HSET", "ff:budget:{b:0}:team:usage", "x", "1");
    for (int i = 0; i < 30; i++) {
        work w = {.partition = i % 4, .number = i};
        if (i % 7 == 1) w.capabilities = "[\"gpu\"]";
        if (i % 5 == 1) w.policy = "{\"max_reclaim_count\":0}";
        work_create(server, &w);
        if (i % 3 == 0) server_do(server, "HSET", work_key(&w, "core"), "quota_policy_id", "pool");
        if (i % 8 == 2) server_do(server, "HSET", work_key(&w, "core"), "budget_ids", "team");
    }
    redisContext *waiter = waiting(server, "later", "w", "wi", "BLOCK", "0");
    claim(server, "default", "w", "wi", "COUNT", "5", "LEASE", "1000", "TIMEOUT", "50");
    claim(server, "default", "w", "wi", "COUNT", "2", "GRANT", "100");
    claim(server, "default", "w", "wi", "COUNT", "5", "LEASE", "2000");
    server_set_time(server, FROZEN_START_MS + 1500);
    claim(server, "default", "w", "wi2", "COUNT", "100", "LEASE", "1000");
    work_create(server, &(work){.partition = 9, .number = 99, .lane = "later"});
    cr_assert_eq(waiting_reply(waiter)->elements, 1);
    server_set_time(server, FROZEN_START_MS + 9000);
    claim(server, "default", "w", "wi3", "COUNT", "100");
}

Test(claim_replica, a_replica_without_the_module_agrees) {
    test_server *primary = server_start(&(server_options){.frozen_clock = true});
    test_server *replica = server_start_replica(primary, &(server_options){.without_module = true});
    do_everything(primary);
    server_expect_same_data(primary, replica);
    cr_assert(claims_counter(primary, "blocked_budget") > 0);
    cr_assert(claims_counter(primary, "blocked_route") > 0);
    cr_assert(claims_counter(primary, "blocked_quota_rate") > 0);
    cr_assert(claims_counter(primary, "ended_by_reclaim_cap") > 0);
}

Test(claim_replica, one_transaction_per_claim) {
    test_server *primary = server_start(&(server_options){.frozen_clock = true});
    test_server *replica = server_start_replica(primary, &(server_options){.without_module = true});
    for (int i = 0; i < 5; i++) work_create(primary, &(work){.partition = 7, .number = i});
    server_expect_same_data(primary, replica);
    server_do(replica, "CONFIG", "RESETSTAT");
    cr_assert_eq(claim(primary, "default", "w", "wi", "COUNT", "5")->elements, 5);
    server_expect_same_data(primary, replica);
    const char *line = server_info(replica, "commandstats", "cmdstat_exec");
    cr_assert_not_null(line);
    cr_assert_eq(strtol(line + strlen("calls="), NULL, 10), 1);
}

Test(claim_replica, an_aof_holds_what_the_server_held) {
    test_server *server =
        server_start(&(server_options){.frozen_clock = true, .append_only = true});
    do_everything(server);
    const char *before = server_digest(server);
    server_restart(server, false);
    cr_assert_str_eq(server_digest(server), before);
}

/* What was there before the module saw it written is found: in a file that is loaded at the
 * start, and in a server that the module is loaded into. */
Test(claim_replica, work_of_before_is_found) {
    test_server *server = server_start(&(server_options){.frozen_clock = true});
    test_server *bare = server_start_replica(server, &(server_options){.without_module = true});
    work w = {.partition = 200, .number = 1};
    work_create(server, &w);
    server_expect_same_data(server, bare);
    server_restart(server, true);
    claim_expect(server, &w, "default", "w", "wi");
    server_do(bare, "REPLICAOF", "NO", "ONE");
    server_do(bare, "MODULE", "LOAD", getenv("FF_MODULE"));
    claim_expect(bare, &w, "default", "w", "wi");
}

/* A replica with the module has followed what its primary did: promoted, it hands out at once
 * what is left. */
Test(claim_replica, failover_while_claimers_wait) {
    test_server *old = server_start(&(server_options){.frozen_clock = true});
    test_server *new = server_start_replica(old, NULL);
    redisContext *claimers[10];
    for (int i = 0; i < 10; i++) claimers[i] = waiting(old, "other", "w", "wi", "BLOCK", "0");
    expect_waiters(old, 10);
    work_create_many(old, (work){.partition = 3, .number = 1}, 20);
    cr_assert_eq(claim(old, "default", "w", "wi", "COUNT", "5", "LEASE", "1000")->elements, 5);
    server_expect_same_data(old, new);
    server_do(new, "REPLICAOF", "NO", "ONE");
    char port[16];
    snprintf(port, sizeof port, "%d", server_port(new));
    server_do(old, "REPLICAOF", "127.0.0.1", port);
    for (int i = 0; i < 10; i++) {
        redisReply *reply = waiting_reply(claimers[i]);
        cr_assert_eq(reply->type, REDIS_REPLY_ERROR);
        cr_assert_eq(strncmp(reply->str, "UNBLOCKED", 9), 0);
    }
    expect_waiters(old, 0);
    redisContext *waiter = waiting(new, "other", "w", "wi", "BLOCK", "0");
    expect_waiters(new, 1);
    cr_assert_eq(claim(new, "default", "w", "wi", "COUNT", "100")->elements, 15);
    work w = {.partition = 8, .number = 50, .lane = "other"};
    work_create(new, &w);
    redisReply *list = waiting_reply(waiter);
    cr_assert_str_eq(claimed_text(list, 0, "execution_id"), work_id(&w));
    server_set_time(new, FROZEN_START_MS + 1000);
    cr_assert_eq(claim(new, "default", "w", "wi", "COUNT", "100")->elements, 5, "reclaimed");
    server_expect_error(old, "READONLY", "FF.CLAIM", "default", "w", "wi");
}
