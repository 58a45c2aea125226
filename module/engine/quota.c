#include "engine/quota.h"

#include <math.h>

#include "base/number.h"

ff_verdict ff_quota_create(ff_txn *t, const ff_quota_create_keys *k, const ff_quota_create_args *a,
                           ff_result *out) {
    if (ff_key_exists(ff_any_open(t, k->definition))) {
        if (a->quota_policy_id) ff_result_add(out, a->quota_policy_id);
        return ff_succeed(out, FF_ALREADY_SATISFIED);
    }
    if (FF_GIVEN(a) < 5) return ff_too_few_arguments(out, "5", FF_GIVEN(a));
    ff_key *definition = ff_hash_open(t, k->definition);
    ff_hash_set(definition, W(quota_policy_id), a->quota_policy_id);
    ff_hash_set(definition, W(requests_per_window_seconds), a->window_seconds);
    ff_hash_set(definition, W(max_requests_per_window), a->max_requests_per_window);
    ff_hash_set(definition, W(active_concurrency_cap), a->max_concurrent);
    ff_hash_set(definition, W(created_at), a->now_ms);
    ff_string_set(ff_any_open(t, k->concurrency), W(zero)->str, 0);
    ff_set_add(ff_set_open(t, k->policies), a->quota_policy_id);
    ff_result_add(out, a->quota_policy_id);
    return ff_ok(out);
}

/* The arguments as numbers. */
typedef struct demand {
    double now;
    double window_ms;
    double rate_limit;
    double concurrency_cap;
} demand;

static bool read_demand(const ff_quota_admit_args *a, demand *d, ff_result *out) {
    const struct {
        const char *name;
        ff_str *text;
        double *value;
    } numbers[] = {
        {"now_ms", a->now_ms, &d->now},
        {"window_seconds", a->window_seconds, &d->window_ms},
        {"rate_limit", a->rate_limit, &d->rate_limit},
        {"concurrency_cap", a->concurrency_cap, &d->concurrency_cap},
    };
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        if (ff_str_to_number(numbers[i].text, numbers[i].value)) continue;
        ff_not_a_number(out, numbers[i].name, numbers[i].text);
        return false;
    }
    d->window_ms *= 1000;
    return true;
}

/* Uniform in 0..most. */
static uint32_t random_up_to(uint32_t most) {
    uint32_t span = most + 1;
    uint32_t fair = UINT32_MAX - UINT32_MAX % span;
    uint32_t drawn;
    do {
        ValkeyModule_GetRandomBytes((unsigned char *)&drawn, sizeof drawn);
    } while (drawn >= fair);
    return drawn % span;
}

static ff_verdict refuse_rate(ff_key *window, double cutoff, const demand *d, ff_str *jitter_text,
                              ff_result *out) {
    double jitter = 0;
    if (jitter_text && !ff_str_to_number(jitter_text, &jitter)) {
        return ff_not_a_number(out, "jitter_ms", jitter_text);
    }
    ff_zset_entry *oldest;
    double retry_after = 0;
    if (ff_zset_range(window, cutoff, true, INFINITY, 1, &oldest) > 0) {
        retry_after = fmax(oldest->score + d->window_ms - d->now, 0);
    }
    if (jitter > 0) retry_after += random_up_to((uint32_t)fmin(jitter, INT32_MAX - 1));
    ff_result_add_number(out, retry_after);
    return ff_succeed(out, FF_RATE_EXCEEDED);
}

/* The counter as a number, 0 when there is none. */
static bool read_counter(ff_key *counter, double *value) {
    ff_str *text = ff_string_get(counter);
    *value = 0;
    return text == NULL || ff_str_to_number(text, value);
}

static bool step_counter(ff_key *counter, int64_t by) {
    ff_str *text = ff_string_get(counter);
    int64_t value = 0;
    if (text && !ff_integer_parse(ff_str_text(text), &value)) return false;
    if (__builtin_add_overflow(value, by, &value)) return false;
    ff_string_update(counter, ff_str_integer(ff_key_txn(counter), value));
    return true;
}

static ff_verdict refuse_counter(ff_result *out) {
    return ff_bad_input(out, "the concurrency counter holds no whole number");
}

static ff_verdict admit(ff_txn *t, const ff_quota_admit_keys *k, const ff_quota_admit_args *a,
                        const demand *d, ff_result *out) {
    int64_t guard_ms = 0;
    if (a->execution_id == NULL) return ff_too_few_arguments(out, "5", FF_GIVEN(a));
    if (d->window_ms > 0 && !ff_number_to_integer(d->window_ms, &guard_ms)) {
        return ff_bad_input(out, "window_seconds must give a whole number of milliseconds that a "
                                 "key expiry can hold");
    }
    ff_zset_add(ff_zset_open(t, k->window), a->execution_id, d->now);
    if (guard_ms > 0) ff_string_set(ff_any_open(t, k->guard), W(one)->str, guard_ms);
    if (d->concurrency_cap > 0 && !step_counter(ff_string_open(t, k->concurrency), 1)) {
        return refuse_counter(out);
    }
    ff_set_add(ff_set_open(t, k->admitted_set), a->execution_id);
    return ff_succeed(out, FF_ADMITTED);
}

ff_verdict ff_quota_admit(ff_txn *t, const ff_quota_admit_keys *k, const ff_quota_admit_args *a,
                          ff_result *out) {
    demand d;
    if (!read_demand(a, &d, out)) return FF_DISCARD;
    out->shape = FF_SHAPE_BARE;
    if (ff_key_exists(ff_any_open(t, k->guard))) return ff_succeed(out, FF_ALREADY_ADMITTED);

    double cutoff = d.now - d.window_ms;
    if (isnan(cutoff)) return ff_bad_input(out, "now_ms and window_seconds give no time");
    ff_key *window = ff_zset_open(t, k->window);
    size_t admitted = ff_zset_size(window) - ff_zset_prune(window, cutoff);
    if (d.rate_limit > 0 && (double)admitted >= d.rate_limit) {
        return refuse_rate(window, cutoff, &d, a->jitter_ms, out);
    }
    if (d.concurrency_cap > 0) {
        double running;
        if (!read_counter(ff_string_open(t, k->concurrency), &running)) return refuse_counter(out);
        if (running >= d.concurrency_cap) return ff_succeed(out, FF_CONCURRENCY_EXCEEDED);
    }
    return admit(t, k, a, &d, out);
}

ff_verdict ff_quota_release(ff_txn *t, const ff_quota_release_keys *k,
                            const ff_quota_release_args *a, ff_result *out) {
    double running;
    if (a->execution_id == NULL) return ff_too_few_arguments(out, "1", 0);
    ff_key_delete(ff_any_open(t, k->guard));
    ff_set_remove(ff_set_open(t, k->admitted_set), a->execution_id);
    ff_key *counter = ff_string_open(t, k->concurrency);
    if (!read_counter(counter, &running)) return refuse_counter(out);
    if (running > 0 && !step_counter(counter, -1)) return refuse_counter(out);
    return ff_ok_word(out, W(released));
}
