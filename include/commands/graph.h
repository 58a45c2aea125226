/* A flow known by its reference: members and edges, with the keys of the operations derived. */
#ifndef FF_COMMANDS_GRAPH_H
#define FF_COMMANDS_GRAPH_H

#include "engine/result.h"
#include "engine/subject.h"

typedef struct ff_graph {
    ff_txn *txn;
    ff_text tag; /* of the partition that the flow and its members share */
    ff_str *flow_id;
    ff_str *core_name;
    ff_key *core;
    ff_str *members_name, *index_name;
    bool is_new; /* made in this transaction: see ff_edge_add */
} ff_graph;

void ff_graph_open(ff_txn *t, ff_text tag, ff_str *flow_id, ff_graph *g);

/* ff:flow:…:<kind><id> */
ff_str *ff_graph_key(ff_graph *g, const char *kind, ff_text id);

ff_verdict ff_graph_create(ff_graph *g, ff_str *kind, ff_str *namespace, ff_result *out);

/* Makes an execution of the flow's partition a member. */
ff_verdict ff_graph_add(ff_graph *g, ff_subject *member, ff_result *out);

/* How the incoming edges of an execution combine. */
typedef struct ff_join {
    const ff_word *variant;      /* all_of, any_of, quorum; NULL: nothing is said about it */
    int64_t k;                   /* of a quorum */
    const ff_word *on_satisfied; /* NULL: let_run */
} ff_join;

/* Sets it, or finds it set to the same; what was set to something else, and is in use, is refused. */
ff_verdict ff_graph_join(ff_graph *g, ff_str *downstream, const ff_join *join, ff_result *out);

typedef struct ff_edge {
    ff_str *upstream;
    ff_subject *downstream;
    ff_str *kind; /* NULL: success_only */
    ff_str *data; /* NULL: the upstream's result is not handed over */
} ff_edge;

/* Adds an edge between two members and applies it to the downstream: details are the edge's id and the new
 * graph revision. */
ff_verdict ff_graph_link(ff_graph *g, const ff_edge *edge, ff_result *out);

/* Resolves an edge just linked at once, if its upstream had ended before this transaction. */
ff_verdict ff_graph_settle(ff_graph *g, const ff_edge *edge, ff_str *edge_id, ff_result *out);

#endif
