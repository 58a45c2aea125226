/* Scenarios about what is merely there: idle servers, memory, and growth. */
#include "scenarios.h"

#include "ballast.h"
#include "bench.h"
#include "blocked.h"
#include "chart.h"
#include "flow.h"
#include "life.h"
#include "report.h"
#include "suspension.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- idle ---- */

enum { IDLE_SERVERS = 4 };

/* A server that nobody asks for anything, and what makes it different from the others. */
typedef struct idle_server {
    char name[80];
    load_server_options options;
    size_t executions, waiters;
    entrant on;
    worker *waiting;
    double cpu_before_us;
} idle_server;

static void idle_prepare(idle_server *self) {
    self->on = (entrant){.who = {.name = "idle", .options = self->options},
                         .server = load_server_start(&self->options)};
    if (self->executions) ballast_load(&self->on, self->executions, 10, BALLAST_COMPLETED);
    self->waiting = workers_open(&self->on.who, self->on.server, self->waiters, "idle");
    for (size_t i = 0; i < self->waiters; i++) {
        load_request *r = &self->waiting[i].request;
        request_start(r, "FF.CLAIM");
        request_add(r, "idle"), request_add(r, "w"), request_add(r, self->waiting[i].instance);
        request_add(r, "BLOCK"), request_add(r, "0");
        load_send(self->waiting[i].connection, r);
        load_flush(self->waiting[i].connection);
    }
}

static void idle_release(idle_server *self) {
    workers_close(self->waiting, self->waiters);
    load_server_stop(self->on.server);
}

/* All of them at the same time: what does nothing disturbs nobody. Per cent of a core, over a while
 * in which each scanner has its turn. */
static void idle_measure(idle_server *servers, size_t count, size_t seconds, double *percent) {
    int64_t start = load_now_us();
    for (size_t i = 0; i < count; i++) {
        servers[i].cpu_before_us = load_server_cpu_us(servers[i].on.server);
    }
    sleep((unsigned)seconds);
    double elapsed = (double)(load_now_us() - start);
    for (size_t i = 0; i < count; i++) {
        double used = load_server_cpu_us(servers[i].on.server) - servers[i].cpu_before_us;
        percent[i] = used / elapsed * 100;
    }
}

static idle_server idle_servers[IDLE_SERVERS] = {
    {.name = "a server without the module, empty"},
    {.name = "the module, scanners off", .options = {.with_module = true}},
    {.name = "the module, all scanners on",
     .options = {.with_module = true, .config = "ff.scanners yes"}},
    {.options = {.with_module = true, .config = "ff.scanners yes"}},
};

static void tell_idle(const double *percent, size_t count) {
    char text[40];
    report_header("", "% of a core");
    for (size_t i = 0; i < count; i++) report_row(idle_servers[i].name, number_text(percent[i]));
    report_table_end();
    snprintf(text, sizeof text, "%s %%", number_text(percent[2]));
    report_goal("An idle server with all scanners on (8)", "at most 1 % of a core", text,
                percent[2] <= 1);
}

void scenario_idle(void) {
    size_t executions = scaled(100000, 1000, 500), waiters = scaled(1000, 100, 10);
    size_t seconds = scaled(90, 2, 1);
    double percent[IDLE_SERVERS];
    contestant present[CONTESTANTS];
    contestants_present(present);
    size_t count = contestant_is_native(&present[0]) ? IDLE_SERVERS : IDLE_SERVERS - 1;
    idle_server *last = &idle_servers[IDLE_SERVERS - 1];
    snprintf(last->name, sizeof last->name, "all scanners on, %zu claimers waiting", waiters);
    last->waiters = waiters;
    report_heading("8. Idle");
    report_text(
        "Processor time of servers that nobody asks for anything, all at the same time, in per "
        "cent of a core, over %zu s. Those with the module hold %zu completed executions in 256 "
        "partitions and 10 lanes.",
        seconds, executions);
    for (size_t i = 0; i < count; i++) {
        if (idle_servers[i].options.with_module) idle_servers[i].executions = executions;
        idle_prepare(&idle_servers[i]);
    }
    usleep((useconds_t)scaled(2000000, 300000, 100000));
    idle_measure(idle_servers, count, seconds, percent);
    for (size_t i = 0; i < count; i++) idle_release(&idle_servers[i]);
    tell_idle(percent, count);
}

/* ---- memory ---- */

/* In the order of ballast_state. */
enum { STATES = BALLAST_COMPLETED + 1 };

typedef struct weights {
    series bytes[STATES];
} weights;

static void weigh(const entrant *on, weights *into, ballast_state state, double before,
                  size_t count) {
    double bytes = (load_server_memory(on->server) - before) / (double)count;
    series_add(&into->bytes[state], bytes);
}

static void weigh_bullmq(const entrant *on, weights *into, size_t count) {
    char numbers[64];
    double seconds, before = load_server_memory(on->server);
    snprintf(numbers, sizeof numbers, "%zu 16", count);
    bullmq_run(on, &seconds, 1, "submit", numbers);
    weigh(on, into, BALLAST_WAITING, before, count);
    bullmq_run(on, &seconds, 1, "drain", numbers);
    weigh(on, into, BALLAST_COMPLETED, before, count);
}

/* State by state; how a wire worker finds its work does not matter here. */
static void weigh_wire(const entrant *on, weights *into, size_t count) {
    for (int state = BALLAST_WAITING; state <= BALLAST_COMPLETED; state++) {
        load_server_empty(on->server);
        suspension_prepare(on);
        double before = load_server_memory(on->server);
        ballast_load(on, count, 1, (ballast_state)state);
        weigh(on, into, (ballast_state)state, before, count);
    }
}

static void submit_and_claim(worker *self, const entrant *on, weights *into, job *held,
                             size_t count, double before) {
    for (size_t i = 0; i < count; i++) self->who->driver->submit(self, i, NULL);
    if (into) weigh(on, into, BALLAST_WAITING, before, count);
    for (size_t i = 0; i < count; i++) {
        load_check(self->who->driver->claim(self, &held[i], 0), "a job is missing");
    }
    if (into) weigh(on, into, BALLAST_ACTIVE, before, count);
}

static void weigh_suspended(worker *self, const entrant *on, weights *into, job *held,
                            size_t count) {
    load_server_empty(on->server);
    suspension_prepare(on);
    double before = load_server_memory(on->server);
    submit_and_claim(self, on, NULL, held, count, before);
    for (size_t i = 0; i < count; i++) {
        waitpoint at;
        suspension_begin(self, &held[i], &at);
    }
    weigh(on, into, BALLAST_SUSPENDED, before, count);
}

static void weigh_driven(const entrant *on, weights *into, size_t count) {
    worker *self = workers_open(&on->who, on->server, 1, "work");
    job *held = calloc(count, sizeof *held);
    load_check(held != NULL, "out of memory");
    double before = load_server_memory(on->server);
    submit_and_claim(self, on, into, held, count, before);
    for (size_t i = 0; i < count; i++) self->who->driver->complete(self, &held[i]);
    weigh(on, into, BALLAST_COMPLETED, before, count);
    if (suspension_wanted(&on->who)) weigh_suspended(self, on, into, held, count);
    free(held);
    workers_close(self, 1);
}

static void weigh_one(const entrant *on, weights *into, size_t count) {
    load_server_empty(on->server);
    if (is_bullmq(&on->who)) {
        weigh_bullmq(on, into, count);
    } else if (contestant_is_wire(&on->who)) {
        weigh_wire(on, into, count);
    } else {
        weigh_driven(on, into, count);
    }
}

void scenario_weight(void) {
    size_t count = scaled(20000, 500, 100);
    static weights all_weights[CONTESTANTS];
    field_figures completed = {0};
    report_heading("9. Memory per execution");
    report_text("Bytes of used_memory for each of %zu executions in each state, the keys of the "
                "partitions' indexes included.",
                count);
    field all;
    field_start(&all, false, contestant_is_plain);
    for (size_t i = 0; i < all.count; i++) {
        weigh_one(&all.entrants[i], &all_weights[i], count);
        completed.of[i] = all_weights[i].bytes[BALLAST_COMPLETED];
    }
    char title[80];
    snprintf(title, sizeof title, "completed, times what %s takes",
             all.entrants[field_base(&all)].who.name);
    report_header("", title, "waiting", "active", "suspended", "completed");
    for (size_t i = 0; i < all.count; i++) {
        const series *bytes = all_weights[i].bytes;
        series ratio = series_ratio(&completed.of[i], &completed.of[field_base(&all)]);
        report_row(all.entrants[i].who.name, series_text(&ratio),
                   series_text(&bytes[BALLAST_WAITING]), series_text(&bytes[BALLAST_ACTIVE]),
                   series_text(&bytes[BALLAST_SUSPENDED]), series_text(&bytes[BALLAST_COMPLETED]));
    }
    report_table_end();
    field_chart(&all, "weight", "Bytes per completed execution", &completed, LESS_IS_BETTER);
    field_stop(&all);
}

/* ---- growth ---- */

enum { MOST_SIZES = 4, GROWTHS = 3 };

static bool growth_wanted(const contestant *who) {
    if (contestant_is_native(who)) return !who->chained && contestant_knows(who, "FF.FLOW|SUBMIT");
    return contestant_is_wire(who) &&
           (strcmp(who->name, "FF.CALL") == 0 || strcmp(who->name, "reference") == 0);
}

/* What a measured thing costs, in microseconds each, with everything else already there. */
typedef double growth_cost(const entrant *on);

static double life_cost(const entrant *on) {
    size_t jobs = contestant_is_wire(&on->who) ? scaled(1000, 50, 20) : scaled(5000, 100, 50);
    return 1e6 / life_run(on, 16, jobs).rate;
}

static double flow_cost(const entrant *on) {
    shape line = shape_line(10);
    double rate = flow_run(on, &line, 16, scaled(200, 10, 3)).rate;
    shape_free(&line);
    return 1e6 / rate;
}

static double unblock_cost(const entrant *on) {
    size_t count = scaled(5000, 300, 200);
    return blocked_run(on, blocked_method_of(&on->who), count).seconds * 1e6 / (double)count;
}

static const struct {
    const char *title, *file;
    growth_cost *cost;
} growths[GROWTHS] = {
    {"µs per life (1)", "growth-life", life_cost},
    {"µs per ten-node flow (4)", "growth-flow", flow_cost},
    {"µs per unblocked execution (7)", "growth-unblock", unblock_cost},
};

/* A server for each contestant and size, so that rounds go over all sizes in turn. */
typedef struct growth_field {
    field all[MOST_SIZES];
    size_t size_count;
    field_figures costs[GROWTHS][MOST_SIZES];
} growth_field;

static const size_t growth_sizes[MOST_SIZES] = {1000, 10000, 100000, 1000000};

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

static void growth_load(growth_field *self) {
    for (size_t s = 0; s < self->size_count; s++) {
        field_start(&self->all[s], false, growth_wanted);
        for (size_t i = 0; i < self->all[s].count; i++) {
            ballast_load(&self->all[s].entrants[i], growth_sizes[s], 1, BALLAST_WAITING);
        }
        report_progress("%zu executions are there", growth_sizes[s]);
    }
}

static void growth_round(growth_field *self, size_t g) {
    for (size_t s = 0; s < self->size_count; s++) {
        for (size_t i = 0; i < self->all[s].count; i++) {
            double cost = growths[g].cost(&self->all[s].entrants[i]);
            series_add(&self->costs[g][s].of[i], cost);
        }
    }
}

/* Flat means that what is there does not matter; the machine's own noise is some twenty per cent.
 */
static void note_growth(const growth_field *self, size_t g) {
    size_t last = self->size_count - 1;
    if (!contestant_is_native(&self->all[0].entrants[0].who)) return;
    series ratio = series_ratio(&self->costs[g][last].of[0], &self->costs[g][0].of[0]);
    char what[120], text[80];
    snprintf(what, sizeof what, "Native, %s, with %zu executions present against %zu (10)",
             growths[g].title, growth_sizes[last], growth_sizes[0]);
    snprintf(text, sizeof text, "%s times", series_text(&ratio));
    report_goal(what, "flat (at most 1.2 times)", text, series_median(&ratio) <= 1.2);
}

static void tell_growth(const growth_field *self, size_t g) {
    static chart_line lines[CONTESTANTS];
    double points[MOST_SIZES];
    const field *first = &self->all[0];
    memset(lines, 0, sizeof lines);
    report_header(growths[g].title, "executions present", "times the cost with the fewest", "cost");
    for (size_t i = 0; i < first->count; i++) {
        lines[i].label = first->entrants[i].who.name;
        for (size_t s = 0; s < self->size_count; s++) {
            const series *cost = &self->costs[g][s].of[i];
            series ratio = series_ratio(cost, &self->costs[g][0].of[i]);
            points[s] = (double)growth_sizes[s];
            lines[i].figures[s] = *cost;
            report_row(lines[i].label, number_text(points[s]), series_text(&ratio),
                       series_text(cost));
        }
    }
    report_table_end();
    chart_lines(growths[g].file, growths[g].title, "executions present", points, self->size_count,
                lines, first->count);
    note_growth(self, g);
}

void scenario_growth(void) {
    static growth_field self;
    self.size_count = scaled(MOST_SIZES, 2, 2);
    report_heading("10. Growth");
    report_text(
        "The same work with more and more executions present, waiting in a lane of their own in "
        "all partitions. Each size has servers of its own, so that rounds go over the sizes in "
        "turn. Cost per operation, 16 connections; unblocking is by FF.UNBLOCK or from outside.");
    while (self.size_count > 1 && !memory_suffices(growth_sizes[self.size_count - 1], 3)) {
        report_text("%zu executions are not measured: not enough memory.",
                    growth_sizes[--self.size_count]);
    }
    growth_load(&self);
    for (size_t g = 0; g < GROWTHS; g++) {
        for (size_t round = 0; round < scaled(3, 3, 1); round++) growth_round(&self, g);
        tell_growth(&self, g);
    }
    for (size_t s = 0; s < self.size_count; s++) field_stop(&self.all[s]);
}
