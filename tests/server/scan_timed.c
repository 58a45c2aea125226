/* The scanners that act when a time has come, row by row. */
#include "scan.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <unistd.h>

/* ---- lease_expiry ---- */

ScannerTest(scan_lease_expiry, marks_what_ran_out) {
    write_active(server, 1, -1);   /* ran out */
    write_active(server, 2, 5000); /* live */
    write_active(server, 3, -1);   /* renewed since */
    server_do(server, "HSET", X(3, "core"), "lease_expires_at", at(5000));
    scan_expect(server, "lease_expiry", .scanned = 2, .processed = 1, .skipped = 1);
    field_is(server, X(1, "core"), "ownership_state", "lease_expired_reclaimable");
    field_is(server, X(2, "core"), "ownership_state", "leased");
    field_is(server, X(3, "core"), "ownership_state", "leased");
    cr_assert(in_zset(server, IDX("lease_expiry"), eid(1)), "marking leaves the entry");
    const char *before = server_digest(server);
    scan_expect(server, "lease_expiry", .scanned = 2, .skipped = 2);
    cr_assert_str_eq(server_digest(server), before);
}

ScannerTest(scan_lease_expiry, drops_what_cannot_expire) {
    server_do(server, "ZADD", IDX("lease_expiry"), at(-1), eid(1)); /* no core */
    write_terminal(server, 2, "success", 0);
    server_do(server, "ZADD", IDX("lease_expiry"), at(-1), eid(2));
    write_active(server, 3, -1);
    server_do(server, "HSET", X(3, "core"), "ownership_state", "unowned");
    write_active(server, 4, -1);
    server_do(server, "HSET", X(4, "core"), "ownership_state", "lease_revoked");
    scan_expect(server, "lease_expiry", .scanned = 4, .processed = 3, .skipped = 1);
    cr_assert_eq(server_integer(server, "ZCARD", IDX("lease_expiry")), 1);
}

/* ---- delayed_promoter ---- */

ScannerTest(scan_delayed, promotes_what_is_due) {
    for (int i = 1; i <= 3; i++) {
        write_runnable(server, i, "not_eligible_until_time");
        server_do(server, "HSET", X(i, "core"), "delay_until", at(i == 2 ? 9000 : -5));
        server_do(server, "ZADD", LANE("delayed"), at(i == 3 ? 9000 : -5), eid(i));
    }
    scan_expect(server, "delayed_promoter", .scanned = 2, .processed = 1, .skipped = 1);
    field_is(server, X(1, "core"), "eligibility_state", "eligible_now");
    cr_assert(in_zset(server, LANE("eligible"), eid(1)));
    cr_assert(in_zset(server, LANE("delayed"), eid(2)), "delayed anew: not due yet");
    cr_assert(in_zset(server, LANE("delayed"), eid(3)));
}

ScannerTest(scan_delayed, empty_time_is_the_score) {
    write_runnable(server, 1, "not_eligible_until_time");
    server_do(server, "HSET", X(1, "core"), "delay_until", "");
    server_do(server, "ZADD", LANE("delayed"), at(0), eid(1));
    scan_expect(server, "delayed_promoter", .scanned = 1, .processed = 1);
    cr_assert(in_zset(server, LANE("eligible"), eid(1)));
    field_is(server, X(1, "core"), "delay_until", "");
}

ScannerTest(scan_delayed, drops_strays_in_every_lane) {
    server_do(server, "ZADD", "ff:idx:" FP ":lane:a lane:delayed", at(-1), eid(1));
    write_runnable(server, 2, "eligible_now");
    server_do(server, "ZADD", "ff:idx:{fp:255}:lane:other:delayed", at(-1), eid(2));
    write_active(server, 3, 1000);
    server_do(server, "ZADD", LANE("delayed"), at(-1), eid(3));
    scan_expect(server, "delayed_promoter", .scanned = 3, .processed = 3);
    cr_assert_eq(
        server_integer(server, "EXISTS", LANE("delayed"), "ff:idx:" FP ":lane:a lane:delayed"), 0);
}

/* A lane that cannot be read is an error; the others go on. */
ScannerTest(scan_delayed, one_lane_of_the_wrong_type) {
    server_do(server, "SET", "ff:idx:" FP ":lane:a lane:delayed", "no zset");
    write_runnable(server, 1, "not_eligible_until_time");
    server_do(server, "HSET", X(1, "core"), "delay_until", at(-5));
    server_do(server, "ZADD", LANE("delayed"), at(-5), eid(1));
    scan_expect(server, "delayed_promoter", .scanned = 1, .processed = 1, .errors = 1);
    cr_assert(in_zset(server, LANE("eligible"), eid(1)));
}

/* ---- attempt_timeout and execution_deadline ---- */

static void expires(test_server *server, const char *scanner, const char *index) {
    write_active(server, 1, 60000);
    server_do(server, "ZADD", index, at(0), eid(1));
    write_active(server, 2, 60000);
    server_do(server, "ZADD", index, at(1), eid(2));
    write_terminal(server, 3, "success", 0);
    server_do(server, "ZADD", IDX("attempt_timeout"), at(0), eid(3));
    server_do(server, "ZADD", IDX("execution_deadline"), at(0), eid(3));
    server_do(server, "ZADD", index, at(0), eid(4)); /* no core */
    write_runnable(server, 5, "eligible_now");
    server_do(server, "ZADD", LANE("eligible"), "5", eid(5));
    server_do(server, "ZADD", index, at(0), eid(5));
    write_suspended(server, 6, 60000, "fail");
    server_do(server, "ZADD", index, at(0), eid(6));
    write_active(server, 7, 60000);
    server_do(server, "HDEL", X(7, "core"), "lane_id", "current_attempt_index");
    server_do(server, "ZADD", index, at(0), eid(7));
    scan_expect(server, scanner, .scanned = 6, .processed = 6);
    field_is(server, X(1, "core"), "public_state", "expired");
    field_is(server, X(1, "core"), "failure_reason", scanner);
    field_is(server, X(2, "core"), "public_state", "active");
    field_is(server, X(3, "core"), "public_state", "completed");
    field_is(server, X(5, "core"), "public_state", "expired");
    field_is(server, X(6, "core"), "public_state", "expired");
    cr_assert_eq(server_integer(server, "ZCARD", index), 1);
    cr_assert_not(in_zset(server, LANE("active"), eid(1)));
    cr_assert_not(in_zset(server, LANE("eligible"), eid(5)));
    cr_assert_not(in_zset(server, LANE("suspended"), eid(6)));
    cr_assert_eq(server_integer(server, "SISMEMBER", IDX("worker:wi:leases"), eid(1)), 0);
    cr_assert(in_zset(server, LANE("terminal"), eid(7)), "the lane is default unless it says so");
    static const char *const timed[] = {IDX("attempt_timeout"), IDX("execution_deadline")};
    for (size_t i = 0; i < 2; i++) cr_assert_not(in_zset(server, timed[i], eid(3)), "both at once");
}

ScannerTest(scan_attempt_timeout, ends_executions) {
    expires(server, "attempt_timeout", IDX("attempt_timeout"));
}

ScannerTest(scan_execution_deadline, ends_executions) {
    expires(server, "execution_deadline", IDX("execution_deadline"));
}

/* ---- suspension_timeout ---- */

ScannerTest(scan_suspension_timeout, applies_the_behavior) {
    static const struct {
        const char *behavior, *state;
    } rows[] = {{"fail", "failed"},
                {"cancel", "cancelled"},
                {"expire", "expired"},
                {"auto_resume", "waiting"},
                {"auto_resume_with_timeout_signal", "waiting"},
                {"escalate", "suspended"}};
    for (int i = 0; i < 6; i++) write_suspended(server, i, 0, rows[i].behavior);
    scan_expect(server, "suspension_timeout", .scanned = 6, .processed = 6);
    for (int i = 0; i < 6; i++) {
        field_is(server, X(i, "core"), "public_state", rows[i].state);
    }
    cr_assert_eq(server_integer(server, "EXISTS", IDX("suspension_timeout")), 0);
}

ScannerTest(scan_suspension_timeout, leaves_no_junk) {
    write_suspended(server, 1, 0, "fail");
    server_do(server, "HSET", X(1, "core"), "current_waitpoint_id", "");
    scan_expect(server, "suspension_timeout", .scanned = 1, .processed = 1);
    field_is(server, X(1, "core"), "public_state", "failed");
    cr_assert_eq(server_integer(server, "EXISTS", "ff:wp:" FP ":", "ff:wp:" FP "::condition"), 0);
}

ScannerTest(scan_suspension_timeout, drops_entries_without_a_timeout) {
    static const char *const timeouts[] = {"", "0"};
    for (int i = 0; i < 2; i++) {
        write_suspended(server, i, 0, "fail");
        server_do(server, "HSET", X(i, "suspension:current"), "timeout_at", timeouts[i]);
    }
    write_suspended(server, 2, 0, "fail");
    server_do(server, "HSET", X(2, "suspension:current"), "timeout_at", at(700));
    write_suspended(server, 3, 0, "fail");
    server_do(server, "HSET", X(3, "suspension:current"), "closed_at", at(-1));
    write_active(server, 4, 1000);
    server_do(server, "ZADD", IDX("suspension_timeout"), at(-1), eid(4));
    server_do(server, "ZADD", IDX("suspension_timeout"), at(-1), eid(5)); /* no core */
    scan_expect(server, "suspension_timeout", .scanned = 6, .processed = 5, .skipped = 1);
    cr_assert_eq(server_integer(server, "ZCARD", IDX("suspension_timeout")), 1);
    field_is(server, X(0, "core"), "public_state", "suspended");
    cr_assert(in_zset(server, IDX("suspension_timeout"), eid(2)));
}

/* ---- pending_wp_expiry ---- */

static void write_waitpoint(test_server *server, const char *id, const char *state) {
    server_do(server, "HSET", format("ff:wp:" FP ":%s", id), "waitpoint_id", id, "state", state,
              "execution_id", eid(1));
    server_do(server, "ZADD", IDX("pending_waitpoint_expiry"), at(0), id);
}

ScannerTest(scan_pending_waitpoints, closes_the_open_and_drops_the_rest) {
    write_waitpoint(server, "pending", "pending");
    write_waitpoint(server, "active", "active");
    write_waitpoint(server, "closed", "closed");
    write_waitpoint(server, "odd", "odd");
    server_do(server, "ZADD", IDX("pending_waitpoint_expiry"), at(0), "gone", at(1), "later");
    server_do(server, "HDEL", "ff:wp:" FP ":pending", "execution_id");
    scan_expect(server, "pending_wp_expiry", .scanned = 5, .processed = 5);
    field_is(server, "ff:wp:" FP ":pending", "state", "closed");
    field_is(server, "ff:wp:" FP ":pending", "close_reason", "never_committed");
    field_is(server, "ff:wp:" FP ":active", "state", "closed");
    field_is(server, "ff:wp:" FP ":odd", "state", "odd");
    cr_assert_eq(server_integer(server, "EXISTS", "ff:wp:" FP ":gone"), 0);
    cr_assert_eq(server_integer(server, "ZCARD", IDX("pending_waitpoint_expiry")), 1);
}

/* ---- budget_reset ---- */

#define RESETS "ff:idx:{b:3}:budget_resets"

ScannerTest(scan_budget_reset, turns_over) {
    server_do(server, "HSET", BUDGET_KEY(""), "budget_id", BUDGET, "reset_interval_ms", "60000");
    server_do(server, "HSET", BUDGET_KEY(":usage"), "tokens", "70", "breached_at", "5");
    server_do(server, "ZADD", RESETS, at(-10), BUDGET);
    server_do(server, "ZADD", RESETS, at(-10), "b1000002-0000-4000-8000-000000000014");
    server_do(server, "ZADD", RESETS, at(-10), "no id");
    scan_expect(server, "budget_reset", .scanned = 3, .processed = 2, .errors = 1);
    field_is(server, BUDGET_KEY(":usage"), "tokens", "0");
    field_is(server, BUDGET_KEY(""), "reset_count", "1");
    field_is(server, BUDGET_KEY(""), "next_reset_at", at(60000));
    cr_assert_eq((int64_t)score_in(server, RESETS, BUDGET), START + 60000);
    cr_assert_eq(
        server_integer(server, "EXISTS", "ff:budget:{b:3}:b1000002-0000-4000-8000-000000000014"), 0,
        "no ghost of a budget that is gone");
    cr_assert_eq(server_integer(server, "ZCARD", RESETS), 2);
}

ScannerTest(scan_budget_reset, uses_the_partition_where_it_is_found) {
    server_do(server, "HSET", "ff:budget:{b:9}:" BUDGET, "reset_interval_ms", "0");
    server_do(server, "ZADD", "ff:idx:{b:9}:budget_resets", at(-10), BUDGET);
    scan_expect(server, "budget_reset", .scanned = 1, .processed = 1);
    field_is(server, "ff:budget:{b:9}:" BUDGET, "reset_count", "1");
    cr_assert_eq(server_integer(server, "EXISTS", "ff:idx:{b:9}:budget_resets"), 0);
    cr_assert_eq(server_integer(server, "EXISTS", BUDGET_KEY("")), 0);
}

/* ---- retention_trimmer ---- */

enum { DAY = 24 * 60 * 60 * 1000 };

ScannerTest(scan_retention, deletes_every_key) {
    write_terminal(server, 1, "success", -DAY);
    server_do(server, "HSET", X(1, "core"), "total_attempt_count", "2");
    static const char *const strings[] = {"payload", "result", "policy"};
    for (size_t i = 0; i < 3; i++) server_do(server, "SET", X(1, strings[i]), "{}");
    server_do(server, "HSET", X(1, "tags"), "a", "b");
    server_do(server, "SADD", X(1, "suspension:current:satisfied_set"), "a");
    server_do(server, "HSET", X(1, "suspension:current:member_map"), "a", "b");
    for (int i = 0; i < 2; i++) {
        const char *attempt = format("ff:attempt:" FP ":%s:%d", eid(1), i);
        server_do(server, "HSET", attempt, "a", "b");
        server_do(server, "HSET", format("%s:summary", attempt), "a", "b");
        server_do(server, "XADD", format("ff:stream:" FP ":%s:%d", eid(1), i), "1-1", "a", "b");
    }
    server_do(server, "SADD", X(1, "deps:all_edges"), edge(1));
    server_do(server, "HSET", exec_key(1, format("dep:%s", edge(1))), "a", "b");
    server_do(server, "SADD", X(1, "waitpoints"), "w1");
    server_do(server, "HSET", "ff:wp:" FP ":w1", "waitpoint_key", "wk");
    server_do(server, "SET", "ff:wpkey:" FP ":wk", "w1");
    server_do(server, "ZADD", X(1, "signals"), "1", "s1");
    server_do(server, "HSET", "ff:signal:" FP ":s1", "a", "b");
    server_do(server, "SET", "ff:signal:" FP ":s1:payload", "x");
    scan_expect(server, "retention_trimmer", .scanned = 1, .processed = 1);
    cr_assert_eq(server_integer(server, "DBSIZE"), 0);
}

ScannerTest(scan_retention, keeps_what_is_young_or_odd) {
    write_terminal(server, 1, "success", -DAY + 1);
    write_terminal(server, 2, "success", -DAY);
    server_do(server, "SET", X(2, "policy"),
              "{\"stream_policy\":{\"retention_ttl_ms\":999999999}}");
    write_terminal(server, 3, "success", -DAY);
    server_do(server, "HSET", X(3, "core"), "completed_at", "soon");
    server_do(server, "ZADD", LANE("terminal"), at(-DAY), eid(4)); /* no core */
    write_terminal(server, 5, "success", -DAY);
    server_do(server, "SET", X(5, "policy"), "{\"stream_policy\":{\"retention_ttl_ms\":-1}}");
    scan_expect(server, "retention_trimmer", .scanned = 4, .processed = 2, .skipped = 1,
                .errors = 1);
    cr_assert_eq(server_integer(server, "ZCARD", LANE("terminal")), 3);
    cr_assert_eq(server_integer(server, "EXISTS", X(5, "core"), X(5, "policy")), 0);
    server_do(server, "CONFIG", "SET", "ff.retention-ms", "1000");
    server_set_time(server, START + 2000);
    scan_expect(server, "retention_trimmer", .scanned = 3, .processed = 1, .skipped = 1,
                .errors = 1);
    cr_assert_eq(server_integer(server, "EXISTS", X(1, "core")), 0);
}

/* ---- By the timer ---- */

Test(scan_timer, acts_when_it_is_due) {
    test_server *server = scan_start();
    server_do(server, "CONFIG", "SET", "ff.scanners", "yes");
    write_runnable(server, 1, "not_eligible_until_time");
    server_do(server, "HSET", X(1, "core"), "delay_until", at(5000));
    server_do(server, "ZADD", LANE("delayed"), at(5000), eid(1));
    write_active(server, 2, 5000);
    write_active(server, 3, 60000);
    server_do(server, "ZADD", IDX("execution_deadline"), at(5000), eid(3));
    write_suspended(server, 4, 5000, "cancel");
    server_set_time(server, START + 4990);
    usleep(20000);
    field_is(server, X(1, "core"), "eligibility_state", "not_eligible_until_time");
    field_is(server, X(2, "core"), "ownership_state", "leased");
    server_set_time(server, START + 5000);
    eventually(in_zset(server, LANE("eligible"), eid(1)));
    eventually(in_zset(server, LANE("terminal"), eid(3)));
    eventually(in_zset(server, LANE("terminal"), eid(4)));
    field_is(server, X(2, "core"), "ownership_state", "lease_expired_reclaimable");
    field_is(server, X(2, "core"), "lease_expired_at", at(5000));
    field_is(server, X(1, "core"), "last_transition_at", at(5000));
    field_is(server, X(4, "core"), "public_state", "cancelled");
}

/* On a clock that runs: acted on in time, though the round is far away. The bound is wide for busy machines. */
Test(scan_timer, is_prompt) {
    test_server *server = server_start(
        &(server_options){.config = "ff.scanners yes\nff.delayed-promoter-interval-ms 60000"});
    usleep(400000);
    redisReply *now = server_call(server, "TIME");
    int64_t base = strtoll(now->element[0]->str, NULL, 10) * 1000 +
                   strtoll(now->element[1]->str, NULL, 10) / 1000;
    for (int i = 1; i <= 10; i++) {
        const char *due = format("%lld", (long long)(base + 500 + i * 20));
        write_runnable(server, i, "not_eligible_until_time");
        server_do(server, "HSET", X(i, "core"), "delay_until", due);
        server_do(server, "ZADD", LANE("delayed"), due, eid(i));
    }
    eventually(server_integer(server, "ZCARD", LANE("eligible")) == 10);
    for (int i = 1; i <= 10; i++) {
        const char *moved = server_text(server, "HGET", X(i, "core"), "last_transition_at");
        int64_t late = strtoll(moved, NULL, 10) - (base + 500 + i * 20);
        cr_assert(late >= 0 && late <= 200, "execution %d moved %ld ms late", i, (long)late);
    }
}
