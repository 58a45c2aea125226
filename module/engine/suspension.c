#include "engine/suspension.h"

#include "engine/completion.h"
#include "engine/extras.h"
#include "engine/resume.h"
#include "engine/vector.h"

/* Rule OPEN-SUSPENSION. */
static bool is_open(ff_key *suspension) {
    return ff_str_is_set(ff_hash_get(suspension, W(suspension_id))) &&
           !ff_str_is_set(ff_hash_get(suspension, W(closed_at)));
}

static bool is_suspended(ff_key *core) {
    return ff_str_is(ff_hash_get(core, W(lifecycle_phase)), W(suspended));
}

static bool read_listed_extras(ff_key *suspension, ff_extras *extras, ff_result *out) {
    return ff_extras_parse(out->txn, ff_key_name(suspension),
                           ff_hash_get(suspension, W(additional_waitpoints_json)), extras, out);
}

static ff_verdict refuse_score(ff_result *out, ff_key *core, const ff_word *field) {
    return ff_not_a_number_field(out, field, ff_hash_get(core, field));
}

ff_verdict ff_suspension_resume(ff_txn *t, const ff_suspension_resume_keys *k,
                                const ff_suspension_resume_args *a, ff_result *out) {
    const ff_closing closing = {.reason = W(resumed), .satisfied = true};
    ff_resume resume = {.execution_id = a->execution_id,
                        .eligible = k->eligible,
                        .delayed = k->delayed,
                        .suspended = k->suspended};
    ff_extras extras;
    ff_key *core = ff_hash_open(t, k->core);
    if (!ff_key_exists(core)) return ff_refuse(out, FF_EXECUTION_NOT_FOUND);
    if (!is_suspended(core)) return ff_refuse(out, FF_EXECUTION_NOT_SUSPENDED);
    ff_key *suspension = ff_hash_open(t, k->suspension);
    if (!is_open(suspension)) return ff_refuse(out, FF_EXECUTION_NOT_SUSPENDED);
    if (a->execution_id == NULL) return ff_too_few_arguments(out, "1", 0);
    if (a->resume_delay_ms && !ff_str_to_number(a->resume_delay_ms, &resume.delay)) {
        return ff_not_a_number(out, "resume_delay_ms", a->resume_delay_ms);
    }
    if (!read_listed_extras(suspension, &extras, out)) return FF_DISCARD;
    const ff_word *bad = ff_resume_core(core, &resume);
    if (bad) return refuse_score(out, core, bad);

    if (t->strict) {
        ff_waits_close(suspension, &extras, &closing);
    } else {
        ff_closing_write_waitpoint(ff_hash_open(t, k->waitpoint), &closing);
        ff_extras_close(t, &extras, &closing);
    }
    ff_closing_write_suspension(suspension, &closing);
    ff_zset_remove(ff_zset_open(t, k->suspension_timeout), a->execution_id);
    ff_tree_clear(t, k->suspension);
    ff_result_add(out, ff_hash_get(core, W(public_state)));
    return ff_ok(out);
}

/* What a timeout does to a suspension that it ends. */
typedef struct ending {
    const ff_word *close_reason;
    const ff_word *outcome; /* of the execution; NULL: it goes on */
    const ff_word *attempt_state;
} ending;

static ending ending_for(const ff_str *behavior) {
    if (ff_str_is(behavior, W(auto_resume)) ||
        ff_str_is(behavior, W(auto_resume_with_timeout_signal))) {
        return (ending){.close_reason = W(timed_out_auto_resume)};
    }
    if (ff_str_is(behavior, W(cancel))) {
        return (ending){W(timed_out_cancel), W(cancelled), W(ended_cancelled)};
    }
    if (ff_str_is(behavior, W(expire))) {
        return (ending){W(timed_out_expire), W(expired), W(ended_failure)};
    }
    return (ending){W(timed_out_fail), W(failed), W(ended_failure)};
}

/* A suspension that is being expired. */
typedef struct expiry {
    const ff_suspension_expire_keys *k;
    ff_str *execution_id;
    ff_key *core;
    ff_key *suspension;
    ff_str *behavior;
    double timeout_at;
} expiry;

static void leave_timeouts(const expiry *e) {
    ff_txn *t = ff_key_txn(e->core);
    ff_zset_remove(ff_zset_open(t, e->k->suspension_timeout), e->execution_id);
}

static void close_waits(const expiry *e, const ff_extras *extras, const ff_word *reason) {
    ff_txn *t = ff_key_txn(e->core);
    const ff_closing closing = {.reason = reason};
    ff_closing_write_waitpoint(ff_hash_open(t, e->k->waitpoint), &closing);
    ff_closing_write_condition(ff_hash_open(t, e->k->condition), &closing);
    ff_closing_write_suspension(e->suspension, &closing);
    ff_tree_clear(t, e->k->suspension);
    ff_extras_close(t, extras, &closing);
    leave_timeouts(e);
}

static ff_verdict answer(const expiry *e, ff_str *behavior, ff_result *out) {
    ff_result_add(out, behavior);
    ff_result_add(out, ff_hash_get(e->core, W(public_state)));
    return ff_ok(out);
}

static ff_verdict expire_resuming(const expiry *e, const ff_extras *extras,
                                  const ff_word *close_reason, ff_result *out) {
    const ff_resume resume = {.execution_id = e->execution_id,
                              .eligible = e->k->eligible,
                              .delayed = e->k->delayed,
                              .suspended = e->k->suspended};
    const ff_word *bad = ff_resume_core(e->core, &resume);
    if (bad) return refuse_score(out, e->core, bad);
    close_waits(e, extras, close_reason);
    return answer(e, W(auto_resume)->str, out);
}

static ff_verdict expire_escalating(const expiry *e, ff_result *out) {
    ff_txn *t = ff_key_txn(e->core);
    ff_vector vector = {.phase = W(suspended),
                        .ownership = W(unowned),
                        .eligibility = W(not_applicable),
                        .blocking = W(paused_by_operator),
                        .outcome = W(none),
                        .public_state = W(suspended)};
    vector.detail = FF_CONCAT(t, FF_TEXT("suspension escalated: timeout at "),
                              ff_str_text(ff_str_number(t, e->timeout_at)));
    if (ff_hash_get(e->core, W(attempt_state)) == NULL) vector.attempt = W(attempt_interrupted);
    ff_vector_set(e->core, &vector);
    ff_hash_set_now(e->core, W(last_mutation_at));
    ff_hash_set_word(e->suspension, W(reason_code), W(waiting_for_operator_review));
    FF_CLEAR(e->suspension, W(timeout_at), W(timeout_behavior));
    leave_timeouts(e);
    return answer(e, e->behavior, out);
}

static void end_core(const expiry *e, const ending *end, ff_str *failure_reason) {
    ff_vector_set(e->core, &(ff_vector){.phase = W(terminal),
                                        .ownership = W(unowned),
                                        .eligibility = W(not_applicable),
                                        .blocking = W(none),
                                        .detail = W(empty)->str,
                                        .outcome = end->outcome,
                                        .attempt = W(attempt_terminal),
                                        .public_state = end->outcome});
    ff_hash_set(e->core, W(failure_reason), failure_reason);
    ff_hash_set_now(e->core, W(completed_at));
    FF_CLEAR(e->core, W(current_suspension_id), W(current_waitpoint_id));
    ff_vector_set_times(e->core, ff_str_now(ff_key_txn(e->core)));
}

static void end_attempt(const expiry *e, const ending *end, ff_str *failure_reason) {
    ff_txn *t = ff_key_txn(e->core);
    if (ff_str_is_set(ff_hash_get(e->core, W(current_attempt_index)))) {
        ff_key *attempt = ff_hash_open(t, e->k->attempt);
        ff_hash_set_word(attempt, W(attempt_state), end->attempt_state);
        ff_hash_set_now(attempt, W(ended_at));
        ff_hash_set(attempt, W(failure_reason), failure_reason);
        FF_CLEAR(attempt, W(suspended_at), W(suspension_id));
    }
    if (ff_key_exists(ff_any_open(t, e->k->stream_meta))) {
        ff_key *meta = ff_hash_open(t, e->k->stream_meta);
        ff_hash_set_now(meta, W(closed_at));
        ff_hash_set_word(meta, W(closed_reason), W(suspension_timeout));
    }
}

static ff_verdict expire_ending(const expiry *e, const ff_extras *extras, const ending *end,
                                ff_result *out) {
    ff_txn *t = ff_key_txn(e->core);
    ff_str *failure_reason = FF_CONCAT(t, FF_TEXT("suspension_timeout:"), ff_str_text(e->behavior));
    end_core(e, end, failure_reason);
    end_attempt(e, end, failure_reason);
    close_waits(e, extras, end->close_reason);
    ff_zset_remove(ff_zset_open(t, e->k->suspended), e->execution_id);
    ff_zset_add(ff_zset_open(t, e->k->terminal), e->execution_id, t->now);
    ff_completion_announce(t, ff_hash_get(e->core, W(flow_id)), e->execution_id, end->outcome);
    return answer(e, e->behavior, out);
}

static ff_verdict expire_due(expiry *e, ff_result *out) {
    ff_extras extras;
    if (e->execution_id == NULL) return ff_too_few_arguments(out, "1", 0);
    e->behavior = ff_str_or(ff_hash_get(e->suspension, W(timeout_behavior)), W(fail));
    if (ff_str_is(e->behavior, W(escalate))) return expire_escalating(e, out);
    if (!read_listed_extras(e->suspension, &extras, out)) return FF_DISCARD;
    ending end = ending_for(e->behavior);
    if (end.outcome == NULL) return expire_resuming(e, &extras, end.close_reason, out);
    return expire_ending(e, &extras, &end, out);
}

/* There is nothing to expire: the entry that led here is stray. */
static ff_verdict clean(const expiry *e, const ff_word *found, ff_result *out) {
    if (e->execution_id == NULL) return ff_too_few_arguments(out, "1", 0);
    leave_timeouts(e);
    return ff_ok_word(out, found);
}

ff_verdict ff_suspension_expire(ff_txn *t, const ff_suspension_expire_keys *k,
                                const ff_suspension_expire_args *a, ff_result *out) {
    expiry e = {.k = k, .execution_id = a->execution_id, .core = ff_hash_open(t, k->core)};
    if (!ff_key_exists(e.core)) return clean(&e, W(not_found_cleaned), out);
    if (!is_suspended(e.core)) return clean(&e, W(not_suspended_cleaned), out);
    e.suspension = ff_hash_open(t, k->suspension);
    if (!is_open(e.suspension)) {
        return clean(&e, W(no_active_suspension_cleaned), out);
    }
    switch (ff_hash_number(e.suspension, W(timeout_at), &e.timeout_at)) {
    case FF_NUMBER_ABSENT: return ff_ok_word(out, W(not_yet_due));
    case FF_NUMBER_BAD:
        return ff_not_a_number_field(out, W(timeout_at), ff_hash_get(e.suspension, W(timeout_at)));
    case FF_NUMBER_GOOD: break;
    }
    if (e.timeout_at == 0 || e.timeout_at > t->now) return ff_ok_word(out, W(not_yet_due));
    return expire_due(&e, out);
}
