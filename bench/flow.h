/* Flows: how the contestants build them, and how wire contestants resolve what depends on an end.
 */
#ifndef FF_BENCH_FLOW_H
#define FF_BENCH_FLOW_H

#include "field.h"

typedef struct edge {
    size_t from, to;
} edge;

/* What a flow looks like; the members of flow f are the jobs f × members … */
typedef struct shape {
    size_t members, edge_count;
    edge *edges;
    size_t quorum; /* of the last member's edges; 0: all of them */
} shape;

shape shape_line(size_t members);
/* One, then `width` at the same time, then one. */
shape shape_fan(size_t width);
/* `width` of which one is enough for the last. */
shape shape_quorum(size_t width);
void shape_free(shape *form);

/* Creates flow number `flow` with all its members and edges, in lane `lane` of the worker. */
void flow_submit(worker *self, const shape *form, size_t flow);
/* The id of a wire flow, WIRE_UUID bytes of it, and the partition that it gives. */
void flow_id(char *id, size_t flow);
unsigned flow_partition(size_t flow);

/* What the reference's engine does when a member has ended: reads the outcome, walks the edges that
 * leave it, and resolves each at its child. */
void flow_resolve(worker *self, const char *flow, const wire_execution *ended);

typedef struct flow_figures {
    double rate; /* flows per second: all are submitted, then drained */
    double submit_rate, drain_rate;
} flow_figures;

/* Everything is verified, the order included. */
flow_figures flow_run(const entrant *on, const shape *form, size_t connections, size_t flows);

typedef struct arrival_figures {
    double rate;           /* flows per second */
    double p50_ms, p99_ms; /* from submitting a flow to the end of its last member */
} arrival_figures;

/* So many flows are there at any time: the next is submitted when one has ended. */
arrival_figures flow_run_arrivals(const entrant *on, const shape *form, size_t connections,
                                  size_t flows, size_t at_a_time);

#endif
