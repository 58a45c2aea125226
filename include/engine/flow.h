/* Flows: sets of executions that belong together.
 *
 * A flow is a `core` hash and the set of its members; edges between the members say who waits for whom (see
 * engine/edge.h). It is born open and grows by adding members and edges, which both move its graph revision.
 * Cancelling it marks it, and notes down which members are still to be cancelled; the members themselves are
 * cancelled one by one, by whoever reads that list. */
#ifndef FF_ENGINE_FLOW_H
#define FF_ENGINE_FLOW_H

#include "engine/result.h"

/* FF_OK when the flow is there and open (rule TERMINAL-FLOW), else the refusal. */
ff_code ff_flow_check_open(ff_key *core);

/* ff_create_flow */
typedef struct ff_flow_create_keys {
    ff_str *core, *members, *flow_index;
} ff_flow_create_keys;

typedef struct ff_flow_create_args {
    ff_str *flow_id, *flow_kind, *namespace, *client_time;
} ff_flow_create_args;

ff_verdict ff_flow_create(ff_txn *t, const ff_flow_create_keys *k, const ff_flow_create_args *a,
                          ff_result *out);

/* ff_add_execution_to_flow */
typedef struct ff_flow_add_keys {
    ff_str *core, *members, *flow_index, *execution_core;
} ff_flow_add_keys;

typedef struct ff_flow_add_args {
    ff_str *flow_id, *execution_id, *client_time;
} ff_flow_add_args;

ff_verdict ff_flow_add(ff_txn *t, const ff_flow_add_keys *k, const ff_flow_add_args *a,
                       ff_result *out);

/* ff_cancel_flow */
typedef struct ff_flow_cancel_keys {
    ff_str *core, *members, *flow_index, *pending_cancels, *cancel_backlog;
} ff_flow_cancel_keys;

typedef struct ff_flow_cancel_args {
    ff_str *flow_id, *reason, *policy, *client_time, *grace_ms;
} ff_flow_cancel_args;

ff_verdict ff_flow_cancel(ff_txn *t, const ff_flow_cancel_keys *k, const ff_flow_cancel_args *a,
                          ff_result *out);

/* ff_ack_cancel_member */
typedef struct ff_flow_ack_cancel_keys {
    ff_str *pending_cancels, *cancel_backlog;
} ff_flow_ack_cancel_keys;

typedef struct ff_flow_ack_cancel_args {
    ff_str *execution_id, *flow_id;
} ff_flow_ack_cancel_args;

ff_verdict ff_flow_ack_cancel(ff_txn *t, const ff_flow_ack_cancel_keys *k,
                              const ff_flow_ack_cancel_args *a, ff_result *out);

/* ff_set_flow_tags */
typedef struct ff_flow_tag_keys {
    ff_str *core, *tags;
} ff_flow_tag_keys;

typedef struct ff_flow_tag_args {
    ff_strs pairs;
} ff_flow_tag_args;

ff_verdict ff_flow_tag(ff_txn *t, const ff_flow_tag_keys *k, const ff_flow_tag_args *a,
                       ff_result *out);

#endif
