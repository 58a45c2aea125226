/* Scanners that are interrupted in the middle of a cycle, and indexes full of entries that lead nowhere. */
#include "scan.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* On a frozen clock each move of it lets one slice of work be done: the shortest there are. */
#define SHORT_SLICES "ff.scanners yes\nff.scanner-slice-us 50"

static int64_t clock_ms;

static void tick(test_server *server) {
    clock_ms++;
    server_set_time(server, START + clock_ms);
    usleep(1000);
}

/* Lets slices be done until `wanted` of the backlog have moved. */
static void work_until(test_server *server, test_server *clock_of, int64_t wanted) {
    for (int ticks = 0; eligible_anywhere(server) < wanted; ticks++) {
        cr_assert_lt(ticks, 20000, "%ld of %ld moved", (long)eligible_anywhere(server),
                     (long)wanted);
        tick(clock_of);
    }
}

static bool is_halfway(test_server *server, int count) {
    int64_t moved = eligible_anywhere(server);
    return moved > 0 && moved < count;
}

/* ---- Roles ---- */

Test(scan_interruption, the_role_changes_in_the_middle_of_a_cycle) {
    enum { COUNT = 3000 };
    test_server *first =
        server_start(&(server_options){.frozen_clock = true, .config = SHORT_SLICES});
    test_server *second = server_start_replica(first, &(server_options){.config = SHORT_SLICES});
    write_backlog(first, 1, COUNT);
    work_until(first, first, COUNT / 10);
    cr_assert(is_halfway(first, COUNT));
    eventually(eligible_anywhere(second) > 0);
    cr_assert(is_halfway(second, COUNT));
    server_do(second, "REPLICAOF", "NO", "ONE");
    server_do(first, "REPLICAOF", "127.0.0.1", format("%d", server_port(second)));
    eventually(strcmp(server_info(first, "replication", "master_link_status"), "up") == 0);
    int64_t processed = info_number(first, "delayed_promoter_processed");
    work_until(second, first, COUNT);
    cr_assert_eq(info_number(first, "delayed_promoter_processed"), processed,
                 "what is no primary any more does nothing");
    scan_expect_same_data(second, first);
    /* And back: the schedule starts anew. */
    write_backlog(second, COUNT + 1, COUNT + 100);
    scan_expect_same_data(second, first);
    server_do(first, "REPLICAOF", "NO", "ONE");
    server_do(second, "REPLICAOF", "127.0.0.1", format("%d", server_port(first)));
    work_until(first, first, COUNT + 100);
    eventually(strcmp(server_info(second, "replication", "master_link_status"), "up") == 0);
    scan_expect_same_data(first, second);
}

/* ---- Restarts ---- */

static void restart_halfway(bool append_only) {
    enum { COUNT = 3000 };
    test_server *server = server_start(&(server_options){
        .frozen_clock = true, .append_only = append_only, .config = SHORT_SLICES});
    write_backlog(server, 1, COUNT);
    work_until(server, server, COUNT / 10);
    cr_assert(is_halfway(server, COUNT));
    server_restart(server, true);
    cr_assert(is_halfway(server, COUNT));
    work_until(server, server, COUNT);
    cr_assert_lt(info_number(server, "delayed_promoter_processed"), COUNT, "some were done before");
}

Test(scan_interruption, restarts_from_an_append_only_file) { restart_halfway(true); }

Test(scan_interruption, restarts_from_a_snapshot) { restart_halfway(false); }

/* What was queued when the server stopped is found by the reconciler. */
Test(scan_interruption, restarts_in_the_middle_of_a_cascade) {
    enum { LENGTH = 200 };
    test_server *server =
        server_start(&(server_options){.frozen_clock = true, .config = "ff.cascade-limit 5"});
    write_active(server, 1, 1000);
    for (int i = 2; i <= LENGTH; i++) write_runnable(server, i, "blocked_by_dependencies");
    for (int i = 2; i <= LENGTH; i++) write_edge(server, i, i - 1, i);
    server_do(server, "CONFIG", "SET", "ff.scanner-slice-us", "50");
    server_do(server, "ZADD", IDX("execution_deadline"), at(0), eid(1));
    scan_expect(server, "execution_deadline", .scanned = 1, .processed = 1);
    field_is(server, X(2, "core"), "public_state", "skipped");
    field_is(server, X(LENGTH, "core"), "public_state", "waiting_children");
    server_restart(server, true);
    cr_assert_eq(info_number(server, "dispatch_queue"), 0);
    field_is(server, X(LENGTH, "core"), "public_state", "waiting_children");
    server_do(server, "CONFIG", "SET", "ff.cascade-limit", "1000");
    cr_assert_eq(scan_run(server, "dependency_reconciler").processed, 1);
    for (int i = 2; i <= LENGTH; i++) field_is(server, X(i, "core"), "public_state", "skipped");
    cr_assert_eq(server_integer(server, "EXISTS", LANE("blocked:dependencies")), 0);
}

/* ---- Others at the same index ---- */

/* Half of the entries stay, and are gone when the walk is behind them: it goes on where it was. All have one score, so
 * that only their names tell where that is. */
static void remove_what_was_passed(int half) {
    test_server *server = server_start(&(server_options){
        .frozen_clock = true, .config = "ff.scanner-slice-us 50\nff.scan-batch 20"});
    for (int i = 1; i <= 2 * half; i++) {
        write_blocked(server, i, "route", "waiting_for_capable_worker");
        server_do(server, "HSET", X(i, "core"), "required_capabilities", i <= half ? "gpu" : "");
        server_do(server, "ZADD", LANE("blocked:route"), "1", eid(i));
    }
    server_do(server, "CONFIG", "SET", "ff.scanners", "yes");
    work_until(server, server, 1);
    cr_assert_lt(eligible_anywhere(server), half);
    server_do(server, "ZREMRANGEBYRANK", LANE("blocked:route"), "0", format("%d", half - 1));
    cr_assert_eq(info_number(server, "unblock_cycles"), 0);
    for (int ticks = 0; info_number(server, "unblock_cycles") == 0; ticks++) {
        cr_assert_lt(ticks, 20000);
        tick(server);
    }
    cr_assert_eq(eligible_anywhere(server), half, "some were left to the next cycle");
}

Test(scan_interruption, others_remove_what_was_passed) { remove_what_was_passed(200); }

Test(scan_interruption, others_remove_a_lot_of_what_was_passed) { remove_what_was_passed(600); }

/* ---- Stale entries ---- */

static int64_t now_of(test_server *server) {
    redisReply *now = server_call(server, "TIME");
    return strtoll(now->element[0]->str, NULL, 10) * 1000 +
           strtoll(now->element[1]->str, NULL, 10) / 1000;
}

/* Entries `<prefix><number>` of one score. */
static void write_stale(test_server *server, const char *key, const char *prefix, int count) {
    enum { CHUNK = 100000 };
    for (int done = 0; done < count; done += CHUNK) {
        server_do(server, "EVAL",
                  "local words = {} for i = ARGV[2] + 1, ARGV[3] do words[#words + 1] = 1 "
                  "words[#words + 1] = ARGV[1] .. string.format('%012d', i) "
                  "if #words == 2000 then redis.call('ZADD', KEYS[1], unpack(words)) words = {} "
                  "end end",
                  "1", key, prefix, format("%d", done), format("%d", done + CHUNK));
    }
    cr_assert_eq(server_integer(server, "ZCARD", key), count);
}

/* A million that stay, since nobody knows what they are: what is due behind them is done at once all the same, clients
 * are served, and the log tells of some of them once. */
Test(scan_stale, a_million_entries_that_stay) {
    enum { COUNT = 1000000 };
    test_server *server = server_start(NULL);
    write_stale(server, IDX("lease_expiry"), "stale", COUNT);
    server_do(server, "CONFIG", "SET", "ff.scanners", "yes");
    eventually_within(60, info_number(server, "lease_expiry_cycles") >= 2);
    int logged = lines_with(server, "is no execution id");
    cr_assert(logged > 0 && logged <= 5000, "%d lines", logged);
    int64_t due = now_of(server) + 100;
    write_active(server, 1, due - START);
    eventually(strcmp(server_text(server, "HGET", X(1, "core"), "ownership_state"),
                      "lease_expired_reclaimable") == 0);
    const char *marked = server_text(server, "HGET", X(1, "core"), "lease_expired_at");
    int64_t late = strtoll(marked, NULL, 10) - due;
    cr_log_info("marked %ld ms late", (long)late);
    cr_assert_lt(late, 1000, "marked %ld ms late", (long)late);
    cr_assert_eq(server_integer(server, "ZCARD", IDX("lease_expiry")), COUNT + 1);
    cr_assert_eq(lines_with(server, "is no execution id"), logged, "logged in each cycle");
    expect_slices(server, 200);
    cr_assert_eq(info_number(server, "lease_expiry_errors"), 0);
}

/* Executions that are gone leave the index, however many. */
Test(scan_stale, many_entries_that_go) {
    enum { COUNT = 200000 };
    test_server *server = server_start(NULL);
    write_stale(server, IDX("lease_expiry"), FP ":e0000000-0000-4000-8000-", COUNT);
    server_do(server, "CONFIG", "SET", "ff.scanners", "yes");
    eventually_within(60, server_integer(server, "EXISTS", IDX("lease_expiry")) == 0);
    cr_assert_eq(info_number(server, "lease_expiry_processed"), COUNT);
    expect_slices(server, 200);
}
