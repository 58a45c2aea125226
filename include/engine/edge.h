/* Edges of a flow's graph: "downstream may start once upstream has ended well".
 *
 * An edge is a record of the flow, and its id stands in two sets, among those that leave the upstream and among
 * those that enter the downstream. What the downstream waits for is kept beside it, see
 * engine/dependency.h: an edge is first staged here and then applied there. */
#ifndef FF_ENGINE_EDGE_H
#define FF_ENGINE_EDGE_H

#include "engine/result.h"

/* The graph never has more than this many executions behind one of them. */
enum { FF_EDGE_REACH_MAX = 1000 };

/* ff_stage_dependency_edge */
typedef struct ff_edge_stage_keys {
    ff_str *core, *members, *edge, *outgoing, *incoming, *grant;
} ff_edge_stage_keys;

typedef struct ff_edge_stage_args {
    ff_str *flow_id, *edge_id, *upstream_id, *downstream_id, *dependency_kind, *data_passing_ref,
        *expected_revision, *at;
} ff_edge_stage_args;

ff_verdict ff_edge_stage(ff_txn *t, const ff_edge_stage_keys *k, const ff_edge_stage_args *a,
                         ff_result *out);

/* The same without asking, for a flow that is made in this transaction: the caller knows that both are members
 * and that the edge closes no cycle. */
ff_verdict ff_edge_add(ff_txn *t, const ff_edge_stage_keys *k, const ff_edge_stage_args *a,
                       ff_result *out);

#endif
