/* Scenarios about what is merely there: idle servers, memory, and growth. */
#include "scenarios.h"

#include "ballast.h"
#include "bench.h"
#include "blocked.h"
#include "flow.h"
#include "life.h"
#include "report.h"
#include "suspension.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- idle ---- */

/* Per cent of a core over a while in which nobody asks for anything. */
static double idle_percent(load_server *server) {
    double before = load_server_cpu_us(server);
    int64_t start = load_now_us();
    usleep((useconds_t)scaled(20000000, 1000000, 300000));
    double used = load_server_cpu_us(server) - before;
    return used / (double)(load_now_us() - start) * 100;
}

static double idle_with(const char *config, bool with_module, size_t executions, size_t waiters) {
    contestant who = {.name = "idle", .options = {.with_module = with_module, .config = config}};
    entrant on = {.who = who, .server = load_server_start(&who.options)};
    if (executions) ballast_load(&on, executions, 10, true);
    worker *waiting = workers_open(&on.who, on.server, waiters, "idle");
    for (size_t i = 0; i < waiters; i++) {
        load_request *r = &waiting[i].request;
        request_start(r, "FF.CLAIM");
        request_add(r, "idle"), request_add(r, "w"), request_add(r, waiting[i].instance);
        request_add(r, "BLOCK"), request_add(r, "0");
        load_send(waiting[i].connection, r);
        load_flush(waiting[i].connection);
    }
    usleep(300000);
    double percent = idle_percent(on.server);
    workers_close(waiting, waiters);
    load_server_stop(on.server);
    return percent;
}

void scenario_idle(void) {
    size_t executions = scaled(100000, 2000, 500), waiters = scaled(1000, 100, 10);
    contestant present[CONTESTANTS];
    contestants_present(present);
    report_heading("8. Idle");
    report_text(
        "Processor time of a server that nobody asks for anything, in per cent of a core. The "
        "loaded ones hold %zu ended executions in 256 partitions and 10 lanes.",
        executions);
    report_header("", "% of a core");
    report_row("a server without the module, empty", number_text(idle_with(NULL, false, 0, 0)));
    report_row("the module, scanners off", number_text(idle_with(NULL, true, executions, 0)));
    report_row("the module, all scanners on",
               number_text(idle_with("ff.scanners yes", true, executions, 0)));
    if (contestant_is_native(&present[0])) {
        char title[80];
        snprintf(title, sizeof title, "scanners on, %zu claimers waiting", waiters);
        report_row(title, number_text(idle_with("ff.scanners yes", true, executions, waiters)));
    }
    report_table_end();
}

/* ---- memory ---- */

enum { WAITING, ACTIVE, SUSPENDED, COMPLETED, STATES };

typedef struct weights {
    series bytes[STATES];
} weights;

static void weigh(const entrant *on, weights *into, int state, double before, size_t count) {
    double bytes = (load_server_memory(on->server) - before) / (double)count;
    series_add(&into->bytes[state], bytes);
}

static void weigh_bullmq(const entrant *on, weights *into, size_t count) {
    char numbers[64];
    double seconds, before = load_server_memory(on->server);
    snprintf(numbers, sizeof numbers, "%zu 16", count);
    bullmq_run(on, &seconds, 1, "submit", numbers);
    weigh(on, into, WAITING, before, count);
    bullmq_run(on, &seconds, 1, "drain", numbers);
    weigh(on, into, COMPLETED, before, count);
}

static void claim_all(worker *self, job *held, size_t count) {
    for (size_t i = 0; i < count;) {
        if (self->who->driver->claim(self, &held[i], 0)) i++;
    }
}

static void weigh_suspended(const entrant *on, weights *into, worker *self, job *held,
                            size_t count) {
    if (!suspension_wanted(&on->who)) return;
    load_server_empty(on->server);
    suspension_prepare(on);
    double before = load_server_memory(on->server);
    for (size_t i = 0; i < count; i++) self->who->driver->submit(self, i, NULL);
    claim_all(self, held, count);
    for (size_t i = 0; i < count; i++) {
        waitpoint at;
        suspension_begin(self, &held[i], &at);
    }
    weigh(on, into, SUSPENDED, before, count);
}

static void weigh_one(const entrant *on, weights *into, size_t count) {
    load_server_empty(on->server);
    if (is_bullmq(&on->who)) {
        weigh_bullmq(on, into, count);
        return;
    }
    worker *self = workers_open(&on->who, on->server, 1, "work");
    job *held = calloc(count, sizeof *held);
    double before = load_server_memory(on->server);
    for (size_t i = 0; i < count; i++) self->who->driver->submit(self, i, NULL);
    weigh(on, into, WAITING, before, count);
    claim_all(self, held, count);
    weigh(on, into, ACTIVE, before, count);
    for (size_t i = 0; i < count; i++) self->who->driver->complete(self, &held[i]);
    weigh(on, into, COMPLETED, before, count);
    weigh_suspended(on, into, self, held, count);
    free(held);
    workers_close(self, 1);
}

void scenario_weight(void) {
    size_t count = scaled(10000, 500, 100);
    static weights all_weights[CONTESTANTS];
    report_heading("9. Memory per execution");
    report_text(
        "Bytes of used_memory for each of %zu executions, the keys of the partitions' indexes "
        "included: with few executions those weigh more than they would.",
        count);
    field all;
    field_start(&all, false, contestant_is_plain);
    for (size_t i = 0; i < all.count; i++) weigh_one(&all.entrants[i], &all_weights[i], count);
    report_header("", "waiting", "active", "suspended", "completed");
    field_figures completed = {0};
    for (size_t i = 0; i < all.count; i++) {
        const series *bytes = all_weights[i].bytes;
        report_row(all.entrants[i].who.name, series_text(&bytes[WAITING]),
                   series_text(&bytes[ACTIVE]), series_text(&bytes[SUSPENDED]),
                   series_text(&bytes[COMPLETED]));
        completed.of[i] = bytes[COMPLETED];
    }
    report_table_end();
    field_chart(&all, "weight", "Bytes per completed execution", &completed);
    field_stop(&all);
}

/* ---- growth ---- */

static bool growth_wanted(const contestant *who) {
    if (contestant_is_native(who)) return !who->chained && contestant_knows(who, "FF.FLOW|SUBMIT");
    return contestant_is_wire(who) &&
           (strcmp(who->name, "FF.CALL") == 0 || strcmp(who->name, "reference") == 0);
}

/* What a measured thing costs, in microseconds each, with everything else already there. */
typedef double growth_cost(const entrant *on);

static double life_cost(const entrant *on) {
    return 1e6 / life_run(on, 16, scaled(5000, 100, 50)).rate;
}

static double flow_cost(const entrant *on) {
    shape line = shape_line(10);
    double rate = flow_run(on, &line, 16, scaled(200, 5, 3));
    shape_free(&line);
    return 1e6 / rate;
}

static double unblock_cost(const entrant *on) {
    size_t count = scaled(20000, 300, 200);
    return blocked_run(on, blocked_method_of(&on->who), count).seconds * 1e6 / (double)count;
}

static const struct {
    const char *title, *file;
    growth_cost *cost;
} growths[] = {
    {"µs per life", "growth-life", life_cost},
    {"µs per ten-node flow", "growth-flow", flow_cost},
    {"µs per unblocked execution", "growth-unblock", unblock_cost},
};

static bool memory_suffices(size_t executions, size_t servers) {
    char line[200];
    double available = 0;
    FILE *file = fopen("/proc/meminfo", "r");
    while (file && fgets(line, sizeof line, file)) {
        if (strncmp(line, "MemAvailable:", 13) == 0) available = strtod(line + 13, NULL) * 1024;
    }
    if (file) fclose(file);
    return (double)executions * 3500 * (double)servers < available * 0.8;
}

static void measure_growth(const field *all, size_t which, const size_t *sizes, size_t size_count) {
    static report_line lines[CONTESTANTS];
    double points[REPORT_POINTS];
    memset(lines, 0, sizeof lines);
    for (size_t i = 0; i < all->count; i++) lines[i].label = all->entrants[i].who.name;
    for (size_t s = 0; s < size_count; s++) {
        points[s] = (double)sizes[s];
        size_t rounds = sizes[s] > 100000 ? 1 : scaled(3, 1, 1);
        for (size_t i = 0; i < all->count * rounds; i++) {
            const entrant *on = &all->entrants[i % all->count];
            load_server_empty(on->server);
            ballast_load(on, sizes[s], 1, false);
            series_add(&lines[i % all->count].figures[s], growths[which].cost(on));
        }
    }
    report_header(growths[which].title, "executions present", "cost", "times the first");
    for (size_t i = 0; i < all->count; i++) {
        for (size_t s = 0; s < size_count; s++) {
            char present[32];
            snprintf(present, sizeof present, "%zu", sizes[s]);
            double first = series_median(&lines[i].figures[0]);
            report_row(lines[i].label, present, series_text(&lines[i].figures[s]),
                       number_text(series_median(&lines[i].figures[s]) / first));
        }
    }
    report_table_end();
    report_lines(growths[which].file, growths[which].title, "executions present", points,
                 size_count, lines, all->count);
}

void scenario_growth(void) {
    static const size_t sizes[] = {1000, 10000, 100000, 1000000};
    size_t size_count = scaled(4, 2, 1);
    report_heading("10. Growth");
    report_text(
        "The same work with more and more executions present, waiting in a lane of their own "
        "in all partitions. Cost per operation, 16 connections; unblocking is by FF.UNBLOCK "
        "or from outside.");
    field all;
    field_start(&all, false, growth_wanted);
    while (size_count > 1 && !memory_suffices(sizes[size_count - 1], all.count)) {
        report_text("%zu executions are not measured: not enough memory.", sizes[--size_count]);
    }
    for (size_t g = 0; g < sizeof growths / sizeof growths[0]; g++) {
        measure_growth(&all, g, sizes, size_count);
    }
    field_stop(&all);
}
