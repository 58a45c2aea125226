/* Several at once: exactly one gets it, and nothing is lost. */
#include "harness.h"
#include "work.h"

#include <criterion/criterion.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *number_text(int64_t value) {
    char *digits = server_keep(malloc(24));
    snprintf(digits, 24, "%lld", (long long)value);
    return digits;
}

Test(claim_race, two_claimers_and_one_execution) {
    test_server *server = server_start(NULL);
    for (int i = 0; i < 200; i++) {
        work w = {.partition = i, .number = i};
        work_create(server, &w);
        redisContext *a = waiting(server, "default", "w", "a");
        redisContext *b = waiting(server, "default", "w", "b");
        size_t got = waiting_reply(a)->elements + waiting_reply(b)->elements;
        cr_assert_eq(got, 1);
        cr_assert_str_eq(work_field(server, &w, "current_lease_epoch"), "1");
        redisFree(a);
        redisFree(b);
    }
}

static void append_cancel(redisContext *connection, const work *w) {
    const char *id = work_id(w);
    const char *words[] = {"FF.CALL",
                           "ff_cancel_execution",
                           "21",
                           work_key(w, "core"),
                           "ff:attempt:{fp:7}:x:0",
                           "ff:stream:{fp:7}:x:0:meta",
                           work_key(w, "lease:current"),
                           work_key(w, "lease:history"),
                           work_index(7, "lease_expiry"),
                           work_index(7, "worker:wi:leases"),
                           work_key(w, "suspension:current"),
                           "ff:wp:{fp:7}:none",
                           "ff:wp:{fp:7}:none:condition",
                           work_index(7, "suspension_timeout"),
                           work_lane_key(w, "terminal"),
                           work_index(7, "attempt_timeout"),
                           work_index(7, "execution_deadline"),
                           work_lane_key(w, "eligible"),
                           work_lane_key(w, "delayed"),
                           work_lane_key(w, "blocked:dependencies"),
                           work_lane_key(w, "blocked:budget"),
                           work_lane_key(w, "blocked:quota"),
                           work_lane_key(w, "blocked:route"),
                           work_lane_key(w, "blocked:operator"),
                           id,
                           "changed my mind",
                           ""};
    redisAppendCommandArgv(connection, sizeof words / sizeof *words, words, NULL);
    for (int done = 0; !done;) redisBufferWrite(connection, &done);
}

Test(claim_race, a_claimer_against_cancel) {
    test_server *server = server_start(NULL);
    redisContext *canceller = server_connect(server);
    int won = 0;
    for (int i = 0; i < 200; i++) {
        work w = {.partition = 7, .number = i};
        work_create(server, &w);
        redisContext *claimer;
        if (i % 2) append_cancel(canceller, &w);
        claimer = waiting(server, "default", "w", "wi");
        /* Now and then the claim is certainly over before. */
        if (i % 8 == 0) cr_assert(!is_waiting(claimer, 5000));
        if (i % 2 == 0) append_cancel(canceller, &w);
        bool got = waiting_reply(claimer)->elements == 1;
        waiting_reply(canceller);
        won += got;
        cr_assert_str_eq(work_field(server, &w, "lifecycle_phase"), "terminal");
        cr_assert(!work_is_in(server, &w, "eligible"));
        claim_expect_none(server, "default", "w", "wi");
        redisFree(claimer);
    }
    cr_assert_geq(won, 25);
}

/* A budget that opens and closes: the execution goes to and fro, is in exactly one index, and is
 * claimed in the end. */
Test(claim_race, blocked_and_unblocked_again_and_again) {
    test_server *server = server_start(&(server_options){.frozen_clock = true});
    work w = {.partition = 7, .number = 1};
    work_create(server, &w);
    server_do(server, "HSET", work_key(&w, "core"), "budget_ids", "team");
    server_do(server, "HSET", "ff:budget:{b:0}:team:limits", "hard:tokens", "10");
    server_do(server, "HSET", "ff:budget:{b:0}:team:usage", "tokens", "10");
    redisContext *claimer = waiting(server, "default", "w", "1", "BLOCK", "0");
    expect_waiters(server, 1);
    for (int i = 0; i < 100; i++) {
        cr_assert(work_is_in(server, &w, "blocked:budget"));
        cr_assert(!work_is_in(server, &w, "eligible"));
        if (i == 99) server_do(server, "HSET", "ff:budget:{b:0}:team:usage", "tokens", "9");
        server_do(server, "FF.CALL", "ff_unblock_execution", "3", work_key(&w, "core"),
                  work_lane_key(&w, "blocked:budget"), work_lane_key(&w, "eligible"), work_id(&w),
                  number_text(FROZEN_START_MS + i), "");
    }
    redisReply *list = waiting_reply(claimer);
    cr_assert_eq(list->elements, 1);
    cr_assert(!work_is_in(server, &w, "eligible"));
    cr_assert(!work_is_in(server, &w, "blocked:budget"));
}

/* ---- Churn ---- */

enum { CLAIMERS = 40, EXECUTIONS = 1500 };

typedef struct churn {
    test_server *server;
    redisContext *claimers[CLAIMERS];
    work works[EXECUTIONS];
    int replies[EXECUTIONS]; /* how often each was handed to a client that heard of it */
    int heard;
    int timeouts;
    int walked_away;
    int partitions;
} churn;

static const char *const wishes[][4] = {
    {"CAPS", "gpu,arm", NULL}, {"CAPS", "arm", NULL},
    {"NAMESPACE", "a", NULL},  {NULL},
    {"COUNT", "3", NULL},      {NULL},
};

static void begin_claim(churn *c, int i) {
    const char *words[16] = {"FF.CLAIM", "default", "w", number_text(i)};
    int count = 4;
    for (const char *const *wish = wishes[rand() % 6]; *wish; wish++) words[count++] = *wish;
    words[count++] = "BLOCK";
    words[count++] = rand() % 3 ? "0" : number_text(1 + rand() % 20);
    words[count] = NULL;
    c->claimers[i] = waiting_words(c->server, words);
}

static void hear(churn *c, int i) {
    redisReply *list = waiting_reply(c->claimers[i]);
    cr_assert_eq(list->type, REDIS_REPLY_ARRAY, "%s", list->str ? list->str : "");
    if (list->elements == 0) c->timeouts++;
    for (size_t k = 0; k < list->elements; k++) {
        int number = atoi(strrchr(claimed_text(list, k, "execution_id"), '-') + 1);
        cr_assert_eq(claimed_integer(list, k, "lease_epoch"), 1, "handed out a second time");
        c->replies[number]++;
        c->heard++;
    }
    redisFree(c->claimers[i]);
    begin_claim(c, i);
}

static void create_some(churn *c, int *created) {
    for (int n = rand() % 4; n > 0 && *created < EXECUTIONS; n--, ++*created) {
        work *w = &c->works[*created];
        *w = (work){.partition = rand() % c->partitions, .number = *created};
        if (rand() % 4 == 0) w->capabilities = "[\"gpu\"]";
        if (rand() % 3 == 0) w->namespace = "a";
        work_create(c->server, w);
    }
}

/* One of the claimers is asked for its reply, or leaves without one. */
static void disturb(churn *c) {
    int i = rand() % CLAIMERS;
    if (!is_waiting(c->claimers[i], 0)) {
        hear(c, i);
    } else if (rand() % 10 == 0) {
        redisFree(c->claimers[i]);
        c->walked_away++;
        begin_claim(c, i);
    }
}

/* Each execution was claimed once: then somebody has heard of it, unless the claimer had left at
 * that moment. Or it is where a claim can find it. */
static void account(churn *c, int created) {
    int lost = 0;
    for (int i = 0; i < created; i++) {
        const work *w = &c->works[i];
        const char *epoch = work_field(c->server, w, "current_lease_epoch");
        cr_assert_leq(c->replies[i], 1);
        if (strcmp(epoch, "1") == 0) {
            lost += c->replies[i] == 0;
            cr_assert(work_is_in(c->server, w, "active"));
        } else {
            cr_assert_str_eq(epoch, "0");
            cr_assert_eq(c->replies[i], 0);
            cr_assert(work_is_in(c->server, w, "eligible") ||
                      work_is_in(c->server, w, "blocked:route"));
        }
    }
    cr_assert_leq(lost, c->walked_away * 3);
}

static void run_churn(int partitions, const char *config) {
    static churn c;
    int created = 0;
    c.partitions = partitions;
    c.server = server_start(&(server_options){.config = config});
    test_server *replica =
        server_start_replica(c.server, &(server_options){.without_module = true});
    srand(11);
    for (int i = 0; i < CLAIMERS; i++) begin_claim(&c, i);
    while (created < EXECUTIONS) {
        create_some(&c, &created);
        for (int n = 0; n < 6; n++) disturb(&c);
    }
    poll(NULL, 0, 50);
    for (int i = 0; i < CLAIMERS; i++) {
        while (!is_waiting(c.claimers[i], 0)) hear(&c, i);
    }
    cr_assert(c.heard > EXECUTIONS / 2 && c.timeouts > 0 && c.walked_away > 0);
    for (int i = 0; i < CLAIMERS; i++) redisFree(c.claimers[i]);
    expect_waiters(c.server, 0);
    account(&c, created);
    server_do(c.server, "SET", "last", "write"); /* which the comparison waits for */
    server_expect_same_data(c.server, replica);
}

Test(claim_race, churn, .timeout = 120) { run_churn(256, NULL); }

/* Hardly anything is found at the first look. */
Test(claim_race, churn_within_narrow_bounds, .timeout = 120) {
    run_churn(4, "ff.claim-lookahead 1\nff.claim-block-limit 1\nff.claim-partitions-per-scan 1\n");
}
