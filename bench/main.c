/* ff-bench <program>: the entry of all benchmarks. The Makefile says which and with what. */
#include "bench.h"
#include "field.h"
#include "life.h"
#include "report.h"
#include "scenarios.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

bench_settings settings;

size_t scaled(size_t full, size_t quick, size_t smoke) {
    if (settings.scale == SCALE_SMOKE) return smoke;
    return settings.scale == SCALE_QUICK ? quick : full;
}

static const char *environment(const char *name) {
    const char *value = getenv(name);
    return value && value[0] ? value : NULL;
}

static int scale_named(const char *name) {
    if (!name || strcmp(name, "0") == 0 || strcmp(name, "no") == 0) return SCALE_FULL;
    return strcmp(name, "smoke") == 0 ? SCALE_SMOKE : SCALE_QUICK;
}

/* The value of a line "name : value" of a file below /proc; "" when there is none. */
static void read_line(const char *path, const char *name, char *value, size_t room) {
    char line[300];
    value[0] = '\0';
    FILE *file = fopen(path, "r");
    while (file && !value[0] && fgets(line, sizeof line, file)) {
        if (strncmp(line, name, strlen(name)) != 0) continue;
        const char *at = line + strcspn(line, ":") + 1;
        at += strspn(at, " \t");
        snprintf(value, room, "%.*s", (int)strcspn(at, "\n"), at);
    }
    if (file) fclose(file);
}

static void server_version(char *version, size_t room) {
    load_server *server = load_server_start(&(load_server_options){0});
    redisReply *info = load_do(load_server_connection(server), "INFO", "server");
    const char *at = strstr(info->str, "valkey_version:");
    at = at ? at + 15 : "unknown";
    snprintf(version, room, "%.*s", (int)strcspn(at, "\r"), at);
    freeReplyObject(info);
    load_server_stop(server);
}

static void introduce(void) {
    char cpu[200], memory[100], version[64], date[64];
    struct utsname system;
    time_t now = time(NULL);
    double load = 0;
    uname(&system);
    read_line("/proc/cpuinfo", "model name", cpu, sizeof cpu);
    read_line("/proc/meminfo", "MemTotal", memory, sizeof memory);
    server_version(version, sizeof version);
    strftime(date, sizeof date, "%Y-%m-%d %H:%M UTC", gmtime(&now));
    load_check(getloadavg(&load, 1) == 1, "no load average");
    contestant present[CONTESTANTS];
    contestants_present(present);
    report_text("# Benchmarks");
    report_text(
        "Written by `make bench%s%s` on %s. Everything was measured in this one run, on one "
        "machine, servers and clients side by side; rounds are interleaved; figures are "
        "medians (least–greatest). Nothing here is asserted anywhere: compare the columns, not "
        "machines.",
        settings.scale == SCALE_FULL    ? ""
        : settings.scale == SCALE_QUICK ? " QUICK=1"
                                        : " QUICK=smoke",
        settings.reference ? " REFERENCE=<file.lua>" : "", date);
    report_header("what", "which");
    char cores[32], busy[32];
    snprintf(cores, sizeof cores, "%ld", sysconf(_SC_NPROCESSORS_ONLN));
    snprintf(busy, sizeof busy, "%.2f", load);
    report_row("server", version);
    report_row("processor", cpu);
    report_row("cores", cores);
    report_row("memory", memory);
    report_row("kernel", system.release);
    report_row("load before the first measurement", busy);
    report_row("BullMQ", bullmq_version());
    report_table_end();
    if (contestants_absent()[0]) report_text("%s", contestants_absent());
    report_text(
        "The load generator is `bench/`, C on hiredis: one thread, fibers over epoll, one "
        "request in flight per connection. Servers run with `save \"\"`, without an append "
        "only file unless it says so. Wire contestants are driven the way the reference's "
        "scheduler and engine drive them: TIME, one ZRANGEBYSCORE for each partition until a "
        "hit, three HGET, grant, claim, complete.");
}

static void (*const scenarios[])(void) = {
    scenario_life,   scenario_life_durable, scenario_wake,    scenario_pause,   scenario_steady,
    scenario_flow,   scenario_routes,       scenario_quorum,  scenario_unblock, scenario_idle,
    scenario_weight, scenario_growth,       scenario_profile,
};

static void bench_report(void) {
    if (settings.report_dir) report_open(settings.report_dir);
    introduce();
    for (size_t i = 0; i < sizeof scenarios / sizeof scenarios[0]; i++) {
        int64_t start = load_now_us();
        scenarios[i]();
        printf("-- %.1f s\n", (double)(load_now_us() - start) / 1e6);
    }
    report_close();
}

static void bench_claim(void) {
    scenario_life_at_16();
    scenario_wake();
}

static void bench_scan(void) {
    scenario_unblock();
    scenario_idle();
}

static void bench_flow(void) {
    scenario_flow();
    scenario_chain();
}

static const struct {
    const char *name;
    void (*run)(void);
} programs[] = {
    {"wire", bench_wire},
    {"claim", bench_claim},
    {"scan", bench_scan},
    {"flow", bench_flow},
    {"report", bench_report},
    {"life", scenario_life},
    {"life-durable", scenario_life_durable},
    {"wake", scenario_wake},
    {"pause", scenario_pause},
    {"steady", scenario_steady},
    {"routes", scenario_routes},
    {"quorum", scenario_quorum},
    {"unblock", scenario_unblock},
    {"idle", scenario_idle},
    {"weight", scenario_weight},
    {"growth", scenario_growth},
    {"profile", scenario_profile},
};

static int usage(void) {
    fputs("usage: ff-bench <program>, where the program is one of:", stderr);
    for (size_t i = 0; i < sizeof programs / sizeof programs[0]; i++) {
        fprintf(stderr, " %s", programs[i].name);
    }
    fputs("\n", stderr);
    return 2;
}

int main(int count, char **words) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    settings = (bench_settings){
        .scale = scale_named(environment("QUICK")),
        .reference = environment("REFERENCE"),
        .compat = "lua-compat/flowfabric.lua",
        .report_dir = environment("FF_REPORT_DIR"),
        .bullmq = environment("FF_BULLMQ"),
    };
    if (settings.bullmq && access(settings.bullmq, R_OK) != 0) settings.bullmq = NULL;
    for (size_t i = 0; count == 2 && i < sizeof programs / sizeof programs[0]; i++) {
        if (strcmp(words[1], programs[i].name) != 0) continue;
        programs[i].run();
        return 0;
    }
    return usage();
}
