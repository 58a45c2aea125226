/* The scanners that act when a time has come: leases, delays, timeouts, deadlines, waitpoints, budgets. */
#include "claim/slot.h"
#include "engine/budget.h"
#include "engine/keyname.h"
#include "engine/schedule.h"
#include "engine/subject.h"
#include "engine/suspension.h"
#include "engine/waitpoint.h"
#include "scan/runner.h"
#include "scan/visitors.h"

/* Marked leases stay in the index until somebody reclaims them: passing them must cost little. */
static bool is_marked(ff_key *core) {
    const ff_str *ownership = ff_hash_get(core, W(ownership_state));
    return (ff_str_is(ownership, W(lease_expired_reclaimable)) ||
            ff_str_is(ownership, W(lease_revoked))) &&
           ff_str_is(ff_hash_get(core, W(lifecycle_phase)), W(active));
}

ff_visit_outcome ff_visit_lease_expiry(ff_visit *v) {
    ff_subject s;
    ff_subject_open(v->txn, v->tag, v->member, &s);
    if (is_marked(s.core)) return FF_VISIT_SKIPPED;
    ff_lease_mark_expired_keys k = ff_subject_mark_expired_keys(&s);
    ff_lease_mark_expired_args a = {v->member};
    ff_visit_outcome outcome =
        ff_visit_settle(v, ff_lease_mark_expired(v->txn, &k, &a, &v->result));
    size_t last = v->result.count;
    bool renewed = last && ff_str_is(v->result.values[last - 1].str, W(not_yet_expired));
    return renewed ? FF_VISIT_SKIPPED : outcome;
}

/* An empty time counts as the score that the entry has: the promotion empties the field again. */
static void fill_in_delay(ff_visit *v, ff_key *core) {
    const ff_str *until = ff_hash_get(core, W(delay_until));
    if (until == NULL || ff_str_is_set(until)) return;
    ff_hash_set(core, W(delay_until), ff_str_number(v->txn, v->score));
}

ff_visit_outcome ff_visit_delayed(ff_visit *v) {
    ff_subject s;
    ff_subject_open(v->txn, v->tag, v->member, &s);
    ff_schedule_promote_delayed_keys k = {
        s.core_name, v->index_name, ff_keyname_lane(v->txn, v->tag, v->lane->name, "eligible")};
    ff_schedule_promote_delayed_args a = {v->member, ff_str_now(v->txn)};
    if (ff_str_is(ff_hash_get(s.core, W(eligibility_state)), W(not_eligible_until_time)) &&
        ff_str_is(ff_hash_get(s.core, W(lifecycle_phase)), W(runnable))) {
        fill_in_delay(v, s.core);
    }
    ff_verdict verdict = ff_schedule_promote_delayed(v->txn, &k, &a, &v->result);
    return ff_visit_settle_unless(v, verdict, W(not_yet_due));
}

static ff_visit_outcome expire(ff_visit *v, const ff_word *reason) {
    ff_subject s;
    ff_subject_open(v->txn, v->tag, v->member, &s);
    ff_execution_expire_keys k = ff_subject_expire_keys(&s);
    ff_execution_expire_args a = {v->member, reason->str};
    ff_visit_outcome outcome = ff_visit_settle(v, ff_execution_expire(v->txn, &k, &a, &v->result));
    if (outcome == FF_VISIT_PROCESSED) ff_slot_free(v->txn, s.core, v->member);
    return outcome;
}

ff_visit_outcome ff_visit_attempt_timeout(ff_visit *v) { return expire(v, W(attempt_timeout)); }

ff_visit_outcome ff_visit_deadline(ff_visit *v) { return expire(v, W(execution_deadline)); }

/* A suspension that is open but has no timeout: nothing will ever come of the entry. */
static bool has_no_timeout(ff_subject *s, ff_str *suspension_name) {
    double at;
    if (!ff_str_is(ff_hash_get(s->core, W(lifecycle_phase)), W(suspended))) return false;
    ff_key *suspension = ff_hash_open(s->txn, suspension_name);
    if (!ff_str_is_set(ff_hash_get(suspension, W(suspension_id)))) return false;
    if (ff_str_is_set(ff_hash_get(suspension, W(closed_at)))) return false;
    const ff_str *timeout = ff_hash_get(suspension, W(timeout_at));
    return !ff_str_is_set(timeout) || (ff_str_to_number(timeout, &at) && at == 0);
}

ff_visit_outcome ff_visit_suspension_timeout(ff_visit *v) {
    ff_subject s;
    ff_subject_open(v->txn, v->tag, v->member, &s);
    bool waits = ff_subject_waitpoint_id(&s).len > 0;
    ff_suspension_expire_keys k = {
        .core = s.core_name,
        .suspension = ff_subject_key(&s, "suspension:current"),
        .waitpoint = waits ? ff_subject_waitpoint(&s, "") : NULL,
        .condition = waits ? ff_subject_waitpoint(&s, ":condition") : NULL,
        .attempt = ff_subject_attempt(&s, ""),
        .stream_meta = ff_subject_stream_meta(&s),
        .suspension_timeout = v->index_name,
        .suspended = ff_subject_lane_index(&s, "suspended"),
        .terminal = ff_subject_lane_index(&s, "terminal"),
        .eligible = ff_subject_lane_index(&s, "eligible"),
        .delayed = ff_subject_lane_index(&s, "delayed"),
        .history = ff_subject_key(&s, "lease:history"),
    };
    ff_suspension_expire_args a = {v->member};
    if (has_no_timeout(&s, k.suspension)) return ff_visit_drop(v);
    ff_verdict verdict = ff_suspension_expire(v->txn, &k, &a, &v->result);
    return ff_visit_settle_unless(v, verdict, W(not_yet_due));
}

ff_visit_outcome ff_visit_pending_waitpoint(ff_visit *v) {
    ff_waitpoint_close_keys k = {
        .waitpoint = ff_keyname_waitpoint(v->txn, v->tag, ff_str_text(v->member), ""),
        .pending_waitpoint_expiry = v->index_name,
    };
    ff_waitpoint_close_args a = {v->member, W(never_committed)->str};
    const ff_str *state = ff_hash_get(ff_hash_open(v->txn, k.waitpoint), W(state));
    if (!ff_str_is(state, W(pending)) && !ff_str_is(state, W(active))) return ff_visit_drop(v);
    return ff_visit_settle(v, ff_waitpoint_close(v->txn, &k, &a, &v->result));
}

/* ff:budget:<tag>:<id><suffix> */
static ff_str *budget_key(ff_visit *v, const char *suffix) {
    return FF_CONCAT(v->txn, FF_TEXT("ff:budget:"), v->tag, FF_TEXT(":"), ff_str_text(v->member),
                     ff_text_of(suffix));
}

ff_visit_outcome ff_visit_budget_reset(ff_visit *v) {
    ff_uuid id;
    if (!ff_uuid_parse(ff_str_text(v->member), &id)) return ff_visit_complain(v, "is no budget id");
    ff_budget_reset_keys k = {budget_key(v, ""), budget_key(v, ":usage"), v->index_name};
    ff_budget_reset_args a = {v->member, ff_str_now(v->txn)};
    if (!ff_key_exists(ff_any_open(v->txn, k.definition))) return ff_visit_drop(v);
    ff_visit_outcome outcome = ff_visit_settle(v, ff_budget_reset(v->txn, &k, &a, &v->result));
    if (outcome == FF_VISIT_PROCESSED) ff_runner_nudge(FF_SCANNER_UNBLOCK);
    return outcome;
}
