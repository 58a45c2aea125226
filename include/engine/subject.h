/* The execution that a native command or a scanner is about: its keys, derived from its id.
 *
 * The wire functions are given their keys; everybody else knows an execution id, and finds in the core
 * which lane, attempt, worker and waitpoint the other keys belong to. What is read here is read through
 * the transaction, so that the operation that follows finds it read already. */
#ifndef FF_ENGINE_SUBJECT_H
#define FF_ENGINE_SUBJECT_H

#include "engine/cancellation.h"
#include "engine/claim.h"
#include "engine/ending.h"
#include "engine/execution.h"
#include "engine/lease.h"
#include "engine/pause.h"
#include "engine/retry.h"
#include "store/txn.h"

typedef struct ff_subject {
    ff_txn *txn;
    ff_text tag;
    ff_str *execution_id;
    ff_str *core_name;
    ff_key *core;
} ff_subject;

/* `tag` is that of the execution's partition, braces included; it must live as long as the transaction. */
void ff_subject_open(ff_txn *t, ff_text tag, ff_str *execution_id, ff_subject *s);

/* From the core: lane_id, or "default"; current_attempt_index, or "0"; the worker instance and waitpoint,
 * or empty. */
ff_text ff_subject_lane(ff_subject *s);
ff_text ff_subject_attempt_index(ff_subject *s);
ff_text ff_subject_instance(ff_subject *s);
ff_text ff_subject_waitpoint_id(ff_subject *s);

/* Key names: ff:exec:…:<suffix>, ff:idx:…:<suffix>, ff:idx:…:lane:<its lane>:<suffix>, its current attempt
 * with a suffix, the attempt's stream record, a worker's leases, its current waitpoint with a suffix. */
ff_str *ff_subject_key(ff_subject *s, const char *suffix);
ff_str *ff_subject_index(ff_subject *s, const char *suffix);
ff_str *ff_subject_lane_index(ff_subject *s, const char *suffix);
ff_str *ff_subject_attempt(ff_subject *s, const char *suffix);
ff_str *ff_subject_stream_meta(ff_subject *s);
ff_str *ff_subject_worker_leases(ff_subject *s, ff_text instance);
ff_str *ff_subject_waitpoint(ff_subject *s, const char *suffix);

/* The signing secrets of the partition. */
ff_str *ff_subject_keystore(ff_subject *s);

/* The keys of operations. */
ff_execution_complete_keys ff_subject_complete_keys(ff_subject *s);
ff_execution_fail_keys ff_subject_fail_keys(ff_subject *s);
ff_execution_cancel_keys ff_subject_cancel_keys(ff_subject *s);
ff_execution_expire_keys ff_subject_expire_keys(ff_subject *s);
ff_execution_delay_keys ff_subject_delay_keys(ff_subject *s);
ff_execution_wait_children_keys ff_subject_wait_children_keys(ff_subject *s);
ff_lease_renew_keys ff_subject_renew_keys(ff_subject *s);
ff_lease_revoke_keys ff_subject_revoke_keys(ff_subject *s);
ff_lease_mark_expired_keys ff_subject_mark_expired_keys(ff_subject *s);

/* `instance` is that of the worker who claims; `lane` the lane it claims from. */
ff_claim_fresh_keys ff_subject_claim_fresh_keys(ff_subject *s, ff_text lane, ff_text instance);
ff_claim_resumed_keys ff_subject_claim_resumed_keys(ff_subject *s, ff_text lane, ff_text instance);
ff_claim_reclaim_keys ff_subject_claim_reclaim_keys(ff_subject *s, ff_text lane, ff_text instance);

#endif
