#include "engine/worker.h"

#include "base/number.h"

/* A time to live counts as it is written down: what the text of the number rounds away is gone. */
static bool read_ttl(ff_str *text, int64_t *ttl) {
    return ff_integer_parse(ff_str_text(text), ttl);
}

static void write_caps(ff_key *caps, const ff_worker_register_args *a, ff_str *ttl, ff_str *now) {
    ff_hash_set(caps, W(worker_id), a->worker_id);
    ff_hash_set(caps, W(lanes_csv), a->lanes_csv);
    ff_hash_set(caps, W(caps_csv), a->caps_csv);
    ff_hash_set(caps, W(ttl_ms), ttl);
    ff_hash_set(caps, W(registered_at_ms), now);
    ff_hash_set(caps, W(last_heartbeat_ms), now);
}

ff_verdict ff_worker_register(ff_txn *t, const ff_worker_register_keys *k,
                              const ff_worker_register_args *a, ff_result *out) {
    double ttl_number;
    double now;
    int64_t ttl;
    if (!ff_str_to_number(a->ttl_ms, &ttl_number)) {
        return ff_not_a_number(out, "ttl_ms", a->ttl_ms);
    }
    if (!ff_str_to_number(a->now_ms, &now)) return ff_not_a_number(out, "now_ms", a->now_ms);
    ff_str *ttl_text = ff_str_number(t, ttl_number);
    if (!read_ttl(ttl_text, &ttl) || ttl < 1) {
        return ff_bad_input(out, "ttl_ms must be a whole number of milliseconds between 1 and "
                                 "99999999999999");
    }

    ff_key *alive = ff_any_open(t, k->alive);
    const ff_word *outcome = ff_key_exists(alive) ? W(refreshed) : W(registered);
    if (k->alive) ff_string_set(alive, W(one)->str, ttl);
    if (k->caps) write_caps(ff_hash_open(t, k->caps), a, ttl_text, ff_str_number(t, now));
    if (k->caps) ff_key_expire_at(ff_hash_open(t, k->caps), (int64_t)t->now + ttl);
    if (k->workers) ff_set_add(ff_set_open(t, k->workers), a->instance_id);
    return ff_ok_word(out, outcome);
}

/* A time to live that is over at once takes the keys with it, before the new heartbeat is noted. */
static void renew(ff_key *key, int64_t ttl) {
    if (ttl > 0) {
        ff_key_expire_at(key, (int64_t)ff_key_txn(key)->now + ttl);
    } else {
        ff_key_delete(key);
    }
}

ff_verdict ff_worker_heartbeat(ff_txn *t, const ff_worker_heartbeat_keys *k,
                               const ff_worker_heartbeat_args *a, ff_result *out) {
    double now;
    double ttl_number;
    int64_t ttl;
    if (!ff_str_to_number(a->now_ms, &now)) return ff_not_a_number(out, "now_ms", a->now_ms);
    ff_key *caps = ff_hash_open(t, k->caps);
    if (ff_hash_number(caps, W(ttl_ms), &ttl_number) != FF_NUMBER_GOOD) {
        return ff_ok_word(out, W(not_registered));
    }
    ff_key *alive = ff_any_open(t, k->alive);
    if (k->alive && !ff_key_exists(alive)) return ff_ok_word(out, W(not_registered));
    ff_str *ttl_text = ff_str_number(t, ttl_number);
    if (!read_ttl(ttl_text, &ttl)) {
        return ff_bad_input(out, "the stored ttl_ms is no whole number of milliseconds");
    }

    if (k->alive) renew(alive, ttl);
    renew(caps, ttl);
    ff_hash_set_number(caps, W(last_heartbeat_ms), now);
    ff_result_add_word(out, W(refreshed));
    ff_result_add(out, ttl_text);
    return ff_ok(out);
}

void ff_worker_dismiss(ff_txn *t, const ff_worker_register_keys *k, ff_str *instance_id) {
    if (k->alive) ff_key_delete(ff_any_open(t, k->alive));
    if (k->caps) ff_key_delete(ff_any_open(t, k->caps));
    if (k->workers) ff_set_remove(ff_set_open(t, k->workers), instance_id);
}
