#include "base/hmac.h"

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <stdio.h>
#include <stdlib.h>

/* Looking an algorithm up costs more than running it, so each is fetched once and kept. */
static EVP_MAC_CTX *mac;

static _Noreturn void no_crypto(void) {
    fputs("ff: libcrypto cannot compute HMAC-SHA1\n", stderr);
    abort();
}

static EVP_MAC_CTX *hmac_sha1(void) {
    if (mac) return mac;
    char digest[] = "SHA1";
    OSSL_PARAM parameters[] = {
        OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest, 0),
        OSSL_PARAM_construct_end(),
    };
    EVP_MAC *algorithm = EVP_MAC_fetch(NULL, "HMAC", NULL);
    mac = algorithm ? EVP_MAC_CTX_new(algorithm) : NULL;
    if (!mac || !EVP_MAC_CTX_set_params(mac, parameters)) no_crypto();
    EVP_MAC_free(algorithm);
    return mac;
}

/* Decodes whole pairs into `bytes`; false at the first that is not hex. */
static bool decode_hex(ff_text hex, unsigned char *bytes) {
    for (size_t i = 0; i < hex.len / 2; i++) {
        int high = ff_hex_value(hex.ptr[2 * i]);
        int low = ff_hex_value(hex.ptr[2 * i + 1]);
        if (high < 0 || low < 0) return false;
        bytes[i] = (unsigned char)(high << 4 | low);
    }
    return true;
}

static bool hash_long_key(ff_text hex, ff_hmac_key *key) {
    EVP_MD_CTX *hash = EVP_MD_CTX_new();
    if (!hash || !EVP_DigestInit_ex(hash, EVP_sha1(), NULL)) no_crypto();
    bool valid = true;
    for (size_t start = 0; valid && start < hex.len; start += 2 * sizeof(key->bytes)) {
        ff_text part = ff_text_slice(hex, start, start + 2 * sizeof(key->bytes));
        valid = decode_hex(part, key->bytes);
        if (valid && !EVP_DigestUpdate(hash, key->bytes, part.len / 2)) no_crypto();
    }
    if (valid && !EVP_DigestFinal_ex(hash, key->bytes, NULL)) no_crypto();
    key->len = FF_HMAC_SIZE;
    EVP_MD_CTX_free(hash);
    return valid;
}

bool ff_hmac_key_decode(ff_text hex, ff_hmac_key *key) {
    if (!hex.ptr || hex.len % 2 != 0) return false;
    if (hex.len / 2 > sizeof(key->bytes)) return hash_long_key(hex, key);
    key->len = hex.len / 2;
    return decode_hex(hex, key->bytes);
}

void ff_hmac_sign(const ff_hmac_key *key, const ff_text *pieces, size_t count,
                  char hex[FF_HMAC_HEX]) {
    EVP_MAC_CTX *context = hmac_sha1();
    if (!EVP_MAC_init(context, key->bytes, key->len, NULL)) no_crypto();
    for (size_t i = 0; i < count; i++) {
        if (pieces[i].len == 0) continue;
        const unsigned char *data = (const unsigned char *)pieces[i].ptr;
        if (!EVP_MAC_update(context, data, pieces[i].len)) no_crypto();
    }
    unsigned char digest[FF_HMAC_SIZE];
    size_t len;
    if (!EVP_MAC_final(context, digest, &len, sizeof(digest)) || len != sizeof(digest)) no_crypto();
    for (size_t i = 0; i < sizeof(digest); i++) {
        hex[2 * i] = "0123456789abcdef"[digest[i] >> 4];
        hex[2 * i + 1] = "0123456789abcdef"[digest[i] & 15];
    }
}

void ff_hmac_token_digest(const ff_hmac_key *key, ff_text waitpoint_id, ff_text waitpoint_key,
                          ff_text created_at, char hex[FF_HMAC_HEX]) {
    ff_text bar = FF_TEXT("|");
    ff_text pieces[] = {waitpoint_id, bar, waitpoint_key, bar, created_at};
    ff_hmac_sign(key, pieces, sizeof(pieces) / sizeof(pieces[0]), hex);
}

bool ff_hmac_equal(ff_text a, ff_text b) {
    return a.ptr && b.ptr && a.len == b.len && CRYPTO_memcmp(a.ptr, b.ptr, a.len) == 0;
}
