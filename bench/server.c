/* The servers of load.h: processes, their data, and what they tell about themselves. */
#include "load.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define START_SECONDS 60
#define MAX_LIBRARY (4 * 1024 * 1024)

struct load_server {
    pid_t pid;
    int port;
    char directory[256];
    load_server_options options;
    int primary_port; /* of a replica */
    load_server *replica;
    load_connection *connection;
};

/* Everything lives below one directory, so that one removal is enough. */
static char base_directory[200];
static int directories_made;

static void sleep_ms(long ms) {
    nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
}

static int remove_entry(const char *path, const struct stat *status, int kind, struct FTW *walk) {
    (void)status, (void)kind, (void)walk;
    return remove(path);
}

/* Outlives this process: waits for the other end of the pipe to close, which death of any kind
 * does, and removes the directory. The servers die with this process and may still be writing. */
static void start_janitor(void) {
    int ends[2];
    load_check(pipe2(ends, O_CLOEXEC) == 0, "pipe: %s", strerror(errno));
    fflush(NULL);
    pid_t pid = fork();
    load_check(pid >= 0, "fork: %s", strerror(errno));
    if (pid > 0) {
        close(ends[0]);
        return;
    }
    setsid();
    int nowhere = open("/dev/null", O_RDWR);
    for (int fd = 0; fd <= 2; fd++) dup2(nowhere, fd);
    close(ends[1]);
    char byte;
    while (read(ends[0], &byte, 1) < 0 && errno == EINTR) {
    }
    for (int attempt = 0; attempt < 2; attempt++) {
        nftw(base_directory, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
        sleep_ms(500);
    }
    _exit(0);
}

static void make_base_directory(void) {
    if (base_directory[0]) return;
    const char *parent = getenv("TMPDIR");
    snprintf(base_directory, sizeof base_directory, "%s/ff-bench-XXXXXX", parent ? parent : "/tmp");
    load_check(mkdtemp(base_directory) != NULL, "no temporary directory: %s", strerror(errno));
    start_janitor();
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

/* Below the range that the kernel gives to outgoing connections. */
static int free_port(void) {
    for (;;) {
        uint16_t random;
        load_check(getrandom(&random, sizeof random, 0) == sizeof random, "no random bytes");
        int port = 11000 + random % 20000;
        if (port_is_free(port)) return port;
    }
}

static void write_config(const load_server *server) {
    const load_server_options *options = &server->options;
    char path[300];
    snprintf(path, sizeof path, "%s/server.conf", server->directory);
    FILE *file = fopen(path, "w");
    load_check(file != NULL, "cannot write %s", path);
    fprintf(file,
            "port %d\nbind 127.0.0.1\ndir %s\nsave \"\"\nappendonly %s\nappendfsync everysec\n"
            "repl-diskless-sync-delay 0\nmaxclients 20000\nenable-debug-command local\n",
            server->port, server->directory, options->durable ? "yes" : "no");
    if (server->primary_port) fprintf(file, "replicaof 127.0.0.1 %d\n", server->primary_port);
    if (options->with_module) {
        const char *module = getenv("FF_MODULE");
        char *whole = module ? realpath(module, NULL) : NULL; /* the server looks elsewhere */
        load_check(whole != NULL, "FF_MODULE must name the module");
        fprintf(file, "loadmodule %s\n", whole);
        free(whole);
    }
    if (options->config) fprintf(file, "%s\n", options->config);
    fclose(file);
}

static _Noreturn void become_server(const load_server *server, pid_t parent) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(127); /* the parent died before the line above */
    int log = open("/dev/null", O_RDWR);
    dup2(log, 0);
    char path[300];
    snprintf(path, sizeof path, "%s/server.log", server->directory);
    log = open(path, O_WRONLY | O_CREAT | O_APPEND, 0600);
    dup2(log, 1), dup2(log, 2);
    snprintf(path, sizeof path, "%s/server.conf", server->directory);
    const char *program = getenv("FF_SERVER");
    if (!program || !program[0]) program = "valkey-server";
    execlp(program, program, path, (char *)NULL);
    _exit(127);
}

static void print_log(const load_server *server) {
    char path[300], line[1000];
    snprintf(path, sizeof path, "%s/server.log", server->directory);
    FILE *file = fopen(path, "r");
    while (file && fgets(line, sizeof line, file)) fputs(line, stderr);
    if (file) fclose(file);
}

static bool answers(const load_server *server) {
    redisContext *context = redisConnect("127.0.0.1", server->port);
    redisReply *reply = context && !context->err ? redisCommand(context, "PING") : NULL;
    bool is_up = reply && reply->type == REDIS_REPLY_STATUS;
    if (reply) freeReplyObject(reply);
    if (context) redisFree(context);
    return is_up;
}

static void wait_until_up(const load_server *server) {
    int64_t deadline = load_now_us() + START_SECONDS * INT64_C(1000000);
    while (!answers(server)) {
        if (waitpid(server->pid, NULL, WNOHANG) == server->pid || load_now_us() > deadline) {
            print_log(server);
            load_fail("a server did not start");
        }
        sleep_ms(20);
    }
}

static load_server *start_process(const load_server_options *options, int primary_port) {
    make_base_directory();
    load_server *server = calloc(1, sizeof *server);
    server->options = *options;
    server->primary_port = primary_port;
    server->port = free_port();
    snprintf(server->directory, sizeof server->directory, "%s/%d", base_directory,
             ++directories_made);
    load_check(mkdir(server->directory, 0700) == 0, "cannot make %s", server->directory);
    write_config(server);
    pid_t parent = getpid();
    fflush(NULL);
    server->pid = fork();
    load_check(server->pid >= 0, "fork: %s", strerror(errno));
    if (server->pid == 0) become_server(server, parent);
    wait_until_up(server);
    server->connection = load_connect(server);
    return server;
}

static void start_replica(load_server *server) {
    load_server_options options = {.with_module = server->options.with_module};
    server->replica = start_process(&options, server->port);
    int64_t deadline = load_now_us() + START_SECONDS * INT64_C(1000000);
    while (load_integer(server->connection, "WAIT", "1", "100") < 1) {
        load_check(load_now_us() < deadline, "the replica does not follow");
    }
}

static void load_library(load_server *server) {
    FILE *file = fopen(server->options.library, "r");
    load_check(file != NULL, "%s: %s", server->options.library, strerror(errno));
    char *text = malloc(MAX_LIBRARY);
    size_t size = fread(text, 1, MAX_LIBRARY, file);
    fclose(file);
    const char *words[] = {"FUNCTION", "LOAD", "REPLACE", text};
    size_t sizes[] = {8, 4, 7, size};
    redisContext *context = redisConnect("127.0.0.1", server->port);
    redisReply *reply = redisCommandArgv(context, 4, words, sizes);
    load_check(reply && reply->type != REDIS_REPLY_ERROR, "FUNCTION LOAD %s: %s",
               server->options.library, reply ? reply->str : context->errstr);
    freeReplyObject(reply);
    redisFree(context);
    free(text);
}

load_server *load_server_start(const load_server_options *options) {
    load_server *server = start_process(options, 0);
    if (options->library) load_library(server);
    if (options->durable) start_replica(server);
    return server;
}

void load_server_stop(load_server *server) {
    if (server->replica) load_server_stop(server->replica);
    load_disconnect(server->connection);
    int status = 0;
    if (waitpid(server->pid, &status, WNOHANG) != 0) {
        print_log(server);
        load_fail("a server died");
    }
    kill(server->pid, SIGKILL); /* its data is not wanted any more */
    waitpid(server->pid, &status, 0);
    nftw(server->directory, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
    free(server);
}

int load_server_port(const load_server *server) { return server->port; }

pid_t load_server_pid(const load_server *server) { return server->pid; }

load_connection *load_server_connection(load_server *server) { return server->connection; }

void load_server_empty(load_server *server) {
    load_run(server->connection, "FLUSHALL", "SYNC");
    load_run(server->connection, "CONFIG", "RESETSTAT");
    load_server_settle(server);
}

void load_server_settle(load_server *server) {
    if (!server->replica) return;
    load_run(server->connection, "WAIT", "1", "60000");
}

/* ---- what a server tells ---- */

/* The number behind "\n<field>:" in INFO; NaN-free: 0 when absent. */
static double info_number(load_server *server, const char *section, const char *field) {
    redisReply *reply = load_do(server->connection, "INFO", section);
    char start[100];
    snprintf(start, sizeof start, "\n%s:", field);
    const char *line = strstr(reply->str, start);
    double number = line ? strtod(line + strlen(start), NULL) : 0;
    freeReplyObject(reply);
    return number;
}

double load_server_cpu_us(load_server *server) {
    return (info_number(server, "cpu", "used_cpu_user") +
            info_number(server, "cpu", "used_cpu_sys")) *
           1e6;
}

double load_server_memory(load_server *server) {
    return info_number(server, "memory", "used_memory");
}

bool load_server_knows(load_server *server, const char *command) {
    redisReply *reply = load_do(server->connection, "COMMAND", "INFO", command);
    bool is_known = reply->elements == 1 && reply->element[0]->type == REDIS_REPLY_ARRAY;
    freeReplyObject(reply);
    return is_known;
}

static double number_behind(const char *line, const char *label) {
    const char *at = strstr(line, label);
    return at ? strtod(at + strlen(label), NULL) : 0;
}

static bool is_own_command(const char *line) {
    return strncmp(line, "cmdstat_info:", 13) == 0 || strncmp(line, "cmdstat_config", 14) == 0;
}

load_usage load_server_usage(load_server *server, const char *name) {
    char start[100];
    snprintf(start, sizeof start, "cmdstat_%s:", name ? name : "");
    redisReply *reply = load_do(server->connection, "INFO", "commandstats");
    load_usage usage = {0};
    char *rest = NULL;
    for (char *line = strtok_r(reply->str, "\r\n", &rest); line;
         line = strtok_r(NULL, "\r\n", &rest)) {
        if (name ? strncmp(line, start, strlen(start)) != 0 : is_own_command(line)) continue;
        usage.calls += number_behind(line, "calls=");
        usage.usec += number_behind(line, "usec=");
    }
    freeReplyObject(reply);
    return usage;
}

void load_server_reset_usage(load_server *server) {
    load_run(server->connection, "CONFIG", "RESETSTAT");
}
