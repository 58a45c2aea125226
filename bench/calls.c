/* Server time per call of the wire functions over a whole life, and what an execution weighs.
 *
 * The server itself says how long each call took (INFO commandstats), so the client, the network
 * and the event loop are not in these figures. Every way of calling has a server of its own; the
 * rounds of all are interleaved. */
#include "bench.h"
#include "report.h"
#include "wire.h"

#include <stdio.h>
#include <string.h>

enum { STEPS = 6, WAYS = 4, BATCH = 100 };

typedef struct step {
    const char *name;
    void (*write)(load_request *r, const char *way, const wire_execution *e);
} step;

static const wire_worker worker = {"w-1", "wi-1", ""};

static void write_create(load_request *r, const char *way, const wire_execution *e) {
    wire_create(r, way, e, "{\"a\":1}", "");
}

static void write_grant(load_request *r, const char *way, const wire_execution *e) {
    wire_grant(r, way, e, &worker);
}

static void write_claim(load_request *r, const char *way, const wire_execution *e) {
    wire_claim(r, way, e, &worker);
}

static void write_complete(load_request *r, const char *way, const wire_execution *e) {
    wire_complete(r, way, e, &worker);
}

static const step steps[STEPS] = {
    {"create", write_create}, {"grant", write_grant},      {"claim", write_claim},
    {"renew", wire_renew},    {"progress", wire_progress}, {"complete", write_complete},
};

typedef struct way {
    const char *name;
    const char *command;  /* that the client sends */
    const char *measured; /* that the server counts */
    load_server_options options;
    load_server *server;
    series usec[STEPS];
    series life;
    series bytes_waiting, bytes_active, bytes_completed;
} way;

static way ways[WAYS];
static size_t way_count;

static void add_way(way wanted) {
    wanted.server = load_server_start(&wanted.options);
    ways[way_count++] = wanted;
}

static void add_ways(void) {
    add_way((way){.name = "FF.CALL",
                  .command = "FF.CALL",
                  .measured = "ff.call",
                  .options = {.with_module = true}});
    if (settings.reference) {
        add_way((way){.name = "reference",
                      .command = "FCALL",
                      .measured = "fcall",
                      .options = {.library = settings.reference}});
    }
    add_way((way){.name = "FCALL, lua-compat",
                  .command = "FCALL",
                  .measured = "fcall",
                  .options = {.with_module = true, .library = settings.compat}});
    add_way((way){.name = "FCALL, intercepted",
                  .command = "FCALL",
                  .measured = "ff.call",
                  .options = {.with_module = true, .config = "ff.intercept-fcall yes"}});
}

/* All executions are in one partition, as those of one lane are in the reference. */
static void name_execution(wire_execution *e, size_t index) {
    wire_name(e, "default", 7, index);
    snprintf(e->lease, sizeof e->lease, "lease-%zu", index);
    snprintf(e->attempt, sizeof e->attempt, "attempt-%zu", index);
    snprintf(e->epoch, sizeof e->epoch, "1");
}

static void send_step(load_connection *connection, const step *wanted, const char *command,
                      size_t from, size_t to) {
    static load_request request;
    wire_execution execution;
    for (size_t i = from; i < to; i++) {
        name_execution(&execution, i);
        wanted->write(&request, command, &execution);
        load_send(connection, &request);
    }
    for (size_t i = from; i < to; i++) {
        redisReply *reply = load_receive(connection);
        wire_expect(reply, wanted->name);
        freeReplyObject(reply);
    }
}

/* Microseconds of server time per call. */
static double run_step(way *who, const step *wanted, size_t lives) {
    load_connection *connection = load_server_connection(who->server);
    load_server_reset_usage(who->server);
    for (size_t i = 0; i < lives; i += BATCH) {
        size_t end = i + BATCH < lives ? i + BATCH : lives;
        send_step(connection, wanted, who->command, i, end);
    }
    load_usage usage = load_server_usage(who->server, who->measured);
    load_check(usage.calls == (double)lives, "%s: %.0f calls of %s were counted, not %zu",
               who->name, usage.calls, wanted->name, lives);
    return usage.usec / (double)lives;
}

static void verify(way *who, size_t lives) {
    load_connection *connection = load_server_connection(who->server);
    int64_t ended = load_integer(connection, "ZCARD", "ff:idx:{fp:7}:lane:default:terminal");
    int64_t left = load_integer(connection, "ZCARD", "ff:idx:{fp:7}:lane:default:active") +
                   load_integer(connection, "ZCARD", "ff:idx:{fp:7}:lane:default:eligible");
    load_check(ended == (int64_t)lives && left == 0,
               "%s: %lld of %zu executions ended, %lld are left", who->name, (long long)ended,
               lives, (long long)left);
}

static void run_round(way *who, size_t lives) {
    load_server_empty(who->server);
    double before = load_server_memory(who->server);
    double life = 0;
    for (size_t i = 0; i < STEPS; i++) {
        double usec = run_step(who, &steps[i], lives);
        double bytes = (load_server_memory(who->server) - before) / (double)lives;
        series_add(&who->usec[i], usec);
        life += usec;
        if (i == 0) series_add(&who->bytes_waiting, bytes);
        if (i == 2) series_add(&who->bytes_active, bytes);
        if (i == STEPS - 1) series_add(&who->bytes_completed, bytes);
    }
    series_add(&who->life, life);
    verify(who, lives);
}

enum { CELLS = STEPS + 3 };

static void tell_head(const char *title) {
    const char *cells[CELLS] = {title, "a whole life"};
    for (size_t i = 0; i < STEPS; i++) cells[i + 2] = steps[i].name;
    report_header_cells(cells);
}

/* The cells of one way; `life` first, then the steps. */
static void tell_row(const char *name, const series *life, const series *by_step) {
    char texts[STEPS][48];
    const char *cells[CELLS] = {name, series_text(life)};
    for (size_t i = 0; i < STEPS; i++) {
        snprintf(texts[i], sizeof texts[i], "%s", number_text(series_median(&by_step[i])));
        cells[i + 2] = texts[i];
    }
    report_row_cells(cells);
}

/* How many times less server time than the others the first way needs. */
static void tell_ratios(void) {
    tell_head("FF.CALL needs less, times");
    for (size_t w = 1; w < way_count; w++) {
        series by_step[STEPS], life = series_ratio(&ways[w].life, &ways[0].life);
        for (size_t i = 0; i < STEPS; i++) {
            by_step[i] = series_ratio(&ways[w].usec[i], &ways[0].usec[i]);
        }
        tell_row(ways[w].name, &life, by_step);
    }
    report_table_end();
}

static void tell_times(void) {
    tell_head("server time, µs");
    for (size_t w = 0; w < way_count; w++) tell_row(ways[w].name, &ways[w].life, ways[w].usec);
    report_table_end();
}

static void tell_memory(void) {
    report_header("bytes per execution", "waiting", "active", "completed");
    for (size_t w = 0; w < way_count; w++) {
        report_row(ways[w].name, series_text(&ways[w].bytes_waiting),
                   series_text(&ways[w].bytes_active), series_text(&ways[w].bytes_completed));
    }
    report_table_end();
}

static void note_goals(const way *reference) {
    char text[80];
    const char *least_name = "";
    double least = 0;
    series life = series_ratio(&reference->life, &ways[0].life);
    for (size_t i = 0; i < STEPS; i++) {
        series ratio = series_ratio(&reference->usec[i], &ways[0].usec[i]);
        double times = series_median(&ratio);
        if (i > 0 && times >= least) continue;
        least = times;
        least_name = steps[i].name;
    }
    snprintf(text, sizeof text, "%s times", series_text(&life));
    report_goal("FF.CALL against the reference over a life, server time (11)", "at least 4 times",
                text, series_median(&life) >= 4);
    snprintf(text, sizeof text, "%s times (%s)", number_text(least), least_name);
    report_goal("The same for the function that gains least (11)", "at least 2.5 times", text,
                least >= 2.5);
}

static void forget_figures(way *who) {
    memset(who->usec, 0, sizeof who->usec);
    who->life = who->bytes_waiting = who->bytes_active = who->bytes_completed = (series){0};
}

void bench_wire(void) {
    size_t lives = scaled(5000, 500, 200), rounds = scaled(7, 3, 1);
    report_heading("11. Server time of the wire functions");
    report_text(
        "%zu lives in each of %zu rounds, by INFO commandstats: the client, the network and "
        "the event loop are not in it.%s",
        lives, rounds,
        settings.reference ? ""
                           : " The reference library is missing: REFERENCE=<file.lua> "
                             "compares with it.");
    add_ways();
    for (size_t w = 0; w < way_count; w++) {
        run_round(&ways[w], lives); /* warms up */
        forget_figures(&ways[w]);
    }
    for (size_t round = 0; round < rounds; round++) {
        for (size_t w = 0; w < way_count; w++) run_round(&ways[w], lives);
    }
    tell_ratios();
    tell_times();
    tell_memory();
    if (settings.reference) note_goals(&ways[1]);
    for (size_t w = 0; w < way_count; w++) load_server_stop(ways[w].server);
}
