/* FF.CLAIM, rule by rule, on a frozen clock. */
#include "harness.h"
#include "work.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORKER "default", "w", "wi"

static test_server *start(void) { return server_start(&(server_options){.frozen_clock = true}); }

static const char *at(int64_t after_ms) {
    char *digits = server_keep(malloc(32));
    snprintf(digits, 32, "%lld", (long long)(FROZEN_START_MS + after_ms));
    return digits;
}

static void expect_field(test_server *server, const work *w, const char *field,
                         const char *expected) {
    const char *value = work_field(server, w, field);
    cr_assert(value && strcmp(value, expected) == 0, "%s of %s is %s, not %s", field, work_id(w),
              value ? value : "missing", expected);
}

static void expect_blocked(test_server *server, const work *w, const char *index,
                           const char *reason, const char *detail) {
    cr_assert(work_is_in(server, w, index), "%s is not in %s", work_id(w), index);
    cr_assert(!work_is_in(server, w, "eligible"));
    expect_field(server, w, "blocking_reason", reason);
    expect_field(server, w, "blocking_detail", detail);
}

static bool is_uuid_v4(const char *text) {
    return strlen(text) == 36 && text[14] == '4' && strchr("89ab", text[19]);
}

Test(claim_rules, hands_out_a_live_lease) {
    test_server *server = start();
    work w = {.partition = 7, .number = 1, .priority = "3"};
    work_create(server, &w);
    redisReply *list = claim_expect(server, &w, WORKER, "LEASE", "9000");
    cr_assert(is_uuid_v4(claimed_text(list, 0, "lease_id")));
    cr_assert(is_uuid_v4(claimed_text(list, 0, "attempt_id")));
    cr_assert_eq(claimed_integer(list, 0, "lease_epoch"), 1);
    cr_assert_eq(claimed_integer(list, 0, "attempt_index"), 0);
    cr_assert_str_eq(claimed_text(list, 0, "attempt_type"), "initial");
    cr_assert_eq(claimed_integer(list, 0, "expires_at"), FROZEN_START_MS + 9000);
    cr_assert_str_eq(claimed_text(list, 0, "kind"), "task");
    cr_assert_eq(claimed_integer(list, 0, "priority"), 3);
    cr_assert_str_eq(claimed_text(list, 0, "payload"), "payload");
    cr_assert_str_eq(claimed(list, 0, "tags")->element[1]->str, "red");
    cr_assert_eq(claimed(list, 0, "flow_id")->type, REDIS_REPLY_NIL);
    expect_field(server, &w, "lease_renewal_deadline", at(6000));
    expect_field(server, &w, "current_worker_id", "w");
    expect_field(server, &w, "current_worker_instance_id", "wi");
    expect_field(server, &w, "ownership_state", "leased");
    cr_assert(!work_is_in(server, &w, "eligible"));
    cr_assert(work_is_in(server, &w, "active"));
    cr_assert_eq(server_integer(server, "EXISTS", work_key(&w, "claim_grant")), 0);
    work_complete(server, list, 0, "default", "wi");
    expect_field(server, &w, "public_state", "completed");
    claim_expect_none(server, WORKER);
}

/* The grant is never seen: neither as an event nor on a replica. */
Test(claim_rules, the_grant_is_spent_before_anyone_sees_it) {
    test_server *server = start();
    test_server *replica = server_start_replica(server, &(server_options){.without_module = true});
    work w = {.partition = 7, .number = 1};
    work_create(server, &w);
    claim_expect(server, &w, WORKER);
    server_expect_same_data(server, replica);
    cr_assert_null(server_info(replica, "commandstats", "cmdstat_del"));
    cr_assert_null(server_info(replica, "commandstats", "cmdstat_pexpireat"));
}

Test(claim_rules, higher_priority_first_then_older) {
    test_server *server = start();
    work old = {.partition = 7, .number = 1};
    work young = {.partition = 7, .number = 2};
    work urgent = {.partition = 7, .number = 3, .priority = "9"};
    work_create(server, &old);
    server_set_time(server, FROZEN_START_MS + 5);
    work_create(server, &young);
    work_create(server, &urgent);
    claim_expect(server, &urgent, WORKER);
    claim_expect(server, &old, WORKER);
    claim_expect(server, &young, WORKER);
}

Test(claim_rules, bad_input_is_refused_and_writes_nothing) {
    static const struct {
        const char *error;
        const char *words[8];
    } calls[] = {
        {"ERR", {"FF.CLAIM", "default", "w"}},
        {"ERR", {"FF.CLAIM", "", "w", "wi"}},
        {"ERR", {"FF.CLAIM", "default", "", "wi"}},
        {"ERR", {"FF.CLAIM", "default", "w", ""}},
        {"ERR unknown option 'FOR'", {"FF.CLAIM", WORKER, "FOR", "1"}},
        {"ERR", {"FF.CLAIM", WORKER, "COUNT"}},
        {"ERR", {"FF.CLAIM", WORKER, "COUNT", "0"}},
        {"ERR", {"FF.CLAIM", WORKER, "COUNT", "ten"}},
        {"ERR", {"FF.CLAIM", WORKER, "LEASE", "0"}},
        {"ERR", {"FF.CLAIM", WORKER, "LEASE", "1.5"}},
        {"ERR", {"FF.CLAIM", WORKER, "BLOCK", "-1"}},
        {"ERR", {"FF.CLAIM", WORKER, "GRANT", "0"}},
        {"ERR", {"FF.CLAIM", WORKER, "NAMESPACE", ""}},
        {"ERR", {"FF.CLAIM", WORKER, "LANES", "2", "a"}},
        {"ERR", {"FF.CLAIM", WORKER, "LANES", "1", "\t"}},
        {"ERR", {"FF.CLAIM", WORKER, "PARTITION", "{fp:256}"}},
        {"ERR", {"FF.CLAIM", WORKER, "PARTITION", "{fp:07}"}},
        {"ERR", {"FF.CLAIM", WORKER, "PARTITION", "{b:1}"}},
        {"ERR", {"FF.CLAIM", WORKER, "PARTITION", "7"}},
        {"INVALID_CAPABILITIES", {"FF.CLAIM", WORKER, "CAPS", "gpu,,arm"}},
        {"INVALID_CAPABILITIES", {"FF.CLAIM", WORKER, "CAPS", "gpu, arm"}},
        {"INVALID_CAPABILITIES", {"FF.CLAIM", WORKER, "CAPS", "a\xc2\xa0z"}},
    };
    test_server *server = start();
    work w = {.partition = 7, .number = 1, .capabilities = "[\"x\"]"};
    work_create(server, &w);
    const char *before = server_digest(server);
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        server_expect_error_words(server, calls[i].error, calls[i].words);
        cr_assert_str_eq(server_digest(server), before, "call %zu", i);
    }
}

Test(claim_rules, options_may_look_like_each_other) {
    test_server *server = start();
    work w = {.partition = 3, .number = 1, .lane = "partition", .namespace = "COUNT"};
    work_create(server, &w);
    redisReply *keys =
        server_call(server, "COMMAND", "GETKEYS", "FF.CLAIM", "a", "w", "wi", "lanes", "1",
                    "partition", "namespace", "COUNT", "Partition", "{fp:3}");
    cr_assert_eq(keys->elements, 1);
    cr_assert_str_eq(keys->element[0]->str, "{fp:3}");
    claim_expect(server, &w, "a", "w", "wi", "lanes", "1", "partition", "namespace", "COUNT",
                 "Partition", "{fp:3}");
}

Test(claim_rules, what_nobody_can_run_is_parked_for_route) {
    test_server *server = start();
    work gpu = {.partition = 7, .number = 1, .capabilities = "[\"gpu\"]"};
    work plain = {.partition = 7, .number = 2};
    work_create(server, &gpu);
    work_create(server, &plain);
    claim_expect(server, &plain, WORKER, "CAPS", "GPU,arm");
    expect_blocked(server, &gpu, "blocked:route", "waiting_for_capable_worker",
                   "no connected worker satisfies required_capabilities");
    expect_field(server, &gpu, "eligibility_state", "blocked_by_route");
    cr_assert_eq(claims_counter(server, "blocked_route"), 1);
    claim_expect_none(server, WORKER, "CAPS", "gpu");
    server_do(server, "FF.CALL", "ff_unblock_execution", "3", work_key(&gpu, "core"),
              work_lane_key(&gpu, "blocked:route"), work_lane_key(&gpu, "eligible"), work_id(&gpu),
              at(0), "");
    claim_expect(server, &gpu, WORKER, "CAPS", "arm,gpu");
}

static void register_worker(test_server *server, const char *namespace, const char *caps) {
    char alive[64], record[64], index[64];
    snprintf(alive, sizeof alive, "ff:worker:%s:other:alive", namespace);
    snprintf(record, sizeof record, "ff:worker:%s:other:caps", namespace);
    snprintf(index, sizeof index, "ff:idx:%s:workers", namespace);
    server_do(server, "FF.CALL", "ff_register_worker", "3", alive, record, index, "other", "o",
              "default", caps, "5000", at(0));
}

Test(claim_rules, what_a_registered_worker_can_run_is_stepped_over) {
    test_server *server = start();
    work gpu = {.partition = 7, .number = 1, .capabilities = "[\"gpu\"]"};
    work plain = {.partition = 7, .number = 2};
    work_create(server, &gpu);
    claim_expect_none(server, WORKER, "PARTITION", "{fp:8}");
    register_worker(server, "elsewhere", "gpu,arm");
    register_worker(server, "ns", "arm");
    register_worker(server, "ns", "gpu,arm");
    claim_expect_none(server, WORKER);
    work_create(server, &plain);
    claim_expect(server, &plain, WORKER);
    cr_assert(work_is_in(server, &gpu, "eligible"));
    cr_assert_eq(claims_counter(server, "stepped_over"), 2);
    /* The registration lapses. */
    server_set_time(server, FROZEN_START_MS + 6001);
    claim_expect_none(server, WORKER);
    cr_assert(work_is_in(server, &gpu, "blocked:route"));
}

Test(claim_rules, a_worker_of_another_namespace_does_not_count) {
    test_server *server = start();
    work gpu = {.partition = 7, .number = 1, .capabilities = "[\"gpu\"]"};
    work_create(server, &gpu);
    register_worker(server, "elsewhere", "gpu");
    claim_expect_none(server, WORKER);
    cr_assert(work_is_in(server, &gpu, "blocked:route"));
}

Test(claim_rules, a_grant_is_issued_as_the_scheduler_does) {
    test_server *server = start();
    work gpu = {.partition = 7, .number = 1, .capabilities = "[\"gpu\"]"};
    work w = {.partition = 7, .number = 2};
    work_create(server, &gpu);
    work_create(server, &w);
    register_worker(server, "ns", "gpu");
    redisReply *list = claim_expect(server, &w, WORKER, "GRANT", "4000", "CAPS", "b,a");
    cr_assert(work_is_in(server, &gpu, "blocked:route"), "with GRANT always");
    cr_assert_str_eq(claimed_text(list, 0, "partition_key"), "{fp:7}");
    cr_assert_str_eq(claimed_text(list, 0, "grant_key"), work_key(&w, "claim_grant"));
    cr_assert_eq(claimed_integer(list, 0, "expires_at_ms"), FROZEN_START_MS + 4000);
    cr_assert_eq(server_integer(server, "PEXPIRETIME", work_key(&w, "claim_grant")),
                 FROZEN_START_MS + 4000);
    cr_assert_str_eq(server_text(server, "HGET", work_key(&w, "claim_grant"), "worker_id"), "w");
    cr_assert(work_is_in(server, &w, "eligible"));
    /* While it is out nobody else gets it; when it has lapsed somebody does. */
    claim_expect_none(server, WORKER);
    server_set_time(server, FROZEN_START_MS + 4000);
    claim_expect_none(server, WORKER);
    server_set_time(server, FROZEN_START_MS + 4001);
    claim_expect(server, &w, WORKER);
}

Test(claim_rules, capability_sets_at_their_limits) {
    test_server *server = start();
    char json[4096] = "[", csv[4096] = "";
    for (int i = 0; i < 256; i++) {
        char *j = json + strlen(json), *c = csv + strlen(csv);
        sprintf(j, "%s\"t%03d\"", i ? "," : "", i);
        sprintf(c, "%st%03d", i ? "," : "", 255 - i);
    }
    strcat(json, "]");
    work w = {.partition = 7, .number = 1, .capabilities = json};
    work_create(server, &w);
    char more[4200];
    snprintf(more, sizeof more, "%s,more", csv);
    server_expect_error(server, "INVALID_CAPABILITIES", "FF.CLAIM", WORKER, "CAPS", more);
    snprintf(more, sizeof more, "%s,t000", csv);
    claim_expect(server, &w, WORKER, "CAPS", more);
    static char longest[4100];
    memset(longest, 'x', 4097);
    server_expect_error(server, "INVALID_CAPABILITIES", "FF.CLAIM", WORKER, "CAPS", longest);
    longest[4096] = '\0';
    claim_expect_none(server, WORKER, "CAPS", longest);
}

static const char *budget_key(int partition, const char *id, const char *suffix) {
    char *key = server_keep(malloc(128));
    snprintf(key, 128, "ff:budget:{b:%d}:%s:%s", partition, id, suffix);
    return key;
}

/* Where the id lives: ids that are no UUIDs live on partition 0, which keeps the tests short. */
Test(claim_rules, a_breached_budget_parks_the_candidate) {
    test_server *server = start();
    work over = {.partition = 7, .number = 1};
    work within = {.partition = 7, .number = 2};
    work_create(server, &over);
    work_create(server, &within);
    server_do(server, "HSET", budget_key(0, "team", "limits"), "hard:tokens", "100", "soft:calls",
              "1", "hard:none", "0", "hard:odd", "1x");
    server_do(server, "HSET", budget_key(0, "team", "usage"), "tokens", "100", "calls", "9", "none",
              "5", "odd", "7");
    server_do(server, "HSET", budget_key(0, "free", "limits"), "hard:tokens", "100");
    server_do(server, "HSET", budget_key(0, "free", "usage"), "tokens", "99");
    server_do(server, "HSET", work_key(&over, "core"), "budget_ids", " free ,, team ");
    server_do(server, "HSET", work_key(&within, "core"), "budget_ids", "free,missing");
    claim_expect(server, &within, WORKER);
    expect_blocked(server, &over, "blocked:budget", "waiting_for_budget",
                   "budget ff:budget:{b:0}:team:usage: tokens 100/100");
    cr_assert_eq(claims_counter(server, "blocked_budget"), 1);
}

Test(claim_rules, a_budget_that_cannot_be_read_is_no_permission) {
    test_server *server = start();
    work doubtful = {.partition = 7, .number = 1};
    work plain = {.partition = 7, .number = 2};
    work_create(server, &doubtful);
    work_create(server, &plain);
    server_do(server, "SET", budget_key(0, "team", "limits"), "not a hash");
    server_do(server, "HSET", work_key(&doubtful, "core"), "budget_ids", "team");
    claim_expect(server, &plain, WORKER);
    cr_assert(work_is_in(server, &doubtful, "eligible"));
    cr_assert_eq(claims_counter(server, "left_in_doubt"), 1);
    server_do(server, "DEL", budget_key(0, "team", "limits"));
    claim_expect(server, &doubtful, WORKER);
}

static const char *quota_key(const char *suffix) {
    char *key = server_keep(malloc(160));
    snprintf(key, 160, "ff:quota:{q:0}:pool%s", suffix);
    return key;
}

static void make_quota(test_server *server, const char *seconds, const char *rate,
                       const char *cap) {
    server_do(server, "FF.CALL", "ff_create_quota_policy", "5", quota_key(""),
              quota_key(":window:requests_per_window"), quota_key(":concurrency"),
              quota_key(":admitted_set"), "ff:idx:{q:0}:quota_policies", "pool", seconds, rate, cap,
              at(0));
}

static void put_under_quota(test_server *server, const work *w) {
    work_create(server, w);
    server_do(server, "HSET", work_key(w, "core"), "quota_policy_id", "pool");
}

Test(claim_rules, a_rate_limit_parks_the_candidate) {
    test_server *server = start();
    work first = {.partition = 7, .number = 1};
    work second = {.partition = 7, .number = 2};
    make_quota(server, "0", "1", "0");
    put_under_quota(server, &first);
    put_under_quota(server, &second);
    claim_expect(server, &first, WORKER);
    cr_assert_eq(server_integer(server, "ZCARD", quota_key(":window:requests_per_window")), 1);
    claim_expect_none(server, WORKER);
    expect_blocked(server, &second, "blocked:quota", "waiting_for_quota",
                   "quota pool: rate limit 1/1 per 60s window");
    cr_assert_eq(claims_counter(server, "blocked_quota_rate"), 1);
}

Test(claim_rules, a_concurrency_cap_parks_the_candidate) {
    test_server *server = start();
    work first = {.partition = 7, .number = 1};
    work second = {.partition = 7, .number = 2};
    make_quota(server, "60", "0", "1");
    put_under_quota(server, &first);
    put_under_quota(server, &second);
    claim_expect(server, &first, WORKER);
    cr_assert_str_eq(server_text(server, "GET", quota_key(":concurrency")), "1");
    cr_assert_eq(server_integer(server, "SISMEMBER", quota_key(":admitted_set"), work_id(&first)),
                 1);
    claim_expect_none(server, WORKER);
    expect_blocked(server, &second, "blocked:quota", "waiting_for_quota",
                   "quota pool: concurrency cap 1");
    cr_assert_eq(claims_counter(server, "blocked_quota_concurrency"), 1);
}

Test(claim_rules, a_quota_without_limits_leaves_no_record) {
    test_server *server = start();
    work w = {.partition = 7, .number = 1};
    make_quota(server, "60", "0", "0");
    put_under_quota(server, &w);
    claim_expect(server, &w, WORKER);
    cr_assert_eq(server_integer(server, "EXISTS", quota_key(":window:requests_per_window"),
                                quota_key(":admitted_set")),
                 0);
}

Test(claim_rules, a_slot_left_behind_does_not_count_twice) {
    test_server *server = start();
    work w = {.partition = 7, .number = 1};
    make_quota(server, "10", "0", "2");
    put_under_quota(server, &w);
    claim_expect(server, &w, WORKER);
    /* Put back by hand, after the guard of the first admission is gone. */
    server_set_time(server, FROZEN_START_MS + 11000);
    server_do(server, "HSET", work_key(&w, "core"), "lifecycle_phase", "runnable",
              "ownership_state", "unowned", "eligibility_state", "eligible_now", "attempt_state",
              "attempt_interrupted");
    server_do(server, "ZADD", work_lane_key(&w, "eligible"), "1", work_id(&w));
    claim_expect(server, &w, WORKER);
    cr_assert_str_eq(server_text(server, "GET", quota_key(":concurrency")), "1");
}

Test(claim_rules, doubt_about_a_quota_stays_local) {
    static const char *const broken[] = {"many", "", "-1", "1.5"};
    test_server *server = start();
    work doubtful = {.partition = 7, .number = 1};
    make_quota(server, "60", "5", "0");
    put_under_quota(server, &doubtful);
    for (int i = 0; i < 4; i++) {
        work plain = {.partition = 7, .number = 10 + i};
        work_create(server, &plain);
        server_do(server, "HSET", quota_key(""), "max_requests_per_window", broken[i]);
        claim_expect(server, &plain, WORKER);
        cr_assert(work_is_in(server, &doubtful, "eligible"));
        cr_assert_eq(server_integer(server, "EXISTS", quota_key(":window:requests_per_window")), 0);
    }
    server_do(server, "HSET", quota_key(""), "max_requests_per_window", "5",
              "active_concurrency_cap", "1");
    server_do(server, "SET", quota_key(":concurrency"), "few");
    claim_expect_none(server, WORKER);
    server_do(server, "DEL", quota_key(":concurrency"));
    server_do(server, "LPUSH", quota_key(":concurrency"), "few");
    claim_expect_none(server, WORKER);
    cr_assert_eq(claims_counter(server, "left_in_doubt"), 6);
    server_do(server, "DEL", quota_key(":concurrency"));
    claim_expect(server, &doubtful, WORKER);
}

Test(claim_rules, a_claim_that_is_refused_has_taken_no_quota) {
    test_server *server = start();
    work broken = {.partition = 7, .number = 1};
    work promised = {.partition = 7, .number = 2};
    make_quota(server, "60", "5", "5");
    put_under_quota(server, &broken);
    put_under_quota(server, &promised);
    server_do(server, "HSET", work_key(&broken, "core"), "current_lease_epoch", "x");
    server_do(server, "HSET", work_key(&promised, "claim_grant"), "worker_id", "somebody");
    const char *before = server_digest(server);
    claim_expect_none(server, WORKER);
    cr_assert_str_eq(server_digest(server), before);
    cr_assert_eq(claims_counter(server, "left_not_claimable"), 2);
}

Test(claim_rules, entries_that_are_no_candidates_are_left) {
    test_server *server = start();
    work w = {.partition = 7, .number = 9};
    work gone = {.partition = 7, .number = 8};
    work_create(server, &w);
    server_do(server, "ZADD", work_lane_key(&w, "eligible"), "1", "nonsense", "2", work_id(&gone),
              "3", "{fp:8}:00000000-0000-4000-8000-000000000009", "4",
              "{fp:07}:00000000-0000-4000-8000-000000000009");
    claim_expect(server, &w, WORKER);
    cr_assert_eq(server_integer(server, "ZCARD", work_lane_key(&w, "eligible")), 4);
}

Test(claim_rules, keys_of_another_type_are_never_in_the_way) {
    static const char *const suffixes[] = {"core",     "claim_grant", "lease:history",
                                           "attempts", "payload",     "tags"};
    test_server *server = start();
    for (int i = 0; i < 6; i++) {
        work bad = {.partition = 7, .number = 1};
        work good = {.partition = 7, .number = 2};
        server_do(server, "FLUSHALL");
        work_create(server, &bad);
        work_create(server, &good);
        server_do(server, "DEL", work_key(&bad, suffixes[i]));
        server_do(server, "LPUSH", work_key(&bad, suffixes[i]), "x");
        claim_expect(server, &good, WORKER);
        cr_assert(work_is_in(server, &bad, "eligible"), "%s", suffixes[i]);
        claim_expect_none(server, WORKER);
    }
    server_do(server, "FLUSHALL");
    server_do(server, "SET", "ff:idx:{fp:7}:lane:default:eligible", "x");
    server_do(server, "SET", "ff:idx:{fp:9}:lease_expiry", "x");
    work w = {.partition = 8, .number = 3};
    work_create(server, &w);
    claim_expect(server, &w, WORKER);
}

Test(claim_rules, an_interrupted_attempt_is_resumed) {
    test_server *server = start();
    work w = {.partition = 7, .number = 1};
    work_create(server, &w);
    redisReply *first = claim_expect(server, &w, WORKER);
    server_do(server, "FF.CALL", "ff_delay_execution", "9", work_key(&w, "core"),
              "ff:attempt:{fp:7}:{fp:7}:00000000-0000-4000-8000-000000000001:0",
              work_key(&w, "lease:current"), work_key(&w, "lease:history"),
              work_index(7, "lease_expiry"), work_index(7, "worker:wi:leases"),
              work_lane_key(&w, "active"), work_lane_key(&w, "delayed"),
              work_index(7, "attempt_timeout"), work_id(&w), claimed_text(first, 0, "lease_id"),
              "1", claimed_text(first, 0, "attempt_id"), at(1000));
    claim_expect_none(server, WORKER);
    server_set_time(server, FROZEN_START_MS + 1000);
    server_do(server, "FF.CALL", "ff_promote_delayed", "3", work_key(&w, "core"),
              work_lane_key(&w, "delayed"), work_lane_key(&w, "eligible"), work_id(&w), at(1000));
    redisReply *again = claim_expect(server, &w, "default", "w2", "wi2", "TIMEOUT", "7000");
    cr_assert_str_eq(claimed_text(again, 0, "attempt_type"), "resumed");
    cr_assert_str_eq(claimed_text(again, 0, "attempt_id"), claimed_text(first, 0, "attempt_id"));
    cr_assert_eq(claimed_integer(again, 0, "attempt_index"), 0);
    cr_assert_eq(claimed_integer(again, 0, "lease_epoch"), 2);
    cr_assert_str_eq(server_text(server, "ZSCORE", work_index(7, "attempt_timeout"), work_id(&w)),
                     at(8000));
}

Test(claim_rules, the_attempt_timeout_is_armed) {
    test_server *server = start();
    work w = {.partition = 7, .number = 1};
    work_create(server, &w);
    claim_expect(server, &w, WORKER, "TIMEOUT", "7000");
    cr_assert_str_eq(server_text(server, "ZSCORE", work_index(7, "attempt_timeout"), work_id(&w)),
                     at(7000));
}

/* For whoever takes over too. Without one that of the former attempt goes on. */
Test(claim_rules, an_attempt_timeout_is_armed_for_a_lapsed_lease) {
    test_server *server = start();
    work w = {.partition = 7, .number = 1};
    const char *timeouts = work_index(7, "attempt_timeout");
    work_create(server, &w);
    claim_expect(server, &w, WORKER, "LEASE", "1000", "TIMEOUT", "50000");
    server_set_time(server, FROZEN_START_MS + 1000);
    claim_expect(server, &w, WORKER, "LEASE", "1000");
    cr_assert_str_eq(server_text(server, "ZSCORE", timeouts, work_id(&w)), at(50000));
    server_set_time(server, FROZEN_START_MS + 2000);
    redisReply *list = claim_expect(server, &w, WORKER, "LEASE", "1000", "TIMEOUT", "7000");
    cr_assert_str_eq(claimed_text(list, 0, "attempt_type"), "reclaim");
    cr_assert_str_eq(server_text(server, "ZSCORE", timeouts, work_id(&w)), at(9000));
}

Test(claim_rules, a_lapsed_lease_is_taken_over) {
    test_server *server = start();
    work w = {.partition = 7, .number = 1};
    work_create(server, &w);
    redisReply *first = claim_expect(server, &w, WORKER, "LEASE", "1000");
    server_set_time(server, FROZEN_START_MS + 999);
    claim_expect_none(server, "default", "w2", "wi2");
    server_set_time(server, FROZEN_START_MS + 1000);
    claim_expect_none(server, "other", "w2", "wi2");
    claim_expect_none(server, "default", "w2", "wi2", "NAMESPACE", "elsewhere");
    claim_expect_none(server, "default", "w2", "wi2", "GRANT", "10");
    expect_field(server, &w, "ownership_state", "leased");
    redisReply *second = claim_expect(server, &w, "default", "w2", "wi2");
    cr_assert_str_eq(claimed_text(second, 0, "attempt_type"), "reclaim");
    cr_assert_eq(claimed_integer(second, 0, "attempt_index"), 1);
    cr_assert_eq(claimed_integer(second, 0, "lease_epoch"), 2);
    cr_assert_str_neq(claimed_text(second, 0, "lease_id"), claimed_text(first, 0, "lease_id"));
    expect_field(server, &w, "lease_reclaim_count", "1");
    expect_field(server, &w, "current_worker_id", "w2");
    cr_assert_eq(
        server_integer(server, "SISMEMBER", work_index(7, "worker:wi:leases"), work_id(&w)), 0);
    cr_assert_eq(server_integer(server, "EXISTS", work_key(&w, "claim_grant")), 0);
    work_complete(server, second, 0, "default", "wi2");
}

Test(claim_rules, a_lapsed_lease_needs_a_capable_worker) {
    test_server *server = start();
    work w = {.partition = 7, .number = 1, .capabilities = "[\"gpu\"]"};
    work_create(server, &w);
    claim_expect(server, &w, WORKER, "LEASE", "1000", "CAPS", "gpu");
    server_set_time(server, FROZEN_START_MS + 5000);
    const char *before = server_digest(server);
    claim_expect_none(server, "default", "w2", "wi2", "CAPS", "arm");
    cr_assert_str_eq(server_digest(server), before);
    claim_expect(server, &w, "default", "w2", "wi2", "CAPS", "gpu");
}

Test(claim_rules, a_revoked_lease_that_is_indexed_is_taken_over) {
    test_server *server = start();
    work w = {.partition = 7, .number = 1};
    work_create(server, &w);
    claim_expect(server, &w, WORKER);
    server_do(server, "FF.CALL", "ff_revoke_lease", "5", work_key(&w, "core"),
              work_key(&w, "lease:current"), work_key(&w, "lease:history"),
              work_index(7, "lease_expiry"), work_index(7, "worker:wi:leases"), work_id(&w), "",
              "test");
    server_do(server, "ZADD", work_index(7, "lease_expiry"), at(0), work_id(&w));
    redisReply *list = claim_expect(server, &w, "default", "w2", "wi2");
    cr_assert_str_eq(claimed_text(list, 0, "attempt_type"), "reclaim");
}

Test(claim_rules, the_reclaim_cap_ends_the_execution) {
    test_server *server = start();
    work w = {.partition = 7, .number = 1, .policy = "{\"max_reclaim_count\":1}"};
    make_quota(server, "600", "0", "5");
    put_under_quota(server, &w);
    claim_expect(server, &w, WORKER, "LEASE", "1000");
    server_set_time(server, FROZEN_START_MS + 1000);
    claim_expect(server, &w, WORKER, "LEASE", "1000");
    cr_assert_str_eq(server_text(server, "GET", quota_key(":concurrency")), "1");
    server_set_time(server, FROZEN_START_MS + 2000);
    claim_expect_none(server, WORKER);
    expect_field(server, &w, "terminal_outcome", "failed");
    expect_field(server, &w, "failure_reason", "max_reclaims_exceeded");
    cr_assert(work_is_in(server, &w, "terminal"));
    cr_assert_eq(server_integer(server, "EXISTS", work_key(&w, "claim_grant")), 0);
    cr_assert_str_eq(server_text(server, "GET", quota_key(":concurrency")), "0",
                     "the slot is free");
    cr_assert_eq(claims_counter(server, "ended_by_reclaim_cap"), 1);
    claim_expect_none(server, WORKER);
}

Test(claim_rules, stale_entries_of_the_lease_index_go) {
    test_server *server = start();
    work w = {.partition = 7, .number = 1};
    work gone = {.partition = 7, .number = 2};
    work_create(server, &w);
    server_do(server, "ZADD", work_index(7, "lease_expiry"), "1", work_id(&gone), "2", work_id(&w));
    server_do(server, "HSET", work_key(&w, "core"), "lifecycle_phase", "terminal");
    claim_expect_none(server, WORKER);
    cr_assert_eq(server_integer(server, "EXISTS", work_index(7, "lease_expiry")), 0);
}

Test(claim_rules, queued_and_lapsed_work_take_turns) {
    test_server *server = start();
    work_create_many(server, (work){.partition = 7, .number = 100}, 6);
    cr_assert_eq(claim(server, WORKER, "COUNT", "6", "LEASE", "10")->elements, 6);
    server_set_time(server, FROZEN_START_MS + 10);
    work_create_many(server, (work){.partition = 9, .number = 200}, 6);
    int reclaims = 0;
    for (int i = 1; i <= 12; i++) {
        redisReply *list = claim(server, WORKER);
        cr_assert_eq(list->elements, 1);
        reclaims += strcmp(claimed_text(list, 0, "attempt_type"), "reclaim") == 0;
        cr_assert(abs(2 * reclaims - i) <= 1, "%d of %d claims took a lapsed lease", reclaims, i);
    }
    cr_assert_eq(reclaims, 6);
}

Test(claim_rules, a_namespace_sees_its_own) {
    test_server *server = start();
    work_create_many(server, (work){.partition = 7, .number = 1, .namespace = "a"}, 64);
    work mine = {.partition = 7, .number = 1000, .namespace = "b", .priority = "0"};
    server_set_time(server, FROZEN_START_MS + 1);
    work_create(server, &mine);
    claim_expect_none(server, WORKER, "NAMESPACE", "b");
    cr_assert_eq(claim(server, WORKER, "NAMESPACE", "a")->elements, 1);
    claim_expect(server, &mine, WORKER, "NAMESPACE", "b");
    server_do(server, "CONFIG", "SET", "ff.claim-lookahead", "1");
    mine.number++;
    mine.partition = 8;
    work_create(server, &mine);
    claim_expect(server, &mine, WORKER, "NAMESPACE", "b");
}

Test(claim_rules, one_partition_only) {
    test_server *server = start();
    work here = {.partition = 200, .number = 1};
    work there = {.partition = 201, .number = 2};
    work_create(server, &here);
    work_create(server, &there);
    claim_expect_none(server, WORKER, "PARTITION", "{fp:199}");
    claim_expect(server, &there, WORKER, "PARTITION", "{fp:201}");
    claim_expect_none(server, WORKER, "PARTITION", "{fp:201}");
    claim_expect(server, &here, WORKER, "PARTITION", "{fp:200}");
}

Test(claim_rules, lanes_are_tried_in_order) {
    test_server *server = start();
    work a = {.partition = 7, .number = 1, .lane = "a"};
    work b = {.partition = 7, .number = 2, .lane = "b"};
    work c = {.partition = 7, .number = 3, .lane = "c"};
    work_create(server, &a);
    work_create(server, &b);
    work_create(server, &c);
    redisReply *list =
        claim(server, "none", "w", "wi", "LANES", "4", "c", "a", "c", "none", "COUNT", "10");
    cr_assert_eq(list->elements, 2);
    cr_assert_str_eq(claimed_text(list, 0, "execution_id"), work_id(&c));
    cr_assert_str_eq(claimed_text(list, 1, "execution_id"), work_id(&a));
    cr_assert_str_eq(work_field(server, &c, "current_lane"), "c");
    claim_expect(server, &b, "b", "w", "wi");
}

Test(claim_rules, count_is_a_maximum) {
    test_server *server = start();
    for (int p = 0; p < 5; p++) {
        work_create_many(server, (work){.partition = p * 50, .number = p * 100}, 3);
    }
    cr_assert_eq(claim(server, WORKER, "COUNT", "7")->elements, 7);
    cr_assert_eq(claim(server, WORKER, "COUNT", "100")->elements, 8);
    cr_assert_eq(claim(server, WORKER, "COUNT", "100")->elements, 0);
    cr_assert_eq(claims_counter(server, "claimed"), 15);
}

Test(claim_rules, work_behind_blocked_heads_is_found_within_the_bound) {
    test_server *server = start();
    work_create_many(server, (work){.partition = 7, .number = 1, .capabilities = "[\"gpu\"]"}, 20);
    work w = {.partition = 7, .number = 1000};
    server_set_time(server, FROZEN_START_MS + 1);
    work_create(server, &w);
    claim_expect_none(server, WORKER);
    cr_assert_eq(claims_counter(server, "blocked_route"), 16);
    claim_expect(server, &w, WORKER);
    cr_assert_eq(claims_counter(server, "blocked_route"), 20);
    server_do(server, "CONFIG", "SET", "ff.claim-block-limit", "2");
    work_create_many(server, (work){.partition = 7, .number = 2000, .capabilities = "[\"x\"]"}, 3);
    claim_expect_none(server, WORKER);
    cr_assert_eq(claims_counter(server, "blocked_route"), 22);
}

Test(claim_rules, half_of_a_long_queue_is_over_budget) {
    enum { OVER = 50000, WITHIN = 50000, SAMPLE = 2000 };
    test_server *server = server_start(NULL);
    server_do(server, "HSET", budget_key(0, "team", "limits"), "hard:tokens", "1");
    server_do(server, "HSET", budget_key(0, "team", "usage"), "tokens", "1");
    work_create_many(server, (work){.partition = 7, .number = 1, .priority = "5"}, OVER);
    work_create_many(server, (work){.partition = 7, .number = OVER + 1}, WITHIN);
    server_do(server, "EVAL",
              "for i = 1, tonumber(ARGV[1]) do redis.call('HSET', string.format("
              "'ff:exec:{fp:7}:{fp:7}:00000000-0000-4000-8000-%012d:core', i), 'budget_ids',"
              " 'team') end",
              "0", "50000");
    int calls = 0;
    redisReply *list = claim(server, WORKER);
    for (; list->elements == 0; calls++) {
        list = claim(server, WORKER);
        cr_assert(calls < OVER / 16 + 2, "the queue does not get shorter");
    }
    cr_assert_geq(calls, OVER / 16 - 1);
    cr_assert_eq(server_integer(server, "ZCARD", "ff:idx:{fp:7}:lane:default:blocked:budget"),
                 OVER);
    size_t handed_out = 1;
    while (handed_out < SAMPLE) handed_out += claim(server, WORKER, "COUNT", "500")->elements;
    cr_assert_eq(server_integer(server, "ZCARD", "ff:idx:{fp:7}:lane:default:eligible") +
                     (int64_t)handed_out,
                 WITHIN);
}

Test(claim_rules, numbers_are_shown) {
    test_server *server = start();
    work w = {.partition = 7, .number = 1, .lane = "a lane"};
    work_create(server, &w);
    claim_expect(server, &w, "a lane", "w", "wi");
    claim_expect_none(server, "a lane", "w", "wi");
    cr_assert_eq(claims_counter(server, "calls"), 2);
    cr_assert_eq(claims_counter(server, "empty_calls"), 1);
    cr_assert_eq(claims_counter(server, "partitions_visited"), 1);
    redisReply *info = server_call(server, "FF.INFO");
    const redisReply *section = NULL, *lane = NULL;
    for (size_t i = 0; i + 1 < info->elements; i += 2) {
        if (strcmp(info->element[i]->str, "claims") == 0) section = info->element[i + 1];
    }
    cr_assert_not_null(section);
    for (size_t i = 0; i + 1 < section->elements; i += 2) {
        if (strcmp(section->element[i]->str, "lane_a lane") == 0) lane = section->element[i + 1];
    }
    cr_assert_not_null(lane);
    cr_assert_str_eq(lane->element[0]->str, "claimed");
    cr_assert_eq(lane->element[1]->integer, 1);
}
