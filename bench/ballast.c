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

static const step life[] = {{write_create}, {write_grant}, {write_claim}, {write_complete}};

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

void ballast_load(const entrant *on, size_t count, size_t lanes, bool ended) {
    worker *self = workers_open(&on->who, on->server, 1, "ballast");
    const char *way = on->who.way ? on->who.way : "FF.CALL";
    size_t steps = ended ? sizeof life / sizeof life[0] : 1;
    for (size_t i = 0; i < count; i += PIPELINE) {
        size_t end = i + PIPELINE < count ? i + PIPELINE : count;
        for (size_t s = 0; s < steps; s++) run_step(self, way, &life[s], i, end, lanes);
    }
    workers_close(self, 1);
}
