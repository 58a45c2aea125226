/* Where a cycle begins, and that nobody is forgotten. */
#include "harness.h"
#include "work.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PARTITIONS = 256, PER_SCAN = 32, WINDOW_MS = 250 };

static unsigned fnv_mod(const char *text, unsigned modulus) {
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (; *text; text++) hash = (hash ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
    return (unsigned)(hash & 0xffff) % modulus;
}

static int partition_of(const redisReply *list, size_t position) {
    return atoi(claimed_text(list, position, "execution_id") + strlen("{fp:"));
}

static test_server *start_with_work_everywhere(void) {
    test_server *server = server_start(&(server_options){.frozen_clock = true});
    redisContext *connection = server_connect(server);
    for (int p = 0; p < PARTITIONS; p++) work_append(connection, &(work){.partition = p});
    for (int p = 0; p < PARTITIONS; p++) {
        redisReply *reply;
        cr_assert_eq(redisGetReply(connection, (void **)&reply), REDIS_OK);
        freeReplyObject(reply);
    }
    redisFree(connection);
    return server;
}

Test(claim_rotation, the_instance_says_where_to_begin) {
    test_server *server = start_with_work_everywhere();
    bool taken[PARTITIONS] = {false};
    for (int i = 0; i < 100; i++) {
        char instance[24];
        snprintf(instance, sizeof instance, "instance-%d", i);
        unsigned expected = fnv_mod(instance, PARTITIONS);
        while (taken[expected]) expected = (expected + 1) % PARTITIONS;
        int got = partition_of(claim(server, "default", "w", instance), 0);
        cr_assert_eq(got, (int)expected, "%s", instance);
        taken[got] = true;
    }
}

/* A grant leaves the execution where it is, so that every partition stays worth a visit. */
Test(claim_rotation, every_partition_is_visited_within_eight_windows) {
    test_server *server = start_with_work_everywhere();
    bool seen[PARTITIONS] = {false};
    int total = 0;
    for (int window = 0; window < PARTITIONS / PER_SCAN; window++) {
        server_set_time(server, FROZEN_START_MS + window * WINDOW_MS);
        redisReply *list = claim(server, "default", "w", "one", "COUNT", "1000", "GRANT", "100000");
        cr_assert_eq(list->elements, PER_SCAN);
        for (size_t i = 0; i < list->elements; i++) {
            int p = partition_of(list, i);
            cr_assert(!seen[p]);
            seen[p] = true;
            total++;
        }
        /* The cursor stands still within a window. */
        cr_assert_eq(claim(server, "default", "w", "one", "GRANT", "1000")->elements, 0);
    }
    cr_assert_eq(total, PARTITIONS);
}

Test(claim_rotation, allowance_and_window_can_be_set) {
    test_server *server = start_with_work_everywhere();
    server_do(server, "CONFIG", "SET", "ff.claim-partitions-per-scan", "3", "ff.claim-rotation-ms",
              "1000");
    int first = partition_of(claim(server, "default", "w", "one", "GRANT", "100000"), 0);
    cr_assert_eq(claim(server, "default", "w", "one", "COUNT", "9", "GRANT", "100000")->elements,
                 2);
    server_set_time(server, FROZEN_START_MS + 999);
    claim_expect_none(server, "default", "w", "one", "GRANT", "100000");
    server_set_time(server, FROZEN_START_MS + 1000);
    int next = partition_of(claim(server, "default", "w", "one", "GRANT", "100000"), 0);
    cr_assert_eq(next, (first + 3) % PARTITIONS);
    server_expect_error(server, "ERR", "CONFIG", "SET", "ff.claim-rotation-ms", "0");
    server_expect_error(server, "ERR", "CONFIG", "SET", "ff.claim-block-limit", "0");
}

/* Thousands of calls: work appears anywhere at any time, many workers ask, time goes on.
 * Everything is handed out exactly once, in the order of its partition, and soon. */
Test(claim_rotation, nothing_is_starved) {
    enum { ROUNDS = 3000, WORKERS = 10 };
    test_server *server = server_start(&(server_options){.frozen_clock = true});
    static int created_in[ROUNDS * 2];
    static bool handed_out[ROUNDS * 2];
    int created = 0, claimed_total = 0;
    int64_t now = FROZEN_START_MS;
    int last_number[PARTITIONS];
    memset(last_number, -1, sizeof last_number);
    srand(7);
    for (int round = 0; round < ROUNDS; round++) {
        server_set_time(server, now += rand() % 3);
        int births = rand() % 3;
        for (int i = 0; i < births; i++, created++) {
            created_in[created] = rand() % PARTITIONS;
            work_create(server, &(work){.partition = created_in[created], .number = created});
        }
        char instance[16];
        snprintf(instance, sizeof instance, "i%d", rand() % WORKERS);
        redisReply *list = claim(server, "default", "w", instance, "LEASE", "100000000");
        if (list->elements == 0) {
            cr_assert_eq(claimed_total, created, "there was work, and none was found");
            continue;
        }
        int p = partition_of(list, 0);
        int number = atoi(strrchr(claimed_text(list, 0, "execution_id"), '-') + 1);
        cr_assert_eq(created_in[number], p);
        cr_assert(!handed_out[number]);
        cr_assert_gt(number, last_number[p], "older work goes first");
        handed_out[number] = true;
        last_number[p] = number;
        claimed_total++;
    }
    while (claimed_total < created) {
        size_t got = claim(server, "default", "w", "last", "COUNT", "100")->elements;
        cr_assert_gt(got, 0);
        claimed_total += (int)got;
    }
    cr_assert_eq(claims_counter(server, "claimed"), created);
}
