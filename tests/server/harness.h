/* Real servers for tests.
 *
 * A test starts servers, talks to them, and forgets them: every server lives on free ports, keeps
 * its data in a private temporary directory, and is gone with its directory when the test process
 * is, however that ends. A server that dies when it should not prints its log and fails the test.
 *
 * Environment: FF_MODULE (the module; required), FF_SERVER (default valkey-server), FF_CLOCK (a
 * compiled tests/conformance/clock.c; compiled on demand when absent), FF_SERVER_PRELOAD (libraries
 * that every server must preload, such as a sanitizer's run-time). */
#ifndef FF_TESTS_SERVER_HARNESS_H
#define FF_TESTS_SERVER_HARNESS_H

#include <hiredis/hiredis.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* 2026-01-01T00:00:00Z: where a frozen clock starts. */
#define FROZEN_START_MS INT64_C(1767225600000)

typedef struct test_server test_server;

typedef struct server_options {
    bool without_module;
    bool frozen_clock;
    bool append_only;
    bool cluster;
    const char *module_arguments;  /* after the path on the loadmodule line */
    const char *config;            /* further lines of the configuration file */
    const test_server *replica_of; /* shares the frozen clock of its primary, if that has one */
} server_options;

/* What the functions below return, replies and text included, stays valid until the process ends or
 * the caller frees it; tests need not free anything. server_keep does the same for other memory. */
void *server_keep(void *pointer);

/* Starts a server and waits until it answers. Never returns NULL: failing to start fails the test. */
test_server *server_start(const server_options *options);

/* Starts a server that is expected to refuse to start. Returns the end of its log.
 * Fails the test when the server comes up. */
const char *server_start_refused(const server_options *options);

/* Stops a server cleanly (as SIGTERM does) without removing its data. */
void server_stop(test_server *server);

/* Stops the server and starts it again on the same port with the same data. With `save` the data is
 * saved as an RDB file first; an append only server comes back from its AOF in any case. */
void server_restart(test_server *server, bool save);

/* Writes the log of the server to the standard error output. */
void server_print_log(const test_server *server);

int server_port(const test_server *server);
const char *server_directory(const test_server *server);

/* Moves the frozen clock. */
void server_set_time(test_server *server, int64_t now_ms);

/* One argument of a command: any bytes. */
typedef struct bytes {
    const char *data;
    size_t size;
} bytes;

bytes text(const char *words);

/* Sends one command and returns its reply. A lost connection fails the test. */
redisReply *server_send(test_server *server, size_t count, const bytes *words);

/* The following take the words of a command as C strings, and are called through the macros below:
 * server_call(server, "GET", "key"). */
typedef const char *const *command_words; /* up to a NULL */

redisReply *server_call_words(test_server *server, command_words words);

/* The same over a connection of the caller's. */
redisContext *server_connect(const test_server *server);
redisReply *connection_call_words(redisContext *connection, command_words words);

/* Fails the test when the reply is an error. */
void server_do_words(test_server *server, command_words words);

/* Fails the test unless the reply is an error that begins with `prefix`. */
void server_expect_error_words(test_server *server, const char *prefix, command_words words);

/* Fail the test unless the reply is an integer, or text. */
int64_t server_integer_words(test_server *server, command_words words);
const char *server_text_words(test_server *server, command_words words);

#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})
#define server_call(server, ...) server_call_words(server, WORDS(__VA_ARGS__))
#define connection_call(connection, ...) connection_call_words(connection, WORDS(__VA_ARGS__))
#define server_do(server, ...) server_do_words(server, WORDS(__VA_ARGS__))
#define server_expect_error(server, prefix, ...) \
    server_expect_error_words(server, prefix, WORDS(__VA_ARGS__))
#define server_integer(server, ...) server_integer_words(server, WORDS(__VA_ARGS__))
#define server_text(server, ...) server_text_words(server, WORDS(__VA_ARGS__))

/* The value of one line of INFO <section>, or NULL. */
const char *server_info(test_server *server, const char *section, const char *field);

/* A digest of all data, expiry times included: 40 hex digits of DEBUG DIGEST, then the expiries. */
const char *server_digest(test_server *server);

/* Starts a replica, without the module when `without_module`, and waits for the first sync. */
test_server *server_start_replica(test_server *primary, const server_options *options);

/* Fails the test unless the replica, once it has all that the primary sent, holds the same data. */
void server_expect_same_data(test_server *primary, test_server *replica);

/* A cluster of `count` nodes with the module, the slots split evenly; returns when all agree. */
void server_start_cluster(test_server **nodes, size_t count, const server_options *options);

/* The node that serves the slot of a key. */
test_server *server_of_key(test_server **nodes, size_t count, const char *key);

#endif
