#include "wire.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MEGABYTE (1024 * 1024)

const char *const wire_types[] = {"string", "hash", "list", "set", "zset", "stream", NULL};

static void set_words(bytes *words, const char *const *from, size_t count) {
    for (size_t i = 0; i < count; i++) words[i] = text(from[i]);
}

wire_call wire_create(void) {
    static const char *const keys[CREATE_KEYS] = {
        EXEC_KEY("core"),
        EXEC_KEY("payload"),
        EXEC_KEY("policy"),
        EXEC_KEY("tags"),
        INDEX_KEY("lane:default:eligible"),
        "ff:idem:" TAG ":ns:once",
        INDEX_KEY("execution_deadline"),
        INDEX_KEY("all_executions"),
    };
    static const char *const arguments[CREATE_ARGUMENTS] = {
        EID,
        "ns",
        "default",
        "task",
        "5",
        "tester",
        "{\"routing_requirements\":{\"required_capabilities\":[\"gpu\",\"arm\"]}}",
        "payload",
        "",
        "60000",
        "{\"color\":\"red\"}",
        "1767225700000",
        "7",
    };
    wire_call call = {.function = "ff_create_execution",
                      .key_count = CREATE_KEYS,
                      .argument_count = CREATE_ARGUMENTS};
    set_words(call.keys, keys, CREATE_KEYS);
    set_words(call.arguments, arguments, CREATE_ARGUMENTS);
    return call;
}

wire_call wire_renew(void) {
    static const char *const keys[RENEW_KEYS] = {
        EXEC_KEY("core"),
        EXEC_KEY("lease:current"),
        EXEC_KEY("lease:history"),
        INDEX_KEY("lease_expiry"),
    };
    static const char *const arguments[RENEW_ARGUMENTS] = {EID, "0",     "attempt-1", "lease-1",
                                                           "1", "30000", "5000"};
    wire_call call = {
        .function = "ff_renew_lease", .key_count = RENEW_KEYS, .argument_count = RENEW_ARGUMENTS};
    set_words(call.keys, keys, RENEW_KEYS);
    set_words(call.arguments, arguments, RENEW_ARGUMENTS);
    return call;
}

void wire_write_lease(test_server *server) {
    char expires[32];
    snprintf(expires, sizeof expires, "%lld", (long long)FROZEN_START_MS + 30000);
    server_do(server, "HSET", EXEC_KEY("core"), "execution_id", EID, "lane_id", "default",
              "lifecycle_phase", "active", "ownership_state", "leased", "eligibility_state",
              "not_applicable", "blocking_reason", "none", "blocking_detail", "",
              "terminal_outcome", "none", "attempt_state", "running_attempt", "public_state",
              "active", "current_attempt_index", "0", "current_attempt_id", "attempt-1",
              "current_lease_id", "lease-1", "current_lease_epoch", "1", "current_worker_id", "w-1",
              "current_worker_instance_id", "wi-1", "lease_expires_at", expires,
              "lease_last_renewed_at", "1767225600000", "lease_renewal_deadline", "1767225620000",
              "lease_revoked_at", "", "lease_expired_at", "", "last_mutation_at", "1767225600000");
    server_do(server, "HSET", EXEC_KEY("lease:current"), "lease_id", "lease-1", "lease_epoch", "1",
              "execution_id", EID, "attempt_id", "attempt-1", "expires_at", expires);
    server_do(server, "ZADD", INDEX_KEY("lease_expiry"), expires, EID);
    server_do(server, "HSET", "ff:stream:" TAG ":" EID ":0:meta", "stream_id", EID ":0",
              "closed_at", "", "closed_reason", "");
}

redisReply *wire_send(test_server *server, const wire_call *call) {
    bytes words[3 + WIRE_MAX_KEYS + WIRE_MAX_ARGUMENTS];
    char number_of_keys[24];
    snprintf(number_of_keys, sizeof number_of_keys, "%zu", call->key_count);
    size_t count = 0;
    words[count++] = text("FF.CALL");
    words[count++] = text(call->function);
    words[count++] = text(number_of_keys);
    for (size_t i = 0; i < call->key_count; i++) words[count++] = call->keys[i];
    for (size_t i = 0; i < call->argument_count; i++) words[count++] = call->arguments[i];
    return server_send(server, count, words);
}

static const char *described(const redisReply *reply) {
    char *all = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&all, &size);
    if (reply->str) fprintf(out, "%s", reply->str);
    if (reply->type == REDIS_REPLY_INTEGER) fprintf(out, "%lld", reply->integer);
    for (size_t i = 0; i < reply->elements; i++) {
        fprintf(out, "%s%s", i ? ", " : "[", described(reply->element[i]));
    }
    if (reply->elements) fputc(']', out);
    fclose(out);
    return server_keep(all);
}

static bool is_array_of(const redisReply *reply, long long first) {
    return reply->type == REDIS_REPLY_ARRAY && reply->elements >= 2 &&
           reply->element[0]->type == REDIS_REPLY_INTEGER && reply->element[0]->integer == first;
}

static bool begins_with(const char *whole, const char *start) {
    return strncmp(whole, start, strlen(start)) == 0;
}

void wire_expect(test_server *server, const wire_call *call, const char *status) {
    redisReply *reply = wire_send(server, call);
    cr_assert(is_array_of(reply, 1) && strcmp(reply->element[1]->str, status) == 0,
              "%s answered %s", call->function, described(reply));
}

/* The reply to a call that must change nothing. */
static redisReply *send_without_effect(test_server *server, const wire_call *call) {
    const char *before = server_digest(server);
    redisReply *reply = wire_send(server, call);
    cr_assert_str_eq(server_text(server, "PING"), "PONG");
    cr_assert_str_eq(server_digest(server), before, "%s answered %s and changed the data",
                     call->function, described(reply));
    return reply;
}

void wire_expect_refusal(test_server *server, const wire_call *call, const char *code,
                         const char *detail) {
    redisReply *reply = send_without_effect(server, call);
    cr_assert(is_array_of(reply, 0) && strcmp(reply->element[1]->str, code) == 0,
              "%s was expected to be refused with %s, and answered %s", call->function, code,
              described(reply));
    if (detail) {
        cr_assert(reply->elements > 2 && begins_with(reply->element[2]->str, detail),
                  "the detail '%s' was expected: %s", detail, described(reply));
    }
}

void wire_expect_error(test_server *server, const wire_call *call, const char *prefix) {
    redisReply *reply = send_without_effect(server, call);
    cr_assert(reply->type == REDIS_REPLY_ERROR && begins_with(reply->str, prefix),
              "%s was expected to fail with %s, and answered %s", call->function, prefix,
              described(reply));
}

bool wire_refused_cleanly(test_server *server, const wire_call *call) {
    const char *before = server_digest(server);
    redisReply *reply = wire_send(server, call);
    bool refused = reply->type == REDIS_REPLY_ERROR || is_array_of(reply, 0);
    const char *after = server_digest(server);
    cr_assert(!refused || strcmp(before, after) == 0, "%s answered %s and changed the data",
              call->function, described(reply));
    return refused;
}

static bytes filled(char with) {
    char *data = malloc(MEGABYTE + 1);
    memset(data, with, MEGABYTE);
    data[MEGABYTE] = '\0';
    return (bytes){data, MEGABYTE};
}

#define BINARY(literal) \
    { literal, sizeof literal - 1 }

const hostile_value *hostile_values(void) {
    static hostile_value values[] = {
        {"empty", BINARY("")},
        {"text", BINARY("text")},
        {"negative", BINARY("-1")},
        {"huge", BINARY("999999999999999999999999999999")},
        {"past int64", BINARY("9223372036854775808")},
        {"1e308", BINARY("1e308")},
        {"fraction", BINARY("0.5")},
        {"nan", BINARY("nan")},
        {"inf", BINARY("inf")},
        {"minus inf", BINARY("-inf")},
        {"number and text", BINARY("5x")},
        {"blank", BINARY(" \t")},
        {"NUL", BINARY("\0")},
        {"number, NUL, text", BINARY("5\0x")},
        {"binary", BINARY("\xff\xfe\0\r\n\x80{}")},
        {"open object", BINARY("{")},
        {"array", BINARY("[1,null,{}]")},
        {"format", BINARY("%s%n")},
        {"megabyte of text", {NULL, 0}},
        {"megabyte of digits", {NULL, 0}},
        {NULL, {NULL, 0}},
    };
    for (hostile_value *value = values; value->name; value++) {
        if (!value->value.data) value->value = filled(strstr(value->name, "digits") ? '9' : 'x');
    }
    return values;
}

void wire_write_type(test_server *server, bytes key, const char *type) {
    static const struct {
        const char *type, *command, *first, *second, *third;
    } writes[] = {
        {"string", "SET", "x", NULL, NULL}, {"hash", "HSET", "field", "value", NULL},
        {"list", "RPUSH", "x", NULL, NULL}, {"set", "SADD", "x", NULL, NULL},
        {"zset", "ZADD", "1", "x", NULL},   {"stream", "XADD", "1-1", "field", "value"},
    };
    server_send(server, 2, (bytes[]){text("DEL"), key});
    for (size_t i = 0; i < sizeof writes / sizeof *writes; i++) {
        if (strcmp(writes[i].type, type) != 0) continue;
        bytes words[5] = {text(writes[i].command), key, text(writes[i].first)};
        size_t count = 3;
        if (writes[i].second) words[count++] = text(writes[i].second);
        if (writes[i].third) words[count++] = text(writes[i].third);
        server_send(server, count, words);
    }
}
