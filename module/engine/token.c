#include "engine/token.h"

#include "base/number.h"

const ff_word *ff_token_secret_field(ff_txn *t, ff_text kid) {
    return ff_field(t, ff_arena_concat(&t->arena, FF_TEXT("secret:"), kid));
}

const ff_word *ff_token_expiry_field(ff_txn *t, ff_text kid) {
    return ff_field(t, ff_arena_concat(&t->arena, FF_TEXT("expires_at:"), kid));
}

bool ff_token_in_grace(const ff_txn *t, const ff_str *expires_at) {
    double until;
    return ff_str_to_number(expires_at, &until) && until > 0 && until >= t->now;
}

static ff_str *secret_of(ff_key *keystore, ff_text kid) {
    return ff_hash_get(keystore, ff_token_secret_field(ff_key_txn(keystore), kid));
}

ff_code ff_token_signer_open(ff_txn *t, ff_str *keystore, ff_token_signer *signer) {
    if (!ff_str_is_set(keystore)) return FF_INVALID_KEYS_MISSING_HMAC;
    ff_key *secrets = ff_hash_open(t, keystore);
    signer->kid = ff_hash_get(secrets, W(current_kid));
    if (signer->kid == NULL) return FF_HMAC_SECRET_NOT_INITIALIZED;
    ff_str *secret = secret_of(secrets, ff_str_text(signer->kid));
    if (secret == NULL) return FF_HMAC_SECRET_NOT_INITIALIZED;
    return ff_hmac_key_decode(ff_str_text(secret), &signer->key) ? FF_OK : FF_INVALID_SECRET;
}

ff_str *ff_token_mint(ff_txn *t, const ff_token_signer *signer, const ff_str *waitpoint_id,
                      const ff_str *waitpoint_key) {
    char digest[FF_HMAC_HEX];
    ff_hmac_token_digest(&signer->key, ff_str_text(waitpoint_id), ff_str_text(waitpoint_key),
                         ff_str_text(ff_str_now(t)), digest);
    return FF_CONCAT(t, ff_str_text(signer->kid), FF_TEXT(":"),
                     ff_text_make(digest, sizeof digest));
}

static bool split_token(ff_text token, ff_text *kid, ff_text *digest) {
    size_t colon = ff_text_find(token, ':', 0);
    if (colon == 0 || colon == token.len) return false;
    *kid = ff_text_slice(token, 0, colon);
    *digest = ff_text_slice(token, colon + 1, token.len);
    return digest->len == FF_HMAC_HEX;
}

static bool is_in_grace(ff_key *keystore, ff_text kid) {
    ff_txn *t = ff_key_txn(keystore);
    return ff_token_in_grace(t, ff_hash_get(keystore, ff_token_expiry_field(t, kid)));
}

static ff_code find_key(ff_key *keystore, ff_text kid, ff_hmac_key *key) {
    ff_str *current_kid = ff_hash_get(keystore, W(current_kid));
    if (current_kid == NULL) return FF_HMAC_SECRET_NOT_INITIALIZED;
    ff_str *secret = secret_of(keystore, kid);
    if (secret == NULL) return FF_INVALID_TOKEN;
    if (!ff_text_equal(kid, ff_str_text(current_kid)) && !is_in_grace(keystore, kid)) {
        return FF_TOKEN_EXPIRED;
    }
    return ff_hmac_key_decode(ff_str_text(secret), key) ? FF_OK : FF_INVALID_SECRET;
}

static bool is_signed(const ff_hmac_key *key, ff_text digest, ff_text waitpoint_id,
                      ff_key *waitpoint) {
    char expected[FF_HMAC_HEX];
    double created_at;
    if (ff_hash_number(waitpoint, W(created_at), &created_at) != FF_NUMBER_GOOD) created_at = 0;
    ff_hmac_token_digest(key, waitpoint_id, ff_str_text(ff_hash_get(waitpoint, W(waitpoint_key))),
                         ff_number_text(&ff_key_txn(waitpoint)->arena, created_at), expected);
    return ff_hmac_equal(digest, ff_text_make(expected, sizeof expected));
}

ff_code ff_token_validate(ff_txn *t, ff_str *keystore, const ff_str *token,
                          const ff_str *waitpoint_id, ff_key *waitpoint) {
    ff_text kid;
    ff_text digest;
    ff_hmac_key key;
    if (!ff_str_is_set(keystore)) return FF_INVALID_KEYS_MISSING_HMAC;
    if (!ff_str_is_set(token)) return FF_MISSING_TOKEN;
    if (!split_token(ff_str_text(token), &kid, &digest)) return FF_INVALID_TOKEN;
    ff_code refused = find_key(ff_hash_open(t, keystore), kid, &key);
    if (refused) return refused;
    return is_signed(&key, digest, ff_str_text(waitpoint_id), waitpoint) ? FF_OK : FF_INVALID_TOKEN;
}
