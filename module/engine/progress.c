#include "engine/progress.h"

#include "engine/lease.h"

/* Here an absent argument equals an absent field. */
static bool same(const ff_str *stored, const ff_str *given) {
    return stored == given || ff_str_equal(stored, given);
}

/* Laxer than the rule LEASE-CHECK: the attempt is not compared. */
static ff_code check(ff_key *core, const ff_progress_update_args *a) {
    if (!ff_key_exists(core)) return FF_EXECUTION_NOT_FOUND;
    if (!ff_str_is(ff_hash_get(core, W(lifecycle_phase)), W(active))) {
        return FF_EXECUTION_NOT_ACTIVE;
    }
    if (ff_str_is(ff_hash_get(core, W(ownership_state)), W(lease_revoked))) return FF_LEASE_REVOKED;
    ff_code refused = ff_lease_check_expiry(core);
    if (refused) return refused;
    if (!same(ff_hash_get(core, W(current_lease_id)), a->lease_id) ||
        !same(ff_hash_get(core, W(current_lease_epoch)), a->lease_epoch)) {
        return FF_STALE_LEASE;
    }
    return FF_OK;
}

/* An expired lease is reported but, unlike elsewhere, not marked. */
static ff_verdict refuse(ff_result *out, ff_code code, ff_key *core) {
    switch (code) {
    case FF_EXECUTION_NOT_ACTIVE: return ff_refuse_not_active(out, core);
    case FF_INVALID_INPUT:
        return ff_not_a_number(out, "lease_expires_at", ff_hash_get(core, W(lease_expires_at)));
    default: return ff_refuse(out, code);
    }
}

ff_verdict ff_progress_update(ff_txn *t, const ff_progress_update_keys *k,
                              const ff_progress_update_args *a, ff_result *out) {
    ff_key *core = ff_hash_open(t, k->core);
    ff_code refused = check(core, a);
    if (refused) return refuse(out, refused, core);
    ff_hash_set_now(core, W(last_mutation_at));
    ff_hash_set_now(core, W(progress_updated_at));
    if (ff_str_is_set(a->progress_pct)) ff_hash_set(core, W(progress_pct), a->progress_pct);
    if (ff_str_is_set(a->progress_message)) {
        ff_hash_set(core, W(progress_message), a->progress_message);
    }
    return ff_ok(out);
}
