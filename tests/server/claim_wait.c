/* Claimers that wait: who is woken, by what, and what happens to those who go. */
#include "harness.h"
#include "work.h"

#include <criterion/criterion.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#define FOREVER "BLOCK", "0"

static test_server *start(void) { return server_start(&(server_options){.frozen_clock = true}); }

static const char *at(int64_t after_ms) {
    char *digits = server_keep(malloc(32));
    snprintf(digits, 32, "%lld", (long long)(FROZEN_START_MS + after_ms));
    return digits;
}

/* A worker that waits, and is known to wait. */
static redisContext *join_words(test_server *server, command_words words) {
    int64_t before = claims_counter(server, "waiters");
    redisContext *connection = waiting_words(server, words);
    expect_waiters(server, before + 1);
    return connection;
}
#define join(server, ...) join_words(server, WORDS("FF.CLAIM", __VA_ARGS__))

static void expect_gets(redisContext *claimer, const work *w) {
    redisReply *list = waiting_reply(claimer);
    cr_assert_eq(list->type, REDIS_REPLY_ARRAY, "%s", list->str ? list->str : "");
    cr_assert_eq(list->elements, 1);
    cr_assert_str_eq(claimed_text(list, 0, "execution_id"), work_id(w));
}

Test(claim_wait, first_come_first_served) {
    enum { COUNT = 20 };
    test_server *server = start();
    redisContext *claimers[COUNT];
    for (int i = 0; i < COUNT; i++) {
        char instance[16];
        snprintf(instance, sizeof instance, "wi-%d", i);
        claimers[i] = join(server, "default", "w", instance, FOREVER);
    }
    for (int i = 0; i < COUNT; i++) {
        work w = {.partition = i * 11, .number = i};
        work_create(server, &w);
        expect_gets(claimers[i], &w);
        expect_waiters(server, COUNT - i - 1);
    }
}

Test(claim_wait, first_come_among_those_who_match) {
    test_server *server = start();
    redisContext *plain = join(server, "default", "w", "1", FOREVER);
    redisContext *other_lane = join(server, "other", "w", "2", FOREVER, "CAPS", "gpu");
    redisContext *tenant = join(server, "default", "w", "3", FOREVER, "NAMESPACE", "b");
    redisContext *elsewhere =
        join(server, "default", "w", "4", FOREVER, "CAPS", "gpu", "PARTITION", "{fp:1}");
    redisContext *gpu = join(server, "default", "w", "5", FOREVER, "CAPS", "arm,gpu");
    redisContext *late_gpu = join(server, "default", "w", "6", FOREVER, "CAPS", "gpu");
    redisContext *both = join(server, "none", "w", "7", FOREVER, "LANES", "1", "other");
    work needs_gpu = {.partition = 7, .number = 1, .capabilities = "[\"gpu\"]"};
    work_create(server, &needs_gpu);
    expect_gets(gpu, &needs_gpu);
    cr_assert(work_field(server, &needs_gpu, "last_capability_mismatch_at") == NULL);
    work of_b = {.partition = 7, .number = 2, .namespace = "b"};
    work again_of_b = {.partition = 7, .number = 3, .namespace = "b"};
    work_create(server, &of_b);
    expect_gets(plain, &of_b);
    work_create(server, &again_of_b);
    expect_gets(tenant, &again_of_b);
    work in_other = {.partition = 1, .number = 4, .lane = "other"};
    work_create(server, &in_other);
    expect_gets(other_lane, &in_other);
    in_other.number++;
    work_create(server, &in_other);
    expect_gets(both, &in_other);
    work there = {.partition = 1, .number = 6};
    work_create(server, &there);
    expect_gets(elsewhere, &there);
    cr_assert(is_waiting(late_gpu, 20));
    expect_waiters(server, 1);
}

/* Until the waiter has been served, nobody parks what it could take. */
Test(claim_wait, a_waiting_claimer_keeps_its_work_from_being_parked) {
    test_server *server = start();
    redisContext *gpu = join(server, "default", "w", "1", FOREVER, "CAPS", "gpu");
    work w = {.partition = 7, .number = 1, .capabilities = "[\"gpu\"]"};
    redisContext *connection = server_connect(server);
    connection_call(connection, "MULTI");
    work_append(connection, &w);
    redisReply *queued;
    redisGetReply(connection, (void **)&queued);
    freeReplyObject(queued);
    connection_call(connection, "FF.CLAIM", "default", "w", "2");
    redisReply *results = connection_call(connection, "EXEC");
    cr_assert_eq(results->elements, 2);
    cr_assert_eq(results->element[1]->elements, 0);
    expect_gets(gpu, &w);
    cr_assert_eq(claims_counter(server, "stepped_over"), 1);
}

Test(claim_wait, woken_by_whatever_makes_work_claimable) {
    test_server *server = start();
    work w = {.partition = 7, .number = 1};
    work_create(server, &w);
    /* a plain ZADD */
    server_do(server, "ZREM", work_lane_key(&w, "eligible"), work_id(&w));
    redisContext *claimer = join(server, "default", "w", "1", FOREVER);
    server_do(server, "ZADD", work_lane_key(&w, "eligible"), "1", work_id(&w));
    expect_gets(claimer, &w);
    /* a promotion */
    work later = {.partition = 9, .number = 2, .delay_until = at(1000)};
    work_create(server, &later);
    claimer = join(server, "default", "w", "2", FOREVER);
    server_set_time(server, FROZEN_START_MS + 1000);
    server_do(server, "FF.CALL", "ff_promote_delayed", "3", work_key(&later, "core"),
              work_lane_key(&later, "delayed"), work_lane_key(&later, "eligible"), work_id(&later),
              at(1000));
    expect_gets(claimer, &later);
    /* an unblocking */
    work blocked = {.partition = 7, .number = 3, .capabilities = "[\"gpu\"]"};
    work_create(server, &blocked);
    claim_expect_none(server, "default", "w", "3");
    claimer = join(server, "default", "w", "3", FOREVER, "CAPS", "gpu");
    server_do(server, "FF.CALL", "ff_unblock_execution", "3", work_key(&blocked, "core"),
              work_lane_key(&blocked, "blocked:route"), work_lane_key(&blocked, "eligible"),
              work_id(&blocked), at(1000), "");
    expect_gets(claimer, &blocked);
    /* a key that is renamed into place, and one that is restored */
    work moved = {.partition = 8, .number = 4};
    claimer = join(server, "default", "w", "4", FOREVER, "PARTITION", "{fp:8}");
    work_create(server, &(work){.partition = 8, .number = 4, .lane = "elsewhere"});
    server_do(server, "RENAME", "ff:idx:{fp:8}:lane:elsewhere:eligible",
              "ff:idx:{fp:8}:lane:default:eligible");
    expect_gets(claimer, &moved);
}

Test(claim_wait, woken_when_a_lease_runs_out) {
    test_server *server = start();
    work w = {.partition = 7, .number = 1};
    work_create(server, &w);
    claim_expect(server, &w, "default", "w", "1", "LEASE", "5000");
    redisContext *wrong_lane = join(server, "other", "w", "2", FOREVER);
    redisContext *claimer = join(server, "default", "w", "2", FOREVER);
    server_set_time(server, FROZEN_START_MS + 4999);
    cr_assert(is_waiting(claimer, 50));
    server_set_time(server, FROZEN_START_MS + 5000);
    redisReply *list = waiting_reply(claimer);
    cr_assert_str_eq(claimed_text(list, 0, "attempt_type"), "reclaim");
    cr_assert(is_waiting(wrong_lane, 20));
    /* A lease that begins while somebody waits, and is shorter than all others. */
    work next = {.partition = 8, .number = 2};
    work_create(server, &next);
    claimer =
        join(server, "none", "w", "3", FOREVER, "LANES", "1", "default", "PARTITION", "{fp:9}");
    redisContext *anywhere = NULL;
    claim_expect(server, &next, "default", "w", "4", "LEASE", "100");
    anywhere = join(server, "default", "w", "5", FOREVER);
    server_set_time(server, FROZEN_START_MS + 5100);
    expect_gets(anywhere, &next);
    cr_assert(is_waiting(claimer, 20));
}

Test(claim_wait, woken_when_a_grant_lapses) {
    test_server *server = start();
    work w = {.partition = 7, .number = 1};
    work_create(server, &w);
    claim_expect(server, &w, "default", "w", "1", "GRANT", "3000");
    redisContext *claimer = join(server, "default", "w", "2", FOREVER);
    server_set_time(server, FROZEN_START_MS + 3000);
    cr_assert(is_waiting(claimer, 50));
    server_set_time(server, FROZEN_START_MS + 3001);
    expect_gets(claimer, &w);
}

Test(claim_wait, finds_work_beyond_the_bounds_of_one_call) {
    test_server *server = start();
    server_do(server, "CONFIG", "SET", "ff.claim-partitions-per-scan", "1", "ff.claim-block-limit",
              "1");
    for (int p = 0; p < 40; p++) {
        work_create_many(server,
                         (work){.partition = p, .number = p * 10, .capabilities = "[\"x\"]"}, 3);
    }
    work w = {.partition = 39, .number = 1000};
    server_set_time(server, FROZEN_START_MS + 1);
    work_create(server, &w);
    redisContext *claimer = waiting(server, "default", "w", "1", FOREVER);
    expect_gets(claimer, &w);
}

Test(claim_wait, a_timeout_answers_an_empty_list) {
    test_server *server = server_start(NULL);
    redisContext *claimer = waiting(server, "default", "w", "1", "BLOCK", "30");
    redisReply *list = waiting_reply(claimer);
    cr_assert_eq(list->type, REDIS_REPLY_ARRAY);
    cr_assert_eq(list->elements, 0);
    expect_waiters(server, 0);
    work w = {.partition = 7, .number = 1};
    work_create(server, &w);
    cr_assert(work_is_in(server, &w, "eligible"));
    cr_assert_str_eq(connection_call(claimer, "PING")->str, "PONG");
    cr_assert_eq(claims_counter(server, "waiters_timed_out"), 1);
}

static const char *client_id(test_server *server) {
    const char *list = server_text(server, "CLIENT", "LIST");
    const char *found = strstr(list, "cmd=ff.claim");
    cr_assert_not_null(found);
    while (found > list && found[-1] != '\n') found--;
    found += strlen("id=");
    return server_keep(strndup(found, strcspn(found, " ")));
}

Test(claim_wait, unblocked_by_hand) {
    test_server *server = start();
    redisContext *claimer = join(server, "default", "w", "1", FOREVER);
    server_do(server, "CLIENT", "UNBLOCK", client_id(server));
    cr_assert_eq(waiting_reply(claimer)->elements, 0);
    expect_waiters(server, 0);
    cr_assert_str_eq(connection_call(claimer, "PING")->str, "PONG");
    claimer = join(server, "default", "w", "1", FOREVER);
    server_do(server, "CLIENT", "UNBLOCK", client_id(server), "ERROR");
    redisReply *reply = waiting_reply(claimer);
    cr_assert_eq(reply->type, REDIS_REPLY_ERROR);
    cr_assert_eq(strncmp(reply->str, "UNBLOCKED", 9), 0);
    expect_waiters(server, 0);
    work w = {.partition = 7, .number = 1};
    work_create(server, &w);
    claim_expect(server, &w, "default", "w", "2");
}

Test(claim_wait, those_who_disconnect_leave_no_trace) {
    test_server *server = start();
    redisContext *gone = join(server, "default", "w", "1", FOREVER);
    redisContext *killed = join(server, "default", "w", "2", FOREVER);
    redisContext *stays = join(server, "default", "w", "3", FOREVER);
    redisFree(gone);
    expect_waiters(server, 2);
    server_do(server, "CLIENT", "KILL", "ID", client_id(server));
    expect_waiters(server, 1);
    work w = {.partition = 7, .number = 1};
    work_create(server, &w);
    expect_gets(stays, &w);
    cr_assert_eq(claims_counter(server, "waiters_gone"), 2);
    redisFree(killed);
}

Test(claim_wait, does_not_wait_in_a_transaction_or_script) {
    test_server *server = start();
    redisContext *connection = server_connect(server);
    connection_call(connection, "MULTI");
    connection_call(connection, "FF.CLAIM", "default", "w", "1", FOREVER);
    redisReply *results = connection_call(connection, "EXEC");
    cr_assert_eq(results->element[0]->type, REDIS_REPLY_ARRAY);
    cr_assert_eq(results->element[0]->elements, 0);
    redisReply *scripted = server_call(
        server, "EVAL", "return redis.call('FF.CLAIM', 'default', 'w', '1', 'BLOCK', '0')", "0");
    cr_assert_eq(scripted->type, REDIS_REPLY_ARRAY, "%s", scripted->str ? scripted->str : "");
    cr_assert_eq(scripted->elements, 0);
    work w = {.partition = 7, .number = 1};
    work_create(server, &w);
    scripted = server_call(server, "EVAL",
                           "return redis.call('FF.CLAIM', 'default', 'w', '1', 'BLOCK', '0')", "0");
    cr_assert_str_eq(claimed_text(scripted, 0, "execution_id"), work_id(&w));
}

/* Nothing is written while writes are paused, and nothing is forgotten. */
Test(claim_wait, waits_for_a_pause_to_end) {
    test_server *server = server_start(NULL);
    work w = {.partition = 7, .number = 1};
    work_create(server, &w);
    claim_expect(server, &w, "default", "w", "1", "LEASE", "300");
    redisContext *claimer = waiting(server, "default", "w", "2", FOREVER);
    expect_waiters(server, 1);
    server_do(server, "CLIENT", "PAUSE", "800", "WRITE");
    cr_assert(is_waiting(claimer, 600));
    redisReply *list = waiting_reply(claimer);
    cr_assert_str_eq(claimed_text(list, 0, "attempt_type"), "reclaim");
}

Test(claim_wait, waits_while_memory_is_full) {
    test_server *server = start();
    work w = {.partition = 7, .number = 1};
    work_create(server, &w);
    claim_expect(server, &w, "default", "w", "1", "LEASE", "1000");
    redisContext *claimer = join(server, "default", "w", "2", FOREVER);
    server_do(server, "CONFIG", "SET", "maxmemory", "1");
    server_do(server, "PING");
    server_set_time(server, FROZEN_START_MS + 1000);
    cr_assert(is_waiting(claimer, 100));
    server_do(server, "CONFIG", "SET", "maxmemory", "1gb");
    server_do(server, "PING");
    server_set_time(server, FROZEN_START_MS + 2000);
    expect_gets(claimer, &w);
}

Test(claim_wait, a_new_replica_answers_its_waiters) {
    test_server *primary = start();
    test_server *other = start();
    redisContext *claimer = join(primary, "default", "w", "1", FOREVER);
    char port[16];
    snprintf(port, sizeof port, "%d", server_port(other));
    server_do(primary, "REPLICAOF", "127.0.0.1", port);
    redisReply *reply = waiting_reply(claimer);
    cr_assert_eq(reply->type, REDIS_REPLY_ERROR);
    cr_assert_eq(strncmp(reply->str, "UNBLOCKED", 9), 0);
    expect_waiters(primary, 0);
}

Test(claim_wait, count_takes_what_is_there) {
    test_server *server = start();
    redisContext *claimer = join(server, "default", "w", "1", FOREVER, "COUNT", "5");
    redisContext *connection = server_connect(server);
    connection_call(connection, "MULTI");
    for (int i = 0; i < 3; i++) {
        work w = {.partition = i, .number = i};
        work_append(connection, &w);
        redisReply *queued;
        redisGetReply(connection, (void **)&queued);
        freeReplyObject(queued);
    }
    connection_call(connection, "EXEC");
    cr_assert_eq(waiting_reply(claimer)->elements, 3);
}

Test(claim_wait, a_grant_can_be_waited_for) {
    test_server *server = start();
    redisContext *claimer = join(server, "default", "w", "1", FOREVER, "GRANT", "1000");
    work w = {.partition = 7, .number = 1};
    work_create(server, &w);
    redisReply *list = waiting_reply(claimer);
    cr_assert_str_eq(claimed_text(list, 0, "grant_key"), work_key(&w, "claim_grant"));
}

/* Lets this process, and the server that it starts, have so many connections; or as many as the machine allows, which
 * is said aloud. */
static int allow_connections(int wanted) {
    enum { OTHER_FILES = 200 };
    rlim_t needed = (rlim_t)wanted + OTHER_FILES;
    struct rlimit files;
    cr_assert_eq(getrlimit(RLIMIT_NOFILE, &files), 0);
    if (files.rlim_max < needed) {
        /* Allowed to those with privileges. */
        setrlimit(RLIMIT_NOFILE, &(struct rlimit){needed, needed});
        cr_assert_eq(getrlimit(RLIMIT_NOFILE, &files), 0);
    }
    files.rlim_cur = files.rlim_max < needed ? files.rlim_max : needed;
    cr_assert_eq(setrlimit(RLIMIT_NOFILE, &files), 0);
    if (files.rlim_cur == needed) return wanted;
    int possible = (int)files.rlim_cur - OTHER_FILES;
    cr_log_warn("only %d of %d clients: the hard limit of open files is %llu", possible, wanted,
                (unsigned long long)files.rlim_max);
    return possible;
}

/* Thousands wait: one creation wakes one of them, and looks at none of the others. */
Test(claim_wait, thousands_cost_nothing) {
    enum { SERVED = 10 };
    int count = allow_connections(10000);
    cr_assert_gt(count, SERVED, "the limit of open files is too low for this test");
    char config[32];
    snprintf(config, sizeof config, "maxclients %d\n", count + 50);
    test_server *server = server_start(&(server_options){.config = config});
    redisContext **claimers = server_keep(calloc((size_t)count, sizeof *claimers));
    for (int i = 0; i < count; i++) {
        char instance[16];
        snprintf(instance, sizeof instance, "%d", i);
        claimers[i] = waiting(server, "default", "w", instance, FOREVER);
        if (i % 500 == 499) expect_waiters(server, i + 1);
    }
    expect_waiters(server, count);
    int64_t wakeups = claims_counter(server, "wakeups");
    poll(NULL, 0, 200);
    cr_assert_eq(claims_counter(server, "wakeups"), wakeups, "nobody is woken without a reason");
    for (int i = 0; i < SERVED; i++) {
        work w = {.partition = i * 7, .number = i};
        work_create(server, &w);
        expect_gets(claimers[i], &w);
    }
    expect_waiters(server, count - SERVED);
    /* Whoever gets it, and the next in line, which finds nothing. */
    cr_assert_leq(claims_counter(server, "wakeups") - wakeups, 6 * SERVED);
    for (int i = 0; i < count; i++) redisFree(claimers[i]);
    expect_waiters(server, 0);
}
