/* Scenarios about blocked work: claims by capability, and a budget that clears. */
#include "blocked.h"

#include "bench.h"
#include "report.h"
#include "scenarios.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LANE "work"
#define BLOCKED_LANE "blocked"
#define BUDGET "5e0d3c52-6e0a-4b8e-9d8f-0123456789ab"
#define BUDGET_PARTITIONS 32
#define PIPELINE 200
#define SCANNER_INTERVAL_S 5.0
#define ROUTE_SCAN_US 100000

/* ---- the reference's unblock scanner, from outside ---- */

/* "ff:budget:{b:M}:<id>:" of the one budget here. */
static const char *budget_key(void) {
    static char key[100];
    snprintf(key, sizeof key,
             "ff:budget:{b:%u}:%s:", wire_uuid_partition(BUDGET, BUDGET_PARTITIONS), BUDGET);
    return key;
}

static void read_text(worker *self, const char *key, const char *suffix, const char *name,
                      char *text, size_t room) {
    request_start(&self->request, "HGET");
    request_join(&self->request, key, suffix);
    request_add(&self->request, name);
    worker_read_text(self, text, room);
}

static bool budget_has_cleared(worker *self) {
    char usage[32];
    request_start(&self->request, "HGETALL");
    request_join(&self->request, budget_key(), "limits");
    redisReply *limits = worker_call(self);
    load_check(limits->elements == 2, "the budget has one limit");
    double limit = strtod(limits->element[1]->str, NULL);
    freeReplyObject(limits);
    read_text(self, budget_key(), "usage", "tokens", usage, sizeof usage);
    return strtod(usage, NULL) < limit;
}

/* Every worker is registered here, so a route has always cleared; the reading is the work. */
static bool has_cleared(worker *self, const wire_execution *e, const char *set, int *verdict) {
    char text[100];
    bool budget = strcmp(set, "budget") == 0;
    read_text(self, e->exec, "core", budget ? "budget_ids" : "required_capabilities", text,
              sizeof text);
    if (!budget || !text[0]) return true;
    if (*verdict < 0) *verdict = budget_has_cleared(self);
    return *verdict;
}

static bool unblock_candidate(worker *self, const char *id, const char *set, int *verdict) {
    wire_execution e;
    wire_from_id(&e, self->lane, id);
    request_start(&self->request, "HMGET");
    request_join(&self->request, e.exec, "core");
    request_add(&self->request, "blocking_reason"), request_add(&self->request, "namespace");
    freeReplyObject(worker_call(self));
    if (!has_cleared(self, &e, set, verdict)) return false;
    request_start(&self->request, "TIME");
    freeReplyObject(worker_call(self));
    wire_unblock(&self->request, self->who->way, &e, set);
    return worker_try(self);
}

size_t blocked_pass(worker *self, const char *set) {
    size_t moved = 0;
    for (unsigned p = 0; p < WIRE_PARTITIONS; p++) {
        char tag[16];
        int verdict = -1; /* of the budget, for this visit */
        snprintf(tag, sizeof tag, "{fp:%u}", p);
        request_start(&self->request, "ZRANGEBYSCORE");
        request_join(&self->request, "ff:idx:", tag, ":lane:", self->lane, ":blocked:", set);
        request_add(&self->request, "-inf"), request_add(&self->request, "+inf");
        request_add(&self->request, "LIMIT"), request_add(&self->request, "0");
        request_add(&self->request, "100");
        redisReply *found = worker_call(self);
        for (size_t i = 0; i < found->elements; i++) {
            moved += unblock_candidate(self, found->element[i]->str, set, &verdict);
        }
        freeReplyObject(found);
    }
    return moved;
}

/* ---- a budget that clears ---- */

static void drop_replies(worker *self, size_t count) {
    for (size_t i = 0; i < count; i++) {
        redisReply *reply = load_receive(self->connection);
        load_check(reply->type != REDIS_REPLY_ERROR, "preparing: %s", reply->str);
        freeReplyObject(reply);
    }
}

static void set_usage(worker *self, const char *usage) {
    char key[120];
    snprintf(key, sizeof key, "%susage", budget_key());
    load_run(self->connection, "HSET", key, "tokens", usage);
}

void blocked_prepare(worker *self, size_t count) {
    const char *way = self->who->way ? self->who->way : "FF.CALL";
    char key[120];
    snprintf(key, sizeof key, "%slimits", budget_key());
    load_run(self->connection, "HSET", key, "hard:tokens", "100");
    set_usage(self, "100");
    for (size_t i = 0; i < count; i++) {
        wire_execution e;
        wire_name(&e, self->lane, (unsigned)(i % WIRE_PARTITIONS), i);
        wire_create(&self->request, way, &e, "input", "");
        load_send(self->connection, &self->request);
        request_start(&self->request, "HSET");
        request_join(&self->request, e.exec, "core");
        request_add(&self->request, "budget_ids"), request_add(&self->request, BUDGET);
        load_send(self->connection, &self->request);
        wire_block(&self->request, way, &e, "budget");
        load_send(self->connection, &self->request);
        if (i % PIPELINE == PIPELINE - 1) drop_replies(self, 3 * PIPELINE);
    }
    drop_replies(self, 3 * (count % PIPELINE));
}

typedef struct run {
    worker *workers; /* 0 unblocks, 1 reads a key all the while */
    blocked_method method;
    size_t count;
    int64_t eligible_before;
    bool finished;
    double seconds, paused_seconds;
    samples idle_us, busy_us;
} run;

static void unblock_by_command(run *self, worker *mine) {
    (void)self;
    int64_t processed = 1;
    while (processed > 0) {
        load_request *r = &mine->request;
        request_start(r, "FF.UNBLOCK");
        request_add(r, "*"), request_add(r, "LANE"), request_add(r, mine->lane);
        request_add(r, "REASON"), request_add(r, "budget");
        request_add(r, "LIMIT"), request_add(r, "50");
        redisReply *reply = worker_call(mine);
        const redisReply *moved = reply_find(reply, "processed");
        load_check(moved != NULL, "FF.UNBLOCK does not say what it did");
        processed = moved->integer;
        freeReplyObject(reply);
    }
}

static void wait_for_scanner(run *self, worker *mine) {
    int64_t limit = load_now_us() + 120000000;
    int64_t wanted = self->eligible_before + (int64_t)self->count;
    while (worker_count_in_lane(mine, "eligible") < wanted) {
        load_check(load_now_us() < limit, "the scanner did not unblock everything");
        load_sleep_until(load_now_us() + 1000);
    }
}

/* The reference's scanner begins a cycle every five seconds: half of that passes, on average, until
 * the first one after the clearing, and a cycle that is not the last takes five seconds at least.
 */
static void unblock_from_outside(run *self, worker *mine) {
    size_t moved = 0;
    self->paused_seconds = SCANNER_INTERVAL_S / 2;
    while (moved < self->count) {
        int64_t start = load_now_us();
        size_t now = blocked_pass(mine, "budget");
        load_check(now > 0, "%s: a whole cycle unblocked nothing", mine->who->name);
        moved += now;
        double took = (double)(load_now_us() - start) / 1e6;
        bool is_last = moved >= self->count;
        self->paused_seconds += is_last || took > SCANNER_INTERVAL_S ? took : SCANNER_INTERVAL_S;
    }
}

static void unblock_all(run *self, worker *mine) {
    load_sleep_until(load_now_us() + 200000); /* the other one measures what idle means */
    int64_t start = load_now_us();
    set_usage(mine, "0");
    if (self->method == BLOCKED_BY_COMMAND) {
        unblock_by_command(self, mine);
    } else if (self->method == BLOCKED_BY_SCANNER) {
        wait_for_scanner(self, mine);
    } else {
        unblock_from_outside(self, mine);
    }
    self->seconds = (double)(load_now_us() - start) / 1e6;
    if (self->method != BLOCKED_FROM_OUTSIDE) self->paused_seconds = self->seconds;
    self->finished = true;
}

/* A GET each half millisecond; those of the first tenth of a second are the idle ones. */
static void read_on(run *self, worker *mine) {
    int64_t start = load_now_us();
    while (!self->finished) {
        int64_t now = load_now_us();
        load_run(mine->connection, "GET", "some:key");
        double took = (double)(load_now_us() - now);
        samples_add(now < start + 190000 ? &self->idle_us : &self->busy_us, took);
        load_sleep_until(now + 500);
    }
}

static void unblock_task(size_t number, void *argument) {
    run *self = argument;
    if (number == 0) {
        unblock_all(self, &self->workers[0]);
    } else {
        read_on(self, &self->workers[1]);
    }
}

blocked_figures blocked_run(const entrant *on, blocked_method method, size_t count) {
    run self = {.workers = workers_open(&on->who, on->server, 2, BLOCKED_LANE),
                .method = method,
                .count = count};
    wire_new_run();
    self.eligible_before = worker_count_in_lane(self.workers, "eligible");
    blocked_prepare(&self.workers[0], count);
    if (method == BLOCKED_BY_SCANNER) {
        load_run(self.workers[0].connection, "CONFIG", "SET", "ff.unblock-interval-ms", "100");
    }
    load_parallel(2, unblock_task, &self);
    int64_t eligible = worker_count_in_lane(self.workers, "eligible") - self.eligible_before;
    int64_t left = worker_count_in_lane(self.workers, "blocked:budget");
    load_check(eligible == (int64_t)count && left == 0,
               "%s: %lld of %zu executions are eligible, %lld are blocked", on->who.name,
               (long long)eligible, count, (long long)left);
    blocked_figures figures = {.seconds = self.seconds,
                               .paused_seconds = self.paused_seconds,
                               .idle_p99_us = samples_percentile(&self.idle_us, 0.99),
                               .busy_p99_us = samples_percentile(&self.busy_us, 0.99)};
    samples_clear(&self.idle_us);
    samples_clear(&self.busy_us);
    workers_close(self.workers, 2);
    return figures;
}

bool blocked_wanted(const contestant *who) {
    if (contestant_is_native(who)) return contestant_knows(who, "FF.UNBLOCK");
    return contestant_is_wire(who) && !who->spread;
}

/* The second native entrant is the scanner's: a server of its own, its interval at 100 ms. */
blocked_method blocked_method_of(const contestant *who) {
    if (contestant_is_wire(who)) return BLOCKED_FROM_OUTSIDE;
    return who->chained ? BLOCKED_BY_SCANNER : BLOCKED_BY_COMMAND;
}

void blocked_rename(field *all) {
    for (size_t i = 0; i < all->count; i++) {
        if (!contestant_is_native(&all->entrants[i].who)) continue;
        bool scanner = blocked_method_of(&all->entrants[i].who) == BLOCKED_BY_SCANNER;
        all->entrants[i].who.name = scanner ? "native, the scanner" : "native, FF.UNBLOCK";
    }
}

static void note_goals(const field *all, const field_figures *seconds, const field_figures *paused,
                       const field_figures *idle, const field_figures *busy) {
    for (size_t i = 0; i < all->count; i++) {
        if (contestant_is_wire(&all->entrants[i].who)) continue;
        const char *name = all->entrants[i].who.name;
        char what[120], text[120];
        series gain = field_gain(all, seconds, i, LESS_IS_BETTER);
        series paused_gain = field_gain(all, paused, i, LESS_IS_BETTER);
        snprintf(what, sizeof what, "Unblocking against the wire way, %s (7)", name);
        snprintf(text, sizeof text, "%s times; with the reference's pauses %s", series_text(&gain),
                 series_text(&paused_gain));
        report_goal(what, "at least 20 times", text, series_median(&gain) >= 20);
        double more = series_median(&busy->of[i]) - series_median(&idle->of[i]);
        snprintf(what, sizeof what, "GET p99 of others meanwhile, %s (7)", name);
        snprintf(text, sizeof text, "%s ms more", number_text(more / 1e3));
        report_goal(what, "at most 2 ms more", text, more <= 2000);
    }
}

void scenario_unblock(void) {
    size_t count = scaled(50000, 1000, 200);
    static field_figures seconds, paused, idle, busy;
    report_heading("7. A budget clears");
    report_text(
        "%zu executions are blocked on one budget, over 256 partitions; it clears. Seconds "
        "until all are eligible again, and what another client's GET took before and "
        "meanwhile. FF.UNBLOCK is called for 50 at a time; the scanner runs by itself, "
        "looking each 100 ms (by default each 5 s); from outside one connection does what the "
        "reference's scanner does, 100 of each partition in a cycle, one cycle after the other. "
        "The reference begins a cycle every 5 s only: what it takes with these pauses is computed "
        "from the cycles that were measured.",
        count);
    field all;
    field_start(&all, false, blocked_wanted);
    blocked_rename(&all);
    for (size_t round = 0; round < scaled(3, 2, 1); round++) {
        for (size_t i = 0; i < all.count; i++) {
            const entrant *each = &all.entrants[i];
            load_server_empty(each->server);
            blocked_figures figures = blocked_run(each, blocked_method_of(&each->who), count);
            series_add(&seconds.of[i], figures.seconds);
            series_add(&paused.of[i], figures.paused_seconds);
            series_add(&idle.of[i], figures.idle_p99_us);
            series_add(&busy.of[i], figures.busy_p99_us);
        }
    }
    report_header("", field_gain_title(&all), "seconds", "times as fast, with its pauses",
                  "seconds, with its pauses", "GET p99 before, µs", "GET p99 meanwhile, µs");
    for (size_t i = 0; i < all.count; i++) {
        report_row(all.entrants[i].who.name, field_gain_text(&all, &seconds, i, LESS_IS_BETTER),
                   series_text(&seconds.of[i]), field_gain_text(&all, &paused, i, LESS_IS_BETTER),
                   series_text(&paused.of[i]), series_text(&idle.of[i]), series_text(&busy.of[i]));
    }
    report_table_end();
    field_chart(&all, "unblock", "Seconds until everything is eligible", &seconds, LESS_IS_BETTER);
    note_goals(&all, &seconds, &paused, &idle, &busy);
    field_stop(&all);
}

/* ---- claims by capability ---- */

enum { ROUTES = 8, ROUTE_WORKERS = 16 };

static const char *const capabilities[ROUTES] = {"arm", "blue", "cuda", "disk",
                                                 "eu",  "fast", "gpu",  "huge"};

typedef struct route_run {
    worker *workers;
    size_t jobs;
    tally done;
    int64_t last_us;
    char owned[ROUTE_WORKERS][32];
} route_run;

static void register_worker(worker *self) {
    load_request *r = &self->request;
    const char *caps = self->as.capabilities;
    if (contestant_is_native(self->who)) {
        request_start(r, "FF.WORKER");
        request_add(r, "REGISTER"), request_add(r, self->as.id), request_add(r, self->instance);
        request_add(r, "LANES"), request_add(r, "1"), request_add(r, self->lane);
        request_add(r, "CAPS"), request_add(r, caps), request_add(r, "TTL");
        request_add(r, "3600000");
        freeReplyObject(worker_call(self));
        return;
    }
    request_start(r, "HSET"); /* what registering leaves, and all that is read of it */
    request_join(r, "ff:worker:default:", self->instance, ":caps");
    request_add(r, "caps_csv"), request_add(r, caps);
    freeReplyObject(worker_call(self));
    load_run(self->connection, "SADD", "ff:idx:default:workers", self->instance);
}

/* Worker w has two of the capabilities, sorted. */
static void equip(route_run *self, size_t w) {
    size_t first = w % ROUTES, second = (w + 3) % ROUTES;
    if (first > second) {
        size_t swap = first;
        first = second;
        second = swap;
    }
    snprintf(self->owned[w], sizeof self->owned[w], "%s,%s", capabilities[first],
             capabilities[second]);
    self->workers[w].as.capabilities = self->owned[w];
    register_worker(&self->workers[w]);
}

static void check_route(const worker *mine, const job *held) {
    load_check(strstr(mine->as.capabilities, capabilities[held->index % ROUTES]) != NULL,
               "a job went to a worker that cannot do it");
}

/* The reference's scanner, fifty times as often: with its 5 s, which is a multiple of the claim
 * cycle's rotation, the same few workers would meet what it releases again and again. */
static void scan_routes(route_run *self, worker *mine) {
    int64_t next = load_now_us();
    while (self->done.done < self->jobs) {
        if (load_now_us() < next) {
            load_wait_until(next);
            continue;
        }
        next += ROUTE_SCAN_US;
        blocked_pass(mine, "route");
    }
}

static void route_task(size_t number, void *argument) {
    route_run *self = argument;
    worker *mine = &self->workers[number];
    if (number == ROUTE_WORKERS) {
        scan_routes(self, mine);
        return;
    }
    job held;
    while (self->done.done < self->jobs) {
        if (!mine->who->driver->claim(mine, &held, 20)) continue;
        check_route(mine, &held);
        mine->who->driver->complete(mine, &held);
        tally_add(&self->done, held.index);
        self->last_us = load_now_us();
    }
    load_notify();
}

static double route_rate(const entrant *on, size_t jobs) {
    route_run self = {.workers = workers_open(&on->who, on->server, ROUTE_WORKERS + 1, LANE),
                      .jobs = jobs};
    for (size_t w = 0; w < ROUTE_WORKERS; w++) equip(&self, w);
    tally_start(&self.done, jobs);
    for (size_t i = 0; i < jobs; i++) {
        on->who.driver->submit(self.workers, i, capabilities[i % ROUTES]);
    }
    int64_t start = load_now_us();
    load_parallel(ROUTE_WORKERS + (contestant_is_wire(&on->who) ? 1 : 0), route_task, &self);
    tally_end(&self.done, on->who.name);
    workers_close(self.workers, ROUTE_WORKERS + 1);
    return (double)jobs / ((double)(self.last_us - start) / 1e6);
}

/* Of the ways to call the wire functions one is enough where everybody waits for a scanner. */
static bool route_wanted(const contestant *who) {
    if (contestant_is_native(who)) return !who->chained && contestant_knows(who, "FF.WORKER");
    return contestant_is_wire(who) &&
           (strcmp(who->name, "FF.CALL") == 0 || strcmp(who->name, "reference") == 0);
}

void scenario_routes(void) {
    size_t native_jobs = scaled(5000, 200, 40), wire_jobs = scaled(24, 4, 4);
    field_figures rates = {0};
    report_heading("5. Claims by capability");
    report_text(
        "%zu jobs (the wire way: %zu) that need one of %d capabilities each, %d workers that have "
        "two of them. Only draining is timed. From outside, what meets the wrong worker is "
        "blocked, and a scanner brings it back every 100 ms (the reference's does every 5 s).",
        native_jobs, wire_jobs, ROUTES, ROUTE_WORKERS);
    field all;
    field_start(&all, false, route_wanted);
    for (size_t round = 0; round < scaled(2, 1, 1); round++) {
        for (size_t i = 0; i < all.count; i++) {
            const entrant *each = &all.entrants[i];
            load_server_empty(each->server);
            size_t jobs = contestant_is_wire(&each->who) ? wire_jobs : native_jobs;
            series_add(&rates.of[i], route_rate(each, jobs));
        }
    }
    report_header("", field_gain_title(&all), "jobs/s");
    for (size_t i = 0; i < all.count; i++) {
        report_row(all.entrants[i].who.name, field_gain_text(&all, &rates, i, MORE_IS_BETTER),
                   series_text(&rates.of[i]));
    }
    report_table_end();
    field_chart(&all, "routes", "Capability-routed jobs per second", &rates, MORE_IS_BETTER);
    field_stop(&all);
}
