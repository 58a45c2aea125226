#include "engine/signal.h"

#include "base/number.h"
#include "engine/document.h"
#include "engine/extras.h"
#include "engine/matcher.h"
#include "engine/resume.h"
#include "engine/token.h"
#include "engine/tree.h"

enum { DELIVERIES_MAXLEN = 1000 };

/* How a signal that passed all checks is to be kept. */
typedef struct keeping {
    int64_t deduplication_ttl; /* milliseconds; 0: off */
    int64_t maxlen;
} keeping;

/* Execution and waitpoint are there, and the token is good. True when the caller may go on, otherwise
 * `verdict` is what it must return. That a token was refused is noted on the execution. */
static bool authenticate(ff_txn *t, const ff_signal_keys *k, ff_str *keystore,
                         const ff_signal_args *a, ff_code no_waitpoint, ff_result *out,
                         ff_verdict *verdict) {
    ff_key *core = ff_hash_open(t, k->core);
    if (!ff_key_exists(core)) {
        *verdict = ff_refuse(out, FF_EXECUTION_NOT_FOUND);
        return false;
    }
    ff_key *waitpoint = ff_hash_open(t, k->waitpoint);
    if (ff_hash_get(waitpoint, W(created_at)) == NULL) {
        *verdict = ff_refuse(out, no_waitpoint);
        return false;
    }
    ff_code refused =
        ff_token_validate(t, keystore, a->waitpoint_token, a->waitpoint_id, waitpoint);
    if (!refused) return true;
    ff_hash_set_now(core, W(last_hmac_validation_failed_at));
    *verdict = ff_refuse_keeping(out, refused);
    return false;
}

/* Over the whole life of the execution. A limit that is nan or not above 0 is none. */
static bool is_below_limit(ff_txn *t, const ff_signal_keys *k, double limit) {
    if (!(limit > 0)) return true;
    return (double)ff_zset_size(ff_zset_open(t, k->execution_signals)) < limit;
}

/* Whether the server would take the number as a length in the form in which it is handed over. */
static bool read_maxlen(const ff_str *text, int64_t *maxlen) {
    double value;
    char written[FF_NUMBER_MAX];
    if (!ff_str_to_number(text, &value)) return false;
    size_t length = ff_number_format(value, written);
    return ff_integer_parse(ff_text_make(written, length), maxlen) && *maxlen >= 0;
}

/* The checks that both functions end with: signal limit, deduplication, lengths. As authenticate. */
static bool admit(ff_txn *t, const ff_signal_keys *k, const ff_signal_args *a, keeping *keep,
                  ff_result *out, ff_verdict *verdict) {
    double limit;
    double ttl;
    keep->deduplication_ttl = 0;
    if (!ff_str_to_number(a->max_signals_per_execution, &limit)) {
        *verdict = ff_not_a_number(out, "max_signals_per_execution", a->max_signals_per_execution);
        return false;
    }
    if (!is_below_limit(t, k, limit)) {
        *verdict = ff_refuse(out, FF_SIGNAL_LIMIT_EXCEEDED);
        return false;
    }
    if (ff_str_is_set(a->idempotency_key) && ff_str_to_number(a->dedup_ttl_ms, &ttl) && ttl > 0) {
        ff_str *first = ff_string_get(ff_string_open(t, k->deduplication));
        if (first) {
            ff_result_add(out, first);
            *verdict = ff_succeed(out, FF_DUPLICATE);
            return false;
        }
        if (!ff_number_to_integer(ttl, &keep->deduplication_ttl)) {
            *verdict = ff_bad_input(out, "dedup_ttl_ms must be a whole number of milliseconds");
            return false;
        }
    }
    if (!read_maxlen(a->signal_maxlen, &keep->maxlen)) {
        *verdict = ff_bad_input(out, "signal_maxlen must be a whole number, not negative");
        return false;
    }
    return true;
}

static void write_signal(ff_key *signal, const ff_signal_args *a) {
    ff_hash_set(signal, W(signal_id), a->signal_id);
    ff_hash_set(signal, W(target_execution_id), a->execution_id);
    ff_hash_set(signal, W(target_waitpoint_id), a->waitpoint_id);
    ff_hash_set(signal, W(target_scope), a->target_scope);
    ff_hash_set(signal, W(signal_name), a->signal_name);
    ff_hash_set(signal, W(signal_category), a->signal_category);
    ff_hash_set(signal, W(source_type), a->source_type);
    ff_hash_set(signal, W(source_identity), a->source_identity);
    ff_hash_set(signal, W(correlation_id), a->correlation_id);
    ff_hash_set(signal, W(idempotency_key), a->idempotency_key);
    if (ff_str_is_set(a->created_at)) {
        ff_hash_set(signal, W(created_at), a->created_at);
    } else {
        ff_hash_set_now(signal, W(created_at));
    }
    ff_hash_set_now(signal, W(accepted_at));
    ff_hash_set(signal, W(matched_waitpoint_id), a->waitpoint_id);
    ff_hash_set(signal, W(payload_encoding), a->payload_encoding);
}

static void append_to_waitpoint(ff_txn *t, const ff_signal_keys *k, const ff_signal_args *a,
                                int64_t maxlen) {
    const ff_pair entry[] = {
        {W(signal_id), a->signal_id},
        {W(signal_name), a->signal_name},
        {W(signal_category), a->signal_category},
        {W(source_type), a->source_type},
        {W(source_identity), a->source_identity},
        {W(matched), W(zero)->str},
        {W(accepted_at), ff_str_now(t)},
    };
    ff_stream_add(ff_stream_open(t, k->waitpoint_signals), maxlen, entry,
                  sizeof entry / sizeof *entry);
}

/* Deduplication, then rule RECORD. Returns the signal's record, which still lacks the effect. */
static ff_key *keep_signal(ff_txn *t, const ff_signal_keys *k, const ff_signal_args *a,
                           const keeping *keep) {
    if (keep->deduplication_ttl > 0) {
        ff_string_set(ff_string_open(t, k->deduplication), a->signal_id, keep->deduplication_ttl);
    }
    ff_key *signal = ff_hash_open(t, k->signal);
    write_signal(signal, a);
    if (ff_str_is_set(a->payload)) ff_string_set(ff_any_open(t, k->payload), a->payload, 0);
    append_to_waitpoint(t, k, a, keep->maxlen);
    ff_zset_add(ff_zset_open(t, k->execution_signals), a->signal_id, t->now);
    return signal;
}

/* ---- Delivery ---- */

typedef struct delivery {
    ff_txn *t;
    const ff_signal_deliver_keys *k;
    const ff_signal_args *a;
    ff_key *core;
    ff_key *waitpoint;
    ff_key *condition;
    ff_key *suspension;
} delivery;

static bool is_one_of(const ff_str *text, const ff_word *a, const ff_word *b, const ff_word *c) {
    return ff_str_is(text, a) || ff_str_is(text, b) || ff_str_is(text, c);
}

/* Strictly, a suspension takes signals at its own open waitpoints only. */
static bool is_stale(delivery *d) {
    const ff_str *of = ff_hash_get(d->waitpoint, W(suspension_id));
    return !ff_str_is(ff_hash_get(d->waitpoint, W(state)), W(active)) ||
           (ff_str_is_set(of) && !ff_str_equal(of, ff_hash_get(d->core, W(current_suspension_id))));
}

/* Whether execution, waitpoint and condition take signals. The waitpoint's state counts only in the
 * phases named here: in others, suspended among them, the condition alone decides. */
static ff_code check_target(delivery *d) {
    const ff_str *phase = ff_hash_get(d->core, W(lifecycle_phase));
    if (ff_str_is(phase, W(terminal))) return FF_TARGET_NOT_SIGNALABLE;
    if (is_one_of(phase, W(active), W(runnable), W(submitted))) {
        const ff_str *state = ff_hash_get(d->waitpoint, W(state));
        if (ff_str_is(state, W(pending))) return FF_WAITPOINT_PENDING_USE_BUFFER_SCRIPT;
        if (!ff_str_is(state, W(active))) return FF_TARGET_NOT_SIGNALABLE;
    } else if (d->t->strict && is_stale(d)) {
        return FF_WAITPOINT_CLOSED;
    }
    d->condition = ff_hash_open(d->t, d->k->common.condition);
    if (!ff_key_exists(d->condition)) return FF_WAITPOINT_NOT_FOUND;
    if (ff_str_is(ff_hash_get(d->condition, W(closed)), W(one))) return FF_WAITPOINT_CLOSED;
    return FF_OK;
}

/* The other waitpoints of the suspension, which a wire call leaves open in part. */
static bool close_others(const delivery *d, const ff_closing *closing, ff_result *out) {
    ff_extras extras;
    ff_str *list = ff_hash_get(d->suspension, W(additional_waitpoints_json));
    if (!ff_extras_parse(d->t, d->k->suspension, list, &extras, out)) return false;
    ff_waits_close(d->suspension, &extras, closing);
    return true;
}

/* Moves the execution, if it is suspended, and closes waitpoint, condition and suspension. False with
 * the refusal in `out`. */
static bool resume(const delivery *d, const ff_closing *closing, ff_result *out) {
    if (ff_str_is(ff_hash_get(d->core, W(lifecycle_phase)), W(suspended))) {
        ff_resume to = {d->a->execution_id, d->k->eligible, d->k->delayed, d->k->suspended, 0,
                        d->a->signal_name};
        if (!ff_str_to_number(d->a->resume_delay_ms, &to.delay)) {
            ff_not_a_number(out, "resume_delay_ms", d->a->resume_delay_ms);
            return false;
        }
        const ff_word *bad = ff_resume_core(d->core, &to);
        if (bad) {
            ff_not_a_number_field(out, bad, ff_hash_get(d->core, bad));
            return false;
        }
    }
    ff_closing_write_condition(d->condition, closing);
    ff_closing_write_waitpoint(d->waitpoint, closing);
    if (d->t->strict && !close_others(d, closing, out)) return false;
    if (ff_key_exists(d->suspension)) ff_closing_write_suspension(d->suspension, closing);
    ff_zset_remove(ff_zset_open(d->t, d->k->suspension_timeout), d->a->execution_id);
    return true;
}

static ff_str *json_list(ff_txn *t, const ff_strs *items) {
    ff_buffer list;
    ff_buffer_init(&list, &t->arena);
    for (size_t i = 0; i < items->count; i++) {
        ff_buffer_append_byte(&list, i == 0 ? '[' : ',');
        ff_json_write_string(&list, ff_str_text(items->items[i]));
    }
    ff_buffer_append_byte(&list, ']');
    return ff_str_make(t, ff_buffer_text(&list));
}

/* What a composite condition adds to a resume: who brought it about, and the extra waitpoints. */
static bool end_composite(const delivery *d, const ff_closing *closing, const ff_strs *satisfiers,
                          ff_result *out) {
    ff_extras extras;
    if (!ff_extras_parse(d->t, d->k->suspension,
                         ff_hash_get(d->suspension, W(additional_waitpoints_json)), &extras, out)) {
        return false;
    }
    if (ff_key_exists(d->suspension)) {
        ff_hash_set(d->suspension, W(closer_signal_id), d->a->signal_id);
        ff_hash_set(d->suspension, W(all_satisfier_signals), json_list(d->t, satisfiers));
    }
    ff_tree_clear(d->t, d->k->suspension);
    ff_extras_close(d->t, &extras, closing);
    return true;
}

/* The waitpoint's own key, or the suspension's when its record has lost it. */
static ff_text waitpoint_key(const delivery *d) {
    const ff_str *key = ff_hash_get(d->waitpoint, W(waitpoint_key));
    if (key == NULL) key = ff_hash_get(d->suspension, W(waitpoint_key));
    return ff_text_or_empty(ff_str_text(key));
}

/* False, with the refusal in `out`, when the stored tree is no JSON. NULL stands for no tree. */
static bool read_tree(const delivery *d, const ff_json **root, ff_result *out) {
    const ff_str *text = ff_hash_get(d->condition, W(tree_json));
    *root = NULL;
    if (!ff_str_is_set(text)) return true;
    *root = ff_document_read(d->t, text);
    if (*root == NULL) ff_bad_input(out, "tree_json of the condition must be JSON");
    return *root != NULL;
}

static const ff_word *evaluate_composite(const delivery *d, const ff_closing *closing,
                                         ff_result *out) {
    const ff_json *root;
    ff_strs satisfiers;
    if (!read_tree(d, &root, out)) return NULL;
    const ff_tree_signal signal = {d->a->waitpoint_id, waitpoint_key(d),  d->a->signal_id,
                                   d->a->signal_name,  d->a->source_type, d->a->source_identity};
    const ff_word *effect = ff_tree_deliver(d->t, root, d->k->suspension, &signal, &satisfiers);
    if (effect != W(resume_condition_satisfied)) return effect;
    if (!resume(d, closing, out) || !end_composite(d, closing, &satisfiers, out)) return NULL;
    return effect;
}

static const ff_word *evaluate_plain(const delivery *d, const ff_closing *closing, ff_result *out) {
    const ff_word *effect =
        ff_matcher_deliver(d->condition, d->a->signal_name, d->a->signal_id, out);
    if (effect != W(resume_condition_satisfied)) return effect;
    return resume(d, closing, out) ? effect : NULL;
}

/* Holds the signal against the condition, and resumes when that is met. Returns the effect, or NULL with
 * the refusal in `out`. */
static const ff_word *evaluate(const delivery *d, ff_result *out) {
    const ff_closing closing = {
        .reason = W(resumed), .condition_reason = W(satisfied), .satisfied = true};
    bool composite = ff_str_is(ff_hash_get(d->condition, W(composite)), W(one));
    const ff_word *effect =
        composite ? evaluate_composite(d, &closing, out) : evaluate_plain(d, &closing, out);
    bool ended_tree = composite && effect == W(resume_condition_satisfied);
    if (!ended_tree && ff_key_exists(d->suspension)) {
        ff_hash_set_now(d->suspension, W(last_signal_at));
    }
    return effect;
}

static bool is_match(const ff_word *effect) {
    return effect != W(no_op) && effect != W(signal_ignored_matcher_failed) &&
           effect != W(signal_ignored_not_in_condition);
}

/* False, with the refusal in `out`, when a counter holds no integer. */
static bool count_signal(ff_key *waitpoint, const ff_word *effect, ff_result *out) {
    const ff_word *bad = NULL;
    if (!ff_hash_increment(waitpoint, W(signal_count), 1, NULL)) {
        bad = W(signal_count);
    } else if (is_match(effect) &&
               !ff_hash_increment(waitpoint, W(matched_signal_count), 1, NULL)) {
        bad = W(matched_signal_count);
    }
    if (bad) ff_not_a_number_field(out, bad, ff_hash_get(waitpoint, bad));
    return bad == NULL;
}

static void announce(const delivery *d, const ff_word *effect) {
    const ff_pair entry[] = {
        {W(signal_id), d->a->signal_id},
        {W(execution_id), d->a->execution_id},
        {W(waitpoint_id), d->a->waitpoint_id},
        {W(source_identity), d->a->source_identity},
        {W(effect), effect->str},
        {W(delivered_at_ms), ff_str_now(d->t)},
    };
    ff_stream_add(ff_stream_open(d->t, d->k->deliveries), DELIVERIES_MAXLEN, entry,
                  sizeof entry / sizeof *entry);
}

ff_verdict ff_signal_deliver(ff_txn *t, const ff_signal_deliver_keys *k,
                             const ff_signal_deliver_args *a, ff_result *out) {
    ff_verdict verdict;
    keeping keep;
    if (!authenticate(t, &k->common, k->keystore, a, FF_INVALID_TOKEN, out, &verdict)) {
        return verdict;
    }
    delivery d = {.t = t, .k = k, .a = a};
    d.core = ff_hash_open(t, k->common.core);
    d.waitpoint = ff_hash_open(t, k->common.waitpoint);
    ff_code refused = check_target(&d);
    if (refused) return ff_refuse(out, refused);
    if (!admit(t, &k->common, a, &keep, out, &verdict)) return verdict;

    ff_key *signal = keep_signal(t, &k->common, a, &keep);
    d.suspension = ff_hash_open(t, k->suspension);
    const ff_word *effect = evaluate(&d, out);
    if (effect == NULL) return FF_DISCARD;
    ff_hash_set_word(signal, W(observed_effect), effect);
    if (!count_signal(d.waitpoint, effect, out)) return FF_DISCARD;
    ff_hash_set_now(d.waitpoint, W(last_signal_at));
    if (!ff_need_keys(out, k, sizeof *k / sizeof(ff_str *))) return FF_DISCARD;
    announce(&d, effect);
    ff_result_add(out, a->signal_id);
    return ff_ok_word(out, effect);
}

/* ---- Buffering ---- */

ff_verdict ff_signal_buffer(ff_txn *t, const ff_signal_buffer_keys *k,
                            const ff_signal_buffer_args *a, ff_result *out) {
    ff_verdict verdict;
    keeping keep;
    if (!authenticate(t, &k->common, k->keystore, a, FF_WAITPOINT_NOT_FOUND, out, &verdict)) {
        return verdict;
    }
    const ff_str *state = ff_hash_get(ff_hash_open(t, k->common.waitpoint), W(state));
    if (ff_str_is(state, W(closed)) || ff_str_is(state, W(expired))) {
        return ff_refuse(out, FF_WAITPOINT_CLOSED);
    }
    if (!admit(t, &k->common, a, &keep, out, &verdict)) return verdict;

    ff_key *signal = keep_signal(t, &k->common, a, &keep);
    ff_hash_set_word(signal, W(observed_effect), W(buffered_for_pending_waitpoint));
    ff_result_add(out, a->signal_id);
    return ff_ok_word(out, W(buffered_for_pending_waitpoint));
}
