/* Server time per call of the wire functions over a whole life, and what an execution weighs.
 *
 * The server itself says how long each call took (INFO commandstats), so the client, the network and
 * the event loop are not in these figures. Every way of calling has a server of its own; the rounds of all
 * are interleaved. */
#include "bench.h"
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

static void print_times(void) {
    printf("%-22s", "server µs per call");
    for (size_t i = 0; i < STEPS; i++) printf("%10s", steps[i].name);
    printf("%21s\n", "whole life");
    for (size_t w = 0; w < way_count; w++) {
        printf("%-22s", ways[w].name);
        for (size_t i = 0; i < STEPS; i++) printf("%10.2f", series_median(&ways[w].usec[i]));
        printf("%25s\n", series_text(&ways[w].life));
    }
}

/* How many times less than the others the first way needs. */
static void print_ratios(void) {
    printf("\n%-22s", "FF.CALL needs less by");
    for (size_t i = 0; i < STEPS; i++) printf("%10s", steps[i].name);
    printf("%21s\n", "whole life");
    for (size_t w = 1; w < way_count; w++) {
        printf("%-22s", ways[w].name);
        for (size_t i = 0; i < STEPS; i++) {
            series ratio = series_ratio(&ways[w].usec[i], &ways[0].usec[i]);
            printf("%9.2fx", series_median(&ratio));
        }
        series ratio = series_ratio(&ways[w].life, &ways[0].life);
        printf("%25s\n", series_text(&ratio));
    }
}

static void print_memory(void) {
    printf("\n%-22s%16s%16s%16s\n", "bytes per execution", "waiting", "active", "completed");
    for (size_t w = 0; w < way_count; w++) {
        printf("%-22s%16.0f%16.0f%16.0f\n", ways[w].name, series_median(&ways[w].bytes_waiting),
               series_median(&ways[w].bytes_active), series_median(&ways[w].bytes_completed));
    }
}

void bench_wire(void) {
    size_t lives = scaled(5000, 1000, 200), rounds = scaled(7, 3, 1);
    printf("%zu lives in each of %zu interleaved rounds; medians (least–greatest)\n\n", lives,
           rounds);
    add_ways();
    for (size_t w = 0; w < way_count; w++)
        run_round(&ways[w], lives); /* warms up, then forgotten */
    for (size_t w = 0; w < way_count; w++) {
        memset(ways[w].usec, 0, sizeof ways[w].usec);
        ways[w].life = ways[w].bytes_waiting = (series){0};
        ways[w].bytes_active = ways[w].bytes_completed = (series){0};
    }
    for (size_t round = 0; round < rounds; round++) {
        for (size_t w = 0; w < way_count; w++) run_round(&ways[w], lives);
    }
    print_times();
    print_ratios();
    print_memory();
    if (!settings.reference) {
        printf("\nThe reference library is missing: REFERENCE=<file.lua> compares with it.\n");
    }
    for (size_t w = 0; w < way_count; w++) load_server_stop(ways[w].server);
}
