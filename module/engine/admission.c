#include "engine/admission.h"

#include <math.h>

#include "engine/lease.h"
#include "engine/score.h"
#include "engine/vector.h"

/* Why an execution may be blocked, and what it then is. */
static const ff_word *eligibility_for(const ff_str *reason) {
    if (ff_str_is(reason, W(waiting_for_budget))) return W(blocked_by_budget);
    if (ff_str_is(reason, W(waiting_for_quota))) return W(blocked_by_quota);
    if (ff_str_is(reason, W(waiting_for_capable_worker))) return W(blocked_by_route);
    if (ff_str_is(reason, W(paused_by_operator))) return W(blocked_by_operator);
    if (ff_str_is(reason, W(paused_by_policy))) return W(blocked_by_lane_state);
    return NULL;
}

/* The blocks that can be lifted. */
static bool is_blocked(const ff_str *eligibility) {
    return ff_str_is(eligibility, W(blocked_by_budget)) ||
           ff_str_is(eligibility, W(blocked_by_quota)) ||
           ff_str_is(eligibility, W(blocked_by_route)) ||
           ff_str_is(eligibility, W(blocked_by_operator));
}

static void write_state(ff_key *core, ff_vector *vector, ff_str *now) {
    vector->phase = W(runnable);
    vector->ownership = W(unowned);
    vector->outcome = W(none);
    if (ff_hash_get(core, W(attempt_state)) == NULL) vector->attempt = W(pending_first_attempt);
    ff_vector_set(core, vector);
    ff_vector_set_times(core, now);
}

ff_verdict ff_admission_block(ff_txn *t, const ff_admission_block_keys *k,
                              const ff_admission_block_args *a, ff_result *out) {
    double now;
    ff_key *core = ff_hash_open(t, k->core);
    if (!ff_key_exists(core)) return ff_refuse(out, FF_EXECUTION_NOT_FOUND);
    ff_str *phase = ff_hash_get(core, W(lifecycle_phase));
    if (ff_str_is(phase, W(terminal))) return ff_refuse_not_active(out, core);
    if (!ff_str_is(phase, W(runnable))) return ff_refuse(out, FF_EXECUTION_NOT_ELIGIBLE);
    const ff_word *eligibility = eligibility_for(a->reason);
    if (eligibility == NULL) return ff_refuse(out, FF_INVALID_BLOCKING_REASON);
    if (!ff_str_to_number(a->now, &now) || isnan(now)) return ff_not_a_number(out, "now", a->now);

    write_state(core,
                &(ff_vector){.eligibility = eligibility,
                             .detail = ff_str_or_empty(a->detail),
                             .public_state = W(rate_limited)},
                a->now);
    ff_hash_set(core, W(blocking_reason), a->reason);
    ff_zset_remove(ff_zset_open(t, k->eligible), a->execution_id);
    ff_zset_add(ff_zset_open(t, k->blocked), a->execution_id, now);
    return ff_ok_word(out, W(blocked));
}

static bool may_unblock(ff_key *core, const ff_str *expected_reason) {
    if (!ff_str_is(ff_hash_get(core, W(lifecycle_phase)), W(runnable))) return false;
    if (!is_blocked(ff_hash_get(core, W(eligibility_state)))) return false;
    return !ff_str_is_set(expected_reason) ||
           ff_str_equal(ff_hash_get(core, W(blocking_reason)), expected_reason);
}

ff_verdict ff_admission_unblock(ff_txn *t, const ff_admission_unblock_keys *k,
                                const ff_admission_unblock_args *a, ff_result *out) {
    double score;
    ff_key *core = ff_hash_open(t, k->core);
    if (!ff_key_exists(core)) return ff_refuse(out, FF_EXECUTION_NOT_FOUND);
    if (!may_unblock(core, a->expected_reason)) return ff_refuse(out, FF_EXECUTION_NOT_ELIGIBLE);
    const ff_word *bad = ff_score_of(core, &score);
    if (bad) return ff_not_a_number_field(out, bad, ff_hash_get(core, bad));
    if (isnan(score)) return ff_bad_input(out, "priority and created_at give no score");
    if (a->now == NULL) return ff_not_a_number(out, "now", NULL);

    write_state(core,
                &(ff_vector){.eligibility = W(eligible_now),
                             .blocking = W(waiting_for_worker),
                             .detail = W(empty)->str,
                             .public_state = W(waiting)},
                a->now);
    ff_zset_remove(ff_zset_open(t, k->blocked), a->execution_id);
    ff_zset_add(ff_zset_open(t, k->eligible), a->execution_id, score);
    return ff_ok_word(out, W(unblocked));
}
