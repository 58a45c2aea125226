#include "engine/secret.h"

#include "base/number.h"
#include "engine/token.h"

#define GRACE_MAX 9007199254740991.0

static bool is_hex(ff_text text) {
    for (size_t i = 0; i < text.len; i++) {
        if (ff_hex_value(text.ptr[i]) < 0) return false;
    }
    return true;
}

static bool is_kid(const ff_str *kid) {
    ff_text text = ff_str_text(kid);
    return text.len > 0 && ff_text_find(text, ':', 0) == text.len;
}

static bool is_secret(const ff_str *secret) {
    ff_text text = ff_str_text(secret);
    return text.len > 0 && text.len % 2 == 0 && is_hex(text);
}

static ff_code check_rotation(const ff_secret_rotate_args *a, double *grace) {
    if (!is_kid(a->new_kid)) return FF_INVALID_KID;
    if (!is_secret(a->new_secret_hex)) return FF_INVALID_SECRET_HEX;
    if (!ff_str_to_number(a->grace_ms, grace) || !ff_number_is_whole(*grace) || *grace < 0 ||
        *grace > GRACE_MAX) {
        return FF_INVALID_GRACE_MS;
    }
    return FF_OK;
}

static ff_verdict repeat_rotation(ff_key *keystore, const ff_secret_rotate_args *a,
                                  ff_result *out) {
    const ff_word *field = ff_token_secret_field(ff_key_txn(keystore), ff_str_text(a->new_kid));
    ff_str *secret = ff_hash_get(keystore, field);
    if (secret && !ff_str_equal(secret, a->new_secret_hex)) {
        return ff_refuse_with(out, FF_ROTATION_CONFLICT, a->new_kid);
    }
    ff_hash_set(keystore, field, a->new_secret_hex);
    ff_result_add_word(out, W(noop));
    ff_result_add(out, a->new_kid);
    return ff_ok(out);
}

/* Moves to the next `expires_at:<kid>` field. */
static bool next_expiry(ff_key *keystore, size_t *cursor, const ff_word **field, ff_text *kid,
                        ff_str **value) {
    const ff_text prefix = FF_TEXT("expires_at:");
    while (ff_hash_next(keystore, cursor, field, value)) {
        if (!ff_text_starts_with((*field)->text, prefix)) continue;
        *kid = ff_text_slice((*field)->text, prefix.len, (*field)->text.len);
        return true;
    }
    return false;
}

/* Removes the secrets whose grace is over, and counts them. One without an expiry stays. */
static size_t collect_lapsed(ff_key *keystore) {
    ff_txn *t = ff_key_txn(keystore);
    size_t collected = 0;
    size_t cursor = 0;
    const ff_word *field;
    ff_text kid;
    ff_str *expires_at;
    while (next_expiry(keystore, &cursor, &field, &kid, &expires_at)) {
        if (ff_token_in_grace(t, expires_at)) continue;
        const ff_word *secret = ff_token_secret_field(t, kid);
        if (ff_hash_get(keystore, secret)) ff_hash_remove(keystore, secret);
        ff_hash_remove(keystore, field);
        collected++;
    }
    return collected;
}

static void demote(ff_key *keystore, ff_str *kid, double grace) {
    ff_txn *t = ff_key_txn(keystore);
    ff_str *expires_at = ff_str_number(t, t->now + grace);
    ff_hash_set(keystore, W(previous_kid), kid);
    ff_hash_set(keystore, W(previous_expires_at), expires_at);
    ff_hash_set(keystore, ff_token_expiry_field(t, ff_str_text(kid)), expires_at);
}

ff_verdict ff_secret_rotate(ff_txn *t, const ff_secret_rotate_keys *k,
                            const ff_secret_rotate_args *a, ff_result *out) {
    double grace;
    ff_code refused = check_rotation(a, &grace);
    if (refused) return ff_refuse(out, refused);
    ff_key *keystore = ff_hash_open(t, k->keystore);
    ff_str *former = ff_hash_get(keystore, W(current_kid));
    if (ff_str_equal(former, a->new_kid)) return repeat_rotation(keystore, a, out);

    size_t collected = collect_lapsed(keystore);
    if (former) demote(keystore, former, grace);
    ff_hash_set(keystore, W(current_kid), a->new_kid);
    ff_hash_set(keystore, ff_token_secret_field(t, ff_str_text(a->new_kid)), a->new_secret_hex);
    ff_result_add_word(out, W(rotated));
    ff_result_add(out, former);
    ff_result_add(out, a->new_kid);
    ff_result_add_number(out, (double)collected);
    return ff_ok(out);
}

ff_verdict ff_secret_list(ff_txn *t, const ff_secret_list_keys *k, const ff_secret_list_args *a,
                          ff_result *out) {
    (void)a;
    ff_key *keystore = ff_hash_open(t, k->keystore);
    ff_result_add(out, ff_hash_get(keystore, W(current_kid)));
    ff_result_add(out, NULL);
    size_t number_at = out->count - 1;
    size_t cursor = 0;
    const ff_word *field;
    ff_text kid;
    ff_str *expires_at;
    while (next_expiry(keystore, &cursor, &field, &kid, &expires_at)) {
        if (!ff_token_in_grace(t, expires_at)) continue;
        ff_result_add(out, ff_str_make(t, kid));
        ff_result_add(out, expires_at);
    }
    size_t listed = (out->count - number_at - 1) / 2;
    out->values[number_at].str = ff_str_integer(t, (int64_t)listed);
    return ff_ok(out);
}
