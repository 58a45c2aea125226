/* ff_renew_lease on bad input and broken records. */
#include "harness.h"
#include "wire.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

static test_server *start(void) {
    test_server *server = server_start(&(server_options){.frozen_clock = true});
    wire_write_lease(server);
    return server;
}

static void rewrite_lease(test_server *server) {
    server_do(server, "FLUSHALL");
    wire_write_lease(server);
}

Test(renew, extends_the_lease) {
    test_server *server = start();
    server_set_time(server, FROZEN_START_MS + 10000);
    wire_call call = wire_renew();
    wire_expect(server, &call, "OK");
    cr_assert_str_eq(server_text(server, "HGET", EXEC_KEY("core"), "lease_expires_at"),
                     "1767225640000");
    cr_assert_str_eq(server_text(server, "HGET", EXEC_KEY("lease:current"), "expires_at"),
                     "1767225640000");
    cr_assert_str_eq(server_text(server, "ZSCORE", INDEX_KEY("lease_expiry"), EID),
                     "1767225640000");
    cr_assert_eq(server_integer(server, "PEXPIRETIME", EXEC_KEY("lease:current")),
                 FROZEN_START_MS + 45000);
    cr_assert_eq(server_integer(server, "EXISTS", EXEC_KEY("lease:history")), 0);
}

Test(renew, no_such_execution) {
    test_server *server = server_start(NULL);
    wire_call call = wire_renew();
    wire_expect_refusal(server, &call, "execution_not_found", NULL);
}

Test(renew, too_few_keys) {
    test_server *server = start();
    for (size_t count = 0; count < RENEW_KEYS; count++) {
        wire_call call = wire_renew();
        call.key_count = count;
        char detail[64];
        snprintf(detail, sizeof detail, "expected 4 keys, got %zu", count);
        wire_expect_refusal(server, &call, "invalid_input", detail);
    }
}

Test(renew, too_few_arguments) {
    test_server *server = start();
    for (size_t count = 0; count < RENEW_ARGUMENTS; count++) {
        wire_call call = wire_renew();
        call.argument_count = count;
        wire_expect_refusal(server, &call, "invalid_input",
                            count <= RENEW_TTL
                                ? "lease_ttl_ms must be a number, got: nil"
                                : "lease_history_grace_ms must be a number, got: nil");
    }
}

Test(renew, surplus_is_ignored) {
    test_server *server = start();
    wire_call call = wire_renew();
    call.keys[call.key_count++] = text("ff:surplus:" TAG);
    call.arguments[call.argument_count++] = text("surplus");
    wire_expect(server, &call, "OK");
}

Test(renew, hostile_arguments) {
    test_server *server = start();
    for (size_t i = 0; i < RENEW_ARGUMENTS; i++) {
        for (const hostile_value *value = hostile_values(); value->name; value++) {
            wire_call call = wire_renew();
            call.arguments[i] = value->value;
            bool refused = wire_refused_cleanly(server, &call);
            bool names_the_lease = i >= RENEW_ATTEMPT_INDEX && i <= RENEW_EPOCH;
            cr_assert(refused || !names_the_lease, "argument %zu %s", i + 1, value->name);
            if (!refused) rewrite_lease(server);
        }
    }
}

Test(renew, refusals_name_the_number) {
    static const struct {
        enum renew_argument argument;
        const char *value, *detail;
    } numbers[] = {
        {RENEW_TTL, "", "lease_ttl_ms must be a number, got: "},
        {RENEW_TTL, "long", "lease_ttl_ms must be a number, got: long"},
        {RENEW_GRACE, "", "lease_history_grace_ms must be a number, got: "},
        {RENEW_GRACE, "5x", "lease_history_grace_ms must be a number, got: 5x"},
        {RENEW_TTL, "0.5", NULL},
        {RENEW_TTL, "nan", NULL},
        {RENEW_TTL, "inf", NULL},
        {RENEW_TTL, "1e300", NULL},
        {RENEW_GRACE, "0.5", NULL},
        {RENEW_GRACE, "-inf", NULL},
    };
    test_server *server = start();
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        wire_call call = wire_renew();
        call.arguments[numbers[i].argument] = text(numbers[i].value);
        wire_expect_refusal(server, &call, "invalid_input", numbers[i].detail);
    }
}

Test(renew, fence) {
    test_server *server = start();
    wire_call partial = wire_renew();
    partial.arguments[RENEW_EPOCH] = text("");
    wire_expect_refusal(server, &partial, "partial_fence_triple", NULL);
    wire_call none = partial;
    none.arguments[RENEW_LEASE_ID] = none.arguments[RENEW_ATTEMPT_ID] = text("");
    wire_expect_refusal(server, &none, "fence_required", NULL);
    wire_call stale = wire_renew();
    stale.arguments[RENEW_EPOCH] = text("01");
    wire_expect_refusal(server, &stale, "stale_lease", NULL);
}

Test(renew, keys_of_another_type) {
    static const char *const types[RENEW_KEYS] = {"hash", "hash", NULL, "zset"};
    test_server *server = start();
    for (size_t i = 0; i < RENEW_KEYS; i++) {
        for (const char *const *type = wire_types; *type; type++) {
            wire_call call = wire_renew();
            if (!types[i] || strcmp(types[i], *type) == 0) continue;
            wire_write_type(server, call.keys[i], *type);
            wire_expect_error(server, &call, "WRONGTYPE");
            rewrite_lease(server);
        }
    }
}

/* The history is only written when the renewal finds that the lease has lapsed. */
Test(renew, lapsed_lease_with_a_history_of_another_type) {
    test_server *server = start();
    server_set_time(server, FROZEN_START_MS + 30000);
    for (const char *const *type = wire_types; *type; type++) {
        if (strcmp(*type, "stream") == 0) continue;
        wire_call call = wire_renew();
        wire_write_type(server, call.keys[RENEW_HISTORY_KEY], *type);
        wire_expect_error(server, &call, "WRONGTYPE");
        rewrite_lease(server);
    }
    wire_call call = wire_renew();
    const char *meta = "ff:stream:" TAG ":" EID ":0:meta";
    wire_write_type(server, text(meta), "string");
    wire_expect_error(server, &call, "WRONGTYPE");
}

Test(renew, lapsed_lease_is_marked_once) {
    test_server *server = start();
    server_set_time(server, FROZEN_START_MS + 30000);
    wire_call call = wire_renew();
    redisReply *reply = wire_send(server, &call);
    cr_assert_str_eq(reply->element[1]->str, "lease_expired");
    cr_assert_str_eq(server_text(server, "HGET", EXEC_KEY("core"), "ownership_state"),
                     "lease_expired_reclaimable");
    cr_assert_eq(server_integer(server, "XLEN", EXEC_KEY("lease:history")), 1);
    wire_expect_refusal(server, &call, "lease_expired", NULL);
}

/* What the absence of each field of the record means. */
Test(renew, missing_fields) {
    static const struct {
        const char *field, *code; /* NULL: the renewal succeeds */
    } fields[] = {
        {"lifecycle_phase", "execution_not_active"},
        {"current_attempt_index", "stale_lease"},
        {"current_attempt_id", "stale_lease"},
        {"current_lease_id", "stale_lease"},
        {"current_lease_epoch", "stale_lease"},
        {"ownership_state", NULL},
        {"lease_revoked_at", NULL},
        {"lease_renewal_deadline", NULL},
        {"lease_last_renewed_at", NULL},
        {"last_mutation_at", NULL},
        {"execution_id", NULL},
    };
    test_server *server = start();
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        wire_call call = wire_renew();
        server_do(server, "HDEL", EXEC_KEY("core"), fields[i].field);
        if (fields[i].code) {
            wire_expect_refusal(server, &call, fields[i].code, NULL);
        } else {
            wire_expect(server, &call, "OK");
        }
        rewrite_lease(server);
    }
}

Test(renew, garbled_expiry_is_named) {
    static const char *const values[] = {"", "soon", "1,5", "5x", "-", " "};
    test_server *server = start();
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        wire_call call = wire_renew();
        server_do(server, "HSET", EXEC_KEY("core"), "lease_expires_at", values[i]);
        char detail[80];
        snprintf(detail, sizeof detail, "lease_expires_at must be a number, got: %s", values[i]);
        wire_expect_refusal(server, &call, "invalid_input", detail);
    }
}

/* Every field of the record in turn, with every hostile value. A lease that thereby lapses is marked,
 * which is the one refusal of a renewal that writes. */
Test(renew, garbled_fields) {
    test_server *server = start();
    redisReply *fields = server_call(server, "HKEYS", EXEC_KEY("core"));
    for (size_t i = 0; i < fields->elements; i++) {
        const char *field = fields->element[i]->str;
        if (strcmp(field, "lease_expires_at") == 0) continue;
        for (const hostile_value *value = hostile_values(); value->name; value++) {
            bytes words[] = {text("HSET"), text(EXEC_KEY("core")), text(field), value->value};
            server_send(server, 4, words);
            wire_call call = wire_renew();
            wire_refused_cleanly(server, &call);
        }
        rewrite_lease(server);
    }
    cr_assert_str_eq(server_text(server, "PING"), "PONG");
}

Test(renew, lost_lease_record_is_made_again) {
    test_server *server = start();
    server_do(server, "DEL", EXEC_KEY("lease:current"), INDEX_KEY("lease_expiry"));
    wire_call call = wire_renew();
    wire_expect(server, &call, "OK");
    cr_assert_eq(server_integer(server, "HLEN", EXEC_KEY("lease:current")), 3);
    cr_assert_eq(server_integer(server, "ZCARD", INDEX_KEY("lease_expiry")), 1);
}
