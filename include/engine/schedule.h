/* The order in which executions wait, and the end of a delay. */
#ifndef FF_ENGINE_SCHEDULE_H
#define FF_ENGINE_SCHEDULE_H

#include "engine/result.h"

/* ff_change_priority */
typedef struct ff_schedule_change_priority_keys {
    ff_str *core, *eligible;
} ff_schedule_change_priority_keys;

typedef struct ff_schedule_change_priority_args {
    ff_str *execution_id, *new_priority;
} ff_schedule_change_priority_args;

ff_verdict ff_schedule_change_priority(ff_txn *t, const ff_schedule_change_priority_keys *k,
                                       const ff_schedule_change_priority_args *a, ff_result *out);

/* ff_promote_delayed. The time is the argument. All but bad numbers is a success, and takes the
 * execution out of the delayed set unless it is not due yet. */
typedef struct ff_schedule_promote_delayed_keys {
    ff_str *core, *delayed, *eligible;
} ff_schedule_promote_delayed_keys;

typedef struct ff_schedule_promote_delayed_args {
    ff_str *execution_id, *now_ms;
} ff_schedule_promote_delayed_args;

ff_verdict ff_schedule_promote_delayed(ff_txn *t, const ff_schedule_promote_delayed_keys *k,
                                       const ff_schedule_promote_delayed_args *a, ff_result *out);

#endif
