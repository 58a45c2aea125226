/* Replays: bringing an execution that has ended back for another attempt.
 *
 * How often is limited, by default or by the execution's policy. A member of a flow that was skipped, because what
 * it waits for could not happen any more, goes back to waiting for it; everything else is eligible at once. */
#ifndef FF_ENGINE_REPLAY_H
#define FF_ENGINE_REPLAY_H

#include "engine/result.h"

/* ff_replay_execution */
typedef struct ff_execution_replay_keys {
    ff_str *core, *terminal, *eligible, *history, *blocked, *meta, *unresolved;
    ff_strs dependencies; /* one for each edge id */
} ff_execution_replay_keys;

typedef struct ff_execution_replay_args {
    ff_str *execution_id, *client_time;
    ff_strs edge_ids;
} ff_execution_replay_args;

ff_verdict ff_execution_replay(ff_txn *t, const ff_execution_replay_keys *k,
                               const ff_execution_replay_args *a, ff_result *out);

#endif
