/* The scanners that look at states: unblock, the reconcilers, the flow projector; row by row. */
#include "scan.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

/* ---- unblock ---- */

static bool is_eligible(test_server *server, int number) {
    return in_zset(server, LANE("eligible"), eid(number));
}

ScannerTest(scan_unblock, budget) {
    for (int i = 1; i <= 6; i++) write_blocked(server, i, "budget", "waiting_for_budget");
    server_do(server, "HSET", BUDGET_KEY(":limits"), "hard:tokens", "100", "soft:tokens", "1",
              "hard:odd", "many", "hard:none", "0");
    server_do(server, "HSET", BUDGET_KEY(":usage"), "tokens", "100", "odd", "7");
    server_do(server, "HSET", X(1, "core"), "budget_ids", BUDGET);
    server_do(server, "HSET", X(2, "core"), "budget_ids",
              " , " BUDGET ",b1000002-0000-4000-8000-000000000014");
    server_do(server, "HSET", X(3, "core"), "budget_ids", "b1000002-0000-4000-8000-000000000014");
    server_do(server, "HSET", X(4, "core"), "blocking_reason", "paused_by_flow_cancel");
    server_do(server, "HDEL", X(5, "core"), "namespace");
    server_do(server, "DEL", X(6, "core"));
    scan_expect(server, "unblock", .scanned = 6, .processed = 2, .skipped = 3, .errors = 1);
    cr_assert(is_eligible(server, 3) && !is_eligible(server, 1) && !is_eligible(server, 2));
    cr_assert_not(in_zset(server, LANE("blocked:budget"), eid(6)), "its core is gone");
    server_do(server, "HSET", BUDGET_KEY(":usage"), "tokens", "99");
    scan_expect(server, "unblock", .scanned = 4, .processed = 2, .skipped = 1, .errors = 1);
    cr_assert(is_eligible(server, 1) && is_eligible(server, 2) && !is_eligible(server, 4));
    field_is(server, X(1, "core"), "public_state", "waiting");
}

/* Nothing to wait for: cleared. The operation has the last word: one that is not runnable is refused. */
ScannerTest(scan_unblock, without_a_limit_and_without_a_cause) {
    write_blocked(server, 1, "budget", "waiting_for_budget");
    write_blocked(server, 2, "budget", "waiting_for_budget");
    server_do(server, "HSET", X(2, "core"), "lifecycle_phase", "terminal");
    write_blocked(server, 3, "quota", "waiting_for_quota");
    server_do(server, "HSET", X(3, "core"), "quota_policy_id", QUOTA);
    write_blocked(server, 4, "quota", "waiting_for_quota");
    server_do(server, "HSET", X(4, "core"), "quota_policy_id", "team");
    server_do(server, "SET", "ff:quota:{q:0}:team", "no hash");
    write_blocked(server, 5, "budget", "waiting_for_budget");
    server_do(server, "HSET", X(5, "core"), "priority", "high");
    scan_expect(server, "unblock", .scanned = 5, .processed = 2, .refused = 1, .skipped = 1,
                .errors = 1);
    cr_assert(is_eligible(server, 1) && is_eligible(server, 3) && !is_eligible(server, 4));
    cr_assert(in_zset(server, LANE("blocked:budget"), eid(2)));
}

/* An id that is no UUID lives on partition 0: it is a limit like any other. */
ScannerTest(scan_unblock, odd_ids_are_on_partition_0) {
    write_blocked(server, 1, "budget", "waiting_for_budget");
    server_do(server, "HSET", X(1, "core"), "budget_ids", "team");
    server_do(server, "HSET", "ff:budget:{b:0}:team:limits", "hard:calls", "1");
    server_do(server, "HSET", "ff:budget:{b:0}:team:usage", "calls", "1");
    write_blocked(server, 2, "quota", "waiting_for_quota");
    server_do(server, "HSET", X(2, "core"), "quota_policy_id", "team");
    server_do(server, "HSET", "ff:quota:{q:0}:team", "active_concurrency_cap", "1");
    server_do(server, "SET", "ff:quota:{q:0}:team:concurrency", "1");
    scan_expect(server, "unblock", .scanned = 2, .skipped = 2);
    server_do(server, "DEL", "ff:budget:{b:0}:team:usage", "ff:quota:{q:0}:team:concurrency");
    scan_expect(server, "unblock", .scanned = 2, .processed = 2);
}

/* What cannot be read stands, and is read again the next time. */
ScannerTest(scan_unblock, unreadable_budget_stands) {
    for (int i = 1; i <= 2; i++) {
        write_blocked(server, i, "budget", "waiting_for_budget");
        server_do(server, "HSET", X(i, "core"), "budget_ids", BUDGET);
    }
    server_do(server, "SET", BUDGET_KEY(":limits"), "no hash");
    scan_expect(server, "unblock", .scanned = 2, .skipped = 2);
    server_do(server, "DEL", BUDGET_KEY(":limits"));
    scan_expect(server, "unblock", .scanned = 2, .processed = 2);
}

ScannerTest(scan_unblock, quota) {
    for (int i = 1; i <= 2; i++) {
        write_blocked(server, i, "quota", "waiting_for_quota");
        server_do(server, "HSET", X(i, "core"), "quota_policy_id", QUOTA);
    }
    server_do(server, "HDEL", X(2, "core"), "quota_policy_id");
    server_do(server, "HSET", QUOTA_KEY(""), "max_requests_per_window", "2",
              "requests_per_window_seconds", "10", "active_concurrency_cap", "1");
    server_do(server, "ZADD", QUOTA_KEY(":window:requests_per_window"), at(-10000), "a", at(-1),
              "b", at(-1), "c");
    scan_expect(server, "unblock", .scanned = 2, .processed = 1, .skipped = 1);
    cr_assert_eq(server_integer(server, "ZCARD", QUOTA_KEY(":window:requests_per_window")), 2,
                 "the window is trimmed");
    server_do(server, "DEL", QUOTA_KEY(":window:requests_per_window"));
    server_do(server, "SET", QUOTA_KEY(":concurrency"), "1");
    scan_expect(server, "unblock", .scanned = 1, .skipped = 1);
    server_do(server, "SET", QUOTA_KEY(":concurrency"), "-3");
    scan_expect(server, "unblock", .scanned = 1, .processed = 1);
    cr_assert(is_eligible(server, 1), "a counter below zero counts as zero");
}

ScannerTest(scan_unblock, route) {
    for (int i = 1; i <= 3; i++) {
        write_blocked(server, i, "route", "waiting_for_capable_worker");
        server_do(server, "HSET", X(i, "core"), "required_capabilities", "gpu,arm");
    }
    server_do(server, "HSET", X(2, "core"), "required_capabilities", "");
    server_do(server, "HSET", X(3, "core"), "namespace", "other");
    server_do(server, "SADD", "ff:idx:ns:workers", "one", "two", "gone");
    server_do(server, "HSET", "ff:worker:ns:one:caps", "caps_csv", "gpu");
    server_do(server, "HSET", "ff:worker:ns:two:caps", "caps_csv", "arm,x86");
    scan_expect(server, "unblock", .scanned = 3, .processed = 1, .skipped = 2);
    cr_assert_not(is_eligible(server, 1), "no single worker can claim it");
    server_do(server, "HSET", "ff:worker:ns:two:caps", "caps_csv", "arm,,gpu");
    scan_expect(server, "unblock", .scanned = 2, .processed = 1, .skipped = 1);
    cr_assert(is_eligible(server, 1) && !is_eligible(server, 3), "namespaces are kept apart");
}

ScannerTest(scan_unblock, never_touches_operators_and_dependencies) {
    write_blocked(server, 1, "operator", "paused_by_operator");
    write_blocked(server, 2, "dependencies", "waiting_for_children");
    scan_expect(server, "unblock", 0);
}

/* ---- dependency_reconciler ---- */

ScannerTest(scan_dependencies, resolves_what_was_missed) {
    write_terminal(server, 1, "success", 0);
    write_active(server, 2, 1000);
    write_terminal(server, 3, "failed", 0);
    for (int i = 11; i <= 13; i++) write_runnable(server, i, "blocked_by_dependencies");
    write_edge(server, 1, 1, 11);
    write_edge(server, 2, 2, 12);
    write_edge(server, 3, 1, 12);
    write_edge(server, 4, 3, 13);
    scan_expect(server, "dependency_reconciler", .scanned = 3, .processed = 3);
    field_is(server, X(11, "core"), "public_state", "waiting");
    cr_assert(in_zset(server, LANE("eligible"), eid(11)));
    field_is(server, X(12, "core"), "public_state", "waiting_children");
    field_is(server, X(13, "core"), "public_state", "skipped");
    cr_assert_eq(server_integer(server, "SCARD", X(12, "deps:unresolved")), 1);
    const char *before = server_digest(server);
    scan_expect(server, "dependency_reconciler", .scanned = 1);
    cr_assert_str_eq(server_digest(server), before);
}

/* A chain of failures is worked through in the same step. */
ScannerTest(scan_dependencies, skips_all_levels) {
    write_terminal(server, 1, "failed", 0);
    for (int i = 2; i <= 40; i++) write_runnable(server, i, "blocked_by_dependencies");
    for (int i = 2; i <= 40; i++) write_edge(server, i, i - 1, i);
    scan_expect(server, "dependency_reconciler", .scanned = 39, .processed = 1, .skipped = 38);
    for (int i = 2; i <= 40; i++) field_is(server, X(i, "core"), "public_state", "skipped");
}

ScannerTest(scan_dependencies, mends_drift) {
    write_terminal(server, 1, "success", 0);
    for (int i = 11; i <= 14; i++) write_runnable(server, i, "blocked_by_dependencies");
    for (int i = 11; i <= 14; i++) write_edge(server, i, 1, i);
    /* resolved, but still listed */
    server_do(server, "HSET", exec_key(11, format("dep:%s", edge(11))), "state", "satisfied");
    server_do(server, "HSET", X(11, "deps:meta"), "unsatisfied_required_count", "0");
    /* nothing left to wait for, and nobody noticed */
    server_do(server, "DEL", X(12, "deps:unresolved"));
    server_do(server, "HSET", X(12, "deps:meta"), "unsatisfied_required_count", "0");
    /* the same, but it has run before: it waits for children it will name */
    server_do(server, "DEL", X(13, "deps:unresolved"));
    server_do(server, "HSET", X(13, "deps:meta"), "unsatisfied_required_count", "0");
    server_do(server, "HSET", X(13, "core"), "attempt_state", "attempt_interrupted");
    server_do(server, "HDEL", X(14, "core"), "flow_id");
    scan_expect(server, "dependency_reconciler", .scanned = 4, .processed = 2, .skipped = 2);
    cr_assert_eq(server_integer(server, "EXISTS", X(11, "deps:unresolved")), 0);
    cr_assert(in_zset(server, LANE("eligible"), eid(12)));
    cr_assert(in_zset(server, LANE("blocked:dependencies"), eid(13)));
    cr_assert(in_zset(server, LANE("blocked:dependencies"), eid(14)));
    scan_expect(server, "dependency_reconciler", .scanned = 3, .processed = 1, .skipped = 2);
    cr_assert(in_zset(server, LANE("eligible"), eid(11)));
}

/* The upstream must be of the same partition, the edge id a UUID. */
ScannerTest(scan_dependencies, edges_that_lead_nowhere) {
    write_terminal(server, 1, "success", 0);
    for (int i = 11; i <= 14; i++) write_runnable(server, i, "blocked_by_dependencies");
    for (int i = 11; i <= 13; i++) write_edge(server, i, 1, i);
    write_edge(server, 14, 2, 14); /* an upstream that is gone */
    server_do(server, "DEL", X(2, "core"));
    server_do(server, "HSET", exec_key(11, format("dep:%s", edge(11))), "upstream_execution_id",
              "{fp:8}:e0000000-0000-4000-8000-000000000001");
    server_do(server, "HDEL", exec_key(12, format("dep:%s", edge(12))), "upstream_execution_id");
    server_do(server, "SADD", X(13, "deps:unresolved"), "no uuid");
    scan_expect(server, "dependency_reconciler", .scanned = 4, .processed = 1);
    for (int i = 11; i <= 14; i++) {
        cr_assert_eq(in_zset(server, LANE("eligible"), eid(i)), i == 13, "%d", i);
    }
}

/* Groups: any of them, and a quorum. What comes after the verdict is only counted. */
ScannerTest(scan_dependencies, groups) {
    write_terminal(server, 1, "success", 0);
    write_terminal(server, 2, "failed", 0);
    write_active(server, 3, 1000);
    for (int i = 11; i <= 13; i++) write_runnable(server, i, "blocked_by_dependencies");
    for (int child = 11; child <= 13; child++) {
        for (int up = 1; up <= 3; up++) write_edge(server, child * 10 + up, up, child);
        server_do(server, "HSET", format(FLOW_KEY("edgegroup:%s"), eid(child)), "policy_variant",
                  child == 11 ? "any_of" : "quorum", "k", child == 12 ? "2" : "3", "n", "3",
                  "succeeded", "0", "failed", "0", "skipped", "0", "group_state", "pending",
                  "on_satisfied", child == 11 ? "cancel_remaining" : "let_run");
    }
    scan_expect(server, "dependency_reconciler", .scanned = 3, .processed = 6);
    field_is(server, X(11, "core"), "public_state", "waiting");
    field_is(server, X(12, "core"), "public_state", "waiting_children");
    field_is(server, X(13, "core"), "public_state", "skipped");
    field_is(server, format(FLOW_KEY("edgegroup:%s"), eid(12)), "group_state", "pending");
    cr_assert_eq(server_integer(server, "SCARD", IDX("pending_cancel_groups")), 1);
    scan_expect(server, "edge_cancel_dispatcher", .scanned = 1, .processed = 1);
    field_is(server, X(3, "core"), "public_state", "cancelled");
    field_is(server, X(12, "core"), "public_state", "skipped");
}

/* ---- flow_projector ---- */

static void write_flow_member(test_server *server, int number, const char *state) {
    server_do(server, "HSET", X(number, "core"), "public_state", state);
    server_do(server, "SADD", FLOW_KEY("members"), eid(number));
    server_do(server, "HSET", FLOW_KEY("core"), "flow_id", FLOW);
    server_do(server, "SADD", IDX("flow_index"), FLOW);
}

ScannerTest(scan_flow_projector, derives_the_state) {
    static const struct {
        const char *states[2], *wanted;
        bool pruned;
    } rows[] = {
        {{"completed", "skipped"}, "completed", true},
        {{"completed", "failed"}, "failed", true},
        {{"completed", "expired"}, "failed", true},
        {{"active", "failed"}, "running", false},
        {{"suspended", "waiting"}, "blocked", false},
        {{"waiting", "waiting"}, "open", false},
        {{"rate_limited", "completed"}, "blocked", false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        write_flow_member(server, 1, rows[i].states[0]);
        write_flow_member(server, 2, rows[i].states[1]);
        scan_expect(server, "flow_projector", .scanned = 1, .processed = 1);
        field_is(server, FLOW_KEY("summary"), "public_flow_state", rows[i].wanted);
        field_is(server, FLOW_KEY("summary"), "total_members", "2");
        field_is(server, FLOW_KEY("summary"), "last_summary_update_at", at(0));
        cr_assert_eq(server_integer(server, "SISMEMBER", IDX("flow_index"), FLOW), !rows[i].pruned,
                     "row %zu", i);
    }
    cr_assert_eq(server_integer(server, "HEXISTS", FLOW_KEY("core"), "public_flow_state"), 0);
}

ScannerTest(scan_flow_projector, counts_large_flows_whole) {
    for (int i = 1; i <= 300; i++)
        write_flow_member(server, i, i == 200 ? "cancelled" : "completed");
    server_do(server, "SADD", FLOW_KEY("members"), "no execution");
    scan_expect(server, "flow_projector", .scanned = 1, .processed = 1);
    field_is(server, FLOW_KEY("summary"), "sampled_members", "300");
    field_is(server, FLOW_KEY("summary"), "members_completed", "299");
    field_is(server, FLOW_KEY("summary"), "members_cancelled", "1");
    cr_assert_eq(server_integer(server, "SISMEMBER", IDX("flow_index"), FLOW), 1);
    server_do(server, "SREM", FLOW_KEY("members"), "no execution");
    scan_expect(server, "flow_projector", .scanned = 1, .processed = 1);
    cr_assert_eq(server_integer(server, "EXISTS", IDX("flow_index")), 0);
}

ScannerTest(scan_flow_projector, odd_entries) {
    server_do(server, "SADD", IDX("flow_index"), "no id", "f1000002-0000-4000-8000-000000000018",
              FLOW);
    server_do(server, "HSET", FLOW_KEY("core"), "flow_id", FLOW);
    scan_expect(server, "flow_projector", .scanned = 3, .processed = 1, .skipped = 1, .errors = 1);
    cr_assert_eq(server_integer(server, "SCARD", IDX("flow_index")), 2);
    cr_assert_eq(server_integer(server, "EXISTS", FLOW_KEY("summary")), 0);
}

/* A member that cannot be read: nothing is guessed. */
ScannerTest(scan_flow_projector, unreadable_member) {
    write_flow_member(server, 1, "completed");
    server_do(server, "SADD", FLOW_KEY("members"), eid(2));
    server_do(server, "SET", X(2, "core"), "no hash");
    scan_expect(server, "flow_projector", .scanned = 1, .errors = 1);
    cr_assert_eq(server_integer(server, "EXISTS", FLOW_KEY("summary")), 0);
    server_do(server, "DEL", X(2, "core"));
    scan_expect(server, "flow_projector", .scanned = 1, .processed = 1);
    field_is(server, FLOW_KEY("summary"), "sampled_members", "2");
    field_is(server, FLOW_KEY("summary"), "public_flow_state", "open");
}

/* ---- index_reconciler ---- */

ScannerTest(scan_index_reconciler, puts_back_what_is_missing) {
    static const struct {
        const char *eligibility, *index;
    } rows[] = {{"eligible_now", "eligible"},
                {"not_eligible_until_time", "delayed"},
                {"blocked_by_dependencies", "blocked:dependencies"},
                {"blocked_by_budget", "blocked:budget"},
                {"blocked_by_quota", "blocked:quota"},
                {"blocked_by_route", "blocked:route"},
                {"blocked_by_operator", "blocked:operator"}};
    for (int i = 0; i < 7; i++) {
        write_runnable(server, i, rows[i].eligibility);
        server_do(server, "HSET", X(i, "core"), "delay_until", at(77), "last_transition_at", at(88),
                  "created_at", at(99), "priority", "2");
    }
    write_active(server, 7, 1000);
    write_suspended(server, 8, 2000, "fail");
    write_terminal(server, 9, "success", 3000);
    write_active(server, 10, 4000);
    server_do(server, "HSET", X(10, "core"), "ownership_state", "lease_revoked");
    server_do(server, "DEL", LANE("active"), LANE("suspended"), LANE("terminal"),
              IDX("lease_expiry"));
    server_do(server, "SADD", IDX("all_executions"), eid(11)); /* no core */
    write_runnable(server, 12, "some day");
    scan_expect(server, "index_reconciler", .scanned = 13, .processed = 12, .skipped = 1);
    static const double scores[] = {-2e12 + START + 99, START + 77, START + 99, START + 88,
                                    START + 88,         START + 88, START + 88};
    for (int i = 0; i < 7; i++) {
        const char *index = format(LANE("%s"), rows[i].index);
        cr_assert_eq(score_in(server, index, eid(i)), scores[i], "%s", rows[i].index);
    }
    cr_assert_eq(score_in(server, LANE("active"), eid(7)), START + 1000);
    cr_assert_eq(score_in(server, LANE("suspended"), eid(8)), START + 2000);
    cr_assert_eq(score_in(server, LANE("terminal"), eid(9)), START + 3000);
    cr_assert_eq(score_in(server, IDX("lease_expiry"), eid(10)), START + 4000);
    cr_assert_eq(server_integer(server, "SISMEMBER", IDX("all_executions"), eid(11)), 0);
    cr_assert_eq(info_number(server, "index_repaired"), 12);
    scan_expect(server, "index_reconciler", .scanned = 12, .skipped = 12);
}

ScannerTest(scan_index_reconciler, reports_what_it_cannot_mend) {
    write_runnable(server, 1, "eligible_now");
    server_do(server, "HSET", X(1, "core"), "created_at", "yesterday");
    write_runnable(server, 2, "eligible_now");
    server_do(server, "HDEL", X(2, "core"), "lifecycle_phase");
    write_suspended(server, 3, 0, "fail");
    server_do(server, "HSET", X(3, "suspension:current"), "timeout_at", "");
    server_do(server, "DEL", LANE("suspended"));
    scan_expect(server, "index_reconciler", .scanned = 3, .processed = 1, .errors = 2);
    cr_assert_eq(score_in(server, LANE("suspended"), eid(3)), 9999999999999.0);
    cr_assert_eq(info_number(server, "index_inconsistent"), 3);
}

/* ---- budget_reconciler ---- */

ScannerTest(scan_budget_reconciler, marks_lifetime_budgets) {
    server_do(server, "SADD", "ff:idx:{b:3}:budget_policies", BUDGET, "gone");
    server_do(server, "HSET", BUDGET_KEY(""), "budget_id", BUDGET, "reset_interval_ms", "0");
    server_do(server, "HSET", BUDGET_KEY(":limits"), "hard:a", "10", "hard:b", "many");
    server_do(server, "HSET", BUDGET_KEY(":usage"), "a", "10", "b", "99");
    scan_expect(server, "budget_reconciler", .scanned = 2, .processed = 1, .skipped = 1);
    cr_assert_eq(server_integer(server, "SCARD", "ff:idx:{b:3}:budget_policies"), 1);
    server_do(server, "HSET", BUDGET_KEY(":usage"), "a", "11");
    scan_expect(server, "budget_reconciler", .scanned = 1, .processed = 1);
    field_is(server, BUDGET_KEY(":usage"), "breached_at", at(0));
    scan_expect(server, "budget_reconciler", .scanned = 1, .skipped = 1);
    server_do(server, "HSET", BUDGET_KEY(":usage"), "a", "9");
    scan_expect(server, "budget_reconciler", .scanned = 1, .processed = 1);
    cr_assert_eq(server_integer(server, "HEXISTS", BUDGET_KEY(":usage"), "breached_at"), 0);
    server_do(server, "HSET", BUDGET_KEY(""), "reset_interval_ms", "5000");
    server_do(server, "HSET", BUDGET_KEY(":usage"), "a", "11");
    scan_expect(server, "budget_reconciler", .scanned = 1, .skipped = 1);
}

/* What cannot be read is no empty hash, and no limits are nothing to judge. */
ScannerTest(scan_budget_reconciler, unreadable_and_unlimited) {
    server_do(server, "SADD", "ff:idx:{b:3}:budget_policies", BUDGET, "free");
    server_do(server, "HSET", BUDGET_KEY(""), "budget_id", BUDGET);
    server_do(server, "HSET", BUDGET_KEY(":limits"), "hard:a", "10");
    server_do(server, "SET", BUDGET_KEY(":usage"), "no hash");
    server_do(server, "HSET", "ff:budget:{b:3}:free", "budget_id", "free");
    server_do(server, "HSET", "ff:budget:{b:3}:free:usage", "breached_at", "5");
    scan_expect(server, "budget_reconciler", .scanned = 2, .skipped = 1, .errors = 1);
    cr_assert_eq(server_integer(server, "SCARD", "ff:idx:{b:3}:budget_policies"), 2);
    field_is(server, "ff:budget:{b:3}:free:usage", "breached_at", "5");
}

/* ---- quota_reconciler ---- */

ScannerTest(scan_quota_reconciler, trims_and_counts) {
    server_do(server, "SADD", "ff:idx:{q:5}:quota_policies", QUOTA, "gone");
    server_do(server, "HSET", QUOTA_KEY(""), "requests_per_window_seconds", "10",
              "active_concurrency_cap", "3");
    server_do(server, "ZADD", QUOTA_KEY(":window:requests_per_window"), at(-10000), "a", at(-9999),
              "b");
    server_do(server, "SADD", QUOTA_KEY(":admitted_set"), eid(1), eid(2), eid(3), eid(4), "odd");
    for (int i = 1; i <= 2; i++) {
        server_do(server, "SET", format(QUOTA_KEY(":admitted:%s"), eid(i)), "1");
    }
    write_terminal(server, 2, "success", 0); /* has ended, whatever the guard says */
    write_active(server, 3, 1000);           /* still runs, though the guard is gone */
    server_do(server, "SET", QUOTA_KEY(":concurrency"), "9");
    scan_expect(server, "quota_reconciler", .scanned = 2, .processed = 1, .skipped = 1);
    cr_assert_eq(server_integer(server, "ZCARD", QUOTA_KEY(":window:requests_per_window")), 1);
    cr_assert_str_eq(server_text(server, "GET", QUOTA_KEY(":concurrency")), "2");
    cr_assert_eq(server_integer(server, "SCARD", QUOTA_KEY(":admitted_set")), 2);
    scan_expect(server, "quota_reconciler", .scanned = 2, .skipped = 2);
}

/* Without a cap there is nothing to count, without a window nothing to trim. */
ScannerTest(scan_quota_reconciler, without_a_cap_or_a_window) {
    server_do(server, "SADD", "ff:idx:{q:5}:quota_policies", QUOTA, "other");
    server_do(server, "HSET", QUOTA_KEY(""), "requests_per_window_seconds", "10");
    server_do(server, "ZADD", QUOTA_KEY(":window:requests_per_window"), at(-10000), "a");
    server_do(server, "SET", QUOTA_KEY(":concurrency"), "9");
    server_do(server, "HSET", "ff:quota:{q:5}:other", "active_concurrency_cap", "2",
              "requests_per_window_seconds", "0");
    server_do(server, "ZADD", "ff:quota:{q:5}:other:window:requests_per_window", "1", "a");
    server_do(server, "SET", "ff:quota:{q:5}:other:concurrency", "odd");
    server_do(server, "SADD", "ff:quota:{q:5}:other:admitted_set", eid(1));
    scan_expect(server, "quota_reconciler", .scanned = 2, .processed = 1, .skipped = 1);
    cr_assert_eq(server_integer(server, "EXISTS", QUOTA_KEY(":window:requests_per_window")), 0);
    cr_assert_str_eq(server_text(server, "GET", QUOTA_KEY(":concurrency")), "9");
    cr_assert_eq(server_integer(server, "EXISTS", "ff:quota:{q:5}:other:admitted_set"), 0);
    cr_assert_eq(
        server_integer(server, "EXISTS", "ff:quota:{q:5}:other:window:requests_per_window"), 1);
}

ScannerTest(scan_quota_reconciler, large_sets_are_counted_by_their_size) {
    server_do(server, "SADD", "ff:idx:{q:5}:quota_policies", QUOTA);
    server_do(server, "HSET", QUOTA_KEY(""), "active_concurrency_cap", "3");
    for (int i = 0; i < 1500; i++) {
        server_do(server, "SADD", QUOTA_KEY(":admitted_set"), eid(i));
        if (i % 3 == 0) server_do(server, "SET", format(QUOTA_KEY(":admitted:%s"), eid(i)), "1");
    }
    scan_expect(server, "quota_reconciler", .scanned = 1, .processed = 1);
    cr_assert_str_eq(server_text(server, "GET", QUOTA_KEY(":concurrency")), "500");
    cr_assert_eq(server_integer(server, "SCARD", QUOTA_KEY(":admitted_set")), 500);
}

/* ---- cancel_reconciler ---- */

ScannerTest(scan_cancel_reconciler, finishes_what_was_begun) {
    server_do(server, "HSET", FLOW_KEY("core"), "flow_id", FLOW, "cancel_reason", "enough");
    write_active(server, 1, 1000);
    write_terminal(server, 2, "success", 0);
    write_runnable(server, 3, "eligible_now");
    server_do(server, "SADD", FLOW_KEY("pending_cancels"), eid(1), eid(2), eid(3), eid(4), "odd");
    server_do(server, "ZADD", IDX("cancel_backlog"), at(1), FLOW);
    scan_expect(server, "cancel_reconciler", 0);
    server_set_time(server, START + 1);
    scan_expect(server, "cancel_reconciler", .scanned = 6, .processed = 4, .errors = 1);
    field_is(server, X(1, "core"), "cancellation_reason", "enough");
    field_is(server, X(2, "core"), "public_state", "completed");
    field_is(server, X(3, "core"), "public_state", "cancelled");
    cr_assert_eq(server_integer(server, "EXISTS", FLOW_KEY("pending_cancels")), 0);
    scan_command(server, "FF.RECONCILE", "*", "cancel");
    cr_assert_eq(server_integer(server, "EXISTS", IDX("cancel_backlog")), 0);
}

/* Without a reason there is one; an empty one stays empty. A member that cannot be cancelled waits. */
ScannerTest(scan_cancel_reconciler, reasons_and_failures) {
    static const char *const flows[] = {FLOW, "f1000002-0000-4000-8000-000000000018"};
    for (int i = 0; i < 2; i++) {
        server_do(server, "HSET", format("ff:flow:" FP ":%s:core", flows[i]), "flow_id", flows[i]);
        server_do(server, "ZADD", IDX("cancel_backlog"), at(0), flows[i]);
        write_runnable(server, i + 1, "eligible_now");
        server_do(server, "SADD", format("ff:flow:" FP ":%s:pending_cancels", flows[i]),
                  eid(i + 1));
    }
    server_do(server, "HSET", format("ff:flow:" FP ":%s:core", flows[1]), "cancel_reason", "");
    server_do(server, "SADD", FLOW_KEY("pending_cancels"), eid(3));
    server_do(server, "SET", X(3, "core"), "no hash");
    scan_expect(server, "cancel_reconciler", .scanned = 5, .processed = 2, .errors = 1);
    field_is(server, X(1, "core"), "cancellation_reason", "flow_cancelled");
    field_is(server, X(2, "core"), "cancellation_reason", "");
    cr_assert_eq(server_integer(server, "SISMEMBER", FLOW_KEY("pending_cancels"), eid(3)), 1);
    cr_assert_eq(server_integer(server, "ZCARD", IDX("cancel_backlog")), 1);
    server_do(server, "DEL", X(3, "core"));
    scan_expect(server, "cancel_reconciler", .scanned = 2, .processed = 1);
    cr_assert_eq(server_integer(server, "EXISTS", IDX("cancel_backlog")), 0);
}

ScannerTest(scan_cancel_reconciler, filters_members) {
    server_do(server, "CONFIG", "SET", "ff.filter-namespace", "mine");
    server_do(server, "HSET", FLOW_KEY("core"), "flow_id", FLOW);
    for (int i = 1; i <= 2; i++) write_runnable(server, i, "eligible_now");
    server_do(server, "HSET", X(2, "core"), "namespace", "mine");
    server_do(server, "SADD", FLOW_KEY("pending_cancels"), eid(1), eid(2));
    server_do(server, "ZADD", IDX("cancel_backlog"), at(0), FLOW);
    scan_expect(server, "cancel_reconciler", .scanned = 3, .processed = 1, .skipped = 1);
    field_is(server, X(1, "core"), "public_state", "waiting");
    field_is(server, X(2, "core"), "public_state", "cancelled");
    cr_assert_eq(server_integer(server, "SCARD", FLOW_KEY("pending_cancels")), 1);
}

ScannerTest(scan_cancel_reconciler, prunes) {
    server_do(server, "ZADD", IDX("cancel_backlog"), at(0), "no id", at(0), FLOW, at(0),
              "f1000002-0000-4000-8000-000000000018", at(60000), "later");
    server_do(server, "HSET", FLOW_KEY("core"), "flow_id", FLOW);
    server_do(server, "SADD", "ff:flow:" FP ":f1000002-0000-4000-8000-000000000018:pending_cancels",
              eid(1));
    scan_expect(server, "cancel_reconciler", .scanned = 3, .processed = 2, .errors = 1);
    cr_assert_eq(server_integer(server, "ZCARD", IDX("cancel_backlog")), 1);
    cr_assert_eq(server_integer(server, "EXISTS",
                                "ff:flow:" FP
                                ":f1000002-0000-4000-8000-000000000018:pending_cancels"),
                 0);
    cr_assert_eq(info_number(server, "cancel_backlog_depth"), 1);
}

/* ---- edge_cancel_dispatcher and edge_cancel_reconciler ---- */

static const char *group_key(int downstream) {
    return format(FLOW_KEY("edgegroup:%s"), eid(downstream));
}
static const char *group_entry(int downstream) { return format(FLOW "|%s", eid(downstream)); }

ScannerTest(scan_edge_cancel, stops_all_siblings) {
    char *list = calloc(1, 1500 * 64);
    for (int i = 1; i <= 1200; i++) {
        strcat(list, eid(i));
        strcat(list, "|");
    }
    write_terminal(server, 3, "success", 0); /* ended on its own: those behind it must not wait */
    write_active(server, 5, 1000);
    write_runnable(server, 1200, "eligible_now");
    server_do(server, "HSET", group_key(2000), "cancel_siblings_reason",
              "sibling_quorum_impossible", "cancel_siblings_pending_members", list,
              "cancel_siblings_pending_flag", "true");
    server_do(server, "SADD", IDX("pending_cancel_groups"), group_entry(2000), "junk", "a|b");
    free(list);
    scan_expect(server, "edge_cancel_dispatcher", .scanned = 3, .processed = 1, .errors = 2);
    field_is(server, X(5, "core"), "public_state", "cancelled");
    field_is(server, X(5, "core"), "cancellation_reason", "sibling_quorum_impossible");
    field_is(server, X(1200, "core"), "public_state", "cancelled");
    cr_assert_eq(server_integer(server, "EXISTS", IDX("pending_cancel_groups")), 0);
    cr_assert_eq(server_integer(server, "HEXISTS", group_key(2000), "cancel_siblings_pending_flag"),
                 0);
    cr_assert_eq(info_number(server, "sibling_cancel_disposition_cancelled"), 2);
    cr_assert_eq(info_number(server, "sibling_cancel_disposition_already_terminal"), 1);
    cr_assert_eq(info_number(server, "sibling_cancel_disposition_not_found"), 1197);
}

/* A group with nobody to cancel, one that is gone, one without a reason; and a sibling that cannot be cancelled, which
 * makes its group wait, but stops nobody else. */
ScannerTest(scan_edge_cancel, every_group) {
    write_active(server, 1, 1000);
    write_active(server, 2, 1000);
    server_do(server, "SET", X(3, "core"), "no hash");
    server_do(server, "HSET", group_key(10), "policy_variant", "any_of");
    server_do(server, "HSET", group_key(12), "cancel_siblings_pending_members", eid(1));
    server_do(server, "HSET", group_key(13), "cancel_siblings_pending_members",
              format("no id|%s||%s", eid(3), eid(2)), "cancel_siblings_pending_flag", "true");
    for (int i = 10; i <= 13; i++) {
        server_do(server, "SADD", IDX("pending_cancel_groups"), group_entry(i));
    }
    scan_expect(server, "edge_cancel_dispatcher", .scanned = 4, .processed = 3, .errors = 1);
    field_is(server, X(1, "core"), "cancellation_reason", "sibling_quorum_satisfied");
    field_is(server, X(2, "core"), "public_state", "cancelled");
    cr_assert_eq(server_integer(server, "SCARD", IDX("pending_cancel_groups")), 1);
    cr_assert_eq(info_number(server, "sibling_cancel_disposition_cancelled"), 2);
    server_do(server, "DEL", X(3, "core"));
    scan_expect(server, "edge_cancel_dispatcher", .scanned = 1, .processed = 1);
    cr_assert_eq(server_integer(server, "EXISTS", IDX("pending_cancel_groups")), 0);
}

ScannerTest(scan_edge_cancel, reconciler_waits_for_siblings) {
    write_active(server, 1, 1000);
    server_do(server, "HSET", group_key(10), "cancel_siblings_pending_members", eid(1),
              "cancel_siblings_pending_flag", "true");
    server_do(server, "HSET", group_key(11), "policy_variant", "any_of");
    server_do(server, "SADD", IDX("pending_cancel_groups"), group_entry(10), group_entry(11),
              group_entry(12));
    scan_expect(server, "edge_cancel_reconciler", .scanned = 3, .processed = 2, .skipped = 1);
    cr_assert_eq(server_integer(server, "SCARD", IDX("pending_cancel_groups")), 1);
    server_do(server, "HSET", X(1, "core"), "lifecycle_phase", "terminal");
    scan_expect(server, "edge_cancel_reconciler", .scanned = 1, .processed = 1);
    cr_assert_eq(info_number(server, "sibling_cancel_reconcile_completed_drain"), 1);
    cr_assert_eq(info_number(server, "sibling_cancel_reconcile_sremmed_stale"), 2);
    cr_assert_eq(info_number(server, "sibling_cancel_reconcile_no_op"), 1);
}
