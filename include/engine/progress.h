/* How far the holder of a lease says it is. */
#ifndef FF_ENGINE_PROGRESS_H
#define FF_ENGINE_PROGRESS_H

#include "engine/result.h"

/* ff_update_progress */
typedef struct ff_progress_update_keys {
    ff_str *core;
} ff_progress_update_keys;

typedef struct ff_progress_update_args {
    ff_str *execution_id, *lease_id, *lease_epoch, *progress_pct, *progress_message;
} ff_progress_update_args;

ff_verdict ff_progress_update(ff_txn *t, const ff_progress_update_keys *k,
                              const ff_progress_update_args *a, ff_result *out);

#endif
