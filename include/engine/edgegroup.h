/* Edge groups: how the incoming edges of one execution combine.
 *
 * A group is one hash for each downstream execution (the child). It says how many of its edges must succeed: all
 * of them, any one, or a quorum of k. Its policy may be declared before the first edge is applied to the child,
 * and is fixed from then on; without a declaration it is all_of. Each edge that is resolved is counted, until the
 * group fires: it is satisfied, or it has become impossible. A group of any or quorum may then ask for the
 * siblings that are still running to be cancelled: it keeps the list, and is queued in pending_cancel_groups until
 * the cancellations are done (drained). */
#ifndef FF_ENGINE_EDGEGROUP_H
#define FF_ENGINE_EDGEGROUP_H

#include "engine/result.h"

/* Whether fewer than all edges may be enough: the group is there, and of any_of or quorum. */
bool ff_edgegroup_is_partial(ff_key *group);

/* Takes note of one more edge applied; a group without a policy becomes all_of. False after a refusal was
 * put into `out`. */
bool ff_edgegroup_enroll(ff_key *group, ff_result *out);

/* Counts one resolved edge of an all_of group, if there is one; `left` edges are still open. False after a
 * refusal was put into `out`. */
bool ff_edgegroup_count_all(ff_key *group, bool success, int64_t left, ff_result *out);

typedef enum {
    FF_EDGEGROUP_FAULTY,      /* a counter is no number: the refusal is in `out` */
    FF_EDGEGROUP_OVERCOUNTED, /* more edges resolved than applied: the details are in `out` */
    FF_EDGEGROUP_FIRED,       /* had been decided before */
    FF_EDGEGROUP_PENDING,
    FF_EDGEGROUP_SATISFIED,
    FF_EDGEGROUP_IMPOSSIBLE,
} ff_edgegroup_decision;

/* Counts one resolved edge of a partial group and says what follows from it. */
ff_edgegroup_decision ff_edgegroup_count_partial(ff_key *group, const ff_str *outcome,
                                                 ff_result *out);

/* What names the siblings of a group: where the incoming edges are, and where the group is queued. */
typedef struct ff_siblings {
    ff_str *incoming, *pending_groups, *flow_id, *downstream_id;
} ff_siblings;

/* A partial group has been decided: satisfied or impossible. */
void ff_edgegroup_fire(ff_key *group, const ff_word *state, ff_str *at,
                       const ff_siblings *siblings);

/* ff_set_edge_group_policy */
typedef struct ff_edgegroup_set_policy_keys {
    ff_str *flow_core, *group;
} ff_edgegroup_set_policy_keys;

typedef struct ff_edgegroup_set_policy_args {
    ff_str *variant, *on_satisfied, *k, *at;
} ff_edgegroup_set_policy_args;

ff_verdict ff_edgegroup_set_policy(ff_txn *t, const ff_edgegroup_set_policy_keys *k,
                                   const ff_edgegroup_set_policy_args *a, ff_result *out);

/* ff_drain_sibling_cancel_group */
typedef struct ff_edgegroup_drain_keys {
    ff_str *pending_groups, *group;
} ff_edgegroup_drain_keys;

typedef struct ff_edgegroup_drain_args {
    ff_str *flow_id, *downstream_id;
} ff_edgegroup_drain_args;

ff_verdict ff_edgegroup_drain(ff_txn *t, const ff_edgegroup_drain_keys *k,
                              const ff_edgegroup_drain_args *a, ff_result *out);

/* ff_reconcile_sibling_cancel_group */
typedef ff_edgegroup_drain_keys ff_edgegroup_reconcile_keys;
typedef ff_edgegroup_drain_args ff_edgegroup_reconcile_args;

ff_verdict ff_edgegroup_reconcile(ff_txn *t, const ff_edgegroup_reconcile_keys *k,
                                  const ff_edgegroup_reconcile_args *a, ff_result *out);

#endif
