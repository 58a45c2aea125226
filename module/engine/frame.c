#include "engine/frame.h"

#include <math.h>

#include "base/number.h"
#include "engine/lease.h"
#include "engine/summary.h"
#include "engine/vector.h"

enum {
    PAYLOAD_MAX = 65536,
    RETENTION = 10000, /* about so many frames when the caller does not say */
    SUMMARY_RETENTION = 64,
    READ_MAX = 10000,
    FIELDS_MAX = 9,
};

/* What an append has worked out before it writes. */
typedef struct frame {
    ff_str *mode;
    bool summary;
    bool best_effort;
    bool counts_as_durable;
    bool was_durable; /* the stream has a durable frame already */
    ff_str *version;  /* of the summary */
    double ttl;
    int64_t expires_in; /* 0: does not */
    double rate;
    int64_t maxlen;
    bool trim_exactly;
} frame;

static bool number_or(const ff_str *text, double missing, double *number) {
    *number = missing;
    return text == NULL || ff_str_to_number(text, number);
}

/* Not rule LEASE-CHECK: an append has codes of its own, asks for no attempt id, and marks no lapsed lease. */
static ff_code check_owner(ff_key *core, const ff_frame_append_args *a) {
    if (!ff_str_is(ff_hash_get(core, W(lifecycle_phase)), W(active))) return FF_STREAM_CLOSED;
    ff_str *ownership = ff_hash_get(core, W(ownership_state));
    if (ff_str_is(ownership, W(lease_expired_reclaimable)) ||
        ff_str_is(ownership, W(lease_revoked))) {
        return FF_STALE_OWNER_CANNOT_APPEND;
    }
    ff_code lapsed = ff_lease_check_expiry(core);
    if (lapsed) return lapsed == FF_LEASE_EXPIRED ? FF_STALE_OWNER_CANNOT_APPEND : lapsed;
    if (!ff_str_equal(ff_hash_get(core, W(current_attempt_index)), a->attempt_index) ||
        !ff_str_equal(ff_hash_get(core, W(current_lease_id)), a->lease_id) ||
        !ff_str_equal(ff_hash_get(core, W(current_lease_epoch)), a->lease_epoch)) {
        return FF_STALE_OWNER_CANNOT_APPEND;
    }
    return FF_OK;
}

static bool plan_retention(const ff_frame_append_args *a, frame *f, ff_result *out) {
    double retention;
    if (!number_or(a->retention_maxlen, 0, &retention)) {
        ff_not_a_number(out, "retention_maxlen", a->retention_maxlen);
        return false;
    }
    if (!ff_number_to_integer(retention, &f->maxlen) || f->maxlen < 0) {
        ff_bad_input(out, "retention_maxlen must be a whole number and not negative");
        return false;
    }
    f->trim_exactly = f->maxlen > 0;
    if (f->maxlen == 0) f->maxlen = RETENTION;
    return true;
}

/* A setting that does not hold gives way to its default. */
static double setting(const ff_str *text, double most, double fallback) {
    double value;
    if (!ff_str_to_number(text, &value) || value <= 0 || value > most) return fallback;
    return value;
}

/* The rate of frames per second as this one makes it: the mean of the past, moved towards the time since
 * the last frame. The first frame takes the rate that gives the smallest window. */
static double estimate_rate(ff_key *meta, double floor, double alpha, double ttl_s) {
    double rate;
    double at;
    if (ff_hash_number(meta, W(ema_rate_hz), &rate) != FF_NUMBER_GOOD ||
        ff_hash_number(meta, W(last_append_ts_ms), &at) != FF_NUMBER_GOOD) {
        return floor / (ttl_s * 2);
    }
    double passed = ff_key_txn(meta)->now - at;
    if (passed <= 0) passed = 1;
    return alpha * (1000 / passed) + (1 - alpha) * rate;
}

/* Rule WINDOW. */
static bool plan_window(ff_key *meta, const ff_frame_append_args *a, frame *f, ff_result *out) {
    double floor = setting(a->window_floor, INFINITY, 64);
    double ceiling = setting(a->window_ceiling, INFINITY, 16384);
    if (ceiling < floor) ceiling = floor;
    double ttl_s = (f->ttl < 1 ? 1 : f->ttl) / 1000;
    f->rate = estimate_rate(meta, floor, setting(a->alpha, 1, 0.2), ttl_s);
    double window = ceil((f->rate * ttl_s) * 2);
    if (window < floor) window = floor;
    if (window > ceiling) window = ceiling;
    if (ff_number_to_integer(window, &f->maxlen)) return true;
    ff_bad_input(out, "window_floor and window_ceiling must give a whole number of frames");
    return false;
}

static bool plan_best_effort(ff_key *meta, const ff_frame_append_args *a, frame *f,
                             ff_result *out) {
    if (!number_or(a->ttl_ms, 0, &f->ttl)) {
        ff_not_a_number(out, "ttl_ms", a->ttl_ms);
        return false;
    }
    if (f->ttl > 0 && !f->was_durable && !ff_number_to_integer(2 * f->ttl, &f->expires_in)) {
        ff_bad_input(out, "twice ttl_ms must be a whole number of milliseconds that a key expiry "
                          "can hold");
        return false;
    }
    return plan_window(meta, a, f, out);
}

/* Finds every fault that the mode allows for, before anything is staged. */
static bool plan(ff_key *meta, const ff_frame_append_args *a, frame *f, ff_result *out) {
    f->mode = ff_str_is_set(a->mode) ? a->mode : W(durable)->str;
    f->summary = ff_str_is(f->mode, W(summary));
    f->best_effort = ff_str_is(f->mode, W(best_effort));
    f->counts_as_durable = f->summary || ff_str_is(f->mode, W(durable));
    f->was_durable = ff_str_is(ff_hash_get(meta, W(has_durable_frame)), W(one));
    if (a->frame_type == NULL) {
        ff_bad_input(out, "frame_type is missing");
        return false;
    }
    if (f->best_effort) return plan_best_effort(meta, a, f, out);
    if (!f->summary) return plan_retention(a, f, out);
    f->maxlen = SUMMARY_RETENTION;
    return true;
}

/* What later frames look at goes first: in a small hash a field is found by walking. */
static void create_meta(ff_key *meta, const ff_frame_append_args *a) {
    ff_txn *t = ff_key_txn(meta);
    double retention;
    FF_CLEAR(meta, W(closed_at));
    ff_hash_set_word(meta, W(frame_count), W(zero));
    ff_hash_set_word(meta, W(total_bytes), W(zero));
    ff_hash_set_word(meta, W(has_durable_frame), W(zero));
    FF_CLEAR(meta, W(last_sequence), W(last_frame_at), W(closed_reason));
    ff_hash_set(
        meta, W(stream_id),
        FF_CONCAT(t, ff_str_text(a->execution_id), FF_TEXT(":"), ff_str_text(a->attempt_index)));
    ff_hash_set(meta, W(execution_id), a->execution_id);
    ff_hash_set(meta, W(attempt_id), ff_str_or_empty(a->attempt_id));
    ff_hash_set(meta, W(attempt_index), a->attempt_index);
    ff_hash_set_now(meta, W(created_at));
    ff_hash_set_word(meta, W(durability_mode), W(durable_full));
    if (number_or(a->retention_maxlen, 0, &retention)) {
        ff_hash_set_number(meta, W(retention_maxlen), retention);
    } else {
        ff_hash_set_word(meta, W(retention_maxlen), W(nil));
    }
}

static ff_str *add_entry(ff_key *stream, const ff_frame_append_args *a, const frame *f) {
    ff_txn *t = ff_key_txn(stream);
    ff_pair pairs[FIELDS_MAX] = {
        {W(frame_type), a->frame_type},
        {W(ts), ff_str_is_set(a->ts) ? a->ts : ff_str_now(t)},
        {W(payload), a->payload},
        {W(encoding), ff_str_or(a->encoding, W(utf8))},
        {W(source), ff_str_or(a->source, W(worker))},
        {W(mode), f->mode},
    };
    size_t count = 6;
    if (ff_str_is_set(a->correlation_id)) {
        pairs[count++] = (ff_pair){W(correlation_id), a->correlation_id};
    }
    if (f->version) pairs[count++] = (ff_pair){W(summary_version), f->version};
    if (f->best_effort && f->ttl > 0) {
        pairs[count++] = (ff_pair){W(ttl_ms), ff_str_number(t, f->ttl)};
    }
    return ff_stream_add(stream, FF_STREAM_KEEP_ALL, pairs, count);
}

static void trim_and_expire(ff_key *stream, ff_key *meta, const frame *f) {
    if (f->counts_as_durable && !f->was_durable) {
        ff_hash_set_word(meta, W(has_durable_frame), W(one));
        ff_key_persist(stream);
    }
    ff_stream_trim(stream, !f->trim_exactly, f->maxlen);
    if (!f->best_effort) return;
    ff_hash_set_number(meta, W(ema_rate_hz), f->rate);
    ff_hash_set_now(meta, W(last_append_ts_ms));
    ff_hash_set_number(meta, W(maxlen_applied_last), (double)f->maxlen);
    if (f->expires_in > 0) {
        ff_key_expire_at(stream, (int64_t)ff_key_txn(stream)->now + f->expires_in);
    }
}

static ff_verdict write_frame(ff_key *stream, ff_key *meta, const ff_frame_append_args *a,
                              const frame *f, ff_result *out) {
    int64_t frames;
    int64_t bytes = (int64_t)ff_str_text(a->payload).len;
    if (!ff_hash_increment(meta, W(frame_count), 1, &frames) ||
        !ff_hash_increment(meta, W(total_bytes), bytes, NULL)) {
        return ff_bad_input(out, "a counter of the stream is no whole number, or is full");
    }
    ff_str *id = add_entry(stream, a, f);
    ff_hash_set(meta, W(last_sequence), id);
    ff_hash_set_now(meta, W(last_frame_at));
    trim_and_expire(stream, meta, f);
    ff_result_add(out, id);
    ff_result_add_number(out, (double)frames);
    ff_result_add(out, f->version);
    return ff_ok(out);
}

ff_verdict ff_frame_append(ff_txn *t, const ff_frame_append_keys *k, const ff_frame_append_args *a,
                           ff_result *out) {
    double most;
    frame f = {0};
    ff_verdict verdict;
    if (!number_or(a->max_payload_bytes, PAYLOAD_MAX, &most)) {
        return ff_not_a_number(out, "max_payload_bytes", a->max_payload_bytes);
    }
    if ((double)ff_str_text(a->payload).len > most) {
        return ff_refuse(out, FF_RETENTION_LIMIT_EXCEEDED);
    }
    ff_key *core = ff_hash_open(t, k->core);
    ff_code refused = check_owner(core, a);
    if (refused == FF_INVALID_INPUT) return ff_lease_refuse(out, refused, core, NULL, 0);
    if (refused) return ff_refuse(out, refused);
    ff_key *meta = ff_hash_open(t, k->meta);
    if (ff_str_is_set(ff_hash_get(meta, W(closed_at)))) return ff_refuse(out, FF_STREAM_CLOSED);
    if (!plan(meta, a, &f, out)) return FF_DISCARD;

    if (!ff_key_exists(meta)) create_meta(meta, a);
    if (f.summary && !ff_summary_patch(t, k->summary, a->patch_kind, ff_str_or_empty(a->payload),
                                       &f.version, out, &verdict)) {
        return verdict;
    }
    return write_frame(ff_stream_open(t, k->stream), meta, a, &f, out);
}

/* The first field of that name decides. */
static bool is_best_effort(const ff_stream_entry *entry) {
    for (size_t i = 0; i + 1 < entry->fields.count; i += 2) {
        if (ff_str_is(entry->fields.items[i], W(mode))) {
            return ff_str_is(entry->fields.items[i + 1], W(best_effort));
        }
    }
    return false;
}

static ff_value list_of(ff_txn *t, ff_strs strs) {
    ff_value list = {.items = ff_arena_array(&t->arena, strs.count, sizeof(ff_value)),
                     .count = strs.count};
    for (size_t i = 0; i < strs.count; i++) list.items[i] = (ff_value){.str = strs.items[i]};
    return list;
}

static ff_value entry_of(ff_txn *t, const ff_stream_entry *entry) {
    ff_value pair = {.items = ff_arena_array(&t->arena, 2, sizeof(ff_value)), .count = 2};
    pair.items[0] = (ff_value){.str = entry->id};
    pair.items[1] = list_of(t, entry->fields);
    return pair;
}

static void add_entries(ff_txn *t, ff_stream_entry *entries, size_t found, ff_result *out) {
    ff_value *items = ff_result_add_list(out, found);
    for (size_t i = 0; i < found; i++) items[i] = entry_of(t, &entries[i]);
}

static size_t leave_out_best_effort(ff_stream_entry *entries, size_t found) {
    size_t kept = 0;
    for (size_t i = 0; i < found; i++) {
        if (!is_best_effort(&entries[i])) entries[kept++] = entries[i];
    }
    return kept;
}

ff_verdict ff_frame_read(ff_txn *t, const ff_frame_read_keys *k, const ff_frame_read_args *a,
                         ff_result *out) {
    double number;
    int64_t count;
    ff_stream_entry *entries;
    size_t found;
    if (!ff_str_to_number(a->count, &number) || number < 1) {
        return ff_bad_input(out, "count_limit must be >= 1");
    }
    if (number > READ_MAX) return ff_bad_input(out, "count_limit_exceeds_hard_cap");
    if (!ff_number_to_integer(number, &count)) {
        return ff_bad_input(out, "count_limit must be a whole number");
    }
    ff_key *stream = ff_stream_open(t, k->stream);
    if (!ff_stream_range(stream, a->from, a->to, count, &entries, &found)) {
        return ff_bad_input(out, "the range needs two stream ids");
    }
    if (ff_str_is(a->visibility, W(exclude_best_effort))) {
        found = leave_out_best_effort(entries, found);
    }
    add_entries(t, entries, found, out);
    ff_key *meta = ff_hash_open(t, k->meta);
    ff_result_add(out, ff_hash_get(meta, W(closed_at)));
    ff_result_add(out, ff_hash_get(meta, W(closed_reason)));
    return ff_ok(out);
}
