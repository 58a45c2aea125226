/* Scenarios that measure waiting: steady arrivals at a hundred workers, a suspension that a signal
 * ends, and a worker that waits on an empty queue. */
#include "scenarios.h"

#include "bench.h"
#include "field.h"
#include "report.h"
#include "suspension.h"

#include <stdio.h>
#include <string.h>

#define LANE "work"

/* ---- steady state ---- */

enum { STEADY_WORKERS = 100, STEADY_PRODUCERS = 4 };

typedef struct steady_run {
    worker *workers; /* producers come first */
    size_t jobs, rate, submitted;
    int64_t start_us;
    tally done;
    samples latency_ms;
} steady_run;

static int64_t due_us(const steady_run *self, size_t index) {
    return self->start_us + (int64_t)((double)index / (double)self->rate * 1e6);
}

static void produce(steady_run *self, worker *mine) {
    while (self->submitted < self->jobs) {
        size_t index = self->submitted++;
        load_sleep_until(due_us(self, index));
        mine->who->driver->submit(mine, index, NULL);
    }
}

/* Latency counts from when the job was due to arrive, so that falling behind shows. */
static void consume(steady_run *self, worker *mine) {
    job held;
    while (self->done.done < self->jobs) {
        if (!mine->who->driver->claim(mine, &held, 200)) continue;
        mine->who->driver->complete(mine, &held);
        tally_add(&self->done, held.index);
        samples_add(&self->latency_ms, (double)(load_now_us() - due_us(self, held.index)) / 1e3);
    }
}

static void steady_task(size_t number, void *argument) {
    steady_run *self = argument;
    worker *mine = &self->workers[number];
    if (number < STEADY_PRODUCERS) {
        produce(self, mine);
    } else {
        consume(self, mine);
    }
}

typedef struct steady_figures {
    series p50, p95, p99, greatest, cpu;
} steady_figures;

static void add_percentiles(steady_figures *figures, double p50, double p95, double p99,
                            double greatest) {
    series_add(&figures->p50, p50);
    series_add(&figures->p95, p95);
    series_add(&figures->p99, p99);
    series_add(&figures->greatest, greatest);
}

static void steady_bullmq(const entrant *on, steady_figures *figures, size_t rate, size_t seconds) {
    char numbers[64];
    double results[5];
    snprintf(numbers, sizeof numbers, "%zu %d %zu", rate, STEADY_WORKERS, seconds);
    bullmq_run(on, results, 5, "steady", numbers);
    add_percentiles(figures, results[1], results[2], results[3], results[4]);
}

static void steady_one(const entrant *on, steady_figures *figures, size_t rate, size_t seconds) {
    size_t count = STEADY_PRODUCERS + STEADY_WORKERS;
    steady_run self = {.workers = workers_open(&on->who, on->server, count, LANE),
                       .jobs = rate * seconds,
                       .rate = rate,
                       .start_us = load_now_us() + 50000};
    wire_new_run();
    tally_start(&self.done, self.jobs);
    load_parallel(count, steady_task, &self);
    tally_end(&self.done, on->who.name);
    samples *all = &self.latency_ms;
    add_percentiles(figures, samples_percentile(all, 0.5), samples_percentile(all, 0.95),
                    samples_percentile(all, 0.99), samples_percentile(all, 1));
    samples_clear(all);
    workers_close(self.workers, count);
}

static size_t steady_seconds(const contestant *who) {
    return contestant_is_variant(who) ? scaled(20, 1, 1) : scaled(60, 2, 1);
}

static void tell_steady(const field *all, const steady_figures *figures) {
    field_figures p99 = {0};
    for (size_t i = 0; i < all->count; i++) p99.of[i] = figures[i].p99;
    report_header("", field_gain_title(all), "p50, ms", "p95, ms", "p99, ms", "worst, ms",
                  "server CPU, %", "measured for, s");
    for (size_t i = 0; i < all->count; i++) {
        const contestant *who = &all->entrants[i].who;
        report_row(who->name, field_gain_text(all, &p99, i, LESS_IS_BETTER),
                   series_text(&figures[i].p50), series_text(&figures[i].p95),
                   series_text(&figures[i].p99), series_text(&figures[i].greatest),
                   series_text(&figures[i].cpu), number_text((double)steady_seconds(who)));
    }
    report_table_end();
    field_chart(all, "steady", "Steady state: p99 from arrival to completion, ms", &p99,
                LESS_IS_BETTER);
}

void scenario_steady(void) {
    size_t rate = scaled(100, 100, 50);
    static steady_figures figures[CONTESTANTS];
    report_heading("3. Steady state: arrivals and a hundred workers");
    report_text(
        "%zu jobs arrive each second; %d workers wait for them. Native workers block in "
        "FF.CLAIM, bare ones in BZPOPMIN, BullMQ waits as it does; wire workers run one claim "
        "cycle after the other, and rest %d ms after one that found nothing. Milliseconds from "
        "when a job was due to arrive to when its completion was answered. The rate is what the "
        "slowest can serve; server CPU is in per cent of one core. The first column compares p99.",
        rate, STEADY_WORKERS, CONTESTANT_REST_MS);
    field all;
    field_start(&all, false, contestant_is_plain);
    for (size_t i = 0; i < all.count; i++) {
        const entrant *each = &all.entrants[i];
        load_server_empty(each->server);
        double cpu = load_server_cpu_us(each->server);
        int64_t start = load_now_us();
        if (is_bullmq(&each->who)) {
            steady_bullmq(each, &figures[i], rate, steady_seconds(&each->who));
        } else {
            steady_one(each, &figures[i], rate, steady_seconds(&each->who));
        }
        double used = load_server_cpu_us(each->server) - cpu;
        series_add(&figures[i].cpu, used / (double)(load_now_us() - start) * 100);
    }
    tell_steady(&all, figures);
    field_stop(&all);
}

/* ---- suspend → signal → resume ---- */

enum { PAUSE_WORKERS = 16 };

/* One job at a time: somebody claims and suspends it, a signal resumes it, somebody claims it
 * again. */
typedef struct pause_run {
    worker *workers; /* the last one submits and signals */
    size_t count, done;
    enum { PAUSE_SUBMITTED, PAUSE_SUSPENDED, PAUSE_SIGNALLED, PAUSE_ENDED } phase;
    job held;
    waitpoint at;
    int64_t signalled_us;
    samples latency_us;
} pause_run;

static void pause_enter(pause_run *self, int phase) {
    self->phase = phase;
    load_notify();
}

static void pause_worker(pause_run *self, worker *mine) {
    job taken;
    while (self->done < self->count) {
        if (!mine->who->driver->claim(mine, &taken, 50)) continue;
        load_check(taken.index == self->done, "another job was expected");
        if (self->phase == PAUSE_SUBMITTED) {
            suspension_begin(mine, &taken, &self->at);
            self->held = taken;
            pause_enter(self, PAUSE_SUSPENDED);
            continue;
        }
        load_check(self->phase == PAUSE_SIGNALLED, "a suspended job was handed out");
        samples_add(&self->latency_us, (double)(load_now_us() - self->signalled_us));
        mine->who->driver->complete(mine, &taken);
        self->done++;
        pause_enter(self, PAUSE_ENDED);
    }
}

static void pause_signaller(pause_run *self, worker *mine) {
    for (size_t i = 0; i < self->count; i++) {
        self->phase = PAUSE_SUBMITTED;
        mine->who->driver->submit(mine, i, NULL);
        while (self->phase != PAUSE_SUSPENDED) load_wait_until(INT64_MAX);
        load_sleep_until(load_now_us() + 2000 + (int64_t)(i * 7919 % 20000));
        self->signalled_us = load_now_us();
        self->phase = PAUSE_SIGNALLED;
        suspension_signal(mine, &self->held, &self->at);
        while (self->phase != PAUSE_ENDED) load_wait_until(INT64_MAX);
    }
}

static void pause_task(size_t number, void *argument) {
    pause_run *self = argument;
    worker *mine = &self->workers[number];
    if (number < PAUSE_WORKERS) {
        pause_worker(self, mine);
    } else {
        pause_signaller(self, mine);
    }
}

static void pause_one(const entrant *on, field_figures *p50, field_figures *p99, size_t number,
                      size_t count) {
    load_server_empty(on->server);
    suspension_prepare(on);
    wire_new_run();
    pause_run self = {.workers = workers_open(&on->who, on->server, PAUSE_WORKERS + 1, LANE),
                      .count = count};
    load_parallel(PAUSE_WORKERS + 1, pause_task, &self);
    series_add(&p50->of[number], samples_percentile(&self.latency_us, 0.5));
    series_add(&p99->of[number], samples_percentile(&self.latency_us, 0.99));
    load_check(on->who.driver->count_ended(self.workers) == (int64_t)count,
               "%s: not all jobs ended", on->who.name);
    samples_clear(&self.latency_us);
    workers_close(self.workers, PAUSE_WORKERS + 1);
}

void scenario_pause(void) {
    static field_figures p50, p99;
    size_t rounds = scaled(3, 2, 1), count = scaled(200, 20, 10);
    report_heading("2. Suspend → signal → resume");
    report_text(
        "One of %d workers suspends its job, and all wait for work; 2 to 22 ms later a signal from "
        "another connection resumes it. Microseconds from sending the signal to holding the new "
        "lease, %zu times in each round. Native workers block in FF.CLAIM; wire workers run one "
        "claim cycle after the other, and rest %d ms after one that found nothing.",
        PAUSE_WORKERS, count, CONTESTANT_REST_MS);
    field all;
    field_start(&all, false, suspension_wanted);
    for (size_t round = 0; round < rounds; round++) {
        for (size_t i = 0; i < all.count; i++) pause_one(&all.entrants[i], &p50, &p99, i, count);
    }
    report_header("", field_gain_title(&all), "p50, µs", "p99, µs", "p99, times as fast");
    for (size_t i = 0; i < all.count; i++) {
        report_row(all.entrants[i].who.name, field_gain_text(&all, &p50, i, LESS_IS_BETTER),
                   series_text(&p50.of[i]), series_text(&p99.of[i]),
                   field_gain_text(&all, &p99, i, LESS_IS_BETTER));
    }
    report_table_end();
    field_chart(&all, "pause", "Signal to resumed lease, median µs", &p50, LESS_IS_BETTER);
    field_stop(&all);
}

/* ---- the wake-up of a waiting claimer, and the cost of finding nothing ---- */

typedef struct wake_run {
    worker *workers; /* 0 waits, 1 submits */
    size_t count;
    bool taken;
    int64_t submitted_us;
    samples latency_us;
} wake_run;

static void wake_task(size_t number, void *argument) {
    wake_run *self = argument;
    worker *mine = &self->workers[number];
    for (size_t i = 0; i < self->count; i++) {
        if (number == 1) {
            load_sleep_until(load_now_us() + 2000);
            self->submitted_us = load_now_us();
            mine->who->driver->submit(mine, i, NULL);
            while (!self->taken) load_wait_until(INT64_MAX);
            self->taken = false;
            continue;
        }
        job held;
        load_check(mine->who->driver->claim(mine, &held, 10000), "the claimer was not woken");
        samples_add(&self->latency_us, (double)(load_now_us() - self->submitted_us));
        mine->who->driver->complete(mine, &held);
        self->taken = true;
        load_notify();
    }
}

static bool native_only(const contestant *who) {
    return contestant_is_native(who) && !who->chained;
}

static void tell_wake(samples *latency_us, double empty_us) {
    double p50 = samples_percentile(latency_us, 0.5), p99 = samples_percentile(latency_us, 0.99);
    char text[80];
    report_header("", "p50", "p99");
    report_row("create → reply of the blocked claim, µs", number_text(p50), number_text(p99));
    report_row("a claim on an empty node, µs of server time", number_text(empty_us), "–");
    report_table_end();
    snprintf(text, sizeof text, "p50 %s, p99 %s µs", number_text(p50), number_text(p99));
    report_goal("Waking a blocked claimer, create to reply (1c)", "median below 1 ms", text,
                p50 < 1000);
    snprintf(text, sizeof text, "%s µs", number_text(empty_us));
    report_goal("A claim that finds nothing, server time (1c)", "below 5 µs", text, empty_us < 5);
}

void scenario_wake(void) {
    size_t count = scaled(2000, 200, 20);
    report_heading("1c. A claimer that waits, and a claim that finds nothing");
    field all;
    field_start(&all, false, native_only);
    if (all.count == 0) {
        report_text("Not measured: %s", contestants_absent());
        return;
    }
    report_text("%zu times one job is created while one claimer waits in FF.CLAIM … BLOCK; and %zu "
                "claims, by INFO commandstats, on a server without executions.",
                count, count);
    const entrant *each = &all.entrants[0];
    load_server_empty(each->server);
    wake_run self = {.workers = workers_open(&each->who, each->server, 2, LANE), .count = count};
    job none;
    load_server_reset_usage(each->server);
    for (size_t i = 0; i < count; i++) {
        load_check(!each->who.driver->claim(self.workers, &none, 0), "there was something");
    }
    load_usage usage = load_server_usage(each->server, "ff.claim");
    load_parallel(2, wake_task, &self);
    tell_wake(&self.latency_us, usage.usec / usage.calls);
    samples_clear(&self.latency_us);
    workers_close(self.workers, 2);
    field_stop(&all);
}
