#include "engine/subject.h"

#include "engine/keyname.h"

void ff_subject_open(ff_txn *t, ff_text tag, ff_str *execution_id, ff_subject *s) {
    ff_str *core = ff_keyname_execution(t, tag, ff_str_text(execution_id), "core");
    *s = (ff_subject){t, tag, execution_id, core, ff_hash_open(t, core)};
}

static ff_text field_or(ff_subject *s, const ff_word *field, ff_text absent) {
    ff_str *value = ff_hash_get(s->core, field);
    return value ? ff_str_text(value) : absent;
}

ff_text ff_subject_lane(ff_subject *s) { return field_or(s, W(lane_id), FF_TEXT("default")); }

ff_text ff_subject_attempt_index(ff_subject *s) {
    return field_or(s, W(current_attempt_index), FF_TEXT("0"));
}

ff_text ff_subject_instance(ff_subject *s) {
    return field_or(s, W(current_worker_instance_id), FF_TEXT(""));
}

ff_text ff_subject_waitpoint_id(ff_subject *s) {
    return field_or(s, W(current_waitpoint_id), FF_TEXT(""));
}

ff_str *ff_subject_key(ff_subject *s, const char *suffix) {
    return ff_keyname_execution(s->txn, s->tag, ff_str_text(s->execution_id), suffix);
}

ff_str *ff_subject_index(ff_subject *s, const char *suffix) {
    return ff_keyname_index(s->txn, s->tag, suffix);
}

ff_str *ff_subject_lane_index(ff_subject *s, const char *suffix) {
    return ff_keyname_lane(s->txn, s->tag, ff_subject_lane(s), suffix);
}

ff_str *ff_subject_attempt(ff_subject *s, const char *suffix) {
    return ff_keyname_attempt(s->txn, s->tag, ff_str_text(s->execution_id),
                              ff_subject_attempt_index(s), suffix);
}

ff_str *ff_subject_stream_meta(ff_subject *s) {
    return ff_keyname_stream_meta(s->txn, s->tag, ff_str_text(s->execution_id),
                                  ff_subject_attempt_index(s));
}

ff_str *ff_subject_worker_leases(ff_subject *s, ff_text instance) {
    return ff_keyname_worker_leases(s->txn, s->tag, instance);
}

ff_str *ff_subject_waitpoint(ff_subject *s, const char *suffix) {
    return ff_keyname_waitpoint(s->txn, s->tag, ff_subject_waitpoint_id(s), suffix);
}

ff_str *ff_subject_keystore(ff_subject *s) {
    return FF_CONCAT(s->txn, FF_TEXT("ff:sec:"), s->tag, FF_TEXT(":waitpoint_hmac"));
}

ff_execution_complete_keys ff_subject_complete_keys(ff_subject *s) {
    return (ff_execution_complete_keys){
        .core = s->core_name,
        .attempt = ff_subject_attempt(s, ""),
        .lease_expiry = ff_subject_index(s, "lease_expiry"),
        .worker_leases = ff_subject_worker_leases(s, ff_subject_instance(s)),
        .terminal = ff_subject_lane_index(s, "terminal"),
        .lease = ff_subject_key(s, "lease:current"),
        .history = ff_subject_key(s, "lease:history"),
        .active = ff_subject_lane_index(s, "active"),
        .stream_meta = ff_subject_stream_meta(s),
        .result = ff_subject_key(s, "result"),
        .attempt_timeout = ff_subject_index(s, "attempt_timeout"),
        .execution_deadline = ff_subject_index(s, "execution_deadline"),
    };
}

ff_execution_fail_keys ff_subject_fail_keys(ff_subject *s) {
    return (ff_execution_fail_keys){
        .core = s->core_name,
        .attempt = ff_subject_attempt(s, ""),
        .lease_expiry = ff_subject_index(s, "lease_expiry"),
        .worker_leases = ff_subject_worker_leases(s, ff_subject_instance(s)),
        .terminal = ff_subject_lane_index(s, "terminal"),
        .delayed = ff_subject_lane_index(s, "delayed"),
        .lease = ff_subject_key(s, "lease:current"),
        .history = ff_subject_key(s, "lease:history"),
        .active = ff_subject_lane_index(s, "active"),
        .stream_meta = ff_subject_stream_meta(s),
        .attempt_timeout = ff_subject_index(s, "attempt_timeout"),
        .execution_deadline = ff_subject_index(s, "execution_deadline"),
    };
}

ff_execution_cancel_keys ff_subject_cancel_keys(ff_subject *s) {
    return (ff_execution_cancel_keys){
        .core = s->core_name,
        .attempt = ff_subject_attempt(s, ""),
        .stream_meta = ff_subject_stream_meta(s),
        .lease = ff_subject_key(s, "lease:current"),
        .history = ff_subject_key(s, "lease:history"),
        .lease_expiry = ff_subject_index(s, "lease_expiry"),
        .worker_leases = ff_subject_worker_leases(s, ff_subject_instance(s)),
        .suspension = ff_subject_key(s, "suspension:current"),
        .waitpoint = ff_subject_waitpoint(s, ""),
        .condition = ff_subject_waitpoint(s, ":condition"),
        .suspension_timeout = ff_subject_index(s, "suspension_timeout"),
        .terminal = ff_subject_lane_index(s, "terminal"),
        .attempt_timeout = ff_subject_index(s, "attempt_timeout"),
        .execution_deadline = ff_subject_index(s, "execution_deadline"),
        .eligible = ff_subject_lane_index(s, "eligible"),
        .delayed = ff_subject_lane_index(s, "delayed"),
        .blocked_dependencies = ff_subject_lane_index(s, "blocked:dependencies"),
        .blocked_budget = ff_subject_lane_index(s, "blocked:budget"),
        .blocked_quota = ff_subject_lane_index(s, "blocked:quota"),
        .blocked_route = ff_subject_lane_index(s, "blocked:route"),
        .blocked_operator = ff_subject_lane_index(s, "blocked:operator"),
    };
}

ff_execution_expire_keys ff_subject_expire_keys(ff_subject *s) {
    return (ff_execution_expire_keys){
        .core = s->core_name,
        .attempt = ff_subject_attempt(s, ""),
        .stream_meta = ff_subject_stream_meta(s),
        .lease = ff_subject_key(s, "lease:current"),
        .history = ff_subject_key(s, "lease:history"),
        .lease_expiry = ff_subject_index(s, "lease_expiry"),
        .worker_leases = ff_subject_worker_leases(s, ff_subject_instance(s)),
        .active = ff_subject_lane_index(s, "active"),
        .terminal = ff_subject_lane_index(s, "terminal"),
        .attempt_timeout = ff_subject_index(s, "attempt_timeout"),
        .execution_deadline = ff_subject_index(s, "execution_deadline"),
        .suspended = ff_subject_lane_index(s, "suspended"),
        .suspension_timeout = ff_subject_index(s, "suspension_timeout"),
        .suspension = ff_subject_key(s, "suspension:current"),
    };
}

ff_execution_delay_keys ff_subject_delay_keys(ff_subject *s) {
    return (ff_execution_delay_keys){
        .core = s->core_name,
        .attempt = ff_subject_attempt(s, ""),
        .lease = ff_subject_key(s, "lease:current"),
        .history = ff_subject_key(s, "lease:history"),
        .lease_expiry = ff_subject_index(s, "lease_expiry"),
        .worker_leases = ff_subject_worker_leases(s, ff_subject_instance(s)),
        .active = ff_subject_lane_index(s, "active"),
        .delayed = ff_subject_lane_index(s, "delayed"),
        .attempt_timeout = ff_subject_index(s, "attempt_timeout"),
    };
}

ff_execution_wait_children_keys ff_subject_wait_children_keys(ff_subject *s) {
    return (ff_execution_wait_children_keys){
        .core = s->core_name,
        .attempt = ff_subject_attempt(s, ""),
        .lease = ff_subject_key(s, "lease:current"),
        .history = ff_subject_key(s, "lease:history"),
        .lease_expiry = ff_subject_index(s, "lease_expiry"),
        .worker_leases = ff_subject_worker_leases(s, ff_subject_instance(s)),
        .active = ff_subject_lane_index(s, "active"),
        .blocked_dependencies = ff_subject_lane_index(s, "blocked:dependencies"),
        .attempt_timeout = ff_subject_index(s, "attempt_timeout"),
    };
}

ff_lease_renew_keys ff_subject_renew_keys(ff_subject *s) {
    return (ff_lease_renew_keys){
        .core = s->core_name,
        .lease = ff_subject_key(s, "lease:current"),
        .history = ff_subject_key(s, "lease:history"),
        .lease_expiry = ff_subject_index(s, "lease_expiry"),
    };
}

ff_lease_revoke_keys ff_subject_revoke_keys(ff_subject *s) {
    return (ff_lease_revoke_keys){
        .core = s->core_name,
        .lease = ff_subject_key(s, "lease:current"),
        .history = ff_subject_key(s, "lease:history"),
        .lease_expiry = ff_subject_index(s, "lease_expiry"),
        .worker_leases = ff_subject_worker_leases(s, ff_subject_instance(s)),
    };
}

ff_lease_mark_expired_keys ff_subject_mark_expired_keys(ff_subject *s) {
    return (ff_lease_mark_expired_keys){
        .core = s->core_name,
        .lease = ff_subject_key(s, "lease:current"),
        .lease_expiry = ff_subject_index(s, "lease_expiry"),
        .history = ff_subject_key(s, "lease:history"),
    };
}

ff_claim_fresh_keys ff_subject_claim_fresh_keys(ff_subject *s, ff_text lane, ff_text instance) {
    /* The attempt keys are placeholders: the claim builds the names of the attempt it opens. */
    return (ff_claim_fresh_keys){
        .core = s->core_name,
        .grant = ff_subject_key(s, "claim_grant"),
        .eligible = ff_keyname_lane(s->txn, s->tag, lane, "eligible"),
        .lease_expiry = ff_subject_index(s, "lease_expiry"),
        .worker_leases = ff_subject_worker_leases(s, instance),
        .attempts = ff_subject_key(s, "attempts"),
        .lease = ff_subject_key(s, "lease:current"),
        .history = ff_subject_key(s, "lease:history"),
        .active = ff_keyname_lane(s->txn, s->tag, lane, "active"),
        .attempt_timeouts = ff_subject_index(s, "attempt_timeout"),
        .deadlines = ff_subject_index(s, "execution_deadline"),
    };
}

ff_claim_resumed_keys ff_subject_claim_resumed_keys(ff_subject *s, ff_text lane, ff_text instance) {
    return (ff_claim_resumed_keys){
        .core = s->core_name,
        .grant = ff_subject_key(s, "claim_grant"),
        .eligible = ff_keyname_lane(s->txn, s->tag, lane, "eligible"),
        .lease_expiry = ff_subject_index(s, "lease_expiry"),
        .worker_leases = ff_subject_worker_leases(s, instance),
        .attempt = ff_subject_attempt(s, ""),
        .lease = ff_subject_key(s, "lease:current"),
        .history = ff_subject_key(s, "lease:history"),
        .active = ff_keyname_lane(s->txn, s->tag, lane, "active"),
        .attempt_timeouts = ff_subject_index(s, "attempt_timeout"),
        .deadlines = ff_subject_index(s, "execution_deadline"),
    };
}

ff_claim_reclaim_keys ff_subject_claim_reclaim_keys(ff_subject *s, ff_text lane, ff_text instance) {
    return (ff_claim_reclaim_keys){
        .core = s->core_name,
        .grant = ff_subject_key(s, "claim_grant"),
        .old_attempt = ff_subject_attempt(s, ""),
        .old_stream_meta = ff_subject_stream_meta(s),
        .attempts = ff_subject_key(s, "attempts"),
        .lease = ff_subject_key(s, "lease:current"),
        .history = ff_subject_key(s, "lease:history"),
        .lease_expiry = ff_subject_index(s, "lease_expiry"),
        .worker_leases = ff_subject_worker_leases(s, instance),
        .active = ff_keyname_lane(s->txn, s->tag, lane, "active"),
        .attempt_timeouts = ff_subject_index(s, "attempt_timeout"),
        .deadlines = ff_subject_index(s, "execution_deadline"),
    };
}
