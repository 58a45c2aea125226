/* Rules of the wire functions that no recording shows. */
#include <criterion/criterion.h>
#include <string.h>

#include "wire.h"

#define POLICY_KEY EXEC_KEY("policy")
#define LEASE_KEY EXEC_KEY("lease:current")
#define HISTORY_KEY EXEC_KEY("lease:history")
#define QUOTA_KEY "ff:quota:{q:1}:policy"

static test_server *start(void) { return server_start(&(server_options){.frozen_clock = true}); }

/* An execution whose lease was revoked, and a grant for another worker. */
static test_server *start_revoked(void) {
    test_server *server = start();
    wire_write_lease(server);
    server_do(server, "HSET", EXEC_KEY("core"), "ownership_state", "lease_revoked");
    server_do(server, "HSET", EXEC_KEY("claim_grant"), "worker_id", "second");
    return server;
}

static redisReply *reclaim(test_server *server, const char *cap) {
    return server_call(server, "FF.CALL", "ff_reclaim_execution", "14", EXEC_KEY("core"),
                       EXEC_KEY("claim_grant"), "ff:attempt:" TAG ":" EID ":0",
                       "ff:stream:" TAG ":" EID ":0:meta", "unused-1", "unused-2",
                       EXEC_KEY("attempts"), LEASE_KEY, HISTORY_KEY, INDEX_KEY("lease_expiry"),
                       INDEX_KEY("worker:other:leases"), INDEX_KEY("lane:main:active"),
                       INDEX_KEY("attempt_timeout"), INDEX_KEY("execution_deadline"), EID, "second",
                       "other", "main", "lease-2", "1000", "attempt-2", "", cap);
}

static const char *status_of(const redisReply *reply) {
    cr_assert_eq(reply->type, REDIS_REPLY_ARRAY);
    return reply->element[1]->str;
}

Test(wire_rules, a_reclaim_wants_a_numeric_cap_even_where_the_policy_decides) {
    test_server *server = start_revoked();
    server_do(server, "SET", POLICY_KEY, "{\"max_reclaim_count\":5}");
    const char *before = server_digest(server);
    cr_expect_str_eq(status_of(reclaim(server, "many")), "invalid_input");
    cr_expect_str_eq(status_of(reclaim(server, "")), "invalid_input");
    cr_expect_str_eq(server_digest(server), before);
    cr_expect_str_eq(status_of(reclaim(server, "0")), "OK");
}

static redisReply *admit(test_server *server) {
    return server_call(server, "FF.CALL", "ff_check_admission_and_record", "5", QUOTA_KEY ":window",
                       QUOTA_KEY ":concurrency", QUOTA_KEY, QUOTA_KEY ":admitted:" EID,
                       QUOTA_KEY ":admitted_set", "1767225600000", "0", "0", "9", EID);
}

/* At the millisecond of its expiry a key is still there, and counting does not take it away. */
Test(wire_rules, a_counter_keeps_its_expiry_to_the_last_millisecond) {
    test_server *server = start();
    server_do(server, "SET", QUOTA_KEY ":concurrency", "3", "PXAT", "1767225601000");
    server_set_time(server, FROZEN_START_MS + 1000);
    redisReply *reply = admit(server);
    cr_assert_eq(reply->type, REDIS_REPLY_ARRAY);
    cr_expect_str_eq(reply->element[0]->str, "ADMITTED");
    cr_expect_str_eq(server_text(server, "GET", QUOTA_KEY ":concurrency"), "4");
    cr_expect_eq(server_integer(server, "PEXPIRETIME", QUOTA_KEY ":concurrency"),
                 FROZEN_START_MS + 1000);
}

Test(wire_rules, a_counter_keeps_its_expiry_on_replicas) {
    test_server *primary = start();
    test_server *replica = server_start_replica(primary, &(server_options){0});
    server_do(primary, "SET", QUOTA_KEY ":concurrency", "3", "PXAT", "1767225660000");
    admit(primary);
    cr_expect_eq(server_integer(primary, "PEXPIRETIME", QUOTA_KEY ":concurrency"),
                 FROZEN_START_MS + 60000);
    server_expect_same_data(primary, replica);
}

/* ---- One name for two keys ---- */

Test(wire_rules, a_name_that_only_was_read_can_be_written_as_another_type) {
    test_server *server = start();
    wire_call call = wire_create();
    call.keys[CREATE_DEADLINE_KEY] = call.keys[CREATE_IDEMPOTENCY_KEY];
    call.arguments[CREATE_DEDUP_TTL] = text("");
    wire_expect(server, &call, "OK");
    cr_expect_str_eq(server_text(server, "TYPE", call.keys[CREATE_IDEMPOTENCY_KEY].data), "zset");
}

Test(wire_rules, a_name_is_not_written_as_two_types) {
    test_server *server = start();
    wire_call call = wire_create();
    call.keys[CREATE_TAGS_KEY] = call.keys[CREATE_PAYLOAD_KEY];
    wire_expect_error(server, &call, "WRONGTYPE");
    call = wire_create();
    call.keys[CREATE_ALL_KEY] = call.keys[CREATE_POLICY_KEY];
    wire_expect_error(server, &call, "WRONGTYPE");
}

Test(wire_rules, a_string_replaces_what_was_written_under_its_name) {
    test_server *server = start();
    wire_call call = wire_create();
    call.keys[CREATE_CORE_KEY] = call.keys[CREATE_PAYLOAD_KEY];
    call.arguments[CREATE_POLICY] = text("");
    wire_expect(server, &call, "OK");
    cr_expect_str_eq(server_text(server, "TYPE", call.keys[CREATE_PAYLOAD_KEY].data), "string");
}

Test(wire_rules, a_deleted_lease_may_make_room_for_the_history) {
    test_server *server = start();
    wire_write_lease(server);
    server_do(server, "DEL", HISTORY_KEY);
    redisReply *reply = server_call(server, "FF.CALL", "ff_revoke_lease", "5", EXEC_KEY("core"),
                                    LEASE_KEY, LEASE_KEY, INDEX_KEY("lease_expiry"),
                                    INDEX_KEY("worker:other:leases"), EID, "", "why");
    cr_assert_str_eq(status_of(reply), "OK");
    cr_expect_str_eq(server_text(server, "TYPE", LEASE_KEY), "stream");
    cr_expect_eq(server_integer(server, "XLEN", LEASE_KEY), 1);
}
