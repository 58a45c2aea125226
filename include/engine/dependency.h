/* Dependencies: what an execution (the child) waits for.
 *
 * Each edge that enters the child is applied to it: the child gets a dependency record and a count of edges
 * that are not satisfied yet, and is blocked. When the upstream of an edge ends the edge is resolved, once. If that
 * decides the child's edge group (see engine/edgegroup.h), the child is either promoted to eligible, or, since it can
 * never run, skipped: it ends, and what waits for the child can be resolved in turn. */
#ifndef FF_ENGINE_DEPENDENCY_H
#define FF_ENGINE_DEPENDENCY_H

#include "engine/result.h"

/* ff_apply_dependency_to_child */
typedef struct ff_dependency_apply_keys {
    ff_str *core, *meta, *unresolved, *dependency, *eligible, *blocked, *all_edges, *group;
} ff_dependency_apply_keys;

typedef struct ff_dependency_apply_args {
    ff_str *flow_id, *edge_id, *upstream_id, *graph_revision, *dependency_kind, *data_passing_ref,
        *at;
} ff_dependency_apply_args;

ff_verdict ff_dependency_apply(ff_txn *t, const ff_dependency_apply_keys *k,
                               const ff_dependency_apply_args *a, ff_result *out);

/* ff_resolve_dependency */
typedef struct ff_dependency_resolve_keys {
    ff_str *core, *meta, *unresolved, *dependency, *eligible, *terminal, *blocked, *attempt,
        *stream_meta, *payload, *upstream_result, *group, *incoming, *pending_groups;
} ff_dependency_resolve_keys;

typedef struct ff_dependency_resolve_args {
    ff_str *edge_id, *outcome, *at, *flow_id, *downstream_id;
} ff_dependency_resolve_args;

ff_verdict ff_dependency_resolve(ff_txn *t, const ff_dependency_resolve_keys *k,
                                 const ff_dependency_resolve_args *a, ff_result *out);

/* ff_evaluate_flow_eligibility: takes no arguments, writes nothing. */
typedef struct ff_dependency_evaluate_keys {
    ff_str *core, *meta;
} ff_dependency_evaluate_keys;

ff_verdict ff_dependency_evaluate(ff_txn *t, const ff_dependency_evaluate_keys *k, ff_result *out);

/* ff_promote_blocked_to_eligible */
typedef struct ff_dependency_promote_keys {
    ff_str *core, *blocked, *eligible, *meta, *unresolved;
} ff_dependency_promote_keys;

typedef struct ff_dependency_promote_args {
    ff_str *execution_id, *at;
} ff_dependency_promote_args;

ff_verdict ff_dependency_promote(ff_txn *t, const ff_dependency_promote_keys *k,
                                 const ff_dependency_promote_args *a, ff_result *out);

#endif
