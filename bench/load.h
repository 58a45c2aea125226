/* Load on private servers.
 *
 * A program starts servers, opens connections and runs tasks. Each task is written as if it were
 * alone and blocked on every reply; tasks are fibers of one thread over one epoll loop, so that a
 * thousand connections cost little more than one and nothing needs a lock. Outside of tasks the
 * same calls simply block.
 *
 * Whatever does not work ends the program with a message and status 1: a figure is worth nothing
 * when the work behind it was not done. Servers, and the directories of their data, are gone when
 * the program is, however that ends.
 *
 * Environment: FF_MODULE (the module; required by servers that load it), FF_SERVER (default
 * valkey-server). */
#ifndef FF_BENCH_LOAD_H
#define FF_BENCH_LOAD_H

#include <hiredis/hiredis.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Prints the message and ends the program. */
_Noreturn void load_fail(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));

/* Fails unless `condition` holds. */
#define load_check(condition, ...) \
    do { \
        if (!(condition)) load_fail(__VA_ARGS__); \
    } while (0)

/* Monotonic microseconds. */
int64_t load_now_us(void);

/* ---- servers ---- */

typedef struct load_server load_server;

typedef struct load_server_options {
    bool with_module;
    bool durable;        /* an append only file, synced every second, and a replica */
    const char *library; /* path of a FUNCTION library to load, or NULL */
    const char *config;  /* further lines of the configuration file, or NULL */
} load_server_options;

/* Starts a server on a free port and waits until it, and its replica, are there. */
load_server *load_server_start(const load_server_options *options);
void load_server_stop(load_server *server);

int load_server_port(const load_server *server);
pid_t load_server_pid(const load_server *server);

/* Removes all data, and the statistics of commands. Functions stay. */
void load_server_empty(load_server *server);

/* Waits until the replica, if there is one, has all that was written. */
void load_server_settle(load_server *server);

/* Processor time that the server has used so far, in microseconds, all of its threads. */
double load_server_cpu_us(load_server *server);
/* Bytes that its data and overhead take (used_memory). */
double load_server_memory(load_server *server);
/* Whether it knows a command; "FF.FLOW|SUBMIT" asks for a subcommand. */
bool load_server_knows(load_server *server, const char *command);

/* From INFO commandstats: one command, or all of them (name NULL). */
typedef struct load_usage {
    double calls, usec;
} load_usage;

load_usage load_server_usage(load_server *server, const char *name);
void load_server_reset_usage(load_server *server);

/* ---- requests ---- */

enum { REQUEST_WORDS = 96, REQUEST_TEXT = 262144 };

/* The words of one command. What a word is made of is copied. */
typedef struct load_request {
    size_t count, used;
    size_t starts[REQUEST_WORDS];
    size_t sizes[REQUEST_WORDS];
    char text[REQUEST_TEXT];
} load_request;

void request_start(load_request *request, const char *command);
void request_add(load_request *request, const char *word);
void request_add_number(load_request *request, int64_t number);
/* Adds one word that is the parts, up to a NULL, one after the other. */
void request_join_parts(load_request *request, const char *const *parts);
#define request_join(request, ...) \
    request_join_parts(request, (const char *const[]){__VA_ARGS__, NULL})

/* ---- connections ---- */

typedef struct load_connection load_connection;

/* A connection is used by one task at a time, or outside of tasks. */
load_connection *load_connect(const load_server *server);
void load_disconnect(load_connection *connection);

/* Puts a command on its way without waiting for the reply; load_flush sends what is buffered, as
 * does waiting. */
void load_send(load_connection *connection, const load_request *request);
void load_flush(load_connection *connection);

/* Waits for the next reply, until `deadline_us` of the monotonic clock; the caller frees it. NULL
 * only when the deadline has passed; 0 waits for ever. */
redisReply *load_receive_until(load_connection *connection, int64_t deadline_us);
redisReply *load_receive(load_connection *connection);

/* Sends and waits. Never NULL; may be an error reply. */
redisReply *load_call(load_connection *connection, const load_request *request);

/* The same, for words that are at hand; fails the program on an error reply. */
redisReply *load_do_words(load_connection *connection, const char *const *words);
#define load_do(connection, ...) load_do_words(connection, (const char *const[]){__VA_ARGS__, NULL})
/* For commands whose reply does not matter, and for those whose reply is an integer. */
void load_run_words(load_connection *connection, const char *const *words);
int64_t load_integer_words(load_connection *connection, const char *const *words);
#define load_run(connection, ...) \
    load_run_words(connection, (const char *const[]){__VA_ARGS__, NULL})
#define load_integer(connection, ...) \
    load_integer_words(connection, (const char *const[]){__VA_ARGS__, NULL})

/* The connection that the server's own functions above use. */
load_connection *load_server_connection(load_server *server);

/* ---- tasks ---- */

typedef void load_task(size_t number, void *argument);

/* Runs `count` tasks, numbered from 0, at the same time; returns when all have. */
void load_parallel(size_t count, load_task *task, void *argument);

/* Lets the other tasks run until the time has come; outside of tasks it just sleeps. */
void load_sleep_until(int64_t at_us);

/* Waits for load_notify, at most until the time; load_notify wakes every task that waits so. */
void load_wait_until(int64_t at_us);
void load_notify(void);

#endif
