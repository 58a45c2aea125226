#include "work.h"

#include <criterion/criterion.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *formatted(const char *format, ...) {
    char *result = NULL;
    va_list arguments;
    va_start(arguments, format);
    cr_assert(vasprintf(&result, format, arguments) >= 0);
    va_end(arguments);
    return server_keep(result);
}

static const char *or_else(const char *value, const char *usual) { return value ? value : usual; }

const char *work_id(const work *w) {
    return formatted("{fp:%d}:00000000-0000-4000-8000-%012d", w->partition, w->number);
}

const char *work_key(const work *w, const char *suffix) {
    return formatted("ff:exec:{fp:%d}:%s:%s", w->partition, work_id(w), suffix);
}

const char *work_lane_key(const work *w, const char *suffix) {
    return formatted("ff:idx:{fp:%d}:lane:%s:%s", w->partition, or_else(w->lane, "default"),
                     suffix);
}

const char *work_index(int partition, const char *suffix) {
    return formatted("ff:idx:{fp:%d}:%s", partition, suffix);
}

const char *work_field(test_server *server, const work *w, const char *field) {
    redisReply *reply = server_call(server, "HGET", work_key(w, "core"), field);
    return reply->type == REDIS_REPLY_STRING ? reply->str : NULL;
}

enum { CREATE_WORDS = 3 + 8 + 13, TEXT_SIZE = 192 };

/* The words of a creation; the texts are kept in `room`. */
typedef struct creation {
    const char *words[CREATE_WORDS];
    char id[64];
    char room[9][TEXT_SIZE];
    char policy[8192];
} creation;

static void write_creation(creation *c, const work *w) {
    const char *lane = or_else(w->lane, "default");
    char *id = c->id;
    snprintf(id, sizeof c->id, "{fp:%d}:00000000-0000-4000-8000-%012d", w->partition, w->number);
    static const char *const own[] = {"core", "payload", "policy", "tags"};
    for (int i = 0; i < 4; i++) {
        snprintf(c->room[1 + i], TEXT_SIZE, "ff:exec:{fp:%d}:%s:%s", w->partition, id, own[i]);
    }
    snprintf(c->room[5], TEXT_SIZE, "ff:idx:{fp:%d}:lane:%s:%s", w->partition, lane,
             w->delay_until ? "delayed" : "eligible");
    snprintf(c->room[6], TEXT_SIZE, "ff:noop:{fp:%d}", w->partition);
    snprintf(c->room[7], TEXT_SIZE, "ff:idx:{fp:%d}:execution_deadline", w->partition);
    snprintf(c->room[8], TEXT_SIZE, "ff:idx:{fp:%d}:all_executions", w->partition);
    c->policy[0] = '\0';
    if (w->capabilities) {
        snprintf(c->policy, sizeof c->policy,
                 "{\"routing_requirements\":{\"required_capabilities\":%s}}", w->capabilities);
    }
    const char *words[CREATE_WORDS] = {"FF.CALL",
                                       "ff_create_execution",
                                       "8",
                                       c->room[1],
                                       c->room[2],
                                       c->room[3],
                                       c->room[4],
                                       c->room[5],
                                       c->room[6],
                                       c->room[7],
                                       c->room[8],
                                       id,
                                       or_else(w->namespace, "ns"),
                                       lane,
                                       "task",
                                       or_else(w->priority, "0"),
                                       "tester",
                                       w->policy ? w->policy : c->policy,
                                       "payload",
                                       or_else(w->delay_until, ""),
                                       "",
                                       "{\"color\":\"red\"}",
                                       "",
                                       "0"};
    memcpy(c->words, words, sizeof words);
}

void work_create(test_server *server, const work *w) {
    creation c = {0};
    bytes words[CREATE_WORDS];
    write_creation(&c, w);
    for (size_t i = 0; i < CREATE_WORDS; i++) words[i] = text(c.words[i]);
    redisReply *reply = server_send(server, CREATE_WORDS, words);
    cr_assert_eq(reply->type, REDIS_REPLY_ARRAY);
    cr_assert_eq(reply->element[0]->integer, 1);
    cr_assert_str_eq(reply->element[1]->str, "OK");
}

void work_append(redisContext *connection, const work *w) {
    creation c = {0};
    write_creation(&c, w);
    redisAppendCommandArgv(connection, CREATE_WORDS, c.words, NULL);
}

void work_create_many(test_server *server, work first, int count) {
    enum { BATCH = 500 };
    redisContext *connection = server_connect(server);
    for (int done = 0; done < count;) {
        int batch = count - done < BATCH ? count - done : BATCH;
        for (int i = 0; i < batch; i++, first.number++) work_append(connection, &first);
        for (int i = 0; i < batch; i++) {
            redisReply *reply;
            cr_assert_eq(redisGetReply(connection, (void **)&reply), REDIS_OK);
            cr_assert(reply->type == REDIS_REPLY_ARRAY && reply->element[0]->integer == 1);
            freeReplyObject(reply);
        }
        done += batch;
    }
    redisFree(connection);
}

bool work_is_in(test_server *server, const work *w, const char *lane_index) {
    redisReply *score = server_call(server, "ZSCORE", work_lane_key(w, lane_index), work_id(w));
    return score->type == REDIS_REPLY_STRING;
}

redisReply *claim_words(test_server *server, command_words words) {
    redisReply *reply = server_call_words(server, words);
    cr_assert_eq(reply->type, REDIS_REPLY_ARRAY, "%s", reply->str ? reply->str : "not a list");
    return reply;
}

void claim_expect_none_words(test_server *server, command_words words) {
    redisReply *list = claim_words(server, words);
    cr_assert_eq(list->elements, 0, "expected nothing, got %s",
                 list->elements ? claimed_text(list, 0, "execution_id") : "");
}

redisReply *claim_expect_words(test_server *server, const work *w, command_words words) {
    redisReply *list = claim_words(server, words);
    cr_assert_eq(list->elements, 1, "expected %s, got %zu", work_id(w), list->elements);
    cr_assert_str_eq(claimed_text(list, 0, "execution_id"), work_id(w));
    return list;
}

redisReply *claimed(const redisReply *list, size_t position, const char *name) {
    cr_assert(position < list->elements);
    const redisReply *map = list->element[position];
    for (size_t i = 0; i + 1 < map->elements; i += 2) {
        if (strcmp(map->element[i]->str, name) == 0) return map->element[i + 1];
    }
    cr_assert_fail("the answer has no %s", name);
    return NULL;
}

const char *claimed_text(const redisReply *list, size_t position, const char *name) {
    const redisReply *value = claimed(list, position, name);
    return value->type == REDIS_REPLY_STRING ? value->str : NULL;
}

int64_t claimed_integer(const redisReply *list, size_t position, const char *name) {
    const redisReply *value = claimed(list, position, name);
    cr_assert_eq(value->type, REDIS_REPLY_INTEGER, "%s is no integer", name);
    return value->integer;
}

void work_complete(test_server *server, const redisReply *list, size_t position, const char *lane,
                   const char *instance) {
    const char *id = claimed_text(list, position, "execution_id");
    int partition = atoi(id + strlen("{fp:"));
    const char *tag = formatted("{fp:%d}", partition);
    const char *exec = formatted("ff:exec:%s:%s:", tag, id);
    long long index = claimed_integer(list, position, "attempt_index");
    const char *epoch =
        formatted("%lld", (long long)claimed_integer(list, position, "lease_epoch"));
    redisReply *reply = server_call(
        server, "FF.CALL", "ff_complete_execution", "12", formatted("%score", exec),
        formatted("ff:attempt:%s:%s:%lld", tag, id, index),
        formatted("ff:idx:%s:lease_expiry", tag),
        formatted("ff:idx:%s:worker:%s:leases", tag, instance),
        formatted("ff:idx:%s:lane:%s:terminal", tag, lane), formatted("%slease:current", exec),
        formatted("%slease:history", exec), formatted("ff:idx:%s:lane:%s:active", tag, lane),
        formatted("ff:stream:%s:%s:%lld:meta", tag, id, index), formatted("%sresult", exec),
        formatted("ff:idx:%s:attempt_timeout", tag), formatted("ff:idx:%s:execution_deadline", tag),
        id, claimed_text(list, position, "lease_id"), epoch,
        claimed_text(list, position, "attempt_id"), "done");
    cr_assert_eq(reply->type, REDIS_REPLY_ARRAY);
    cr_assert_eq(reply->element[0]->integer, 1, "%s", reply->element[1]->str);
}

redisContext *waiting_words(test_server *server, command_words words) {
    redisContext *connection = server_connect(server);
    const char *all[64];
    int count = 0;
    while (words[count]) {
        all[count] = words[count];
        count++;
    }
    redisAppendCommandArgv(connection, count, all, NULL);
    for (int done = 0; !done;) cr_assert_eq(redisBufferWrite(connection, &done), REDIS_OK);
    return connection;
}

static bool is_readable(redisContext *connection, int ms) {
    struct pollfd ready = {.fd = connection->fd, .events = POLLIN};
    return poll(&ready, 1, ms) > 0;
}

redisReply *waiting_reply(redisContext *connection) {
    redisReply *reply = NULL;
    cr_assert(is_readable(connection, 20000), "the claimer still waits");
    cr_assert_eq(redisGetReply(connection, (void **)&reply), REDIS_OK, "%s", connection->errstr);
    return server_keep(reply);
}

bool is_waiting(redisContext *connection, int ms) { return !is_readable(connection, ms); }

void expect_waiters(test_server *server, int64_t count) {
    for (int tries = 0; claims_counter(server, "waiters") != count; tries++) {
        cr_assert(tries < 4000, "%lld claimers wait, not %lld",
                  (long long)claims_counter(server, "waiters"), (long long)count);
        poll(NULL, 0, 2);
    }
}

int64_t claims_counter(test_server *server, const char *name) {
    const char *value = server_info(server, "ff_claims", formatted("ff_%s", name));
    cr_assert_not_null(value, "INFO has no %s", name);
    return strtoll(value, NULL, 10);
}
