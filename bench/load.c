#include "load.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#define STACK_SIZE (256 * 1024)
#define EVENTS_AT_ONCE 128
#define NEVER INT64_MAX

typedef struct fiber {
    ucontext_t context;
    void *stack;
    size_t number;
    bool finished;
    bool listening;     /* waits for load_notify */
    int64_t wake_at_us; /* NEVER: only a connection or a notification wakes it */
} fiber;

struct load_connection {
    redisContext *context;
    fiber *waiter;       /* who waits for a reply on this connection */
    unsigned watched_in; /* the run of tasks whose epoll instance knows it */
    load_connection *next_closed;
};

/* Closed ones are kept until all tasks are over: an event for one may already be at hand. */
static load_connection *closed_connections;

static struct {
    int epoll;
    unsigned run;
    fiber *fibers;
    size_t count, left;
    fiber *current;
    ucontext_t loop;
    load_task *task;
    void *argument;
} tasks;

_Noreturn void load_fail(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fflush(stdout);
    fputs("bench: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    exit(1);
}

int64_t load_now_us(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

/* ---- requests ---- */

static char *begin_word(load_request *request) {
    load_check(request->count < REQUEST_WORDS, "a command has more than %d words", REQUEST_WORDS);
    request->starts[request->count] = request->used;
    return request->text + request->used;
}

static void end_word(load_request *request, size_t size) {
    request->sizes[request->count++] = size;
    request->used += size;
}

static void need_room(const load_request *request, size_t size) {
    load_check(request->used + size <= REQUEST_TEXT, "a command is too long");
}

void request_start(load_request *request, const char *command) {
    request->count = 0;
    request->used = 0;
    request_add(request, command);
}

void request_add(load_request *request, const char *word) {
    size_t size = strlen(word);
    need_room(request, size);
    memcpy(begin_word(request), word, size);
    end_word(request, size);
}

void request_add_number(load_request *request, int64_t number) {
    char digits[24];
    snprintf(digits, sizeof digits, "%lld", (long long)number);
    request_add(request, digits);
}

void request_join_parts(load_request *request, const char *const *parts) {
    char *word = begin_word(request);
    size_t size = 0;
    for (; *parts; parts++) {
        size_t part = strlen(*parts);
        need_room(request, size + part);
        memcpy(word + size, *parts, part);
        size += part;
    }
    end_word(request, size);
}

/* ---- waiting ---- */

static void yield_to_loop(void) { swapcontext(&tasks.current->context, &tasks.loop); }

static void watch(load_connection *connection) {
    if (connection->watched_in == tasks.run) return;
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = connection};
    int done = epoll_ctl(tasks.epoll, EPOLL_CTL_ADD, connection->context->fd, &event);
    load_check(done == 0, "epoll_ctl: %s", strerror(errno));
    connection->watched_in = tasks.run;
}

static int milliseconds_until(int64_t at_us) {
    if (at_us == NEVER) return -1;
    int64_t left = at_us - load_now_us();
    return left <= 0 ? 0 : (int)(left / 1000) + 1;
}

/* Returns when there may be something to read, or at the deadline. */
static void wait_readable(load_connection *connection, int64_t deadline_us) {
    fiber *self = tasks.current;
    if (!self) {
        struct pollfd wanted = {.fd = connection->context->fd, .events = POLLIN};
        poll(&wanted, 1, milliseconds_until(deadline_us));
        return;
    }
    watch(connection);
    connection->waiter = self;
    self->wake_at_us = deadline_us;
    yield_to_loop();
    connection->waiter = NULL;
}

/* ---- connections ---- */

load_connection *load_connect(const load_server *server) {
    load_connection *connection = calloc(1, sizeof *connection);
    connection->context = redisConnect("127.0.0.1", load_server_port(server));
    load_check(connection->context && !connection->context->err, "cannot connect: %s",
               connection->context ? connection->context->errstr : "out of memory");
    redisContext *context = connection->context;
    fcntl(context->fd, F_SETFL, fcntl(context->fd, F_GETFL) | O_NONBLOCK);
    fcntl(context->fd, F_SETFD, FD_CLOEXEC);
    context->flags &= ~REDIS_BLOCK;
    return connection;
}

void load_disconnect(load_connection *connection) {
    redisFree(connection->context); /* closing the socket takes it out of the epoll instance */
    connection->context = NULL;
    connection->next_closed = closed_connections;
    closed_connections = connection;
}

static void free_closed_connections(void) {
    while (closed_connections) {
        load_connection *connection = closed_connections;
        closed_connections = connection->next_closed;
        free(connection);
    }
}

void load_send(load_connection *connection, const load_request *request) {
    const char *words[REQUEST_WORDS];
    for (size_t i = 0; i < request->count; i++) words[i] = request->text + request->starts[i];
    int done =
        redisAppendCommandArgv(connection->context, (int)request->count, words, request->sizes);
    load_check(done == REDIS_OK, "cannot send: %s", connection->context->errstr);
}

/* A full socket means that the server is busy with what it has: its replies may have to be read
 * first, so what is left goes out with the next wait. */
static bool flush_some(load_connection *connection) {
    int done = 0;
    load_check(redisBufferWrite(connection->context, &done) == REDIS_OK, "connection lost: %s",
               connection->context->errstr);
    return done;
}

void load_flush(load_connection *connection) {
    while (!flush_some(connection)) {
        struct pollfd wanted = {.fd = connection->context->fd, .events = POLLOUT};
        poll(&wanted, 1, 10);
    }
}

redisReply *load_receive_until(load_connection *connection, int64_t deadline_us) {
    redisContext *context = connection->context;
    int64_t deadline = deadline_us > 0 ? deadline_us : NEVER;
    void *reply = NULL;
    bool sent = flush_some(connection);
    for (;;) {
        load_check(redisGetReplyFromReader(context, &reply) == REDIS_OK, "bad reply: %s",
                   context->errstr);
        if (reply) return reply;
        if (deadline != NEVER && load_now_us() >= deadline) return NULL;
        wait_readable(connection, sent ? deadline : load_now_us() + 1000);
        load_check(redisBufferRead(context) == REDIS_OK, "connection lost: %s", context->errstr);
        if (!sent) sent = flush_some(connection);
    }
}

redisReply *load_receive(load_connection *connection) { return load_receive_until(connection, 0); }

redisReply *load_call(load_connection *connection, const load_request *request) {
    load_send(connection, request);
    return load_receive(connection);
}

redisReply *load_do_words(load_connection *connection, const char *const *words) {
    static load_request request; /* sent before any other task can run */
    request_start(&request, words[0]);
    for (size_t i = 1; words[i]; i++) request_add(&request, words[i]);
    redisReply *reply = load_call(connection, &request);
    load_check(reply->type != REDIS_REPLY_ERROR, "%s %s: %s", words[0], words[1] ? words[1] : "",
               reply->str);
    return reply;
}

void load_run_words(load_connection *connection, const char *const *words) {
    freeReplyObject(load_do_words(connection, words));
}

int64_t load_integer_words(load_connection *connection, const char *const *words) {
    redisReply *reply = load_do_words(connection, words);
    load_check(reply->type == REDIS_REPLY_INTEGER, "%s: an integer was expected", words[0]);
    int64_t integer = reply->integer;
    freeReplyObject(reply);
    return integer;
}

/* ---- tasks ---- */

static void run_fiber(void) {
    fiber *self = tasks.current;
    tasks.task(self->number, tasks.argument);
    self->finished = true;
    tasks.left--;
    yield_to_loop();
}

static void resume(fiber *self) {
    self->wake_at_us = NEVER;
    self->listening = false;
    tasks.current = self;
    swapcontext(&tasks.loop, &self->context);
    tasks.current = NULL;
}

static void prepare_fiber(fiber *self, size_t number) {
    *self = (fiber){.number = number, .wake_at_us = 0};
    self->stack = mmap(NULL, STACK_SIZE, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    load_check(self->stack != MAP_FAILED, "no memory for a stack");
    getcontext(&self->context);
    self->context.uc_stack.ss_sp = self->stack;
    self->context.uc_stack.ss_size = STACK_SIZE;
    makecontext(&self->context, run_fiber, 0);
}

static int64_t next_wake(void) {
    int64_t next = NEVER;
    for (size_t i = 0; i < tasks.count; i++) {
        fiber *each = &tasks.fibers[i];
        if (!each->finished && each->wake_at_us < next) next = each->wake_at_us;
    }
    return next;
}

static void resume_due(void) {
    int64_t now = load_now_us();
    for (size_t i = 0; i < tasks.count; i++) {
        fiber *each = &tasks.fibers[i];
        if (!each->finished && each->wake_at_us <= now) resume(each);
    }
}

/* Timeouts below a millisecond count, hence epoll_pwait2. */
static int wait_for_events(struct epoll_event *events) {
    int64_t next = next_wake();
    if (next == NEVER) return epoll_wait(tasks.epoll, events, EVENTS_AT_ONCE, -1);
    int64_t left = next - load_now_us();
    if (left < 0) left = 0;
    struct timespec timeout = {left / 1000000, left % 1000000 * 1000};
    return epoll_pwait2(tasks.epoll, events, EVENTS_AT_ONCE, &timeout, NULL);
}

static void run_loop(void) {
    struct epoll_event events[EVENTS_AT_ONCE];
    resume_due();
    while (tasks.left > 0) {
        int count = wait_for_events(events);
        load_check(count >= 0 || errno == EINTR, "epoll: %s", strerror(errno));
        for (int i = 0; i < count; i++) {
            load_connection *connection = events[i].data.ptr;
            if (connection->waiter) resume(connection->waiter);
        }
        resume_due();
    }
}

void load_parallel(size_t count, load_task *task, void *argument) {
    load_check(!tasks.fibers, "tasks cannot start tasks");
    tasks.epoll = epoll_create1(EPOLL_CLOEXEC);
    tasks.run++;
    tasks.fibers = calloc(count, sizeof *tasks.fibers);
    tasks.count = tasks.left = count;
    tasks.task = task;
    tasks.argument = argument;
    for (size_t i = 0; i < count; i++) prepare_fiber(&tasks.fibers[i], i);
    run_loop();
    for (size_t i = 0; i < count; i++) munmap(tasks.fibers[i].stack, STACK_SIZE);
    free(tasks.fibers);
    tasks.fibers = NULL;
    close(tasks.epoll);
    free_closed_connections();
}

void load_sleep_until(int64_t at_us) {
    while (load_now_us() < at_us) {
        if (!tasks.current) {
            usleep((useconds_t)(at_us - load_now_us()));
            continue;
        }
        tasks.current->wake_at_us = at_us;
        yield_to_loop();
    }
}

void load_wait_until(int64_t at_us) {
    tasks.current->wake_at_us = at_us;
    tasks.current->listening = true;
    yield_to_loop();
}

void load_notify(void) {
    for (size_t i = 0; i < tasks.count; i++) {
        if (tasks.fibers[i].listening) tasks.fibers[i].wake_at_us = 0;
    }
}
