/* Calls of native commands, and what they answer. */
#ifndef FF_TESTS_SERVER_NATIVE_H
#define FF_TESTS_SERVER_NATIVE_H

#include "harness.h"
#include "resp3.h"

#define FP "{fp:7}"
#define SECRET_KEY "ff:sec:" FP ":waitpoint_hmac"

/* Text that lives as long as the process. */
const char *spell(const char *pattern, ...) __attribute__((format(printf, 1, 2)));

/* A server on a frozen clock that can sign tokens on partition 7. */
test_server *native_start(void);

/* Execution ids of partition 7, and their keys. */
const char *native_id(int number);
const char *native_key(int number, const char *suffix);
const char *native_lane(const char *suffix);
const char *native_index(const char *suffix);

/* A lease on an execution. */
typedef struct held {
    const char *id, *lease, *epoch, *attempt;
} held;
#define FENCE(h) (h).id, (h).lease, (h).epoch, (h).attempt

/* Creates an execution in lane `default`, and claims it. */
void native_create(test_server *server, int number);
held native_claim(test_server *server, int number);
held native_claim_next(test_server *server);

/* The value of a member of a map, as RESP2 has it; the second fails the test when it is none, or
 * not text. */
redisReply *map_value(const redisReply *map, const char *name);
const char *map_text(const redisReply *map, const char *name);
int64_t map_integer(const redisReply *map, const char *name);
bool map_is_null(const redisReply *map, const char *name);

/* Fail the test unless the command is refused with that first word, and the data is what it was.
 * The last word of the prefix may be cut. */
void native_refused_words(test_server *server, const char *prefix, command_words words);
#define native_refused(server, prefix, ...) native_refused_words(server, prefix, WORDS(__VA_ARGS__))

/* A field of the core. */
void native_field(test_server *server, int number, const char *field, const char *wanted);

/* Whether the execution is in an index. */
bool native_in(test_server *server, const char *index, int number);

/* Sends a command over a connection of its own and does not wait; fails the test unless a reply
 * comes. */
redisContext *native_send_words(test_server *server, command_words words);
#define native_send(server, ...) native_send_words(server, WORDS(__VA_ARGS__))
redisReply *native_receive(redisContext *connection);

/* Waits until so many clients are blocked. */
void native_expect_blocked(test_server *server, int count);

#endif
