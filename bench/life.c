#include "life.h"

#include "bench.h"
#include "report.h"

#include <stdio.h>

#define LANE "work"

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

static void verify_server(worker *asking, size_t jobs) {
    if (!asking->who->driver->count_ended) return;
    int64_t ended = asking->who->driver->count_ended(asking);
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
    tally_start(&self.done, jobs);
    double cpu = load_server_cpu_us(on->server);
    double submit = seconds_of(connections, submit_task, &self);
    double drain =
        seconds_of(connections, on->who.chained ? chained_drain_task : drain_task, &self);
    life_figures figures = figures_of(jobs, submit, drain);
    figures.cpu_us = (load_server_cpu_us(on->server) - cpu) / (double)jobs;
    figures.claim_p50_us = samples_percentile(&self.claims, 0.5);
    figures.claim_p99_us = samples_percentile(&self.claims, 0.99);
    tally_end(&self.done, on->who.name);
    verify_server(&self.workers[0], jobs);
    samples_clear(&self.claims);
    workers_close(self.workers, connections);
    return figures;
}

typedef struct life_columns {
    field_figures rate, submit, drain, cpu, p50, p99;
} life_columns;

static void run_round(const field *all, life_columns *columns, size_t connections, size_t jobs) {
    for (size_t i = 0; i < all->count; i++) {
        const entrant *each = &all->entrants[i];
        load_server_empty(each->server);
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
    report_header("", "lives/s", "times the base", "submitted/s", "drained/s",
                  "server CPU µs per life", "claim p50 µs", "claim p99 µs");
    for (size_t i = 0; i < all->count; i++) {
        report_row(all->entrants[i].who.name, series_text(&columns->rate.of[i]),
                   field_ratio(all, &columns->rate, i), series_text(&columns->submit.of[i]),
                   series_text(&columns->drain.of[i]), series_text(&columns->cpu.of[i]),
                   series_text(&columns->p50.of[i]), series_text(&columns->p99.of[i]));
    }
    report_table_end();
}

static size_t rounds(void) { return scaled(3, 2, 1); }

static void run_at(const field *all, life_columns *columns, size_t connections, size_t jobs) {
    for (size_t round = 0; round < rounds(); round++) run_round(all, columns, connections, jobs);
}

void scenario_life(void) {
    static const size_t full[] = {1, 4, 16, 64}, quick[] = {1, 16, 64};
    const size_t *all_connections = settings.scale == SCALE_FULL ? full : quick;
    size_t point_count = scaled(4, 3, 3), of_16 = scaled(2, 1, 1);
    static life_columns columns[4];
    size_t jobs = scaled(10000, 200, 50);
    double points[4];
    report_heading("1. Submit → claim → complete");
    report_text(
        "%zu jobs are submitted and then drained by 1 to 64 connections, one request in "
        "flight on each. Nothing is pipelined but the two plain commands of a bare "
        "submission. Each job was completed exactly once. Wire jobs are where the reference "
        "puts them, all of a lane in one partition of 256, which a claim has to find; spread "
        "ones are in all partitions evenly, which is the kindest that can be done to a "
        "search.",
        jobs);
    field all;
    field_start(&all, false, NULL);
    report_line lines[CONTESTANTS];
    for (size_t i = 0; i < all.count; i++) lines[i].label = all.entrants[i].who.name;
    for (size_t c = 0; c < point_count; c++) {
        points[c] = (double)all_connections[c];
        run_at(&all, &columns[c], all_connections[c], jobs);
        report_text("%zu connections; the base is %s:", all_connections[c],
                    all.entrants[field_base(&all)].who.name);
        tell(&all, &columns[c]);
        for (size_t i = 0; i < all.count; i++) lines[i].figures[c] = columns[c].rate.of[i];
    }
    report_lines("life", "Lives per second", "connections", points, point_count, lines, all.count);
    field_chart(&all, "life-cpu", "Server CPU per life, µs, 16 connections", &columns[of_16].cpu);
    field_stop(&all);
}

static void compare_at_16(const char *heading, bool durable, field_filter *wanted,
                          const char *file) {
    life_columns columns = {0};
    size_t jobs = scaled(10000, 200, 50);
    field all;
    report_heading(heading);
    field_start(&all, durable, wanted);
    run_at(&all, &columns, 16, jobs);
    report_text("%zu jobs, 16 connections; the base is %s:", jobs,
                all.entrants[field_base(&all)].who.name);
    tell(&all, &columns);
    field_chart(&all, file, heading, &columns.rate);
    field_stop(&all);
}

void scenario_life_durable(void) {
    compare_at_16("1b. Lives per second with an append only file (everysec) and a replica", true,
                  NULL, "life-durable");
}

void scenario_life_at_16(void) {
    compare_at_16("Submit → claim → complete", false, NULL, "life-16");
}

/* Without anybody to compare with, the first is the base: separate calls. */
void scenario_chain(void) {
    compare_at_16("FF.COMPLETE … CLAIM against separate calls", false, contestant_is_native,
                  "life-chain");
}
