/* Replicas, AOF and RDB hold what the primary holds, and need no module for it. */
#include "harness.h"
#include "wire.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Successes and refusals, with and without effect, of both functions. */
static void make_calls(test_server *server) {
    wire_call create = wire_create();
    wire_expect(server, &create, "OK");
    wire_expect(server, &create, "DUPLICATE");
    wire_call delayed = wire_create();
    delayed.keys[CREATE_CORE_KEY] = text(EXEC_KEY("second"));
    delayed.keys[CREATE_IDEMPOTENCY_KEY] = text("ff:noop:" TAG);
    delayed.keys[CREATE_SCHEDULE_KEY] = text(INDEX_KEY("lane:default:delayed"));
    delayed.arguments[CREATE_ID] = text(TAG ":second");
    delayed.arguments[CREATE_PRIORITY] = text("0.1");
    delayed.arguments[CREATE_DELAY_UNTIL] = text("1767225600000.25");
    delayed.arguments[CREATE_DEADLINE] = text("inf");
    delayed.arguments[CREATE_PAYLOAD] = (bytes){"\0\xff\r\n", 4};
    wire_expect(server, &delayed, "OK");
    create.arguments[CREATE_PRIORITY] = text("high");
    wire_expect_refusal(server, &create, "invalid_input", NULL);
    wire_write_lease(server);
    wire_call renew = wire_renew();
    wire_expect(server, &renew, "OK");
    server_set_time(server, FROZEN_START_MS + 30000);
    wire_send(server, &renew); /* lapsed: refused, and marked */
    cr_assert_eq(server_integer(server, "XLEN", EXEC_KEY("lease:history")), 1);
}

Test(replication, replica_without_the_module_agrees) {
    test_server *primary = server_start(&(server_options){.frozen_clock = true});
    test_server *replica = server_start_replica(primary, &(server_options){.without_module = true});
    make_calls(primary);
    server_expect_same_data(primary, replica);
}

Test(replication, replica_that_syncs_later_agrees) {
    test_server *primary = server_start(&(server_options){.frozen_clock = true});
    make_calls(primary);
    test_server *replica = server_start_replica(primary, NULL);
    server_expect_same_data(primary, replica);
}

static long calls_of(test_server *server, const char *command) {
    char field[64];
    snprintf(field, sizeof field, "cmdstat_%s", command);
    const char *line = server_info(server, "commandstats", field);
    return line ? strtol(line + strlen("calls="), NULL, 10) : 0;
}

Test(replication, one_transaction_per_call) {
    test_server *primary = server_start(&(server_options){.frozen_clock = true});
    test_server *replica = server_start_replica(primary, &(server_options){.without_module = true});
    wire_call create = wire_create();
    wire_expect(primary, &create, "OK");
    wire_expect(primary, &create, "DUPLICATE");
    server_expect_same_data(primary, replica);
    cr_assert_eq(calls_of(replica, "multi"), 1);
    cr_assert_eq(calls_of(replica, "exec"), 1);
    cr_assert_eq(calls_of(replica, "restore"), 1, "the core comes in one go");
    cr_assert_eq(calls_of(replica, "hset"), 1, "the tags are few");
}

Test(replication, renewal_that_changes_nothing_but_times_is_small) {
    test_server *primary = server_start(&(server_options){.frozen_clock = true});
    wire_write_lease(primary);
    test_server *replica = server_start_replica(primary, &(server_options){.without_module = true});
    server_set_time(primary, FROZEN_START_MS + 1000);
    wire_call renew = wire_renew();
    wire_expect(primary, &renew, "OK");
    server_expect_same_data(primary, replica);
    cr_assert_eq(calls_of(replica, "hset"), 2);
    cr_assert_eq(calls_of(replica, "exec"), 1);
}

Test(replication, restart_from_aof) {
    test_server *server =
        server_start(&(server_options){.frozen_clock = true, .append_only = true});
    make_calls(server);
    const char *before = server_digest(server);
    server_restart(server, false);
    cr_assert_str_eq(server_digest(server), before);
    cr_assert_gt(server_integer(server, "DBSIZE"), 0);
}

Test(replication, restart_from_rdb) {
    test_server *server = server_start(&(server_options){.frozen_clock = true});
    make_calls(server);
    const char *before = server_digest(server);
    server_restart(server, true);
    cr_assert_str_eq(server_digest(server), before);
    cr_assert_gt(server_integer(server, "DBSIZE"), 0);
}

Test(replication, rewritten_aof) {
    test_server *server = server_start(&(server_options){
        .frozen_clock = true, .append_only = true, .config = "aof-use-rdb-preamble no"});
    make_calls(server);
    const char *before = server_digest(server);
    server_do(server, "BGREWRITEAOF");
    const char *rewriting;
    do {
        rewriting = server_info(server, "persistence", "aof_rewrite_in_progress");
    } while (strcmp(rewriting, "0") != 0);
    server_restart(server, false);
    cr_assert_str_eq(server_digest(server), before);
}

Test(replication, replica_refuses_writes) {
    test_server *primary = server_start(&(server_options){.frozen_clock = true});
    test_server *replica = server_start_replica(primary, NULL);
    wire_call create = wire_create();
    wire_expect_error(replica, &create, "READONLY");
    cr_assert_str_eq(server_text(replica, "FF.CALL_RO", "ff_version", "0"), "34");
    server_expect_same_data(primary, replica);
}

/* An idempotency record that lapses on the primary lapses on the replica. */
Test(replication, expiry_follows) {
    test_server *primary = server_start(&(server_options){.frozen_clock = true});
    test_server *replica = server_start_replica(primary, &(server_options){.without_module = true});
    wire_call create = wire_create();
    wire_expect(primary, &create, "OK");
    server_set_time(primary, FROZEN_START_MS + 60001);
    server_do(primary, "DEL", EXEC_KEY("core"));
    wire_expect(primary, &create, "OK");
    server_expect_same_data(primary, replica);
}
