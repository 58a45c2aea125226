/* Quota policies: how many executions may start in a time, and how many may run at once.
 *
 * A policy is a definition, which only says what was agreed on, and three keys that count: a window (the
 * executions admitted, by time), a concurrency counter, and a set of the admitted. Each admission also
 * leaves a guard, which makes a repeated call harmless for as long as the window is wide. */
#ifndef FF_ENGINE_QUOTA_H
#define FF_ENGINE_QUOTA_H

#include "engine/result.h"

/* ff_create_quota_policy */
typedef struct ff_quota_create_keys {
    ff_str *definition, *window, *concurrency, *admitted_set, *policies;
} ff_quota_create_keys;

typedef struct ff_quota_create_args {
    ff_str *quota_policy_id, *window_seconds, *max_requests_per_window, *max_concurrent, *now_ms;
} ff_quota_create_args;

ff_verdict ff_quota_create(ff_txn *t, const ff_quota_create_keys *k, const ff_quota_create_args *a,
                           ff_result *out);

/* ff_check_admission_and_record. The limits are those of the arguments, not of the definition. */
typedef struct ff_quota_admit_keys {
    ff_str *window, *concurrency, *definition, *guard, *admitted_set;
} ff_quota_admit_keys;

typedef struct ff_quota_admit_args {
    ff_str *now_ms, *window_seconds, *rate_limit, *concurrency_cap, *execution_id, *jitter_ms;
} ff_quota_admit_args;

ff_verdict ff_quota_admit(ff_txn *t, const ff_quota_admit_keys *k, const ff_quota_admit_args *a,
                          ff_result *out);

/* ff_release_admission */
typedef struct ff_quota_release_keys {
    ff_str *guard, *admitted_set, *concurrency;
} ff_quota_release_keys;

typedef struct ff_quota_release_args {
    ff_str *execution_id;
} ff_quota_release_args;

ff_verdict ff_quota_release(ff_txn *t, const ff_quota_release_keys *k,
                            const ff_quota_release_args *a, ff_result *out);

#endif
