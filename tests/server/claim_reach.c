/* Work behind more candidates than one call looks at: calls get there one after the other, and whoever waits
 * is not left waiting. */
#include "harness.h"
#include "work.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FOREVER "BLOCK", "0"
#define WORKER "w", "wi"

static test_server *start(void) { return server_start(&(server_options){.frozen_clock = true}); }

static const char *number_text(int64_t value) {
    char *digits = server_keep(malloc(24));
    snprintf(digits, 24, "%lld", (long long)value);
    return digits;
}

static const char *lane_of(const work *w) { return w->lane ? w->lane : "default"; }

/* Creates `count` executions of one partition, and leases them until a time after the start. */
static void lease_many(test_server *server, work first, int count, int64_t until) {
    char tag[16];
    snprintf(tag, sizeof tag, "{fp:%d}", first.partition);
    work_create_many(server, first, count);
    redisReply *list = claim(server, lane_of(&first), WORKER, "COUNT", number_text(count), "LEASE",
                             number_text(until), "PARTITION", tag, "CAPS", "gpu");
    cr_assert_eq(list->elements, (size_t)count);
}

/* Claims until something is handed out, which must be `w`. Returns how many calls that took. */
static int calls_until(test_server *server, const work *w, int most, command_words words) {
    for (int calls = 1; calls <= most; calls++) {
        redisReply *list = claim_words(server, words);
        if (list->elements == 0) continue;
        cr_assert_str_eq(claimed_text(list, 0, "execution_id"), work_id(w));
        return calls;
    }
    cr_assert_fail("%d calls have not found %s", most, work_id(w));
    return most;
}
#define CALLS_UNTIL(server, w, most, ...) \
    calls_until(server, w, most, WORDS("FF.CLAIM", __VA_ARGS__))

static void expect_gets(redisContext *claimer, const work *w) {
    redisReply *list = waiting_reply(claimer);
    cr_assert_eq(list->type, REDIS_REPLY_ARRAY, "%s", list->str ? list->str : "");
    cr_assert_eq(list->elements, 1);
    cr_assert_str_eq(claimed_text(list, 0, "execution_id"), work_id(w));
}

/* ---- Leases that ran out ---- */

static const work mine = {.partition = 7, .number = 900000, .lane = "b"};

/* `others` leases of lane a ran out before the one of lane b. */
static test_server *start_with_lapsed(int others) {
    test_server *server = start();
    lease_many(server, (work){.partition = 7, .number = 1, .lane = "a"}, others, 10);
    lease_many(server, mine, 1, 20);
    server_set_time(server, FROZEN_START_MS + 20);
    return server;
}

Test(claim_reach, lapsed_leases_of_another_lane_hide_nothing) {
    test_server *server = start_with_lapsed(200);
    claim_expect(server, &mine, "b", WORKER);
    claim_expect_none(server, "b", WORKER);
}

Test(claim_reach, nor_do_they_hide_it_from_a_further_lane) {
    test_server *server = start_with_lapsed(200);
    claim_expect(server, &mine, "none", WORKER, "LANES", "2", "neither", "b");
}

Test(claim_reach, nor_from_a_claimer_that_may_wait) {
    test_server *server = start_with_lapsed(200);
    expect_gets(waiting(server, "b", WORKER, FOREVER), &mine);
}

Test(claim_reach, calls_get_behind_any_number_of_lapsed_leases) {
    test_server *server = start_with_lapsed(5000);
    int calls = CALLS_UNTIL(server, &mine, 45, "b", WORKER);
    cr_assert_geq(calls, 5, "one call is bounded");
    for (int i = 0; i < 45; i++) claim_expect_none(server, "b", WORKER);
}

Test(claim_reach, a_waiter_gets_behind_any_number_of_lapsed_leases) {
    test_server *server = start_with_lapsed(5000);
    expect_gets(waiting(server, "b", WORKER, FOREVER), &mine);
    redisContext *next = waiting(server, "b", WORKER, FOREVER);
    expect_waiters(server, 1);
    cr_assert(is_waiting(next, 50));
}

/* Who waits already is told of a lease that runs out behind all the others. */
Test(claim_reach, a_waiter_is_woken_for_a_lease_behind_the_others) {
    test_server *server = start();
    lease_many(server, (work){.partition = 7, .number = 1, .lane = "a"}, 5000, 10);
    lease_many(server, mine, 1, 1000);
    server_set_time(server, FROZEN_START_MS + 20);
    redisContext *claimer = waiting(server, "b", WORKER, FOREVER);
    expect_waiters(server, 1);
    cr_assert(is_waiting(claimer, 50));
    /* Much later: a long search is followed by a rest. */
    server_set_time(server, FROZEN_START_MS + 100000);
    expect_gets(claimer, &mine);
}

Test(claim_reach, lapsed_leases_of_another_tenant_hide_nothing) {
    test_server *server = start();
    work own = {.partition = 7, .number = 900000, .namespace = "b"};
    lease_many(server, (work){.partition = 7, .number = 1, .namespace = "a"}, 1000, 10);
    lease_many(server, own, 1, 20);
    server_set_time(server, FROZEN_START_MS + 20);
    redisContext *claimer = waiting(server, "default", WORKER, "NAMESPACE", "b", FOREVER);
    expect_gets(claimer, &own);
    server_set_time(server, FROZEN_START_MS + 40000);
    CALLS_UNTIL(server, &own, 20, "default", WORKER, "NAMESPACE", "b");
}

Test(claim_reach, lapsed_leases_that_need_more_hide_nothing) {
    test_server *server = start();
    work plain = {.partition = 7, .number = 900000};
    lease_many(server, (work){.partition = 7, .number = 1, .capabilities = "[\"gpu\"]"}, 200, 10);
    lease_many(server, plain, 1, 20);
    server_set_time(server, FROZEN_START_MS + 20);
    CALLS_UNTIL(server, &plain, 30, "default", WORKER);
    server_set_time(server, FROZEN_START_MS + 40000);
    expect_gets(waiting(server, "default", WORKER, FOREVER), &plain);
}

/* Leases that the worker cannot take over do not keep it from the queue. */
Test(claim_reach, lapsed_leases_do_not_hide_the_queue) {
    test_server *server = start();
    lease_many(server, (work){.partition = 7, .number = 1, .capabilities = "[\"gpu\"]"}, 40, 10);
    server_set_time(server, FROZEN_START_MS + 20);
    for (int i = 0; i < 20; i++) {
        work plain = {.partition = 7, .number = 1000 + i};
        work_create(server, &plain);
        CALLS_UNTIL(server, &plain, 4, "default", WORKER);
    }
}

/* ---- Queues ---- */

Test(claim_reach, other_tenants_in_front_hide_nothing) {
    test_server *server = server_start(NULL);
    work own = {.partition = 7, .number = 900000, .namespace = "b"};
    work_create_many(server, (work){.partition = 7, .number = 1, .namespace = "a"}, 2000);
    work_create(server, &own);
    int calls = CALLS_UNTIL(server, &own, 65, "default", WORKER, "NAMESPACE", "b");
    cr_assert_geq(calls, 2000 / 64, "one call is bounded");
    own.number++;
    work_create(server, &own);
    expect_gets(waiting(server, "default", WORKER, "NAMESPACE", "b", FOREVER), &own);
    own.number++;
    redisContext *claimer = waiting(server, "default", WORKER, "NAMESPACE", "b", FOREVER);
    expect_waiters(server, 1);
    work_create(server, &own);
    expect_gets(claimer, &own);
}

/* What is new at the head does not wait until calls have come to the end. */
Test(claim_reach, the_head_is_looked_at_meanwhile) {
    test_server *server = start();
    work own = {.partition = 7, .number = 900000, .namespace = "b", .priority = "9"};
    work_create_many(server, (work){.partition = 7, .number = 1, .namespace = "a"}, 2000);
    for (int i = 0; i < 3; i++) {
        claim_expect_none(server, "default", WORKER, "NAMESPACE", "b");
        own.number++;
        work_create(server, &own);
        claim_expect(server, &own, "default", WORKER, "NAMESPACE", "b");
    }
}

static void register_gpu_worker(test_server *server) {
    server_do(server, "FF.CALL", "ff_register_worker", "3", "ff:worker:ns:other:alive",
              "ff:worker:ns:other:caps", "ff:idx:ns:workers", "other", "o", "default", "gpu",
              "500000", number_text(FROZEN_START_MS));
}

Test(claim_reach, what_others_can_run_hides_nothing) {
    test_server *server = start();
    work plain = {.partition = 7, .number = 900000};
    register_gpu_worker(server);
    work_create_many(server, (work){.partition = 7, .number = 1, .capabilities = "[\"gpu\"]"}, 300);
    server_set_time(server, FROZEN_START_MS + 1);
    work_create(server, &plain);
    CALLS_UNTIL(server, &plain, 40, "default", WORKER);
    plain.number++;
    work_create(server, &plain);
    expect_gets(waiting(server, "default", WORKER, FOREVER), &plain);
}

/* Doubtful limits in several partitions of the first lane: the calls get behind all of them, and to the other
 * lane, in time. */
Test(claim_reach, doubt_is_never_in_the_way) {
    test_server *server = start();
    server_do(server, "SET", "ff:budget:{b:0}:team:limits", "not a hash");
    for (int p = 0; p < 5; p++) {
        work_create_many(server, (work){.partition = p, .number = p * 100}, 50);
    }
    server_do(server, "EVAL",
              "for p = 0, 4 do for i = 0, 49 do redis.call('HSET', string.format('ff:exec:{fp:%d}:"
              "{fp:%d}:00000000-0000-4000-8000-%012d:core', p, p, p * 100 + i), 'budget_ids',"
              " 'team') end end",
              "0");
    server_set_time(server, FROZEN_START_MS + 1);
    work behind = {.partition = 3, .number = 900000};
    work elsewhere = {.partition = 4, .number = 900001, .lane = "second"};
    work_create(server, &behind);
    CALLS_UNTIL(server, &behind, 40, "default", WORKER);
    work_create(server, &elsewhere);
    CALLS_UNTIL(server, &elsewhere, 80, "default", WORKER, "LANES", "1", "second");
    elsewhere.number++;
    work_create(server, &elsewhere);
    redisContext *claimer = waiting(server, "default", WORKER, "LANES", "1", "second", FOREVER);
    expect_gets(claimer, &elsewhere);
    cr_assert_eq(server_integer(server, "ZCARD", "ff:idx:{fp:0}:lane:default:eligible"), 50);
}

/* A partition that never gets empty does not keep the calls from the next one. */
Test(claim_reach, a_rich_partition_does_not_hide_the_next) {
    test_server *server = start();
    for (int p = 1; p <= 2; p++) {
        work_create_many(server, (work){.partition = p, .number = 1000 * p, .namespace = "a"}, 200);
    }
    server_set_time(server, FROZEN_START_MS + 1);
    for (int p = 1; p <= 2; p++) {
        work_create_many(server, (work){.partition = p, .number = 3000 * p, .namespace = "b"}, 20);
    }
    work refill = {.number = 10000, .namespace = "b"};
    int other = 0;
    for (int calls = 0; other == 0; calls++) {
        cr_assert(calls < 200, "only from partition %d", refill.partition);
        redisReply *list = claim(server, "default", WORKER, "NAMESPACE", "b");
        if (list->elements == 0) continue;
        int p = atoi(claimed_text(list, 0, "execution_id") + strlen("{fp:"));
        if (refill.partition == 0) refill.partition = p;
        if (p != refill.partition) other = p;
        refill.number++;
        work_create(server, &refill);
    }
}

/* Others write to the queue all the time, and every write wakes the waiter: it gets to the end all the same. */
Test(claim_reach, a_waiter_that_is_woken_again_and_again_comes_to_the_end) {
    test_server *server = server_start(NULL);
    work own = {.partition = 7, .number = 900000, .namespace = "b"};
    for (int i = 0; i < 3; i++) {
        work_create_many(
            server, (work){.partition = 5 + i, .number = 1 + i * 10000, .namespace = "a"}, 4000);
    }
    redisContext *claimer = waiting(server, "default", WORKER, "NAMESPACE", "b", FOREVER);
    expect_waiters(server, 1);
    work_create(server, &own);
    work noise = {.partition = 5, .number = 100000, .namespace = "a", .priority = "5"};
    for (int i = 0; is_waiting(claimer, 0); i++) {
        cr_assert(i < 20000, "the waiter is not served");
        noise.number++;
        work_create(server, &noise);
    }
    expect_gets(claimer, &own);
}

/* Tenants take from one queue in turns, with a view of one or two entries. Nobody misses anything, though what
 * others take moves everything. */
Test(claim_reach, tenants_in_turns_get_all_that_is_theirs) {
    enum { TENANTS = 3, EACH = 60, CALLS = 4000 };
    static const char *const names[TENANTS] = {"a", "b", "c"};
    test_server *server = start();
    int left[TENANTS] = {0};
    srand(3);
    for (int i = 0; i < TENANTS * EACH; i++) {
        int tenant = rand() % TENANTS;
        work w = {.partition = rand() % 2, .number = i, .namespace = names[tenant]};
        if (i % 7 == 0) server_set_time(server, FROZEN_START_MS + i);
        work_create(server, &w);
        left[tenant]++;
    }
    int calls = 0;
    while (left[0] + left[1] + left[2] > 0) {
        cr_assert(calls++ < CALLS, "%d, %d and %d are left", left[0], left[1], left[2]);
        int tenant = rand() % TENANTS;
        server_do(server, "CONFIG", "SET", "ff.claim-lookahead", rand() % 2 ? "1" : "2");
        redisReply *list = claim(server, "default", WORKER, "NAMESPACE", names[tenant]);
        left[tenant] -= (int)list->elements;
    }
}

/* The same for those who wait: as many as there is work for, each gets its own. */
Test(claim_reach, tenants_that_wait_get_all_that_is_theirs) {
    enum { TENANTS = 3, EACH = 20 };
    static const char *const names[TENANTS + 1] = {"a", "b", "c", "nobody"};
    test_server *server = server_start(&(server_options){
        .config =
            "ff.claim-lookahead 1\nff.claim-block-limit 1\nff.claim-partitions-per-scan 1\n"});
    redisContext *claimers[TENANTS * EACH];
    for (int i = 0; i < TENANTS * EACH; i++) {
        claimers[i] =
            waiting(server, "default", WORKER, "NAMESPACE", names[i % TENANTS], "BLOCK", "0");
    }
    expect_waiters(server, TENANTS * EACH);
    redisContext *creator = server_connect(server);
    for (int i = 0; i < (TENANTS + 1) * EACH; i++) {
        const char *tenant = names[TENANTS - i % (TENANTS + 1)];
        work_append(creator, &(work){.partition = i % 3, .number = i, .namespace = tenant});
    }
    for (int i = 0; i < (TENANTS + 1) * EACH; i++) {
        redisReply *reply;
        cr_assert_eq(redisGetReply(creator, (void **)&reply), REDIS_OK);
        freeReplyObject(reply);
    }
    for (int i = 0; i < TENANTS * EACH; i++) {
        cr_assert_eq(waiting_reply(claimers[i])->elements, 1);
    }
    expect_waiters(server, 0);
}
