#include "engine/retry.h"

#include <math.h>

#include "engine/completion.h"
#include "engine/document.h"
#include "engine/ending.h"
#include "engine/lease.h"
#include "engine/vector.h"

/* What a failure leads to. */
typedef struct decision {
    bool retry;
    double retries; /* made before this one */
    double delay_until;
} decision;

/* What a failure has to write with. */
typedef struct failure {
    const ff_execution_fail_keys *k;
    ff_str *execution_id, *reason;
    ff_str *index; /* of the failed attempt */
    ff_fence fence;
} failure;

/* A number of the backoff; whatever else is there means the default. */
static double number_or(const ff_json *backoff, const char *name, double absent) {
    double number;
    return ff_json_to_number(ff_json_member(backoff, name), &number) ? number : absent;
}

/* Milliseconds until the next attempt; nan when the backoff cannot be used. */
static double backoff_delay(const ff_json *backoff, double retries) {
    enum { DEFAULT_MS = 1000 };
    switch (ff_json_kind(backoff)) {
    case FF_JSON_NULL:
    case FF_JSON_TRUE:
    case FF_JSON_NUMBER: return NAN;
    default: break;
    }
    ff_text type = ff_json_string(ff_json_member(backoff, "type"));
    if (ff_text_equal(type, W(fixed)->text)) return number_or(backoff, "delay_ms", DEFAULT_MS);
    if (!ff_text_equal(type, W(exponential)->text)) return DEFAULT_MS;
    double delay = number_or(backoff, "initial_delay_ms", DEFAULT_MS) *
                   pow(number_or(backoff, "multiplier", 2), retries);
    double most = number_or(backoff, "max_delay_ms", 60000);
    return most < delay ? most : delay;
}

/* The limit that a policy sets; false when it is none. */
static bool retry_limit(const ff_json *policy, double *limit) {
    const ff_json *given = ff_json_member(policy, "max_retries");
    *limit = 0;
    return !ff_json_is_on(given) || ff_json_to_number(given, limit);
}

/* False after a refusal was put into `out`. */
static bool decide(ff_key *core, const ff_str *policy_text, decision *d, ff_result *out) {
    ff_txn *t = ff_key_txn(core);
    *d = (decision){0};
    const ff_json *policy = ff_document_read(t, policy_text);
    if (!ff_json_is_container(policy)) return true;
    double limit;
    if (!retry_limit(policy, &limit)) {
        ff_bad_input(out, "max_retries must be a number");
        return false;
    }
    if (ff_hash_number(core, W(retry_count), &d->retries) == FF_NUMBER_BAD) {
        ff_not_a_number(out, "retry_count", ff_hash_get(core, W(retry_count)));
        return false;
    }
    if (!(d->retries < limit)) return true;
    d->retry = true;
    d->delay_until = t->now + backoff_delay(ff_json_member(policy, "backoff"), d->retries);
    if (!isnan(d->delay_until)) return true;
    ff_bad_input(out, "backoff must give a delay");
    return false;
}

static void release(ff_key *core, const failure *f, const ff_word *reason) {
    const ff_execution_fail_keys *k = f->k;
    ff_lease_release(core,
                     &(ff_lease_places){k->lease, k->lease_expiry, k->worker_leases, k->active,
                                        k->attempt_timeout},
                     f->execution_id);
    ff_lease_note_release(ff_key_txn(core), k->history, &f->fence, f->index, reason->str);
}

static ff_verdict schedule_retry(ff_key *core, const failure *f, const decision *d,
                                 ff_result *out) {
    ff_txn *t = ff_key_txn(core);
    ff_str *delay_until = ff_str_number(t, d->delay_until);
    ff_str *index = ff_str_or(f->index, W(zero));
    ff_str *detail = FF_CONCAT(t, FF_TEXT("retry backoff until "), ff_str_text(delay_until),
                               FF_TEXT(" (attempt "), ff_str_text(index), FF_TEXT(" failed: "),
                               ff_str_text(f->reason), FF_TEXT(")"));
    ff_vector_set(core, &(ff_vector){W(runnable), W(unowned), W(not_eligible_until_time),
                                     W(waiting_for_retry_backoff), W(none),
                                     W(pending_retry_attempt), W(delayed), detail});
    ff_vector_set_times(core, ff_str_now(t));
    ff_hash_set(core, W(pending_retry_reason), f->reason);
    ff_hash_set(core, W(failure_reason), f->reason);
    ff_hash_set(core, W(pending_previous_attempt_index), index);
    ff_hash_set_number(core, W(retry_count), d->retries + 1);
    ff_hash_set(core, W(delay_until), delay_until);
    ff_hash_set_empty(core, W(current_attempt_id));
    release(core, f, W(failed_retry_scheduled));
    ff_zset_add(ff_zset_open(t, f->k->delayed), f->execution_id, d->delay_until);
    ff_result_add_word(out, W(retry_scheduled));
    ff_result_add(out, delay_until);
    return ff_ok(out);
}

static ff_verdict end_failed(ff_key *core, const failure *f, ff_result *out) {
    ff_txn *t = ff_key_txn(core);
    ff_ending_write(core, W(failed), W(attempt_terminal)->str);
    ff_hash_set(core, W(failure_reason), f->reason);
    release(core, f, W(failed_terminal));
    ff_zset_remove(ff_zset_open(t, f->k->execution_deadline), f->execution_id);
    ff_zset_add(ff_zset_open(t, f->k->terminal), f->execution_id, t->now);
    ff_completion_announce(t, ff_hash_get(core, W(flow_id)), f->execution_id, W(failed));
    return ff_ok_word(out, W(terminal_failed));
}

ff_verdict ff_execution_fail(ff_txn *t, const ff_execution_fail_keys *k,
                             const ff_execution_fail_args *a, ff_result *out) {
    ff_fence fence = {a->lease_id, a->lease_epoch, a->attempt_id};
    ff_verdict verdict;
    decision d;
    ff_key *core = ff_hash_open(t, k->core);
    if (!ff_lease_gate(core, k->history, &fence, a->source, out, &verdict)) return verdict;
    if (!decide(core, a->retry_policy_json, &d, out)) return FF_DISCARD;

    failure f = {k,
                 a->execution_id,
                 ff_str_or_empty(a->failure_reason),
                 ff_hash_get(core, W(current_attempt_index)),
                 {fence.lease_id, fence.lease_epoch, NULL}};
    ff_key *attempt = ff_hash_open(t, k->attempt);
    ff_attempt_end(attempt, W(ended_failure), f.reason);
    ff_hash_set(attempt, W(failure_category), ff_str_or_empty(a->failure_category));
    ff_attempt_close_stream(t, k->stream_meta, W(attempt_failure));
    return d.retry ? schedule_retry(core, &f, &d, out) : end_failed(core, &f, out);
}
