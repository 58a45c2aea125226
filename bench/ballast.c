#include "ballast.h"

#include <stdio.h>

#define PIPELINE 200
/* Far from the numbers of the jobs. */
#define FIRST ((size_t)1 << 40)

static const wire_worker owner = {"ballast", "ballast", ""};

typedef struct step {
    void (*write)(load_request *r, const char *way, const wire_execution *e);
} step;

static void write_create(load_request *r, const char *way, const wire_execution *e) {
    wire_create(r, way, e, "input", "");
}

static void write_grant(load_request *r, const char *way, const wire_execution *e) {
    wire_grant(r, way, e, &owner);
}

static void write_claim(load_request *r, const char *way, const wire_execution *e) {
    wire_claim(r, way, e, &owner);
}

static void write_complete(load_request *r, const char *way, const wire_execution *e) {
    wire_complete(r, way, e, &owner);
}

/* Ballast is numbered, so are the waitpoints. */
static void write_suspend(load_request *r, const char *way, const wire_execution *e) {
    char waitpoint[WIRE_UUID];
    wire_uuid(waitpoint, 'd', wire_index(e->id), wire_index(e->id));
    wire_suspend(r, way, e, &owner, waitpoint);
}

enum { MOST_STEPS = 4 };

static const step ways_there[][MOST_STEPS] = {
    [BALLAST_WAITING] = {{write_create}},
    [BALLAST_ACTIVE] = {{write_create}, {write_grant}, {write_claim}},
    [BALLAST_SUSPENDED] = {{write_create}, {write_grant}, {write_claim}, {write_suspend}},
    [BALLAST_COMPLETED] = {{write_create}, {write_grant}, {write_claim}, {write_complete}},
};

static void name(wire_execution *e, size_t number, size_t lanes) {
    static char lane[32];
    snprintf(lane, sizeof lane, "ballast-%zu", number / WIRE_PARTITIONS % lanes);
    wire_name(e, lane, (unsigned)(number % WIRE_PARTITIONS), FIRST + number);
    snprintf(e->lease, sizeof e->lease, "lease-%zu", number);
    snprintf(e->attempt, sizeof e->attempt, "attempt-%zu", number);
    snprintf(e->epoch, sizeof e->epoch, "1");
}

static void run_step(worker *self, const char *way, const step *which, size_t from, size_t to,
                     size_t lanes) {
    for (size_t i = from; i < to; i++) {
        wire_execution e;
        name(&e, i, lanes);
        which->write(&self->request, way, &e);
        load_send(self->connection, &self->request);
    }
    for (size_t i = from; i < to; i++) {
        redisReply *reply = load_receive(self->connection);
        wire_expect(reply, "ballast");
        freeReplyObject(reply);
    }
}

void ballast_load(const entrant *on, size_t count, size_t lanes, ballast_state state) {
    worker *self = workers_open(&on->who, on->server, 1, "ballast");
    const char *way = on->who.way ? on->who.way : "FF.CALL";
    const step *steps = ways_there[state];
    wire_new_run();
    for (size_t i = 0; i < count; i += PIPELINE) {
        size_t end = i + PIPELINE < count ? i + PIPELINE : count;
        for (size_t s = 0; s < MOST_STEPS && steps[s].write; s++) {
            run_step(self, way, &steps[s], i, end, lanes);
        }
    }
    workers_close(self, 1);
}
