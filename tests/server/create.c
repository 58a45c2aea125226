/* ff_create_execution on bad input: a refusal that names the problem, and nothing written. */
#include "harness.h"
#include "wire.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

static test_server *start(void) { return server_start(&(server_options){.frozen_clock = true}); }

Test(create, succeeds_with_every_key) {
    test_server *server = start();
    wire_call call = wire_create();
    wire_expect(server, &call, "OK");
    for (size_t i = 0; i < call.key_count; i++) {
        bytes words[] = {text("EXISTS"), call.keys[i]};
        redisReply *exists = server_send(server, 2, words);
        cr_assert_eq(exists->integer, 1, "key %zu was not written", i + 1);
    }
    cr_assert_eq(server_integer(server, "HLEN", EXEC_KEY("core")), 50);
    cr_assert_str_eq(server_text(server, "HGET", EXEC_KEY("core"), "required_capabilities"),
                     "arm,gpu");
    cr_assert_eq(server_integer(server, "PEXPIRETIME", "ff:idem:" TAG ":ns:once"),
                 FROZEN_START_MS + 60000);
    const char *after = server_digest(server);
    wire_expect(server, &call, "DUPLICATE");
    cr_assert_str_eq(server_digest(server), after);
}

Test(create, too_few_keys) {
    test_server *server = start();
    for (size_t count = 0; count < CREATE_KEYS; count++) {
        wire_call call = wire_create();
        call.key_count = count;
        char detail[64];
        snprintf(detail, sizeof detail, "expected 8 keys, got %zu", count);
        wire_expect_refusal(server, &call, "invalid_input", detail);
    }
}

Test(create, too_few_arguments) {
    test_server *server = start();
    for (size_t count = 0; count < CREATE_ARGUMENTS; count++) {
        wire_call call = wire_create();
        call.argument_count = count;
        char detail[64];
        if (count <= CREATE_PRIORITY) {
            snprintf(detail, sizeof detail, "priority must be a number, got: nil");
        } else {
            snprintf(detail, sizeof detail, "expected 13 arguments, got %zu", count);
        }
        wire_expect_refusal(server, &call, "invalid_input", detail);
    }
}

Test(create, surplus_is_ignored) {
    test_server *server = start();
    wire_call call = wire_create();
    call.keys[call.key_count++] = text("ff:surplus:" TAG);
    call.arguments[call.argument_count++] = text("surplus");
    wire_expect(server, &call, "OK");
    cr_assert_eq(server_integer(server, "EXISTS", "ff:surplus:" TAG), 0);
}

/* Each argument in turn; what is refused must leave nothing, what is not must leave a record. */
Test(create, hostile_arguments) {
    test_server *server = start();
    for (size_t i = 0; i < CREATE_ARGUMENTS; i++) {
        for (const hostile_value *value = hostile_values(); value->name; value++) {
            wire_call call = wire_create();
            call.arguments[i] = value->value;
            bool refused = wire_refused_cleanly(server, &call);
            int64_t exists = server_integer(server, "EXISTS", EXEC_KEY("core"));
            cr_assert_eq(exists, !refused, "argument %zu %s", i + 1, value->name);
            server_do(server, "FLUSHALL");
        }
    }
}

typedef struct bad_number {
    enum create_argument argument;
    const char *value;
    const char *detail;
} bad_number;

Test(create, refusals_name_the_number) {
    static const bad_number numbers[] = {
        {CREATE_PRIORITY, "", "priority must be a number, got: "},
        {CREATE_PRIORITY, "high", "priority must be a number, got: high"},
        {CREATE_PRIORITY, "1,5", "priority must be a number, got: 1,5"},
        {CREATE_PRIORITY, "nan", "priority must be a number, got: nan"},
        {CREATE_DELAY_UNTIL, "soon", "delay_until must be a number, got: soon"},
        {CREATE_DELAY_UNTIL, "5x", "delay_until must be a number, got: 5x"},
        {CREATE_DEADLINE, "never", "execution_deadline_at must be a number, got: never"},
        {CREATE_DEDUP_TTL, "0.5", "dedup_ttl_ms must be a whole number of milliseconds, got: 0.5"},
        {CREATE_DEDUP_TTL, "1e30",
         "dedup_ttl_ms must be a whole number of milliseconds, got: 1e30"},
        {CREATE_DEDUP_TTL, "inf", "dedup_ttl_ms must be a whole number of milliseconds, got: inf"},
    };
    test_server *server = start();
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        wire_call call = wire_create();
        call.arguments[numbers[i].argument] = text(numbers[i].value);
        wire_expect_refusal(server, &call, "invalid_input", numbers[i].detail);
    }
}

Test(create, refusals_name_the_policy) {
    static const struct {
        const char *policy, *code, *detail;
    } policies[] = {
        {"{", "invalid_policy_json", "malformed"},
        {"{\"routing_requirements\":7}", "invalid_policy_json", "routing_requirements:not_object"},
        {"{\"routing_requirements\":{\"required_capabilities\":\"gpu\"}}", "invalid_capabilities",
         "required:not_array"},
        {"{\"routing_requirements\":{\"required_capabilities\":[7]}}", "invalid_capabilities",
         "required:non_string_token"},
        {"{\"routing_requirements\":{\"required_capabilities\":[\"\"]}}", "invalid_capabilities",
         "required:empty_token"},
        {"{\"routing_requirements\":{\"required_capabilities\":[\"a,b\"]}}", "invalid_capabilities",
         "required:comma_in_token"},
        {"{\"routing_requirements\":{\"required_capabilities\":[\"a b\"]}}", "invalid_capabilities",
         "required:control_or_whitespace"},
    };
    test_server *server = start();
    for (size_t i = 0; i < sizeof policies / sizeof *policies; i++) {
        wire_call call = wire_create();
        call.arguments[CREATE_POLICY] = text(policies[i].policy);
        wire_expect_refusal(server, &call, policies[i].code, policies[i].detail);
    }
}

/* The type that creation finds or makes in each key. */
static const char *const key_types[CREATE_KEYS] = {"hash", "string", "string", "hash",
                                                   "zset", "string", "zset",   "set"};

static bool may_be_overwritten(size_t key, const char *type) {
    /* SET replaces whatever was there; a core of any type is a duplicate. */
    return strcmp(key_types[key], type) == 0 || key == CREATE_PAYLOAD_KEY ||
           key == CREATE_POLICY_KEY || key == CREATE_CORE_KEY;
}

Test(create, keys_of_another_type) {
    test_server *server = start();
    for (size_t i = 0; i < CREATE_KEYS; i++) {
        for (const char *const *type = wire_types; *type; type++) {
            wire_call call = wire_create();
            wire_write_type(server, call.keys[i], *type);
            if (may_be_overwritten(i, *type)) {
                cr_assert_not(wire_refused_cleanly(server, &call), "key %zu a %s", i + 1, *type);
            } else {
                wire_expect_error(server, &call, "WRONGTYPE");
            }
            server_do(server, "FLUSHALL");
        }
    }
}

Test(create, a_core_of_any_type_is_a_duplicate) {
    test_server *server = start();
    for (const char *const *type = wire_types; *type; type++) {
        wire_call call = wire_create();
        wire_write_type(server, call.keys[CREATE_CORE_KEY], *type);
        const char *before = server_digest(server);
        wire_expect(server, &call, "DUPLICATE");
        cr_assert_str_eq(server_digest(server), before);
    }
}

Test(create, hostile_key_names) {
    test_server *server = start();
    for (size_t i = 0; i < CREATE_KEYS; i++) {
        for (const hostile_value *value = hostile_values(); value->name; value++) {
            wire_call call = wire_create();
            call.keys[i] = value->value;
            wire_refused_cleanly(server, &call);
            cr_assert_str_eq(server_text(server, "PING"), "PONG", "key %zu %s", i + 1, value->name);
            server_do(server, "FLUSHALL");
        }
    }
}

/* The same key in two roles of different types cannot work, and must not work half. */
Test(create, one_key_in_two_roles) {
    test_server *server = start();
    for (size_t i = 0; i < CREATE_KEYS; i++) {
        for (size_t j = 0; j < CREATE_KEYS; j++) {
            wire_call call = wire_create();
            call.keys[i] = call.keys[j];
            wire_refused_cleanly(server, &call);
            server_do(server, "FLUSHALL");
        }
    }
}

Test(create, binary_payload_is_kept) {
    static const char payload[] = "\0\1\xff\r\n$5\r\n";
    test_server *server = start();
    wire_call call = wire_create();
    call.arguments[CREATE_PAYLOAD] = (bytes){payload, sizeof payload - 1};
    wire_expect(server, &call, "OK");
    redisReply *stored = server_call(server, "GET", EXEC_KEY("payload"));
    cr_assert_eq(stored->len, sizeof payload - 1);
    cr_assert_arr_eq(stored->str, payload, sizeof payload - 1);
}

/* What other writers left in the sets that creation adds to does not matter. */
Test(create, garbled_indexes_do_no_harm) {
    test_server *server = start();
    server_do(server, "ZADD", INDEX_KEY("lane:default:eligible"), "inf", EID);
    server_do(server, "ZADD", INDEX_KEY("execution_deadline"), "-inf", EID);
    server_do(server, "HSET", EXEC_KEY("tags"), "", "garbled");
    wire_call call = wire_create();
    wire_expect(server, &call, "OK");
    cr_assert_str_eq(server_text(server, "ZSCORE", INDEX_KEY("execution_deadline"), EID),
                     "1767225700000");
    cr_assert_str_eq(server_text(server, "HGET", EXEC_KEY("tags"), ""), "garbled");
}
