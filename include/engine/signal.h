/* Signals: what somebody outside sends to a waitpoint.
 *
 * Who sends one must show the waitpoint's token. An accepted signal is always kept as a record. Delivered
 * to an active waitpoint it is held against the resume condition, and if that is met now the execution
 * becomes runnable again. For a waitpoint that is still pending it is only kept: the suspension that
 * activates the waitpoint will look at it. */
#ifndef FF_ENGINE_SIGNAL_H
#define FF_ENGINE_SIGNAL_H

#include "engine/result.h"

/* The keys that both functions begin with. */
typedef struct ff_signal_keys {
    ff_str *core, *condition, *waitpoint_signals, *execution_signals, *signal, *payload,
        *deduplication, *waitpoint;
} ff_signal_keys;

typedef struct ff_signal_args {
    ff_str *signal_id, *execution_id, *waitpoint_id, *signal_name, *signal_category, *source_type,
        *source_identity, *payload, *payload_encoding, *idempotency_key, *correlation_id,
        *target_scope, *created_at, *dedup_ttl_ms, *resume_delay_ms, *signal_maxlen,
        *max_signals_per_execution, *waitpoint_token;
} ff_signal_args;

/* ff_deliver_signal */
typedef struct ff_signal_deliver_keys {
    ff_signal_keys common;
    ff_str *suspension, *eligible, *suspended, *delayed, *suspension_timeout, *keystore,
        *deliveries;
} ff_signal_deliver_keys;

typedef ff_signal_args ff_signal_deliver_args;

ff_verdict ff_signal_deliver(ff_txn *t, const ff_signal_deliver_keys *k,
                             const ff_signal_deliver_args *a, ff_result *out);

/* ff_buffer_signal_for_pending_waitpoint */
typedef struct ff_signal_buffer_keys {
    ff_signal_keys common;
    ff_str *keystore;
} ff_signal_buffer_keys;

typedef ff_signal_args ff_signal_buffer_args;

ff_verdict ff_signal_buffer(ff_txn *t, const ff_signal_buffer_keys *k,
                            const ff_signal_buffer_args *a, ff_result *out);

#endif
