/* Executions to be claimed, and workers that claim them. */
#ifndef FF_TESTS_SERVER_WORK_H
#define FF_TESTS_SERVER_WORK_H

#include "harness.h"

/* An execution: its id is made of partition and number. What is not given is usual. */
typedef struct work {
    int partition;
    int number;
    const char *lane;         /* default */
    const char *namespace;    /* ns */
    const char *capabilities; /* a JSON list of texts */
    const char *priority;     /* 0 */
    const char *policy;       /* instead of the capabilities */
    const char *delay_until;
} work;

const char *work_id(const work *w);
const char *work_key(const work *w, const char *suffix);
const char *work_lane_key(const work *w, const char *suffix);
const char *work_index(int partition, const char *suffix);
const char *work_field(test_server *server, const work *w, const char *field);

/* Creates it with the wire function. */
void work_create(test_server *server, const work *w);

/* Sends the creation over a connection, without waiting for the reply. */
void work_append(redisContext *connection, const work *w);

/* Creates `count` executions as `first`, with following numbers, in one pipeline. */
void work_create_many(test_server *server, work first, int count);

/* Whether it is in an index of its lane. */
bool work_is_in(test_server *server, const work *w, const char *lane_index);

/* Sends FF.CLAIM with these words and returns the list that it answers; an error fails the test. */
redisReply *claim_words(test_server *server, command_words words);
#define claim(server, ...) claim_words(server, WORDS("FF.CLAIM", __VA_ARGS__))

/* Fails the test unless the list is empty, or has exactly this execution. */
void claim_expect_none_words(test_server *server, command_words words);
redisReply *claim_expect_words(test_server *server, const work *w, command_words words);
#define claim_expect_none(server, ...) \
    claim_expect_none_words(server, WORDS("FF.CLAIM", __VA_ARGS__))
#define claim_expect(server, w, ...) claim_expect_words(server, w, WORDS("FF.CLAIM", __VA_ARGS__))

/* The value of a map in a list of maps; fails the test without it. */
redisReply *claimed(const redisReply *list, size_t position, const char *name);
const char *claimed_text(const redisReply *list, size_t position, const char *name);
int64_t claimed_integer(const redisReply *list, size_t position, const char *name);

/* Completes what a claim by the instance `instance` has answered, with the wire function. */
void work_complete(test_server *server, const redisReply *list, size_t position, const char *lane,
                   const char *instance);

/* Sends a command over a connection of its own, and does not wait for the reply. */
redisContext *waiting_words(test_server *server, command_words words);
#define waiting(server, ...) waiting_words(server, WORDS("FF.CLAIM", __VA_ARGS__))

/* Its reply; fails the test when there is none for a while. */
redisReply *waiting_reply(redisContext *connection);

/* Whether no reply has come within some milliseconds. */
bool is_waiting(redisContext *connection, int ms);

/* Waits until so many claimers wait. */
void expect_waiters(test_server *server, int64_t count);

/* A counter of INFO ff_claims. */
int64_t claims_counter(test_server *server, const char *name);

#endif
