/* Budgets: usage per dimension (tokens, calls, money: any name) against hard and soft limits.
 *
 * A budget is a definition with its counters of breaches, a hash of limits (`hard:<dimension>`,
 * `soft:<dimension>`) and a hash of usage. A limit bites when a total is greater; reaching it is allowed.
 * What an execution spent is also kept in a ledger of its own, so that it can be given back. A budget with
 * an interval starts again from zero when it is due, which a schedule of the partition tells. */
#ifndef FF_ENGINE_BUDGET_H
#define FF_ENGINE_BUDGET_H

#include "engine/result.h"

/* ff_create_budget. rest: the dimensions, then their hard limits, then their soft limits. */
typedef struct ff_budget_create_keys {
    ff_str *definition, *limits, *usage, *schedule, *policies;
} ff_budget_create_keys;

typedef struct ff_budget_create_args {
    ff_str *budget_id, *scope_type, *scope_id, *enforcement_mode, *on_hard_limit, *on_soft_limit,
        *reset_interval_ms, *now, *dimension_count;
    ff_strs rest;
} ff_budget_create_args;

ff_verdict ff_budget_create(ff_txn *t, const ff_budget_create_keys *k,
                            const ff_budget_create_args *a, ff_result *out);

/* ff_report_usage_and_check. rest: the dimensions, then their deltas, now, the dedup key. */
typedef struct ff_budget_report_keys {
    ff_str *usage, *limits, *definition;
} ff_budget_report_keys;

typedef struct ff_budget_report_args {
    ff_str *dimension_count;
    ff_strs rest;
} ff_budget_report_args;

ff_verdict ff_budget_report(ff_txn *t, const ff_budget_report_keys *k,
                            const ff_budget_report_args *a, ff_result *out);

/* ff_record_spend. rest: pairs of dimension and delta, now, the dedup key, the execution id. */
typedef struct ff_budget_spend_keys {
    ff_str *usage, *limits, *definition, *ledger, *ledger_index;
} ff_budget_spend_keys;

typedef struct ff_budget_spend_args {
    ff_str *pair_count;
    ff_strs rest;
} ff_budget_spend_args;

ff_verdict ff_budget_spend(ff_txn *t, const ff_budget_spend_keys *k, const ff_budget_spend_args *a,
                           ff_result *out);

/* ff_release_budget */
typedef struct ff_budget_release_keys {
    ff_str *usage, *ledger, *ledger_index;
} ff_budget_release_keys;

typedef struct ff_budget_release_args {
    ff_str *budget_id, *execution_id;
} ff_budget_release_args;

ff_verdict ff_budget_release(ff_txn *t, const ff_budget_release_keys *k,
                             const ff_budget_release_args *a, ff_result *out);

/* ff_reset_budget */
typedef struct ff_budget_reset_keys {
    ff_str *definition, *usage, *schedule;
} ff_budget_reset_keys;

typedef struct ff_budget_reset_args {
    ff_str *budget_id, *now;
} ff_budget_reset_args;

ff_verdict ff_budget_reset(ff_txn *t, const ff_budget_reset_keys *k, const ff_budget_reset_args *a,
                           ff_result *out);

#endif
