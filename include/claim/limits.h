/* Budgets and quotas: may this execution start now?
 *
 * Both live in partitions of their own, which in a cluster may be another node's. What is not
 * here is not known, and what is not known, or cannot be read, never counts as permission. */
#ifndef FF_CLAIM_LIMITS_H
#define FF_CLAIM_LIMITS_H

#include "base/table.h"
#include "store/txn.h"

typedef enum ff_limit {
    FF_LIMIT_FREE,
    FF_LIMIT_BUDGET,      /* a hard limit is reached */
    FF_LIMIT_RATE,        /* of the quota policy */
    FF_LIMIT_CONCURRENCY, /* likewise */
    FF_LIMIT_FOREIGN,     /* the budget or quota is another node's */
    FF_LIMIT_DOUBT,       /* what is stored cannot be read */
} ff_limit;

/* The budgets that one call has looked at. All zero but the arena is empty. */
typedef struct ff_limits {
    ff_arena *arena;
    ff_table budgets;
} ff_limits;

/* Looks at the budgets of an execution. The transaction is only read through, for the core's own
 * fields. On a breach `detail` says which. */
ff_limit ff_limits_budgets(ff_limits *limits, ff_txn *t, ff_key *core, ff_str **detail);

/* Asks the quota policy of an execution, and stages the admission. Unless the answer is free,
 * what is staged must not be committed without blocking the execution. On a refusal `detail`
 * says which limit. */
ff_limit ff_limits_quota(ff_txn *t, ff_key *core, ff_str *execution_id, ff_str **detail);

#endif
