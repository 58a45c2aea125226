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

#define LINES_SHOWN 25

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

/* Runs `perf report` sorted by something; the lines it prints, without comments, go to `text`. */
static void read_report(const char *file, const char *sort, char *text, size_t room) {
    char command[600], line[400];
    snprintf(command, sizeof command,
             "perf report -i '%s' --stdio --no-children -F overhead,%s --percent-limit 0.5 "
             "2>/dev/null",
             file, sort);
    FILE *output = popen(command, "r");
    size_t used = 0;
    text[0] = '\0';
    for (int shown = 0; output && shown < LINES_SHOWN && fgets(line, sizeof line, output);) {
        if (line[0] == '#' || line[strspn(line, " ")] == '\n') continue;
        size_t size = strcspn(line, "\n");
        while (size > 0 && line[size - 1] == ' ') size--;
        if (used + size + 2 > room) break;
        used += (size_t)snprintf(text + used, room - used, "%.*s\n", (int)size, line);
        shown++;
    }
    if (output) pclose(output);
}

/* The share of the lines that mention `what`, in per cent. */
static double share_of(const char *text, const char *what) {
    double share = 0;
    char line[400];
    while (*text) {
        size_t size = strcspn(text, "\n");
        snprintf(line, sizeof line, "%.*s", (int)size, text);
        if (strstr(line, what)) share += strtod(line, NULL);
        text += size + (text[size] == '\n');
    }
    return share;
}

static void conclude(const char *objects) {
    const char *path = getenv("FF_MODULE");
    const char *name = path && strrchr(path, '/') ? strrchr(path, '/') + 1 : "ff.so";
    double kernel = share_of(objects, "[kernel"), module = share_of(objects, name);
    double server = 100 - kernel - module;
    report_text(
        "Of the server's time %.0f %% is spent in the kernel (sockets and the event loop), "
        "%.0f %% in the server and its libraries (parsing, replies, data structures, memory), "
        "%.0f %% in the module's own code.",
        kernel, server, module);
    if (module <= 0 || module >= 100) return;
    report_text(
        "What the next gain can be: were the module's own code free, a life would take %.0f %% "
        "less server time; half as many round trips would save about half of the "
        "kernel's share, %.0f %%. The larger of the two is the one to go after, and the list "
        "says where in it.",
        module, kernel / 2);
}

/* The largest part of the work that the product is about: native if it is there, else FF.CALL. */
void scenario_profile(void) {
    static char text[16000];
    char file[300];
    field all;
    report_heading("Where the time goes");
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
        report_text("Scenario 1, %s, 16 connections, as perf saw the server:", on->who.name);
        read_report(file, "dso,symbol", text, sizeof text);
        report_verbatim(text);
        read_report(file, "dso", text, sizeof text);
        report_verbatim(text);
        conclude(text);
    } else {
        report_text("Not measured: perf is not installed, or may not look at processes here.");
    }
    unlink(file);
    field_stop(&all);
}
