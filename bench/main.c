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

static void tell_machine(void) {
    char cpu[200], memory[100], version[64], text[64];
    struct utsname system;
    double load = 0;
    uname(&system);
    read_line("/proc/cpuinfo", "model name", cpu, sizeof cpu);
    read_line("/proc/meminfo", "MemTotal", memory, sizeof memory);
    server_version(version, sizeof version);
    load_check(getloadavg(&load, 1) == 1, "no load average");
    report_text_header("", "");
    report_row("valkey-server", version);
    report_row("BullMQ", bullmq_version());
    snprintf(text, sizeof text, "%d.%d.%d", HIREDIS_MAJOR, HIREDIS_MINOR, HIREDIS_PATCH);
    report_row("hiredis (the load generator's)", text);
    report_row("compiler", "gcc " __VERSION__ ", -O2");
    report_row("processor", cpu);
    snprintf(text, sizeof text, "%ld", sysconf(_SC_NPROCESSORS_ONLN));
    report_row("cores, for servers and clients together", text);
    snprintf(text, sizeof text, "%.1f GiB", strtod(memory, NULL) / (1 << 20));
    report_row("memory", text);
    report_row("kernel", system.release);
    snprintf(text, sizeof text, "%.2f", load);
    report_row("load average before the first measurement", text);
    report_table_end();
}

static void tell_contestants(void) {
    report_text_header("who", "what it is, and how it is driven");
    report_row("native", "the module's own commands: FF.CREATE, FF.CLAIM, FF.COMPLETE, …");
    report_row("native, COMPLETE … CLAIM",
               "the same, but a worker takes its next job with the answer");
    report_row("FF.CALL",
               "the wire functions in the module, driven as the reference is: *the wire way*");
    report_row("FF.CALL, jobs spread", "the same, with the jobs of a lane in all partitions");
    report_row("FCALL, lua-compat",
               "the wire way; FCALL of the library in `lua-compat/`, which forwards");
    report_row("FCALL, intercepted", "the wire way; FCALL that the module takes over, without Lua");
    report_row("reference", "the wire way, on the reference's own library, without the module");
    report_row("BullMQ", "another job queue, by its own client, on the same server");
    report_row("bare commands", "ZADD, ZPOPMIN and HSET: no promise is kept, this is the limit");
    report_table_end();
    if (contestants_absent()[0]) report_text("%s", contestants_absent());
    report_text(
        "*The wire way* is what the reference's scheduler and engine do from outside, one round "
        "trip for each step. A claim: TIME; then ZRANGEBYSCORE of one partition after the other, "
        "32 of 256 at most, from a start that the worker's name gives and that moves on by 32 "
        "every 250 ms; three HGET on a hit; `ff_issue_claim_grant`; `ff_claim_execution`; GET of the "
        "payload. A cycle that finds nothing is followed by %d ms of rest (1d shows what difference that "
        "makes). What else it does is said with each scenario.",
        CONTESTANT_REST_MS);
}

static void introduce(void) {
    char date[64];
    time_t now = time(NULL);
    contestant present[CONTESTANTS];
    contestants_present(present);
    strftime(date, sizeof date, "%Y-%m-%d %H:%M UTC", gmtime(&now));
    report_text("# Benchmarks");
    report_text(
        "Written by `make bench%s%s` on %s. Everything was measured in this one run, on one "
        "machine, servers and clients side by side; rounds are interleaved; figures are medians "
        "(least–greatest) of the rounds. Nothing here is asserted anywhere: compare the rows of a "
        "table, not machines. A run fails if something was not done, or not exactly once.",
        settings.scale == SCALE_FULL    ? ""
        : settings.scale == SCALE_QUICK ? " QUICK=1"
                                        : " QUICK=smoke",
        settings.reference ? " REFERENCE=<file.lua>" : "", date);
    tell_machine();
    report_text(
        "The load generator is `bench/`, C on hiredis: one thread, fibers over epoll, one request "
        "in flight per connection. Each contestant has a server of its own, started with "
        "`valkey-server <file>`, where the file says `save \"\"`, `appendonly no` unless a section "
        "says otherwise, `maxclients 20000`, `loadmodule ff.so` for those with the module, "
        "`ff.scanners yes` for native ones and `ff.intercept-fcall yes` for the intercepted one. "
        "One section alone: `FF_MODULE=build/ff.so build/bench/ff-bench <name>`, with the name "
        "that stands in its heading.");
    tell_contestants();
}

static void tell_goals(void) {
    report_heading("What was asked for");
    report_text("The figures that this project was asked for, and what this run measured; the "
                "number in brackets is the section. What only the reference library can show is "
                "missing unless REFERENCE= names it.");
    report_goals();
}

/* The scenarios in the order of the report, each a program of its own too. */
static const struct {
    const char *name;
    void (*run)(void);
} scenarios[] = {
    {"life", scenario_life},
    {"life-durable", scenario_life_durable},
    {"wake", scenario_wake},
    {"rest", scenario_rest},
    {"distance", scenario_distance},
    {"pause", scenario_pause},
    {"steady", scenario_steady},
    {"flows", scenario_flow},
    {"arrivals", scenario_arrivals},
    {"routes", scenario_routes},
    {"quorum", scenario_quorum},
    {"unblock", scenario_unblock},
    {"idle", scenario_idle},
    {"weight", scenario_weight},
    {"growth", scenario_growth},
    {"wire", bench_wire},
    {NULL, tell_goals},
    {"profile", scenario_profile},
};

enum { SCENARIOS = sizeof scenarios / sizeof scenarios[0] };

static void bench_report(void) {
    report_progress("%d sections", SCENARIOS);
    if (settings.report_dir) report_open(settings.report_dir);
    introduce();
    for (size_t i = 0; i < SCENARIOS; i++) {
        int64_t start = load_now_us();
        report_program(scenarios[i].name);
        scenarios[i].run();
        report_progress("%s took %.1f s; %zu of %d sections done",
                        scenarios[i].name ? scenarios[i].name : "the summary",
                        (double)(load_now_us() - start) / 1e6, i + 1, SCENARIOS);
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
    scenario_arrivals();
    scenario_chain();
    scenario_distance();
}

/* Programs that are more than one section. */
static const struct {
    const char *name;
    void (*run)(void);
} programs[] = {
    {"report", bench_report},
    {"claim", bench_claim},
    {"scan", bench_scan},
    {"flow", bench_flow},
};

enum { PROGRAMS = sizeof programs / sizeof programs[0] };

static void (*find_program(const char *name))(void) {
    for (size_t i = 0; i < PROGRAMS; i++) {
        if (strcmp(name, programs[i].name) == 0) return programs[i].run;
    }
    for (size_t i = 0; i < SCENARIOS; i++) {
        if (scenarios[i].name && strcmp(name, scenarios[i].name) == 0) return scenarios[i].run;
    }
    return NULL;
}

static int usage(void) {
    fputs("usage: ff-bench <program>, where the program is one of:", stderr);
    for (size_t i = 0; i < PROGRAMS; i++) fprintf(stderr, " %s", programs[i].name);
    for (size_t i = 0; i < SCENARIOS; i++) {
        if (scenarios[i].name) fprintf(stderr, " %s", scenarios[i].name);
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
    void (*run)(void) = count == 2 ? find_program(words[1]) : NULL;
    if (!run) return usage();
    run();
    return 0;
}
