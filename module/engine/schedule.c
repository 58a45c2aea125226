#include "engine/schedule.h"

#include <math.h>

#include "engine/score.h"
#include "engine/vector.h"

static ff_code check_waiting(ff_key *core) {
    if (!ff_key_exists(core)) return FF_EXECUTION_NOT_FOUND;
    if (!ff_str_is(ff_hash_get(core, W(lifecycle_phase)), W(runnable)) ||
        !ff_str_is(ff_hash_get(core, W(eligibility_state)), W(eligible_now))) {
        return FF_EXECUTION_NOT_ELIGIBLE;
    }
    return FF_OK;
}

/* The priority before as text: 0 when there is none, nil when it is no number. */
static ff_str *old_priority(ff_key *core) {
    double old;
    if (ff_hash_number(core, W(priority), &old) == FF_NUMBER_BAD) return W(nil)->str;
    return ff_str_number(ff_key_txn(core), old);
}

ff_verdict ff_schedule_change_priority(ff_txn *t, const ff_schedule_change_priority_keys *k,
                                       const ff_schedule_change_priority_args *a, ff_result *out) {
    double priority;
    double created_at;
    if (!ff_str_to_number(a->new_priority, &priority)) {
        return ff_not_a_number(out, "new_priority", a->new_priority);
    }
    ff_key *core = ff_hash_open(t, k->core);
    ff_code refused = check_waiting(core);
    if (refused) return ff_refuse(out, refused);
    if (isnan(priority)) return ff_not_a_number(out, "new_priority", a->new_priority);
    if (ff_hash_number(core, W(created_at), &created_at) == FF_NUMBER_BAD || isnan(created_at)) {
        return ff_not_a_number_field(out, W(created_at), ff_hash_get(core, W(created_at)));
    }

    priority = ff_priority_clamp(priority);
    ff_str *text = ff_str_number(t, priority);
    ff_result_add(out, old_priority(core));
    ff_result_add(out, text);
    ff_hash_set(core, W(priority), text);
    ff_hash_set_now(core, W(last_mutation_at));
    ff_zset_add(ff_zset_open(t, k->eligible), a->execution_id, ff_score(priority, created_at));
    return ff_ok(out);
}

static ff_verdict clean(ff_txn *t, const ff_schedule_promote_delayed_keys *k, ff_str *execution_id,
                        const ff_word *why, ff_result *out) {
    ff_zset_remove(ff_zset_open(t, k->delayed), execution_id);
    return ff_ok_word(out, why);
}

static void promote(ff_key *core, ff_str *now) {
    ff_vector_set(core, &(ff_vector){.phase = W(runnable),
                                     .ownership = W(unowned),
                                     .eligibility = W(eligible_now),
                                     .blocking = W(waiting_for_worker),
                                     .outcome = W(none),
                                     .public_state = W(waiting),
                                     .detail = W(empty)->str});
    ff_hash_set_empty(core, W(delay_until));
    ff_vector_set_times(core, now);
}

ff_verdict ff_schedule_promote_delayed(ff_txn *t, const ff_schedule_promote_delayed_keys *k,
                                       const ff_schedule_promote_delayed_args *a, ff_result *out) {
    double now;
    double due;
    double score;
    if (!ff_str_to_number(a->now_ms, &now)) return ff_not_a_number(out, "now_ms", a->now_ms);
    ff_key *core = ff_hash_open(t, k->core);
    if (!ff_key_exists(core)) return clean(t, k, a->execution_id, W(not_found_cleaned), out);
    if (!ff_str_is(ff_hash_get(core, W(lifecycle_phase)), W(runnable))) {
        return clean(t, k, a->execution_id, W(not_runnable_cleaned), out);
    }
    if (!ff_str_is(ff_hash_get(core, W(eligibility_state)), W(not_eligible_until_time))) {
        return clean(t, k, a->execution_id, W(not_delayed_cleaned), out);
    }
    if (ff_hash_number(core, W(delay_until), &due) == FF_NUMBER_BAD) {
        return ff_not_a_number(out, "delay_until", ff_hash_get(core, W(delay_until)));
    }
    if (due > now) return ff_ok_word(out, W(not_yet_due));
    const ff_word *bad = ff_score_of(core, &score);
    if (bad) return ff_not_a_number_field(out, bad, ff_hash_get(core, bad));
    if (isnan(score)) return ff_bad_input(out, "priority and created_at give no score");

    promote(core, ff_str_number(t, now));
    ff_zset_remove(ff_zset_open(t, k->delayed), a->execution_id);
    ff_zset_add(ff_zset_open(t, k->eligible), a->execution_id, score);
    return ff_ok_word(out, W(promoted));
}
