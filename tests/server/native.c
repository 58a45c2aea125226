#include "native.h"

#include <criterion/criterion.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char *spell(const char *pattern, ...) {
    char *spelled;
    va_list arguments;
    va_start(arguments, pattern);
    cr_assert(vasprintf(&spelled, pattern, arguments) >= 0);
    va_end(arguments);
    return server_keep(spelled);
}

test_server *native_start(void) {
    test_server *server = server_start(&(server_options){.frozen_clock = true});
    server_do(server, "HSET", SECRET_KEY, "current_kid", "k1", "secret:k1", "000102030405");
    return server;
}

const char *native_id(int number) { return spell(FP ":f10f0001-0000-4000-8000-%012d", number); }

const char *native_key(int number, const char *suffix) {
    return spell("ff:exec:" FP ":%s:%s", native_id(number), suffix);
}

const char *native_lane(const char *suffix) {
    return spell("ff:idx:" FP ":lane:default:%s", suffix);
}

const char *native_index(const char *suffix) { return spell("ff:idx:" FP ":%s", suffix); }

void native_create(test_server *server, int number) {
    server_do(server, "FF.CREATE", native_id(number), "default", "job");
}

held native_claim_next(test_server *server) {
    redisReply *list = server_call(server, "FF.CLAIM", "default", "w", "wi");
    cr_assert_eq(list->type, REDIS_REPLY_ARRAY, "%s", list->str);
    cr_assert_eq(list->elements, 1);
    redisReply *map = list->element[0];
    return (held){map_text(map, "execution_id"), map_text(map, "lease_id"),
                  spell("%lld", (long long)map_integer(map, "lease_epoch")),
                  map_text(map, "attempt_id")};
}

held native_claim(test_server *server, int number) {
    native_create(server, number);
    held h = native_claim_next(server);
    cr_assert_str_eq(h.id, native_id(number));
    return h;
}

redisReply *map_value(const redisReply *map, const char *name) {
    cr_assert_eq(map->type, REDIS_REPLY_ARRAY, "%s: %s", name, map->str);
    cr_assert_eq(map->elements % 2, 0);
    for (size_t i = 0; i < map->elements; i += 2) {
        if (strcmp(map->element[i]->str, name) == 0) return map->element[i + 1];
    }
    return NULL;
}

const char *map_text(const redisReply *map, const char *name) {
    redisReply *value = map_value(map, name);
    cr_assert(value && value->type == REDIS_REPLY_STRING, "no text %s", name);
    return value->str;
}

int64_t map_integer(const redisReply *map, const char *name) {
    redisReply *value = map_value(map, name);
    cr_assert(value && value->type == REDIS_REPLY_INTEGER, "no integer %s", name);
    return value->integer;
}

bool map_is_null(const redisReply *map, const char *name) {
    redisReply *value = map_value(map, name);
    cr_assert(value, "no %s", name);
    return value->type == REDIS_REPLY_NIL;
}

void native_refused_words(test_server *server, const char *prefix, command_words words) {
    const char *before = server_digest(server);
    redisReply *reply = server_call_words(server, words);
    char line[1024] = "";
    for (size_t i = 0; words[i]; i++) {
        snprintf(line + strlen(line), sizeof line - strlen(line), "%.60s ", words[i]);
    }
    cr_assert_eq(reply->type, REDIS_REPLY_ERROR, "not refused: %s", line);
    cr_assert_eq(strncmp(reply->str, prefix, strlen(prefix)), 0, "%sgives '%s' instead of '%s'",
                 line, reply->str, prefix);
    cr_assert_str_eq(server_digest(server), before, "%schanges something", line);
}

void native_field(test_server *server, int number, const char *field, const char *wanted) {
    redisReply *value = server_call(server, "HGET", native_key(number, "core"), field);
    cr_assert(value->str && strcmp(value->str, wanted) == 0, "%s is '%s' instead of '%s'", field,
              value->str, wanted);
}

bool native_in(test_server *server, const char *index, int number) {
    return server_call(server, "ZSCORE", index, native_id(number))->type != REDIS_REPLY_NIL;
}

redisContext *native_send_words(test_server *server, command_words words) {
    redisContext *connection = server_connect(server);
    size_t count = 0;
    while (words[count]) count++;
    cr_assert_eq(redisAppendCommandArgv(connection, (int)count, (const char **)words, NULL),
                 REDIS_OK);
    int done = 0;
    while (!done) cr_assert_eq(redisBufferWrite(connection, &done), REDIS_OK);
    return connection;
}

redisReply *native_receive(redisContext *connection) {
    void *reply;
    redisSetTimeout(connection, (struct timeval){.tv_sec = 10});
    cr_assert_eq(redisGetReply(connection, &reply), REDIS_OK, "no reply");
    return server_keep(reply);
}

void native_expect_blocked(test_server *server, int count) {
    for (int tries = 0; tries < 1000; tries++) {
        if (atoi(server_info(server, "clients", "blocked_clients")) == count) return;
        usleep(5000);
    }
    cr_assert(false, "there are not %d blocked clients", count);
}
