#include "life.h"

#include "bench.h"
#include "chart.h"
#include "report.h"

#include <stdio.h>
#include <string.h>

#define LANE "work"
#define FULL_JOBS scaled(10000, 500, 50)
/* Those that are driven the wire way are many times slower. */
#define WIRE_JOBS scaled(500, 100, 50)
#define FAR_WIRE_JOBS scaled(100, 50, 20)

typedef struct run {
    worker *workers;
    size_t jobs, submitted;
    tally done;
    samples claims;
    int64_t last_us; /* when the last thing that counts was done */
} run;

static void complete_one(run *self, size_t index) {
    tally_add(&self->done, index);
    self->last_us = load_now_us();
}

static void submit_task(size_t number, void *argument) {
    run *self = argument;
    worker *mine = &self->workers[number];
    while (self->submitted < self->jobs) {
        size_t index = self->submitted++;
        mine->who->driver->submit(mine, index, NULL);
        self->last_us = load_now_us();
    }
}

static bool timed_claim(run *self, worker *mine, job *taken) {
    int64_t start = load_now_us();
    bool found = mine->who->driver->claim(mine, taken, 0);
    if (found) samples_add(&self->claims, (double)(load_now_us() - start));
    return found;
}

static void drain_task(size_t number, void *argument) {
    run *self = argument;
    worker *mine = &self->workers[number];
    job held;
    while (self->done.done < self->jobs) {
        if (!timed_claim(self, mine, &held)) continue;
        mine->who->driver->complete(mine, &held);
        complete_one(self, held.index);
    }
}

/* The next job comes with the reply to the completion of the one before. */
static void chained_drain_task(size_t number, void *argument) {
    run *self = argument;
    worker *mine = &self->workers[number];
    job held, next;
    while (self->done.done < self->jobs) {
        if (!timed_claim(self, mine, &held)) continue;
        for (bool more = true; more; held = next) {
            more = mine->who->driver->complete_and_claim(mine, &held, &next);
            complete_one(self, held.index);
        }
    }
}

static double seconds_of(size_t connections, load_task *task, run *self) {
    int64_t start = load_now_us();
    load_parallel(connections, task, self);
    return (double)(self->last_us - start) / 1e6;
}

/* How many jobs have ended by what the server says; 0 where it cannot tell. */
static int64_t count_ended(worker *asking) {
    const driver *how = asking->who->driver;
    return how->count_ended ? how->count_ended(asking) : 0;
}

static void verify_server(worker *asking, int64_t ended_before, size_t jobs) {
    if (!asking->who->driver->count_ended) return;
    int64_t ended = count_ended(asking) - ended_before;
    load_check(ended == (int64_t)jobs, "%s: the server says that %lld of %zu jobs ended",
               asking->who->name, (long long)ended, jobs);
}

static life_figures figures_of(size_t jobs, double submit, double drain) {
    return (life_figures){.rate = (double)jobs / (submit + drain),
                          .submit_rate = (double)jobs / submit,
                          .drain_rate = (double)jobs / drain};
}

static life_figures run_bullmq(const entrant *on, size_t connections, size_t jobs) {
    char numbers[64];
    double submit, drain;
    snprintf(numbers, sizeof numbers, "%zu %zu", jobs, connections);
    bullmq_run(on, &submit, 1, "submit", numbers);
    bullmq_run(on, &drain, 1, "drain", numbers);
    return figures_of(jobs, submit, drain);
}

life_figures life_run(const entrant *on, size_t connections, size_t jobs) {
    if (is_bullmq(&on->who)) return run_bullmq(on, connections, jobs);
    run self = {.workers = workers_open(&on->who, on->server, connections, LANE), .jobs = jobs};
    wire_new_run();
    tally_start(&self.done, jobs);
    int64_t ended_before = count_ended(self.workers);
    double cpu = load_server_cpu_us(on->server);
    double submit = seconds_of(connections, submit_task, &self);
    double drain =
        seconds_of(connections, on->who.chained ? chained_drain_task : drain_task, &self);
    life_figures figures = figures_of(jobs, submit, drain);
    figures.cpu_us = (load_server_cpu_us(on->server) - cpu) / (double)jobs;
    figures.claim_p50_us = samples_percentile(&self.claims, 0.5);
    figures.claim_p99_us = samples_percentile(&self.claims, 0.99);
    tally_end(&self.done, on->who.name);
    verify_server(self.workers, ended_before, jobs);
    samples_clear(&self.claims);
    workers_close(self.workers, connections);
    return figures;
}

typedef struct life_columns {
    field_figures rate, submit, drain, cpu, p50, p99;
} life_columns;

static void run_round(const field *all, life_columns *columns, size_t connections,
                      size_t wire_jobs) {
    for (size_t i = 0; i < all->count; i++) {
        const entrant *each = &all->entrants[i];
        load_server_empty(each->server);
        size_t jobs = contestant_is_wire(&each->who) ? wire_jobs : FULL_JOBS;
        life_figures figures = life_run(each, connections, jobs);
        series_add(&columns->rate.of[i], figures.rate);
        series_add(&columns->submit.of[i], figures.submit_rate);
        series_add(&columns->drain.of[i], figures.drain_rate);
        if (figures.cpu_us > 0) series_add(&columns->cpu.of[i], figures.cpu_us);
        if (figures.claim_p50_us > 0) series_add(&columns->p50.of[i], figures.claim_p50_us);
        if (figures.claim_p99_us > 0) series_add(&columns->p99.of[i], figures.claim_p99_us);
    }
}

static void tell(const field *all, const life_columns *columns) {
    report_header("", field_gain_title(all), "lives/s", "submitted/s", "drained/s",
                  "server CPU, µs per life", "a claim that finds, p50 µs", "p99 µs");
    for (size_t i = 0; i < all->count; i++) {
        report_row(all->entrants[i].who.name,
                   field_gain_text(all, &columns->rate, i, MORE_IS_BETTER),
                   series_text(&columns->rate.of[i]), series_text(&columns->submit.of[i]),
                   series_text(&columns->drain.of[i]), series_text(&columns->cpu.of[i]),
                   series_text(&columns->p50.of[i]), series_text(&columns->p99.of[i]));
    }
    report_table_end();
}

static void run_at(const field *all, life_columns *columns, size_t connections, size_t wire_jobs) {
    for (size_t round = 0; round < scaled(3, 2, 1); round++) {
        run_round(all, columns, connections, wire_jobs);
    }
}

/* Two of the figures that were asked for are about draining. */
static void note_claim_goal(const field *all, const field_figures *drain) {
    size_t native = field_named(all, "native"), base = field_base(all);
    char text[120];
    if (native == all->count || base == native) return;
    series gain = series_ratio(&drain->of[native], &drain->of[base]);
    snprintf(text, sizeof text, "%s times %s, which rests %d ms (see 1d)", series_text(&gain),
             all->entrants[base].who.name, CONTESTANT_REST_MS);
    report_goal("FF.CLAIM and FF.COMPLETE against the wire way, 16 connections (1)",
                "at least 10 times", text, series_median(&gain) >= 10);
}

static void note_chain_goal(const field *all, const field_figures *drain, const char *what) {
    size_t native = field_named(all, "native");
    size_t chained = field_named(all, "native, COMPLETE … CLAIM");
    char text[120];
    if (native == all->count || chained == all->count) return;
    series gain = series_ratio(&drain->of[chained], &drain->of[native]);
    snprintf(text, sizeof text, "%s times", series_text(&gain));
    report_goal(what, "at least 1.6 times", text, series_median(&gain) >= 1.6);
}

static void introduce_jobs(void) {
    report_text(
        "%zu jobs (%zu for those that are driven the wire way, which are many times slower) are "
        "submitted and then drained. One request is in flight on each connection; nothing is "
        "pipelined but the two plain commands of a bare submission. Each job was handed "
        "out and completed exactly once. Wire jobs are where the reference puts them, all of a "
        "lane in one partition of 256, which a claim has to find; *spread* ones are in all "
        "partitions evenly, which is the kindest that can be done to a search. With few "
        "connections the rotation of the claim cycle decides: each worker sees that one partition "
        "for 250 ms in every 2 s.",
        FULL_JOBS, WIRE_JOBS);
}

void scenario_life(void) {
    static const size_t full[] = {1, 4, 16, 64}, quick[] = {1, 16, 64};
    const size_t *all_connections = settings.scale == SCALE_FULL ? full : quick;
    size_t point_count = scaled(4, 3, 3), of_16 = scaled(2, 1, 1);
    static life_columns columns[4];
    static chart_line lines[CONTESTANTS];
    double points[4];
    report_heading("1. Submit → claim → complete");
    introduce_jobs();
    field all;
    field_start(&all, false, NULL);
    for (size_t i = 0; i < all.count; i++) lines[i].label = all.entrants[i].who.name;
    for (size_t c = 0; c < point_count; c++) {
        points[c] = (double)all_connections[c];
        run_at(&all, &columns[c], all_connections[c], WIRE_JOBS);
        report_text("%zu connection%s:", all_connections[c], all_connections[c] == 1 ? "" : "s");
        tell(&all, &columns[c]);
        for (size_t i = 0; i < all.count; i++) lines[i].figures[c] = columns[c].rate.of[i];
    }
    chart_lines("life", "Lives per second", "connections", points, point_count, lines, all.count);
    field_chart(&all, "life-cpu", "Server CPU per life, µs, 16 connections", &columns[of_16].cpu,
                LESS_IS_BETTER);
    note_claim_goal(&all, &columns[of_16].drain);
    note_chain_goal(&all, &columns[0].drain,
                    "FF.COMPLETE … CLAIM against two calls, 1 connection (1)");
    note_chain_goal(&all, &columns[of_16].drain,
                    "FF.COMPLETE … CLAIM against two calls, 16 connections (1)");
    field_stop(&all);
}

static void compare_at(size_t connections, const field *all, life_columns *columns,
                       size_t wire_jobs) {
    run_at(all, columns, connections, wire_jobs);
    report_text("%zu jobs (the wire way: %zu), %zu connection%s:", FULL_JOBS, wire_jobs,
                connections, connections == 1 ? "" : "s");
    tell(all, columns);
}

static void compare_at_16(const char *heading, bool durable, field_filter *wanted, const char *file,
                          const char *title) {
    life_columns columns = {0};
    field all;
    report_heading(heading);
    field_start(&all, durable, wanted);
    compare_at(16, &all, &columns, WIRE_JOBS);
    field_chart(&all, file, title, &columns.rate, MORE_IS_BETTER);
    field_stop(&all);
}

void scenario_life_durable(void) {
    compare_at_16("1b. The same with an append only file (everysec) and a replica", true, NULL,
                  "life-durable", "Lives per second with AOF and replica, 16 connections");
}

void scenario_life_at_16(void) {
    compare_at_16("Submit → claim → complete", false, NULL, "life-16",
                  "Lives per second, 16 connections");
}

/* Without anybody to compare with, the first is the base: separate calls. */
void scenario_chain(void) {
    life_columns of_one = {0}, of_many = {0};
    field all;
    report_heading("FF.COMPLETE … CLAIM against separate calls");
    field_start(&all, false, contestant_is_native);
    compare_at(1, &all, &of_one, WIRE_JOBS);
    compare_at(16, &all, &of_many, WIRE_JOBS);
    field_stop(&all);
}

/* ---- how much the network matters ---- */

enum { DISTANCE_US = 500 };

static bool is_measured_far(const contestant *who) {
    return contestant_is_native(who) || (contestant_is_wire(who) && !contestant_is_variant(who));
}

void scenario_distance(void) {
    static const size_t connections[] = {1, 16};
    field all;
    report_heading("1e. At a distance");
    report_text("On one machine a round trip is nearly free, and so is what saves one. Scenario 1 "
                "once more, with clients that are %d µs away: each reply reaches them that much "
                "later, as between machines of one data centre.",
                DISTANCE_US);
    field_start(&all, false, is_measured_far);
    for (size_t i = 0; i < all.count; i++) all.entrants[i].who.distance_us = DISTANCE_US;
    for (size_t c = 0; c < sizeof connections / sizeof connections[0]; c++) {
        life_columns columns = {0};
        char goal[100];
        compare_at(connections[c], &all, &columns, FAR_WIRE_JOBS);
        snprintf(goal, sizeof goal,
                 "FF.COMPLETE … CLAIM against two calls, %zu connection%s, %d µs away (1e)",
                 connections[c], connections[c] == 1 ? "" : "s", DISTANCE_US);
        note_chain_goal(&all, &columns.drain, goal);
    }
    field_stop(&all);
}

/* ---- how much the wire workers' rest matters ---- */

enum { RESTS = 3 };

static const int rests_ms[RESTS] = {0, CONTESTANT_REST_MS, 100};

static bool rest_wanted(const contestant *who) {
    return (contestant_is_native(who) && !who->chained) || strcmp(who->name, "FF.CALL") == 0;
}

static void tell_rests(const field *all, const field_figures *rates) {
    report_header("rest", "native, times as fast as FF.CALL", "native, lives/s",
                  "FF.CALL, lives/s");
    for (size_t r = 0; r < RESTS; r++) {
        char title[24];
        snprintf(title, sizeof title, "%d ms", rests_ms[r]);
        report_row(title, field_gain_text(all, &rates[r], 0, MORE_IS_BETTER),
                   series_text(&rates[r].of[0]), series_text(&rates[r].of[1]));
    }
    report_table_end();
}

void scenario_rest(void) {
    field_figures rates[RESTS] = {0};
    report_heading("1d. How much the rest of the wire workers matters");
    report_text(
        "How long a worker of the reference rests after a cycle that found nothing is not known "
        "here, and the wire way depends on it: workers that do not rest keep the server busy with "
        "looking. Scenario 1 with 16 connections and other rests than the %d ms of all other "
        "sections:",
        CONTESTANT_REST_MS);
    field all;
    field_start(&all, false, rest_wanted);
    for (size_t i = 0; i < scaled(3, 2, 1) * RESTS * all.count; i++) {
        size_t rest = i / all.count % RESTS;
        entrant *each = &all.entrants[i % all.count];
        each->who.rest_ms = rests_ms[rest];
        load_server_empty(each->server);
        size_t jobs = contestant_is_wire(&each->who) ? WIRE_JOBS : FULL_JOBS;
        series_add(&rates[rest].of[i % all.count], life_run(each, 16, jobs).rate);
    }
    if (all.count == 2) tell_rests(&all, rates);
    field_stop(&all);
}
