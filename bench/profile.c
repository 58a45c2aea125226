/* Where the time of the first scenario goes, by perf. */
#include "scenarios.h"

#include "bench.h"
#include "field.h"
#include "life.h"
#include "report.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static pid_t start_perf(pid_t server, const char *file) {
    char target[24];
    snprintf(target, sizeof target, "%d", (int)server);
    fflush(NULL);
    pid_t pid = fork();
    load_check(pid >= 0, "cannot fork");
    if (pid > 0) return pid;
    if (!freopen("/dev/null", "w", stdout) || !freopen("/dev/null", "w", stderr)) _exit(127);
    execlp("perf", "perf", "record", "-q", "-F", "999", "-p", target, "-o", file, (char *)NULL);
    _exit(127);
}

/* True when perf wrote what it saw. */
static bool stop_perf(pid_t perf) {
    int status = 0;
    if (waitpid(perf, &status, WNOHANG) != 0) return false; /* it never ran */
    kill(perf, SIGINT);
    waitpid(perf, &status, 0);
    return true;
}

/* Debian's server is a link to a program of another name; perf shows that one. */
static void rename_server(char *line, pid_t server) {
    static const char shown[] = "valkey-server";
    char link[40], path[300];
    snprintf(link, sizeof link, "/proc/%d/exe", (int)server);
    ssize_t size = readlink(link, path, sizeof path - 1);
    if (size <= 0) return;
    path[size] = '\0';
    const char *name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
    char *at = strstr(line, name);
    if (!at || strlen(name) < strlen(shown)) return;
    memset(at, ' ', strlen(name));
    memcpy(at, shown, strlen(shown));
}

/* What the server's time goes into. A symbol belongs to the first group that has the object it is
 * in, or a beginning of its name; the last group takes what is left. */
typedef struct group {
    const char *name;
    const char *objects[4], *beginnings[10];
    double share;
} group;

static group groups[] = {
    {.name = "the kernel: sockets, waiting for events", .objects = {"[kernel"}},
    {.name = "the module's own code", .objects = {"ff.so"}},
    {.name = "memory: allocating, freeing, asking for sizes", .objects = {"jemalloc"}},
    {.name = "packed hashes: finding and changing fields", .beginnings = {"lp", "hashType"}},
    {.name = "the keyspace: looking up, adding and deleting keys",
     .beginnings = {"dict", "siphash", "lookupKey", "db", "kvstore", "getKeySlot"}},
    {.name = "sorted sets, sets and streams",
     .beginnings = {"zsl", "zset", "zz", "set", "intset", "stream", "rax"}},
    {.name = "building packed hashes by RESTORE",
     .beginnings = {"rdb", "rio", "crc", "gf2_", "lzf"}},
    {.name = "the module API", .beginnings = {"VM_", "RM_", "module"}},
    {.name = "copying, comparing and the clock: the C library", .objects = {"libc.so", "[vdso]"}},
    {.name = "requests, replies, and the rest of the server"},
};

enum { GROUPS = sizeof groups / sizeof groups[0], SYMBOLS_SHOWN = 15 };

static bool belongs(const group *to, const char *object, const char *symbol) {
    for (size_t i = 0; to->objects[i]; i++) {
        if (strstr(object, to->objects[i])) return true;
    }
    for (size_t i = 0; to->beginnings[i]; i++) {
        if (strncmp(symbol, to->beginnings[i], strlen(to->beginnings[i])) == 0) return true;
    }
    return false;
}

/* One line of perf's: "  6.00%  [kernel.kallsyms]  [k] _raw_spin_unlock". */
static void take_line(const char *line) {
    double share;
    char object[100], symbol[200];
    if (sscanf(line, " %lf%% %99s [%*c] %199s", &share, object, symbol) != 3) return;
    size_t g = 0;
    while (g < GROUPS - 1 && !belongs(&groups[g], object, symbol)) g++;
    groups[g].share += share;
}

/* Adds up what `perf report` says; its first lines, without comments, go to `text`. */
static void read_report(const char *file, pid_t server, char *text, size_t room) {
    char command[600], line[400];
    snprintf(command, sizeof command,
             "perf report -i '%s' --stdio --no-children -F overhead,dso,symbol 2>/dev/null", file);
    FILE *output = popen(command, "r");
    size_t used = 0, shown = 0;
    text[0] = '\0';
    while (output && fgets(line, sizeof line, output)) {
        if (line[0] == '#' || line[strspn(line, " ")] == '\n') continue;
        take_line(line);
        rename_server(line, server);
        size_t size = strcspn(line, "\n");
        while (size > 0 && line[size - 1] == ' ') size--;
        if (shown++ >= SYMBOLS_SHOWN || used + size + 2 > room) continue;
        used += (size_t)snprintf(text + used, room - used, "%.*s\n", (int)size, line);
    }
    if (output) pclose(output);
}

static int by_share(const void *a, const void *b) {
    const group *left = a, *right = b;
    return (left->share < right->share) - (left->share > right->share);
}

static void tell_groups(void) {
    qsort(groups, GROUPS, sizeof groups[0], by_share);
    report_header("", "% of the server's time");
    for (size_t g = 0; g < GROUPS && groups[g].share >= 0.5; g++) {
        report_row(groups[g].name, number_text(groups[g].share));
    }
    report_table_end();
}

static double share_of(const char *start) {
    for (size_t g = 0; g < GROUPS; g++) {
        if (strncmp(groups[g].name, start, strlen(start)) == 0) return groups[g].share;
    }
    return 0;
}

static void conclude(void) {
    double packed = share_of("packed hashes") + share_of("building packed");
    double module = share_of("the module's own");
    report_text(
        "What the next gain can be. Were the module's own code free, a life would take %.0f %% "
        "less of the server's time; that much and no more is in making it faster. Another %.0f %% "
        "is the server's work on the packed records that the data layout prescribes: touching "
        "fewer fields, or the same ones in fewer calls, is where the module can still save. Half "
        "as many round trips would save about half of the kernel's share, %.0f %%: more than one "
        "job per request (FF.CLAIM … COUNT, FF.COMPLETE … CLAIM) is how a client gets that.",
        module, packed, share_of("the kernel") / 2);
}

static void tell_profile(const entrant *on, const char *file) {
    static char text[8000];
    read_report(file, load_server_pid(on->server), text, sizeof text);
    report_text("Scenario 1, %s, 16 connections, as perf saw the server:", on->who.name);
    tell_groups();
    report_text("The functions at the top:");
    report_verbatim(text);
    conclude();
}

/* The largest part of the work that the product is about: native if it is there, else FF.CALL. */
void scenario_profile(void) {
    char file[300];
    field all;
    report_heading("12. Where the time goes");
    field_start(&all, false, NULL);
    const entrant *on = &all.entrants[0];
    const char *directory = getenv("TMPDIR");
    snprintf(file, sizeof file, "%s/ff-bench-%d.perf", directory ? directory : P_tmpdir,
             (int)getpid());
    load_server_empty(on->server);
    pid_t perf = start_perf(load_server_pid(on->server), file);
    usleep(300000);
    life_run(on, 16, scaled(50000, 5000, 500));
    if (stop_perf(perf) && access(file, R_OK) == 0) {
        tell_profile(on, file);
    } else {
        report_text("Not measured: perf is not installed, or may not look at processes here.");
    }
    unlink(file);
    field_stop(&all);
}
