/* How an operation may end, every word spelled once: the wire functions answer it as it is, the native
 * commands in upper case. */
#ifndef FF_ENGINE_CODE_H
#define FF_ENGINE_CODE_H

/* Verdicts that count as success. */
#define FF_SUCCESS_CODES(X) \
    X(OK, "OK") \
    X(ALREADY_SATISFIED, "ALREADY_SATISFIED") \
    X(DUPLICATE, "DUPLICATE") \
    X(ALREADY_APPLIED, "ALREADY_APPLIED") \
    X(HARD_BREACH, "HARD_BREACH") \
    X(SOFT_BREACH, "SOFT_BREACH") \
    X(ADMITTED, "ADMITTED") \
    X(ALREADY_ADMITTED, "ALREADY_ADMITTED") \
    X(RATE_EXCEEDED, "RATE_EXCEEDED") \
    X(CONCURRENCY_EXCEEDED, "CONCURRENCY_EXCEEDED")

/* Refusals. */
#define FF_REFUSAL_CODES(X) \
    X(ACTIVE_ATTEMPT_EXISTS, "active_attempt_exists") \
    X(ADDITIONAL_WAITPOINT_BINDING_MALFORMED, "additional_waitpoint_binding_malformed") \
    X(ALREADY_MEMBER_OF_DIFFERENT_FLOW, "already_member_of_different_flow") \
    X(ALREADY_SUSPENDED, "already_suspended") \
    X(CAPABILITY_MISMATCH, "capability_mismatch") \
    X(CLAIM_GRANT_EXPIRED, "claim_grant_expired") \
    X(CORRUPTION, "corruption") \
    X(CYCLE_DETECTED, "cycle_detected") \
    X(DEPENDENCY_ALREADY_EXISTS, "dependency_already_exists") \
    X(DEPS_NOT_SATISFIED, "deps_not_satisfied") \
    X(EXECUTION_ALREADY_IN_FLOW, "execution_already_in_flow") \
    X(EXECUTION_NOT_ACTIVE, "execution_not_active") \
    X(EXECUTION_NOT_ELIGIBLE, "execution_not_eligible") \
    X(EXECUTION_NOT_FOUND, "execution_not_found") \
    X(EXECUTION_NOT_IN_ELIGIBLE_SET, "execution_not_in_eligible_set") \
    X(EXECUTION_NOT_IN_FLOW, "execution_not_in_flow") \
    X(EXECUTION_NOT_LEASEABLE, "execution_not_leaseable") \
    X(EXECUTION_NOT_RECLAIMABLE, "execution_not_reclaimable") \
    X(EXECUTION_NOT_SUSPENDED, "execution_not_suspended") \
    X(EXECUTION_NOT_TERMINAL, "execution_not_terminal") \
    X(FENCE_REQUIRED, "fence_required") \
    X(FLOW_ALREADY_TERMINAL, "flow_already_terminal") \
    X(FLOW_NOT_FOUND, "flow_not_found") \
    X(GRANT_ALREADY_EXISTS, "grant_already_exists") \
    X(HMAC_SECRET_NOT_INITIALIZED, "hmac_secret_not_initialized") \
    X(INVALID_ARGS, "invalid_args") \
    X(INVALID_BLOCKING_REASON, "invalid_blocking_reason") \
    X(INVALID_CAPABILITIES, "invalid_capabilities") \
    X(INVALID_CLAIM_GRANT, "invalid_claim_grant") \
    X(INVALID_DEPENDENCY, "invalid_dependency") \
    X(INVALID_GRACE_MS, "invalid_grace_ms") \
    X(INVALID_INPUT, "invalid_input") \
    X(INVALID_KEYS_MISSING_HMAC, "invalid_keys_missing_hmac") \
    X(INVALID_KID, "invalid_kid") \
    X(INVALID_LEASE_FOR_SUSPEND, "invalid_lease_for_suspend") \
    X(INVALID_POLICY_JSON, "invalid_policy_json") \
    X(INVALID_SECRET, "invalid_secret") \
    X(INVALID_SECRET_HEX, "invalid_secret_hex") \
    X(INVALID_TAG_KEY, "invalid_tag_key") \
    X(INVALID_TOKEN, "invalid_token") \
    X(INVALID_WAITPOINT_FOR_EXECUTION, "invalid_waitpoint_for_execution") \
    X(INVARIANT_VIOLATION, "invariant_violation") \
    X(LEASE_CONFLICT, "lease_conflict") \
    X(LEASE_EXPIRED, "lease_expired") \
    X(LEASE_REVOKED, "lease_revoked") \
    X(MAX_REPLAYS_EXHAUSTED, "max_replays_exhausted") \
    X(MAX_RETRIES_EXHAUSTED, "max_retries_exhausted") \
    X(MISSING_TOKEN, "missing_token") \
    X(NO_ACTIVE_LEASE, "no_active_lease") \
    X(NOT_A_RESUMED_EXECUTION, "not_a_resumed_execution") \
    X(NOT_BLOCKED_BY_DEPS, "not_blocked_by_deps") \
    X(NOT_RUNNABLE, "not_runnable") \
    X(PARTIAL_FENCE_TRIPLE, "partial_fence_triple") \
    X(PENDING_WAITPOINT_EXPIRED, "pending_waitpoint_expired") \
    X(RETENTION_LIMIT_EXCEEDED, "retention_limit_exceeded") \
    X(ROTATION_CONFLICT, "rotation_conflict") \
    X(SELF_REFERENCING_EDGE, "self_referencing_edge") \
    X(SIGNAL_LIMIT_EXCEEDED, "signal_limit_exceeded") \
    X(STALE_GRAPH_REVISION, "stale_graph_revision") \
    X(STALE_LEASE, "stale_lease") \
    X(STALE_OWNER_CANNOT_APPEND, "stale_owner_cannot_append") \
    X(STREAM_CLOSED, "stream_closed") \
    X(TARGET_NOT_SIGNALABLE, "target_not_signalable") \
    X(TERMINAL, "terminal") \
    X(TOKEN_EXPIRED, "token_expired") \
    X(USE_CLAIM_RESUMED_EXECUTION, "use_claim_resumed_execution") \
    X(USE_PENDING_WITH_EXTRAS_UNSUPPORTED, "use_pending_with_extras_unsupported") \
    X(WAITPOINT_ALREADY_EXISTS, "waitpoint_already_exists") \
    X(WAITPOINT_CLOSED, "waitpoint_closed") \
    X(WAITPOINT_NOT_FOUND, "waitpoint_not_found") \
    X(WAITPOINT_NOT_OPEN, "waitpoint_not_open") \
    X(WAITPOINT_NOT_PENDING, "waitpoint_not_pending") \
    X(WAITPOINT_NOT_TOKEN_BOUND, "waitpoint_not_token_bound") \
    X(WAITPOINT_PENDING_USE_BUFFER_SCRIPT, "waitpoint_pending_use_buffer_script")

#define FF_CODE_ENUM(name, word) FF_##name,
typedef enum ff_code {
    FF_SUCCESS_CODES(FF_CODE_ENUM) FF_FIRST_REFUSAL,
    FF_BEFORE_REFUSALS = FF_FIRST_REFUSAL - 1,
    FF_REFUSAL_CODES(FF_CODE_ENUM) FF_CODE_COUNT
} ff_code;
#undef FF_CODE_ENUM

/* The word as the wire functions answer it. */
const char *ff_code_word(ff_code code);

#endif
