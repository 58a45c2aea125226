/* Composite resume conditions: a tree of nodes, each an object of the JSON text that a suspension came
 * with.
 *
 * A Single waits for one signal on one waitpoint, a Count for several distinct ones on any of a list of
 * waitpoints, an AllOf for all of its members; nodes of other kinds are never satisfied. What the signals
 * have reached so far is kept as tokens in a set beside the suspension record. */
#ifndef FF_ENGINE_TREE_H
#define FF_ENGINE_TREE_H

#include "base/json.h"
#include "base/table.h"
#include "store/txn.h"

/* Rule CONDITION, the types of a tree (the member `tree`, absent included): NULL when every node that
 * can be reached from the root is in order, else a sentence that says what is not. */
const char *ff_tree_fault(const ff_json *root);

/* Writes the member map of a suspension, a hash of that name: for each of the waitpoint keys and each node that
 * takes part for it, wp:<key>:<path> = <path>. The tree must be without fault. */
void ff_tree_map_members(ff_txn *t, const ff_json *root, const ff_table *keys, ff_str *map);

/* A signal as a tree sees it. */
typedef struct ff_tree_signal {
    ff_str *waitpoint_id;
    ff_text waitpoint_key;
    ff_str *signal_id;
    ff_str *name;
    ff_str *source_type;
    ff_str *source_identity;
} ff_tree_signal;

/* Delivers a signal to a tree: stages the tokens that it adds to the state beside the suspension with
 * that key, and returns its effect. On resume_condition_satisfied, `satisfiers` are the ids of all
 * signals that added a token, this one included; the state is still there. */
const ff_word *ff_tree_deliver(ff_txn *t, const ff_json *root, ff_str *suspension,
                               const ff_tree_signal *signal, ff_strs *satisfiers);

#endif
