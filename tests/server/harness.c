#include "harness.h"

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MAX_WORDS 96
#define MAX_SERVERS 32
#define START_SECONDS 60
#define LOG_SHOWN 8000
#define CLUSTER_BUS_OFFSET 10000
#define CLUSTER_SLOTS 16384

struct test_server {
    pid_t pid;
    int port;
    char directory[256];
    char clock_file[300];
    volatile int64_t *clock_us;
    server_options options;
    redisContext *connection;
};

/* Everything of this test process lives below one directory, so that one removal is enough. */
static char base_directory[200];
static int directories_made;
static test_server *servers[MAX_SERVERS];
static size_t server_count;

/* What is handed to tests stays reachable, so that a leak detector sees only real leaks. */
typedef struct kept {
    struct kept *next;
    void *pointer;
} kept;

static kept *everything_kept;

void *server_keep(void *pointer) {
    kept *entry = malloc(sizeof *entry);
    *entry = (kept){everything_kept, pointer};
    everything_kept = entry;
    return pointer;
}

static void sleep_ms(long ms) {
    nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
}

static int64_t monotonic_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static int remove_entry(const char *path, const struct stat *status, int kind, struct FTW *walk) {
    (void)status, (void)kind, (void)walk;
    return remove(path);
}

/* The janitor outlives the test process: it waits for the other end of the pipe to close, which
 * death of any kind does, and then removes the directory. The servers are dead by then or about to
 * be (PR_SET_PDEATHSIG), and may still write: hence the second try. */
static void start_janitor(void) {
    int ends[2];
    cr_assert(pipe2(ends, O_CLOEXEC) == 0);
    pid_t pid = fork();
    cr_assert(pid >= 0);
    if (pid > 0) {
        close(ends[0]); /* the other end stays open until this process is gone */
        return;
    }
    setsid();
    int nowhere = open("/dev/null", O_RDWR);
    for (int fd = 0; fd <= 2; fd++) dup2(nowhere, fd);
    dup2(ends[0], 3);
    close_range(4, ~0U, 0);
    char byte;
    ssize_t got;
    do {
        got = read(3, &byte, 1);
    } while (got > 0 || (got < 0 && errno == EINTR));
    nftw(base_directory, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
    sleep_ms(500);
    nftw(base_directory, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
    _exit(0);
}

/* A test that ends in order stops its servers in order, so that each can look for its own leaks. */
static void stop_servers(void) {
    for (size_t i = 0; i < server_count; i++) {
        if (servers[i]->pid > 0) kill(servers[i]->pid, SIGTERM);
    }
    for (size_t i = 0; i < server_count; i++) {
        if (servers[i]->pid > 0) waitpid(servers[i]->pid, NULL, 0);
    }
}

static void make_base_directory(void) {
    if (base_directory[0]) return;
    const char *parent = getenv("TMPDIR");
    snprintf(base_directory, sizeof base_directory, "%s/ff-test-XXXXXX", parent ? parent : "/tmp");
    cr_assert(mkdtemp(base_directory) != NULL, "no temporary directory: %s", strerror(errno));
    start_janitor();
    atexit(stop_servers);
}

static bool port_is_free(int port) {
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int yes = 1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    bool is_free = bind(fd, (struct sockaddr *)&address, sizeof address) == 0;
    close(fd);
    return is_free;
}

/* Below the range that the kernel gives to outgoing connections, with room for the cluster bus. */
static int free_port(void) {
    for (;;) {
        uint16_t random;
        cr_assert(getrandom(&random, sizeof random, 0) == sizeof random);
        int port = 11000 + random % 11000;
        if (port_is_free(port) && port_is_free(port + CLUSTER_BUS_OFFSET)) return port;
    }
}

static const char *clock_library(void) {
    static char path[300];
    const char *given = getenv("FF_CLOCK");
    if (given && given[0]) return given;
    if (path[0]) return path;
    snprintf(path, sizeof path, "%s/clock.so", base_directory);
    char command[800];
    snprintf(command, sizeof command, "cc -shared -fPIC -O2 -o '%s' tests/conformance/clock.c -ldl",
             path);
    cr_assert(system(command) == 0, "cannot compile the clock; set FF_CLOCK");
    return path;
}

static void make_clock(test_server *server) {
    if (server->options.replica_of && server->options.replica_of->clock_us) {
        snprintf(server->clock_file, sizeof server->clock_file, "%s",
                 server->options.replica_of->clock_file);
    } else {
        snprintf(server->clock_file, sizeof server->clock_file, "%s/clock", server->directory);
    }
    int fd = open(server->clock_file, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    cr_assert(fd >= 0 && ftruncate(fd, sizeof(int64_t)) == 0);
    server->clock_us = mmap(NULL, sizeof(int64_t), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    cr_assert(server->clock_us != MAP_FAILED);
    close(fd);
    if (*server->clock_us == 0) *server->clock_us = FROZEN_START_MS * 1000;
}

static void write_config(const test_server *server) {
    const server_options *options = &server->options;
    char path[300];
    snprintf(path, sizeof path, "%s/server.conf", server->directory);
    FILE *file = fopen(path, "w");
    cr_assert(file != NULL);
    fprintf(file,
            "port %d\nbind 127.0.0.1\ndir %s\nsave \"\"\nappendonly %s\nappendfsync no\n"
            "enable-debug-command local\nenable-module-command local\n"
            "repl-diskless-sync-delay 0\ncrash-memcheck-enabled no\nshutdown-on-sigterm nosave\n",
            server->port, server->directory, options->append_only ? "yes" : "no");
    if (options->cluster) fputs("cluster-enabled yes\ncluster-node-timeout 5000\n", file);
    if (options->replica_of) fprintf(file, "replicaof 127.0.0.1 %d\n", options->replica_of->port);
    if (!options->without_module) {
        const char *module = getenv("FF_MODULE");
        cr_assert(module && module[0], "FF_MODULE must name the module to test");
        fprintf(file, "loadmodule %s %s\n", module,
                options->module_arguments ? options->module_arguments : "");
    }
    if (options->config) fprintf(file, "%s\n", options->config);
    fclose(file);
}

static void set_preload(const test_server *server) {
    char preload[1200] = "";
    const char *given = getenv("FF_SERVER_PRELOAD");
    if (given && given[0]) snprintf(preload, sizeof preload, "%s", given);
    if (server->clock_us) {
        size_t used = strlen(preload);
        snprintf(preload + used, sizeof preload - used, "%s%s", used ? ":" : "", clock_library());
        setenv("FF_CLOCK_FILE", server->clock_file, 1);
    }
    if (preload[0]) setenv("LD_PRELOAD", preload, 1);
}

static _Noreturn void become_server(const test_server *server, pid_t parent) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(127); /* the parent died before the line above */
    if (chdir(server->directory) != 0) _exit(127);
    int log = open("server.log", O_WRONLY | O_CREAT | O_APPEND, 0600);
    int nowhere = open("/dev/null", O_RDONLY);
    dup2(nowhere, 0), dup2(log, 1), dup2(log, 2);
    close_range(3, ~0U, 0);
    const char *program = getenv("FF_SERVER");
    execlp(program ? program : "valkey-server", "valkey-server", "server.conf", (char *)NULL);
    perror("cannot run valkey-server");
    _exit(127);
}

static void spawn(test_server *server) {
    if (server->clock_us) clock_library(); /* compiled here, not in the child */
    pid_t parent = getpid();
    server->pid = fork();
    cr_assert(server->pid >= 0);
    if (server->pid == 0) {
        set_preload(server);
        become_server(server, parent);
    }
}

static bool is_running(test_server *server) {
    if (server->pid > 0 && waitpid(server->pid, NULL, WNOHANG) != 0) server->pid = 0;
    return server->pid > 0;
}

static char *log_tail(const test_server *server) {
    char path[300];
    snprintf(path, sizeof path, "%s/server.log", server->directory);
    char *tail = calloc(1, LOG_SHOWN + 1);
    FILE *file = fopen(path, "r");
    if (!file) return tail;
    if (fseek(file, -LOG_SHOWN, SEEK_END) != 0) rewind(file);
    tail[fread(tail, 1, LOG_SHOWN, file)] = '\0';
    fclose(file);
    return tail;
}

void server_print_log(const test_server *server) {
    char *tail = log_tail(server);
    fprintf(stderr, "--- log of the server on port %d\n%s\n---\n", server->port, tail);
    free(tail);
}

static redisContext *try_to_connect(const test_server *server) {
    struct timeval patience = {START_SECONDS, 0};
    redisContext *connection = redisConnectWithTimeout("127.0.0.1", server->port, patience);
    if (connection && connection->err) {
        redisFree(connection);
        return NULL;
    }
    if (connection) redisSetTimeout(connection, patience);
    return connection;
}

static bool answers_ping(redisContext *connection) {
    redisReply *reply = redisCommand(connection, "PING");
    bool pong = reply && reply->type == REDIS_REPLY_STATUS && strcmp(reply->str, "PONG") == 0;
    if (reply) freeReplyObject(reply);
    return pong;
}

static bool wait_until_up(test_server *server) {
    int64_t deadline = monotonic_ms() + START_SECONDS * 1000;
    while (is_running(server) && monotonic_ms() < deadline) {
        redisContext *connection = try_to_connect(server);
        if (connection && answers_ping(connection)) {
            server->connection = connection;
            return true;
        }
        if (connection) redisFree(connection);
        sleep_ms(10);
    }
    return false;
}

static test_server *prepare(const server_options *options) {
    make_base_directory();
    cr_assert(server_count < MAX_SERVERS);
    test_server *server = servers[server_count++] = calloc(1, sizeof *server);
    if (options) server->options = *options;
    snprintf(server->directory, sizeof server->directory, "%s/%d", base_directory,
             ++directories_made);
    cr_assert(mkdir(server->directory, 0700) == 0);
    const test_server *primary = server->options.replica_of;
    if (server->options.frozen_clock || (primary && primary->clock_us)) make_clock(server);
    return server;
}

static bool start_on_free_port(test_server *server) {
    for (int attempt = 0; attempt < 5; attempt++) {
        server->port = free_port();
        write_config(server);
        spawn(server);
        if (wait_until_up(server)) return true;
        char *tail = log_tail(server);
        bool port_taken = strstr(tail, "Address already in use") != NULL;
        free(tail);
        if (!port_taken) return false;
    }
    return false;
}

test_server *server_start(const server_options *options) {
    test_server *server = prepare(options);
    if (!start_on_free_port(server)) {
        server_print_log(server);
        cr_assert_fail("the server did not start");
    }
    return server;
}

const char *server_start_refused(const server_options *options) {
    test_server *server = prepare(options);
    cr_assert_not(start_on_free_port(server), "the server was not supposed to start");
    return server_keep(log_tail(server));
}

void server_stop(test_server *server) {
    if (server->connection) redisFree(server->connection);
    server->connection = NULL;
    if (server->pid <= 0) return;
    kill(server->pid, SIGTERM);
    int status = 0;
    waitpid(server->pid, &status, 0);
    server->pid = 0;
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        server_print_log(server);
        cr_assert_fail("the server did not stop cleanly (status %x)", (unsigned)status);
    }
}

void server_restart(test_server *server, bool save) {
    if (save) {
        /* A snapshot for a replica may still be under way. */
        while (strcmp(server_info(server, "persistence", "rdb_bgsave_in_progress"), "0") != 0) {
            sleep_ms(10);
        }
        server_do(server, "SAVE");
    }
    server_stop(server);
    spawn(server);
    if (!wait_until_up(server)) {
        server_print_log(server);
        cr_assert_fail("the server did not come back");
    }
}

int server_port(const test_server *server) { return server->port; }

const char *server_directory(const test_server *server) { return server->directory; }

void server_set_time(test_server *server, int64_t now_ms) {
    cr_assert(server->clock_us != NULL, "this server's clock is not frozen");
    *server->clock_us = now_ms * 1000;
}

bytes text(const char *words) { return (bytes){words, strlen(words)}; }

static redisReply *checked(test_server *server, redisReply *reply) {
    if (reply) return server_keep(reply);
    sleep_ms(200); /* a dying server is still writing its log */
    server_print_log(server);
    cr_assert_fail("the server was lost: %s", server->connection->errstr);
    return NULL;
}

redisReply *server_send(test_server *server, size_t count, const bytes *words) {
    const char *data[MAX_WORDS];
    size_t sizes[MAX_WORDS];
    cr_assert(count <= MAX_WORDS);
    for (size_t i = 0; i < count; i++) {
        data[i] = words[i].data;
        sizes[i] = words[i].size;
    }
    return checked(server, redisCommandArgv(server->connection, (int)count, data, sizes));
}

static size_t count_words(command_words words) {
    size_t count = 0;
    while (words[count]) count++;
    return count;
}

redisReply *server_call_words(test_server *server, command_words words) {
    bytes sized[MAX_WORDS];
    size_t count = count_words(words);
    cr_assert(count <= MAX_WORDS);
    for (size_t i = 0; i < count; i++) sized[i] = text(words[i]);
    return server_send(server, count, sized);
}

void server_do_words(test_server *server, command_words words) {
    redisReply *reply = server_call_words(server, words);
    cr_assert(reply->type != REDIS_REPLY_ERROR, "%s", reply->str);
}

void server_expect_error_words(test_server *server, const char *prefix, command_words words) {
    redisReply *reply = server_call_words(server, words);
    cr_assert(reply->type == REDIS_REPLY_ERROR, "an error was expected, not type %d", reply->type);
    cr_assert(strncmp(reply->str, prefix, strlen(prefix)) == 0, "'%s' was expected, not '%s'",
              prefix, reply->str);
}

int64_t server_integer_words(test_server *server, command_words words) {
    redisReply *reply = server_call_words(server, words);
    cr_assert(reply->type == REDIS_REPLY_INTEGER, "an integer was expected, not %s",
              reply->str ? reply->str : "this");
    return reply->integer;
}

const char *server_text_words(test_server *server, command_words words) {
    redisReply *reply = server_call_words(server, words);
    cr_assert(reply->type == REDIS_REPLY_STRING || reply->type == REDIS_REPLY_STATUS,
              "text was expected, not %s", reply->str ? reply->str : "this");
    return reply->str;
}

redisContext *server_connect(const test_server *server) {
    redisContext *connection = try_to_connect(server);
    cr_assert(connection != NULL);
    return server_keep(connection);
}

redisReply *connection_call_words(redisContext *connection, command_words words) {
    redisReply *reply =
        redisCommandArgv(connection, (int)count_words(words), (const char **)words, NULL);
    cr_assert(reply != NULL, "connection lost: %s", connection->errstr);
    return server_keep(reply);
}

const char *server_info(test_server *server, const char *section, const char *field) {
    const char *info = server_text(server, "INFO", section);
    char start[200];
    snprintf(start, sizeof start, "\n%s:", field);
    const char *line = strstr(info, start);
    if (!line) return NULL;
    line += strlen(start);
    return server_keep(strndup(line, strcspn(line, "\r\n")));
}

static int by_name(const void *a, const void *b) {
    const redisReply *const *left = a, *const *right = b;
    return strcmp((*left)->str, (*right)->str);
}

const char *server_digest(test_server *server) {
    char *all = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&all, &size);
    fputs(server_text(server, "DEBUG", "DIGEST"), out);
    redisReply *keys = server_call(server, "KEYS", "*");
    if (keys->elements) qsort(keys->element, keys->elements, sizeof *keys->element, by_name);
    for (size_t i = 0; i < keys->elements; i++) {
        bytes words[] = {text("PEXPIRETIME"), {keys->element[i]->str, keys->element[i]->len}};
        redisReply *expiry = server_send(server, 2, words);
        cr_assert_neq(expiry->type, REDIS_REPLY_ERROR, "%s", expiry->str);
        if (expiry->integer >= 0) fprintf(out, " %s=%lld", words[1].data, expiry->integer);
        freeReplyObject(expiry);
    }
    freeReplyObject(keys);
    fclose(out);
    return server_keep(all);
}

test_server *server_start_replica(test_server *primary, const server_options *options) {
    server_options given = options ? *options : (server_options){0};
    given.replica_of = primary;
    test_server *replica = server_start(&given);
    int64_t deadline = monotonic_ms() + START_SECONDS * 1000;
    for (;;) {
        const char *status = server_info(replica, "replication", "master_link_status");
        if (status && strcmp(status, "up") == 0) return replica;
        if (monotonic_ms() > deadline) {
            server_print_log(replica);
            cr_assert_fail("the replica did not sync");
        }
        sleep_ms(20);
    }
}

void server_expect_same_data(test_server *primary, test_server *replica) {
    int64_t deadline = monotonic_ms() + START_SECONDS * 1000;
    while (server_integer(primary, "WAIT", "1", "1000") < 1) {
        cr_assert(monotonic_ms() < deadline, "the replica does not follow");
    }
    cr_assert_str_eq(server_digest(primary), server_digest(replica));
}

static void wait_for_cluster(test_server **nodes, size_t count) {
    int64_t deadline = monotonic_ms() + START_SECONDS * 1000;
    char known[64];
    snprintf(known, sizeof known, "cluster_known_nodes:%zu\r", count);
    for (size_t i = 0; i < count;) {
        const char *info = server_text(nodes[i], "CLUSTER", "INFO");
        if (strstr(info, "cluster_state:ok") && strstr(info, known)) {
            i++;
            continue;
        }
        cr_assert(monotonic_ms() < deadline, "the cluster did not form: %s", info);
        sleep_ms(50);
    }
}

void server_start_cluster(test_server **nodes, size_t count, const server_options *options) {
    server_options given = options ? *options : (server_options){0};
    given.cluster = true;
    for (size_t i = 0; i < count; i++) {
        nodes[i] = server_start(&given);
        char first[24], last[24], port[24], epoch[24];
        snprintf(first, sizeof first, "%zu", i * CLUSTER_SLOTS / count);
        snprintf(last, sizeof last, "%zu", (i + 1) * CLUSTER_SLOTS / count - 1);
        snprintf(epoch, sizeof epoch, "%zu", i + 1);
        server_do(nodes[i], "CLUSTER", "SET-CONFIG-EPOCH", epoch);
        server_do(nodes[i], "CLUSTER", "ADDSLOTSRANGE", first, last);
        snprintf(port, sizeof port, "%d", nodes[i]->port);
        if (i > 0) server_do(nodes[0], "CLUSTER", "MEET", "127.0.0.1", port);
    }
    wait_for_cluster(nodes, count);
}

test_server *server_of_key(test_server **nodes, size_t count, const char *key) {
    size_t slot = (size_t)server_integer(nodes[0], "CLUSTER", "KEYSLOT", key);
    for (size_t i = 0; i < count; i++) {
        if (slot < (i + 1) * CLUSTER_SLOTS / count) return nodes[i];
    }
    return NULL;
}
