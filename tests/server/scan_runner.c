/* What all scanners have in common: schedule, slices, filter, backoff, bad data, roles. */
#include "scan.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void write_delayed(test_server *server, int number, int64_t due) {
    write_runnable(server, number, "not_eligible_until_time");
    server_do(server, "HSET", X(number, "core"), "delay_until", at(due));
    server_do(server, "ZADD", LANE("delayed"), at(due), eid(number));
}

static int64_t eligible(test_server *server) {
    return server_integer(server, "ZCARD", LANE("eligible"));
}

/* ---- Commands ---- */

Test(scan_commands, list_names_all) {
    test_server *server = scan_start();
    redisReply *list = server_call(server, "FF.SCANNER", "LIST");
    cr_assert_eq(list->elements, 17);
    for (size_t i = 0; i < list->elements; i++) {
        cr_assert_str_eq(list->element[i]->element[0]->str, "name");
        cr_assert_str_eq(list->element[i]->element[3]->str, "off");
    }
    cr_assert_str_eq(list->element[0]->element[1]->str, "lease_expiry");
    cr_assert_str_eq(list->element[16]->element[1]->str, "execution_deadline");
}

Test(scan_commands, bad_arguments) {
    test_server *server = scan_start();
    const char *before = server_digest(server);
    server_expect_error(server, "ERR there is no scanner", "FF.SCANNER", "RUN", "nobody");
    server_expect_error(server, "ERR there is no scanner", "FF.SCANNER", "PAUSE", "nobody");
    server_expect_error(server, "ERR", "FF.SCANNER", "RUN", "unblock", "PARTITION", "{b:1}");
    server_expect_error(server, "ERR", "FF.SCANNER", "RUN", "unblock", "PARTITION", "{fp:256}");
    server_expect_error(server, "ERR", "FF.SCANNER", "RUN", "unblock", "PARTITION", "{fp:07}");
    server_expect_error(server, "ERR", "FF.SCANNER", "RUN", "unblock", "LIMIT", "0");
    server_expect_error(server, "ERR", "FF.SCANNER", "RUN", "unblock", "NONSENSE");
    server_expect_error(server, "ERR", "FF.RECONCILE", "*", "nothing");
    server_expect_error(server, "ERR", "FF.RECONCILE", "{fp:1}", "budget");
    server_expect_error(server, "ERR", "FF.RECONCILE", "{fp:1}", "quota");
    cr_assert_str_eq(server_digest(server), before);
}

Test(scan_commands, partition_and_limit) {
    test_server *server = scan_start();
    for (int i = 1; i <= 5; i++) write_delayed(server, i, -1);
    tally_expect(
        scan_command(server, "FF.SCANNER", "RUN", "delayed_promoter", "PARTITION", "{fp:8}"),
        (tally){0}, "elsewhere", __LINE__);
    tally_expect(scan_command(server, "FF.SCANNER", "RUN", "delayed_promoter", "PARTITION", FP,
                              "LIMIT", "2"),
                 (tally){.scanned = 2, .processed = 2}, "limited", __LINE__);
    scan_expect(server, "delayed_promoter", .scanned = 3, .processed = 3);
}

Test(scan_commands, reconcile_runs_each) {
    static const char *const names[] = {"index",        "dependency", "cancel", "sibling_cancel",
                                        "flow_summary", "retention",  "budget", "quota"};
    static const char *const where[] = {"{fp:7}", "{fp:7}", "{fp:7}", "{fp:7}",
                                        "{fp:7}", "{fp:7}", "{b:3}",  "{q:5}"};
    test_server *server = scan_start();
    server_do(server, "SADD", IDX("pending_cancel_groups"), "junk");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        tally one = scan_command(server, "FF.RECONCILE", where[i], names[i], "LIMIT", "10");
        cr_assert_eq(one.scanned, strcmp(names[i], "sibling_cancel") == 0 ? 1 : 0, "%s", names[i]);
        scan_command(server, "FF.RECONCILE", "*", names[i]);
    }
}

Test(scan_commands, a_user_needs_the_category) {
    test_server *server = scan_start();
    server_do(server, "ACL", "SETUSER", "reader", "on", "nopass", "~*", "+@flowfabric", "-@admin");
    redisContext *connection = server_connect(server);
    connection_call(connection, "AUTH", "reader", "x");
    redisReply *reply = connection_call(connection, "FF.RECONCILE", "*", "index");
    cr_assert_eq(reply->type, REDIS_REPLY_ERROR);
    cr_assert(strstr(reply->str, "NOPERM"), "%s", reply->str);
    redisFree(connection);
}

/* ---- Settings ---- */

Test(scan_settings, are_checked_and_kept) {
    test_server *server = scan_start();
    server_expect_error(server, "ERR", "CONFIG", "SET", "ff.filter-tag", "team");
    server_expect_error(server, "ERR", "CONFIG", "SET", "ff.lanes", "a,,b");
    server_expect_error(server, "ERR", "CONFIG", "SET", "ff.unblock-interval-ms", "-1");
    server_expect_error(server, "ERR", "CONFIG", "SET", "ff.scan-batch", "0");
    server_do(server, "CONFIG", "SET", "ff.filter-tag", "team=a=b");
    server_do(server, "CONFIG", "SET", "ff.lanes", "one, two");
    server_do(server, "CONFIG", "REWRITE");
    server_restart(server, false);
    redisReply *kept = server_call(server, "CONFIG", "GET", "ff.lanes");
    cr_assert_str_eq(kept->element[1]->str, "one, two");
    kept = server_call(server, "CONFIG", "GET", "ff.lease-expiry-interval-ms");
    cr_assert_str_eq(kept->element[1]->str, "1500");
}

/* ---- The schedule ---- */

Test(scan_schedule, off_paused_and_interval_0_do_nothing) {
    test_server *server = scan_start();
    write_delayed(server, 1, -1);
    server_set_time(server, START + 5000);
    usleep(30000);
    cr_assert_eq(eligible(server), 0);
    server_do(server, "FF.SCANNER", "PAUSE", "delayed_promoter");
    server_do(server, "CONFIG", "SET", "ff.scanners", "yes");
    server_set_time(server, START + 10000);
    usleep(30000);
    cr_assert_eq(eligible(server), 0);
    server_do(server, "CONFIG", "SET", "ff.delayed-promoter-interval-ms", "0");
    server_do(server, "FF.SCANNER", "RESUME", "delayed_promoter");
    server_set_time(server, START + 20000);
    usleep(30000);
    cr_assert_eq(eligible(server), 0);
    server_do(server, "CONFIG", "SET", "ff.delayed-promoter-interval-ms", "750");
    eventually(eligible(server) == 1);
}

Test(scan_schedule, changes_take_effect_at_once) {
    test_server *server = server_start(
        &(server_options){.config = "ff.scanners yes\nff.unblock-interval-ms 3600000"});
    eventually(info_number(server, "unblock_cycles") == 1);
    server_do(server, "CONFIG", "SET", "ff.unblock-interval-ms", "100");
    eventually(info_number(server, "unblock_cycles") >= 4);
    server_do(server, "FF.SCANNER", "PAUSE", "unblock");
    int64_t cycles = info_number(server, "unblock_cycles");
    usleep(300000);
    cr_assert_eq(info_number(server, "unblock_cycles"), cycles);
    server_do(server, "CONFIG", "SET", "ff.unblock-interval-ms", "3600000");
    server_do(server, "FF.SCANNER", "RESUME", "unblock");
    eventually(info_number(server, "unblock_cycles") == cycles + 1);
    usleep(300000);
    cr_assert_eq(info_number(server, "unblock_cycles"), cycles + 1, "the next is an hour away");
}

Test(scan_schedule, module_can_be_unloaded_when_off) {
    test_server *server = server_start(&(server_options){.config = "ff.scanners yes"});
    usleep(50000);
    server_do(server, "CONFIG", "SET", "ff.scanners", "no");
    eventually(server_call(server, "MODULE", "UNLOAD", "ff")->type != REDIS_REPLY_ERROR);
}

/* A backlog is worked through in slices, while clients are served. */
Test(scan_schedule, backlog_in_slices) {
    enum { COUNT = 200000, CHUNK = 10000 };
    test_server *server = server_start(NULL);
    for (int done = 0; done < COUNT; done += CHUNK) write_backlog(server, done + 1, done + CHUNK);
    server_do(server, "CONFIG", "SET", "ff.scanners", "yes");
    int answered = 0;
    while (eligible_anywhere(server) < COUNT) cr_assert(++answered < 200000);
    cr_assert_gt(answered, 2, "clients are served between slices");
    expect_slices(server, 200);
    cr_assert_eq(info_number(server, "delayed_promoter_processed"), COUNT);
}

/* What was found in order is not looked at again before somebody writes to its partition. */
Test(scan_schedule, rounds_leave_out_what_did_not_change) {
    test_server *server = server_start(
        &(server_options){.config = "ff.scanners yes\nff.index-reconciler-interval-ms 100"});
    write_runnable(server, 1, "eligible_now");
    server_do(server, "ZADD", LANE("eligible"), "1", eid(1));
    int64_t cycles = info_number(server, "index_reconciler_cycles");
    eventually(info_number(server, "index_reconciler_cycles") >= cycles + 3);
    int64_t scanned = info_number(server, "index_reconciler_scanned");
    cr_assert_geq(scanned, 1);
    cycles = info_number(server, "index_reconciler_cycles");
    eventually(info_number(server, "index_reconciler_cycles") >= cycles + 3);
    cr_assert_eq(info_number(server, "index_reconciler_scanned"), scanned);
    /* By the command everything is looked at. */
    scan_expect(server, "index_reconciler", .scanned = 1, .skipped = 1);
    server_do(server, "ZREM", LANE("eligible"), eid(1));
    eventually(in_zset(server, LANE("eligible"), eid(1)));
    server_do(server, "HSET", X(1, "core"), "eligibility_state", "blocked_by_operator");
    eventually(in_zset(server, LANE("blocked:operator"), eid(1)));
    /* What cannot be mended is counted in each round. */
    server_do(server, "HDEL", X(1, "core"), "lifecycle_phase");
    eventually(info_number(server, "index_reconciler_errors") >= 3);
}

/* ---- Entries that stay must not hide others ---- */

ScannerTest(scan_walk, stale_entries_of_one_score) {
    enum { STALE = 3000 };
    server_do(server, "EVAL",
              "for i = 1, tonumber(ARGV[1]) do redis.call('ZADD', KEYS[1], 1, 'stale' .. "
              "string.format('%08d', i)) end",
              "1", IDX("lease_expiry"), format("%d", STALE));
    write_active(server, 1, -1);
    scan_expect(server, "lease_expiry", .scanned = STALE + 1, .processed = 1, .skipped = STALE);
    field_is(server, X(1, "core"), "ownership_state", "lease_expired_reclaimable");
    cr_assert_eq(info_number(server, "lease_expiry_backlog"), STALE + 1);
}

/* ---- Filter ---- */

ScannerTest(scan_filter, namespace_and_tag) {
    for (int i = 1; i <= 4; i++) write_delayed(server, i, -1);
    server_do(server, "HSET", X(1, "core"), "namespace", "mine");
    server_do(server, "HSET", X(2, "core"), "namespace", "mine");
    server_do(server, "HSET", X(2, "tags"), "team", "blue");
    server_do(server, "DEL", X(3, "core"));
    server_do(server, "CONFIG", "SET", "ff.filter-namespace", "mine");
    server_do(server, "CONFIG", "SET", "ff.filter-tag", "team=blue");
    scan_expect(server, "delayed_promoter", .scanned = 4, .processed = 1, .skipped = 3);
    cr_assert(in_zset(server, LANE("eligible"), eid(2)));
    cr_assert(in_zset(server, LANE("delayed"), eid(3)), "what cannot be read is not ours");
    cr_assert_geq(info_number(server, "delayed_promoter_filtered"), 3);
    server_do(server, "CONFIG", "SET", "ff.filter-tag", "");
    scan_expect(server, "delayed_promoter", .scanned = 3, .processed = 1, .skipped = 2);
}

/* A waitpoint is filtered by its owner. */
ScannerTest(scan_filter, waitpoints) {
    server_do(server, "CONFIG", "SET", "ff.filter-namespace", "ns");
    write_active(server, 1, 1000);
    write_active(server, 2, 1000);
    server_do(server, "HSET", X(2, "core"), "namespace", "other");
    for (int i = 1; i <= 2; i++) {
        server_do(server, "HSET", format("ff:wp:" FP ":w%d", i), "state", "pending", "execution_id",
                  eid(i));
        server_do(server, "ZADD", IDX("pending_waitpoint_expiry"), at(0), format("w%d", i));
    }
    server_do(server, "ZADD", IDX("pending_waitpoint_expiry"), at(0), "ownerless");
    scan_expect(server, "pending_wp_expiry", .scanned = 3, .processed = 1, .skipped = 2);
    field_is(server, "ff:wp:" FP ":w1", "state", "closed");
    field_is(server, "ff:wp:" FP ":w2", "state", "pending");
}

/* ---- Backoff ---- */

Test(scan_backoff, three_failures_then_ten_rounds) {
    test_server *server = scan_start();
    write_delayed(server, 1, -1);
    server_do(server, "HSET", X(1, "core"), "priority", "high");
    for (int i = 0; i < 3; i++) scan_expect(server, "delayed_promoter", .scanned = 1, .errors = 1);
    /* failed in rounds 0, 1 and 2: passed over in rounds 3 to 11 */
    for (int i = 0; i < 9; i++) scan_expect(server, "delayed_promoter", .scanned = 1, .skipped = 1);
    cr_assert_eq(info_number(server, "delayed_promoter_backed_off"), 9);
    scan_expect(server, "delayed_promoter", .scanned = 1, .errors = 1);
    server_do(server, "HSET", X(1, "core"), "priority", "1");
    scan_expect(server, "delayed_promoter", .scanned = 1, .processed = 1);
    cr_assert_eq(info_number(server, "delayed_promoter_failing"), 0);
}

/* Now and then what failed but is not left alone is forgotten, when there is too much of it. */
Test(scan_backoff, forgets_in_time) {
    enum { COUNT = 501 };
    test_server *server = scan_start();
    for (int i = 1; i <= COUNT; i++) {
        write_delayed(server, i, -1);
        server_do(server, "HSET", X(i, "core"), "priority", "high");
    }
    scan_expect(server, "delayed_promoter", .scanned = COUNT, .errors = COUNT);
    cr_assert_eq(info_number(server, "delayed_promoter_failing"), COUNT);
    server_do(server, "DEL", LANE("delayed"));
    for (int i = 0; i < 49; i++) scan_expect(server, "delayed_promoter", 0);
    cr_assert_eq(info_number(server, "delayed_promoter_failing"), 0);
}

/* ---- Bad data ---- */

static const char *const all_names[] = {
    "lease_expiry",       "delayed_promoter",  "index_reconciler",       "attempt_timeout",
    "suspension_timeout", "pending_wp_expiry", "retention_trimmer",      "budget_reset",
    "budget_reconciler",  "unblock",           "dependency_reconciler",  "quota_reconciler",
    "flow_projector",     "cancel_reconciler", "edge_cancel_dispatcher", "edge_cancel_reconciler",
    "execution_deadline"};

static const char *const all_indexes[] = {LANE("eligible"),
                                          LANE("delayed"),
                                          LANE("terminal"),
                                          LANE("blocked:budget"),
                                          LANE("blocked:quota"),
                                          LANE("blocked:route"),
                                          LANE("blocked:dependencies"),
                                          IDX("lease_expiry"),
                                          IDX("attempt_timeout"),
                                          IDX("execution_deadline"),
                                          IDX("suspension_timeout"),
                                          IDX("pending_waitpoint_expiry"),
                                          IDX("all_executions"),
                                          IDX("flow_index"),
                                          IDX("cancel_backlog"),
                                          IDX("pending_cancel_groups"),
                                          "ff:idx:{b:3}:budget_resets",
                                          "ff:idx:{b:3}:budget_policies",
                                          "ff:idx:{q:5}:quota_policies"};

static void run_all(test_server *server) {
    for (size_t i = 0; i < sizeof all_names / sizeof *all_names; i++) {
        scan_run(server, all_names[i]);
        cr_assert_str_eq(server_text(server, "PING"), "PONG", "after %s", all_names[i]);
    }
}

static bool is_set_index(const char *key) {
    static const char *const endings[] = {"all_executions", "flow_index", "pending_cancel_groups",
                                          "policies"};
    for (size_t i = 0; i < 4; i++) {
        if (strstr(key, endings[i])) return true;
    }
    return false;
}

ScannerTest(scan_bad_data, indexes_of_the_wrong_type) {
    static const char *const types[] = {"string", "list", "hash", "stream"};
    for (size_t type = 0; type < 4; type++) {
        server_do(server, "FLUSHALL");
        for (size_t i = 0; i < sizeof all_indexes / sizeof *all_indexes; i++) {
            const char *key = all_indexes[i];
            if (type == 0) server_do(server, "SET", key, "x");
            if (type == 1) server_do(server, "RPUSH", key, "x");
            if (type == 2) server_do(server, "HSET", key, "x", "y");
            if (type == 3) server_do(server, "XADD", key, "*", "x", "y");
        }
        const char *before = server_digest(server);
        run_all(server);
        cr_assert_str_eq(server_digest(server), before, "%s", types[type]);
    }
    cr_assert_gt(info_number(server, "lease_expiry_errors"), 0);
}

/* Members that lead nowhere, and records in which everything is wrong, in every index at once. */
ScannerTest(scan_bad_data, garbled_members_and_records) {
    static const char *const members[] = {"",
                                          "x",
                                          "{fp:7}",
                                          "{fp:7}:",
                                          "{fp:99999}:e0000000-0000-4000-8000-000000000001",
                                          "{fp:8}:e0000000-0000-4000-8000-000000000001",
                                          "|",
                                          "a|b",
                                          FLOW "|{fp:7}:e0000000-0000-4000-8000-000000000009",
                                          FLOW,
                                          BUDGET,
                                          QUOTA};
    static const char *const values[] = {"", "nan", "-1", "1e400", "x", "18446744073709551616"};
    static const char *const fields[] = {
        "lifecycle_phase", "delay_until",         "lease_expires_at",      "priority", "created_at",
        "completed_at",    "total_attempt_count", "current_attempt_index", "lane_id",  "flow_id",
        "budget_ids",      "quota_policy_id",     "required_capabilities", "namespace"};
    static const char *const phases[] = {"runnable", "active", "suspended", "terminal", "odd"};
    server_do(server, "CONFIG", "SET", "ff.retention-ms", "0");
    server_do(server, "HSET", FLOW_KEY("core"), "flow_id", FLOW);
    server_do(server, "HSET", BUDGET_KEY(""), "reset_interval_ms", "x");
    server_do(server, "HSET", QUOTA_KEY(""), "active_concurrency_cap", "5",
              "requests_per_window_seconds", "nan");
    for (size_t i = 0; i < sizeof all_indexes / sizeof *all_indexes; i++) {
        const char *key = all_indexes[i];
        for (size_t m = 0; m < sizeof members / sizeof *members; m++) {
            if (is_set_index(key))
                server_do(server, "SADD", key, members[m]);
            else
                server_do(server, "ZADD", key, m % 2 ? "-inf" : "1", members[m]);
        }
        for (int e = 0; e < 30; e++) {
            if (is_set_index(key))
                server_do(server, "SADD", key, eid(e));
            else
                server_do(server, "ZADD", key, "5", eid(e));
        }
    }
    for (int e = 0; e < 30; e++) {
        for (size_t f = 0; f < sizeof fields / sizeof *fields; f++) {
            server_do(server, "HSET", X(e, "core"), fields[f],
                      values[((size_t)e * 7 + f) % (sizeof values / sizeof *values)]);
        }
        server_do(server, "HSET", X(e, "core"), "lifecycle_phase", phases[e % 5],
                  "eligibility_state", e % 2 ? "not_eligible_until_time" : "blocked_by_budget",
                  "ownership_state", "leased", "terminal_outcome", "none");
        server_do(server, "HSET", X(e, "suspension:current"), "suspension_id", "s", "timeout_at",
                  values[(size_t)e % 6], "additional_waitpoints_json", "{");
        if (e % 3 == 0) server_do(server, "SET", X(e, "deps:meta"), "x");
        if (e % 4 == 0) server_do(server, "SADD", X(e, "deps:unresolved"), "x", edge(1));
        if (e % 5 == 0) server_do(server, "RPUSH", X(e, "lease:history"), "x");
        server_do(server, "SADD", FLOW_KEY("members"), eid(e));
        server_do(server, "SADD", FLOW_KEY("pending_cancels"), eid(e), "x");
    }
    test_server *replica = server_start_replica(server, &(server_options){.without_module = true});
    for (int i = 0; i < 3; i++) run_all(server);
    scan_expect_same_data(server, replica);
    /* The healthy one among them is still served. */
    write_delayed(server, 77, -1);
    scan_run(server, "delayed_promoter");
    cr_assert(in_zset(server, LANE("eligible"), eid(77)));
}

/* What is wrong is logged once, not in each round. */
ScannerTest(scan_bad_data, logged_once) {
    server_do(server, "ZADD", IDX("lease_expiry"), at(-1), "nobody knows me");
    for (int i = 0; i < 5; i++) scan_run(server, "lease_expiry");
    cr_assert_eq(lines_with(server, "nobody knows me"), 1);
    server_do(server, "SET", IDX("attempt_timeout"), "no index");
    for (int i = 0; i < 5; i++) scan_run(server, "attempt_timeout");
    cr_assert_eq(lines_with(server, IDX("attempt_timeout")), 1);
    cr_assert_geq(info_number(server, "attempt_timeout_errors"), 5);
    write_runnable(server, 1, "eligible_now");
    server_do(server, "HDEL", X(1, "core"), "lifecycle_phase");
    for (int i = 0; i < 5; i++) scan_run(server, "index_reconciler");
    cr_assert_eq(lines_with(server, eid(1)), 1);
    cr_assert_eq(info_number(server, "index_reconciler_errors"), 5);
}

/* ---- Roles ---- */

Test(scan_roles, only_the_primary_acts) {
    test_server *primary = scan_start();
    test_server *replica =
        server_start_replica(primary, &(server_options){.config = "ff.scanners yes"});
    write_delayed(primary, 1, 1000);
    server_set_time(primary, START + 3000);
    usleep(100000);
    scan_expect_same_data(primary, replica);
    cr_assert_eq(eligible(replica), 0);
    server_expect_error(replica, "READONLY", "FF.SCANNER", "RUN", "delayed_promoter");
    server_do(replica, "REPLICAOF", "NO", "ONE");
    server_set_time(primary, START + 6000);
    eventually(eligible(replica) == 1);
    cr_assert_eq(eligible(primary), 0);
}

Test(scan_roles, a_pause_stops_the_timer) {
    test_server *server = scan_start();
    server_do(server, "CONFIG", "SET", "ff.scanners", "yes");
    write_delayed(server, 1, 1000);
    server_do(server, "CLIENT", "PAUSE", "100000000", "WRITE");
    server_set_time(server, START + 3000);
    usleep(100000);
    cr_assert_eq(eligible(server), 0);
    server_do(server, "CLIENT", "UNPAUSE");
    server_set_time(server, START + 6000);
    eventually(eligible(server) == 1);
}

/* At the memory limit only what frees memory goes on. */
ScannerTest(scan_roles, full_memory_lets_only_those_run_that_free_some) {
    write_delayed(server, 1, -1);
    write_terminal(server, 2, "success", -24 * 60 * 60 * 1000);
    server_do(server, "SADD", "ff:idx:{q:5}:quota_policies", QUOTA);
    server_do(server, "HSET", QUOTA_KEY(""), "requests_per_window_seconds", "10");
    server_do(server, "ZADD", QUOTA_KEY(":window:requests_per_window"), at(-10000), "a");
    server_do(server, "CONFIG", "SET", "maxmemory", "1");
    scan_expect(server, "delayed_promoter", 0);
    scan_expect(server, "retention_trimmer", .scanned = 1, .processed = 1);
    scan_expect(server, "quota_reconciler", .scanned = 1, .processed = 1);
    server_do(server, "CONFIG", "SET", "maxmemory", "0");
    scan_expect(server, "delayed_promoter", .scanned = 1, .processed = 1);
}

/* Where a client could not write, nobody does. */
Test(scan_roles, too_few_replicas_stop_the_timer) {
    test_server *server = scan_start();
    server_do(server, "CONFIG", "SET", "ff.scanners", "yes");
    write_delayed(server, 1, 1000);
    server_do(server, "CONFIG", "SET", "min-replicas-to-write", "1");
    int64_t cycles = info_number(server, "delayed_promoter_cycles");
    server_set_time(server, START + 3000);
    usleep(100000);
    cr_assert_eq(eligible(server), 0);
    cr_assert_eq(info_number(server, "delayed_promoter_cycles"), cycles, "no cycle at all");
    server_do(server, "CONFIG", "SET", "min-replicas-to-write", "0");
    server_set_time(server, START + 6000);
    eventually(eligible(server) == 1);
}

Test(scan_roles, lanes_are_found_again_after_a_restart) {
    test_server *server =
        server_start(&(server_options){.frozen_clock = true, .append_only = true});
    write_delayed(server, 1, 1000);
    server_do(server, "ZADD", "ff:idx:" FP ":lane:some lane:delayed", at(1000), eid(2));
    server_restart(server, true);
    scan_expect(server, "delayed_promoter", 0);
    server_set_time(server, START + 1000);
    scan_expect(server, "delayed_promoter", .scanned = 2, .processed = 2);
}

/* A worker that is new is looked at, without waiting for the next round. */
Test(scan_schedule, a_new_worker_is_noticed) {
    test_server *server = server_start(
        &(server_options){.config = "ff.scanners yes\nff.unblock-interval-ms 3600000"});
    eventually(info_number(server, "unblock_cycles") == 1);
    write_runnable(server, 1, "blocked_by_route");
    server_do(server, "HSET", X(1, "core"), "blocking_reason", "waiting_for_capable_worker",
              "required_capabilities", "gpu");
    server_do(server, "ZADD", LANE("blocked:route"), "1", eid(1));
    server_do(server, "SADD", "ff:idx:ns:workers", "w");
    server_do(server, "HSET", "ff:worker:ns:w:caps", "caps_csv", "gpu", "ttl_ms", "60000");
    eventually(eligible(server) == 1);
}

/* ---- Cluster ---- */

/* A budget or quota of another node keeps an execution blocked: nobody guesses. */
Test(scan_cluster, foreign_limits_keep_executions_blocked) {
    test_server *nodes[3];
    server_start_cluster(nodes, 3, NULL);
    test_server *home = server_of_key(nodes, 3, FP);
    test_server *budgets = server_of_key(nodes, 3, "{b:3}");
    bool foreign = home != budgets;
    write_runnable(home, 1, "blocked_by_budget");
    server_do(home, "HSET", X(1, "core"), "blocking_reason", "waiting_for_budget", "budget_ids",
              BUDGET);
    server_do(home, "ZADD", LANE("blocked:budget"), "1", eid(1));
    tally all = scan_command(home, "FF.SCANNER", "RUN", "unblock");
    cr_assert_eq(all.scanned, 1);
    cr_assert_eq(all.processed, foreign ? 0 : 1);
    if (foreign) {
        cr_assert_eq(info_number(home, "unblock_unknown"), 1);
        cr_assert(in_zset(home, LANE("blocked:budget"), eid(1)));
    }
    /* A partition that is another node's is refused, or redirected. */
    test_server *other = home == nodes[0] ? nodes[1] : nodes[0];
    server_expect_error(other, "ERR", "FF.SCANNER", "RUN", "unblock", "PARTITION", FP);
    server_expect_error(other, "MOVED", "FF.RECONCILE", FP, "index");
    tally one = scan_command(home, "FF.RECONCILE", FP, "index");
    cr_assert_eq(one.scanned, 1);
}
