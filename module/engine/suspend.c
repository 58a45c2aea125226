#include "engine/suspension.h"

#include <math.h>

#include "base/json.h"
#include "base/number.h"
#include "engine/condition.h"
#include "engine/extras.h"
#include "engine/history.h"
#include "engine/lease.h"
#include "engine/outcome.h"
#include "engine/token.h"
#include "engine/tree.h"
#include "engine/vector.h"
#include "engine/waitpoint.h"

#define NO_TIMEOUT_SCORE 9999999999999.0

enum { ARGUMENTS_LEAST = 13, KEYS_PER_EXTRA = 3 };

/* A suspend on its way. The steps below go in the order in which their refusals take precedence; each
 * returns whether to go on, and leaves in `verdict` what to return when not. What a step has staged is
 * kept by the refusals of later steps, and forgotten when an argument turns out to be unusable. */
typedef struct beginning {
    ff_txn *txn;
    const ff_suspension_begin_keys *k;
    const ff_suspension_begin_args *a;
    ff_result *out;
    ff_verdict verdict;
    ff_key *core;
    bool remembered; /* an idempotency key was given */
    ff_waitpoint waitpoint;
    ff_waitpoint *extras;
    size_t extra_count;
    ff_condition condition;
} beginning;

static bool stop(beginning *b, ff_verdict verdict) {
    b->verdict = verdict;
    return false;
}

static bool stop_refused(beginning *b, ff_code code) {
    return stop(b, ff_refuse_keeping(b->out, code));
}

static bool read_extras(beginning *b) {
    const ff_suspension_begin_args *a = b->a;
    double count = 0;
    if (a->num_extra_waitpoints && !ff_str_to_number(a->num_extra_waitpoints, &count)) {
        return stop(b, ff_not_a_number(b->out, "num_extra_waitpoints", a->num_extra_waitpoints));
    }
    if (!(count >= 1)) return true;
    size_t given = a->extras.count / 2;
    if (floor(count) > (double)given) {
        return stop(b, ff_refuse(b->out, FF_ADDITIONAL_WAITPOINT_BINDING_MALFORMED));
    }
    b->extra_count = (size_t)count;
    b->extras = ff_arena_array(&b->txn->arena, b->extra_count, sizeof *b->extras);
    for (size_t i = 0; i < b->extra_count; i++) {
        b->extras[i] = (ff_waitpoint){a->extras.items[2 * i], a->extras.items[2 * i + 1], NULL};
        if (!ff_str_is_set(b->extras[i].id) || !ff_str_is_set(b->extras[i].key)) {
            return stop(b, ff_refuse(b->out, FF_ADDITIONAL_WAITPOINT_BINDING_MALFORMED));
        }
    }
    return true;
}

/* An earlier call with the same idempotency key answers for this one. */
static bool look_for_outcome(beginning *b) {
    b->remembered = ff_str_is_set(b->a->idempotency_key) && ff_str_is_set(b->k->idempotency);
    if (!b->remembered) return true;
    ff_str *outcome = ff_hash_get(ff_hash_open(b->txn, b->k->idempotency), W(outcome));
    return !ff_outcome_replay(outcome, b->out, &b->verdict);
}

static bool history_maxlen(const beginning *b, int64_t *maxlen) {
    double number = FF_HISTORY_MAXLEN;
    const ff_str *given = b->a->lease_history_maxlen;
    if (given && !ff_str_to_number(given, &number)) return false;
    return number >= 0 && ff_number_to_integer(number, maxlen);
}

static bool stop_at_maxlen(beginning *b) {
    return stop(b, ff_bad_input(b->out, "lease_history_maxlen must be a whole number, 0 or more"));
}

static ff_code check_lease(beginning *b) {
    const ff_fence fence = {b->a->lease_id, b->a->lease_epoch, b->a->attempt_id};
    if (!ff_key_exists(b->core)) return FF_EXECUTION_NOT_FOUND;
    ff_code refused = ff_fence_require(&fence);
    if (!refused) refused = ff_lease_check(b->core, &fence);
    if (refused) return refused;
    ff_str *index = ff_hash_get(b->core, W(current_attempt_index));
    return ff_str_equal(index, b->a->attempt_index) ? FF_OK : FF_INVALID_LEASE_FOR_SUSPEND;
}

static bool is_marked_expired(ff_key *core) {
    return ff_str_is(ff_hash_get(core, W(ownership_state)), W(lease_expired_reclaimable));
}

static bool hold_lease(beginning *b) {
    int64_t maxlen = FF_HISTORY_MAXLEN;
    b->core = ff_hash_open(b->txn, b->k->core);
    ff_code refused = check_lease(b);
    if (!refused) return true;
    if (refused == FF_LEASE_EXPIRED && !history_maxlen(b, &maxlen) && !is_marked_expired(b->core)) {
        return stop_at_maxlen(b);
    }
    return stop(b, ff_lease_refuse(b->out, refused, b->core, b->k->history, maxlen));
}

/* The record of the suspension before goes, if that is over. */
static bool make_room(beginning *b) {
    ff_key *former = ff_hash_open(b->txn, b->k->suspension);
    if (!ff_key_exists(former)) return true;
    if (!ff_str_is_set(ff_hash_get(former, W(closed_at)))) {
        return stop(b, ff_refuse(b->out, FF_ALREADY_SUSPENDED));
    }
    ff_str *waitpoint_id = ff_hash_get(former, W(waitpoint_id));
    if (ff_str_is_set(waitpoint_id)) {
        ff_set_add(ff_set_open(b->txn, b->k->waitpoints), waitpoint_id);
    }
    ff_key_delete(former);
    return true;
}

static bool read_condition(beginning *b) {
    const char *fault = ff_condition_read(b->txn, b->a->resume_condition_json, &b->condition);
    return fault ? stop(b, ff_bad_input(b->out, fault)) : true;
}

static void write_condition(beginning *b, ff_str *record) {
    ff_condition_write(ff_hash_open(b->txn, record), &b->condition);
}

static void open_waitpoint(beginning *b, const ff_token_signer *signer, ff_waitpoint *waitpoint,
                           ff_str *record, ff_str *condition) {
    const ff_suspension_begin_args *a = b->a;
    const ff_waitpoint_owner owner = {a->execution_id, a->attempt_index, a->suspension_id};
    waitpoint->token = ff_token_mint(b->txn, signer, waitpoint->id, waitpoint->key);
    ff_waitpoint_write_active(ff_hash_open(b->txn, record), waitpoint, &owner, a->timeout_at);
    write_condition(b, condition);
}

static void enlist(const beginning *b, const ff_waitpoint *waitpoint) {
    ff_set_add(ff_set_open(b->txn, b->k->waitpoints), waitpoint->id);
}

static bool open_waitpoints(beginning *b) {
    ff_token_signer signer;
    const ff_strs *keys = &b->k->extras;
    ff_code refused = ff_token_signer_open(b->txn, b->k->keystore, &signer);
    if (refused) return stop_refused(b, refused);
    if (FF_GIVEN(b->a) < ARGUMENTS_LEAST) {
        return stop(b, ff_too_few_arguments(b->out, "13", FF_GIVEN(b->a)));
    }
    if (keys->count / KEYS_PER_EXTRA < b->extra_count) {
        return stop(b, ff_bad_input(b->out, "the keys of an extra waitpoint are missing"));
    }
    if (!read_condition(b)) return false;
    b->waitpoint = (ff_waitpoint){b->a->waitpoint_id, b->a->waitpoint_key, NULL};
    open_waitpoint(b, &signer, &b->waitpoint, b->k->waitpoint, b->k->condition);
    for (size_t i = 0; i < b->extra_count; i++) {
        ff_str *const *of_extra = &keys->items[KEYS_PER_EXTRA * i];
        open_waitpoint(b, &signer, &b->extras[i], of_extra[0], of_extra[2]);
        enlist(b, &b->extras[i]);
    }
    return true;
}

static bool take_pending(beginning *b) {
    ff_key *record = ff_hash_open(b->txn, b->k->waitpoint);
    ff_code refused = ff_waitpoint_check_pending(record, b->a->execution_id, b->a->attempt_index);
    if (refused == FF_INVALID_INPUT) {
        return stop(b, ff_not_a_number(b->out, "expires_at", ff_hash_get(record, W(expires_at))));
    }
    if (refused) return stop_refused(b, refused);
    b->waitpoint =
        (ff_waitpoint){ff_hash_get(record, W(waitpoint_id)), ff_hash_get(record, W(waitpoint_key)),
                       ff_hash_get(record, W(waitpoint_token))};
    if (!ff_str_is_set(b->waitpoint.token)) return stop_refused(b, FF_WAITPOINT_NOT_TOKEN_BOUND);
    if (b->waitpoint.id == NULL || b->waitpoint.key == NULL) {
        return stop(b, ff_bad_input(b->out, "the pending waitpoint has no waitpoint_id or no "
                                            "waitpoint_key"));
    }
    ff_hash_set(record, W(suspension_id), b->a->suspension_id);
    ff_hash_set_word(record, W(state), W(active));
    ff_hash_set_now(record, W(activated_at));
    ff_hash_set(record, W(expires_at), b->a->timeout_at);
    ff_zset_remove(ff_zset_open(b->txn, b->k->pending_waitpoint_expiry), b->waitpoint.id);
    return true;
}

static void offer_entry(beginning *b, const ff_stream_entry *entry) {
    ff_str *name = NULL;
    ff_str *signal_id = NULL;
    for (size_t i = 0; i + 1 < entry->fields.count; i += 2) {
        ff_str *field = entry->fields.items[i];
        if (ff_str_is(field, W(signal_name))) name = entry->fields.items[i + 1];
        if (ff_str_is(field, W(signal_id))) signal_id = entry->fields.items[i + 1];
    }
    ff_condition_offer(b->txn, &b->condition, name, signal_id);
}

/* Matches the signals that came while the waitpoint was pending. None at all leave the condition open,
 * whatever it asks for. */
static bool match_buffered(beginning *b, bool *met) {
    ff_stream_entry *entries;
    size_t count;
    ff_key *signals = ff_stream_open(b->txn, b->k->signals);
    *met = false;
    if (!ff_key_exists(signals)) return true;
    ff_stream_range(signals, ff_str_make(b->txn, FF_TEXT("-")), ff_str_make(b->txn, FF_TEXT("+")),
                    INT64_MAX, &entries, &count);
    if (count == 0) return true;
    if (b->condition.composite) {
        if (b->condition.version_known) return true;
        return stop(b, ff_bad_input(b->out, "the condition's version is unknown"));
    }
    for (size_t i = 0; i < count; i++) offer_entry(b, &entries[i]);
    ff_condition_state state = ff_condition_evaluate(&b->condition);
    if (state == FF_CONDITION_BAD_MINIMUM) {
        return stop(b, ff_bad_input(b->out, "minimum_signal_count must be a number"));
    }
    *met = state == FF_CONDITION_MET;
    return true;
}

/* Ends the call: remembers the outcome, if that was asked for, and answers it. */
static ff_verdict conclude(beginning *b, const ff_outcome *outcome) {
    double ttl = 0;
    int64_t whole = 0;
    if (!b->remembered) return ff_outcome_answer(outcome, b->out);
    const ff_str *given = b->a->dedup_ttl_ms;
    if (given && !ff_str_to_number(given, &ttl)) {
        return ff_not_a_number(b->out, "dedup_ttl_ms", given);
    }
    if (ttl > 0 && !ff_number_to_integer(ttl, &whole)) {
        return ff_bad_input(b->out, "dedup_ttl_ms must be a whole number of milliseconds");
    }
    ff_key *record = ff_hash_open(b->txn, b->k->idempotency);
    ff_hash_set(record, W(outcome), ff_outcome_text(b->txn, outcome));
    if (whole > 0) ff_key_expire_at(record, (int64_t)b->txn->now + whole);
    return ff_outcome_answer(outcome, b->out);
}

/* The buffered signals met the condition: the waitpoint has done its work, the worker goes on. */
static ff_verdict conclude_satisfied(beginning *b) {
    const ff_closing closing = {.reason = W(resumed), .satisfied = true};
    ff_closing_write_waitpoint(ff_hash_open(b->txn, b->k->waitpoint), &closing);
    write_condition(b, b->k->condition);
    if (b->txn->strict) {
        ff_closing_write_condition(ff_hash_open(b->txn, b->k->condition), &closing);
    }
    return conclude(b, &(ff_outcome){.status = FF_ALREADY_SATISFIED,
                                     .suspension_id = b->a->suspension_id,
                                     .waitpoint = b->waitpoint});
}

static bool activate_waitpoint(beginning *b) {
    bool met;
    if (!take_pending(b) || !read_condition(b) || !match_buffered(b, &met)) return false;
    if (met) return stop(b, conclude_satisfied(b));
    write_condition(b, b->k->condition);
    if (b->extra_count) return stop_refused(b, FF_USE_PENDING_WITH_EXTRAS_UNSUPPORTED);
    return true;
}

/* Rule REASON. */
static const ff_word *blocking_reason(const ff_str *reason_code) {
    const struct {
        const ff_word *code, *blocking;
    } reasons[] = {
        {W(waiting_for_approval), W(waiting_for_approval)},
        {W(waiting_for_callback), W(waiting_for_callback)},
        {W(waiting_for_tool_result), W(waiting_for_tool_result)},
        {W(paused_by_policy), W(paused_by_policy)},
        {W(waiting_for_operator_review), W(paused_by_operator)},
        {W(manual_pause), W(paused_by_operator)},
        {W(paused_by_budget), W(waiting_for_budget)},
    };
    for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++) {
        if (ff_str_is(reason_code, reasons[i].code)) return reasons[i].blocking;
    }
    return W(waiting_for_signal);
}

static bool leave_lease(beginning *b) {
    const ff_suspension_begin_keys *k = b->k;
    const ff_suspension_begin_args *a = b->a;
    const ff_lease_places places = {k->lease, k->lease_expiry, k->worker_leases, k->active,
                                    k->attempt_timeout};
    int64_t maxlen;
    if (!history_maxlen(b, &maxlen)) return stop_at_maxlen(b);
    const ff_pair entry[] = {
        {W(event), W(released)->str},
        {W(lease_id), a->lease_id},
        {W(lease_epoch), a->lease_epoch},
        {W(attempt_index), a->attempt_index},
        {W(attempt_id), ff_hash_get(b->core, W(current_attempt_id))},
        {W(reason), W(suspend)->str},
    };
    ff_lease_release(b->core, &places, a->execution_id);
    ff_history_add(ff_stream_open(b->txn, k->history), maxlen, entry, sizeof entry / sizeof *entry);
    return true;
}

static void write_core(beginning *b) {
    ff_text waitpoint_id = ff_str_text(b->waitpoint.id);
    ff_text reason_code = ff_str_text(b->a->reason_code);
    ff_vector vector = {.phase = W(suspended),
                        .ownership = W(unowned),
                        .eligibility = W(not_applicable),
                        .blocking = blocking_reason(b->a->reason_code),
                        .outcome = W(none),
                        .attempt = W(attempt_interrupted),
                        .public_state = W(suspended)};
    vector.detail = FF_CONCAT(b->txn, FF_TEXT("suspended: waitpoint "), waitpoint_id,
                              FF_TEXT(" awaiting "), reason_code);
    ff_vector_set(b->core, &vector);
    ff_hash_set(b->core, W(current_suspension_id), b->a->suspension_id);
    ff_hash_set(b->core, W(current_waitpoint_id), b->waitpoint.id);
    ff_vector_set_times(b->core, ff_str_now(b->txn));
    ff_key *attempt = ff_hash_open(b->txn, b->k->attempt);
    ff_hash_set_word(attempt, W(attempt_state), W(suspended));
    ff_hash_set_now(attempt, W(suspended_at));
    ff_hash_set(attempt, W(suspension_id), b->a->suspension_id);
}

static ff_str *list_extras(const beginning *b) {
    ff_buffer list;
    ff_buffer_init(&list, &b->txn->arena);
    ff_buffer_append_byte(&list, '[');
    for (size_t i = 0; i < b->extra_count; i++) {
        if (i) ff_buffer_append_byte(&list, ',');
        ff_buffer_append(&list, FF_TEXT("{\"waitpoint_key\":"));
        ff_json_write_string(&list, ff_str_text(b->extras[i].key));
        ff_buffer_append(&list, FF_TEXT(",\"waitpoint_id\":"));
        ff_json_write_string(&list, ff_str_text(b->extras[i].id));
        ff_buffer_append_byte(&list, '}');
    }
    ff_buffer_append_byte(&list, ']');
    return ff_str_make(b->txn, ff_buffer_text(&list));
}

static void write_record(const beginning *b) {
    const ff_suspension_begin_args *a = b->a;
    ff_key *record = ff_hash_open(b->txn, b->k->suspension);
    ff_hash_set(record, W(suspension_id), a->suspension_id);
    ff_hash_set(record, W(execution_id), a->execution_id);
    ff_hash_set(record, W(attempt_index), a->attempt_index);
    ff_hash_set(record, W(waitpoint_id), b->waitpoint.id);
    ff_hash_set(record, W(waitpoint_key), b->waitpoint.key);
    ff_hash_set(record, W(additional_waitpoints_json), list_extras(b));
    ff_hash_set(record, W(reason_code), a->reason_code);
    ff_hash_set(record, W(requested_by), a->requested_by);
    ff_hash_set_now(record, W(created_at));
    ff_hash_set(record, W(timeout_at), a->timeout_at);
    ff_hash_set(record, W(timeout_behavior), ff_str_or(a->timeout_behavior, W(fail)));
    ff_hash_set(record, W(resume_condition_json), a->resume_condition_json);
    ff_hash_set(record, W(resume_policy_json), a->resume_policy_json);
    ff_hash_set(record, W(continuation_metadata_pointer),
                ff_str_or_empty(a->continuation_metadata_pointer));
    ff_hash_set_word(record, W(buffered_signal_summary_json), W(no_buffered_signals));
    FF_CLEAR(record, W(last_signal_at), W(satisfied_at), W(closed_at), W(close_reason));
}

/* Which nodes of a tree each waitpoint serves. */
static bool write_member_map(beginning *b) {
    if (!b->condition.composite) return true;
    const char *fault = ff_tree_fault(b->condition.tree);
    if (fault) return stop(b, ff_bad_input(b->out, fault));
    ff_txn *t = b->txn;
    ff_table keys = {0};
    ff_table_add(&keys, &t->arena, ff_str_text(b->waitpoint.key));
    for (size_t i = 0; i < b->extra_count; i++) {
        ff_table_add(&keys, &t->arena, ff_str_text(b->extras[i].key));
    }
    ff_tree_map_members(t, b->condition.tree, &keys,
                        FF_CONCAT(t, ff_str_text(b->k->suspension), FF_TEXT(":member_map")));
    return true;
}

static bool write_indexes(beginning *b) {
    const ff_suspension_begin_args *a = b->a;
    double due = NO_TIMEOUT_SCORE;
    if (ff_str_is_set(a->timeout_at)) {
        if (!ff_str_to_number(a->timeout_at, &due) || isnan(due)) {
            return stop(b, ff_not_a_number(b->out, "timeout_at", a->timeout_at));
        }
        ff_zset_add(ff_zset_open(b->txn, b->k->suspension_timeout), a->execution_id, due);
    }
    ff_zset_add(ff_zset_open(b->txn, b->k->suspended), a->execution_id, due);
    return true;
}

ff_verdict ff_suspension_begin(ff_txn *t, const ff_suspension_begin_keys *k,
                               const ff_suspension_begin_args *a, ff_result *out) {
    beginning b = {.txn = t, .k = k, .a = a, .out = out};
    if (!read_extras(&b) || !look_for_outcome(&b) || !hold_lease(&b) || !make_room(&b)) {
        return b.verdict;
    }
    bool pending = ff_str_is(a->use_pending_waitpoint, W(one));
    if (!(pending ? activate_waitpoint(&b) : open_waitpoints(&b))) return b.verdict;
    enlist(&b, &b.waitpoint);
    if (!leave_lease(&b)) return b.verdict;
    write_core(&b);
    write_record(&b);
    if (!write_member_map(&b) || !write_indexes(&b)) return b.verdict;
    return conclude(&b, &(ff_outcome){.status = FF_OK,
                                      .suspension_id = a->suspension_id,
                                      .waitpoint = b.waitpoint,
                                      .extras = b.extras,
                                      .extra_count = b.extra_count});
}
