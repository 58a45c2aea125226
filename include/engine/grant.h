/* Grants: the promise of an execution to one worker, to be spent by its claim before it expires. */
#ifndef FF_ENGINE_GRANT_H
#define FF_ENGINE_GRANT_H

#include "engine/result.h"

/* ff_issue_claim_grant: for an execution that is eligible. */
typedef struct ff_grant_issue_keys {
    ff_str *core, *grant, *eligible;
} ff_grant_issue_keys;

typedef struct ff_grant_issue_args {
    ff_str *execution_id, *worker_id, *worker_instance_id, *lane_id, *capability_hash,
        *grant_ttl_ms, *route_snapshot_json, *admission_summary, *worker_capabilities_csv;
} ff_grant_issue_args;

ff_verdict ff_grant_issue(ff_txn *t, const ff_grant_issue_keys *k, const ff_grant_issue_args *a,
                          ff_result *out);

/* ff_issue_reclaim_grant: for one whose lease expired or was revoked. The index is not read. */
typedef struct ff_grant_issue_reclaim_keys {
    ff_str *core, *grant, *lease_expiry;
} ff_grant_issue_reclaim_keys;

typedef ff_grant_issue_args ff_grant_issue_reclaim_args;

ff_verdict ff_grant_issue_reclaim(ff_txn *t, const ff_grant_issue_reclaim_keys *k,
                                  const ff_grant_issue_reclaim_args *a, ff_result *out);

#endif
