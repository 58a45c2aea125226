#include "base/hmac.h"

#include "unit.h"

#define ID "f10f0004-0000-4000-8000-000000000001"

static void expect_digest(ff_text secret, const ff_text *pieces, size_t count,
                          const char *expected) {
    ff_hmac_key key;
    char hex[FF_HMAC_HEX];
    cr_assert(ff_hmac_key_decode(secret, &key));
    ff_hmac_sign(&key, pieces, count, hex);
    cr_expect(memcmp(hex, expected, FF_HMAC_HEX) == 0, "%.40s instead of %s", hex, expected);
}

Test(hmac, check_value_of_tokens) {
    ff_hmac_key key;
    char hex[FF_HMAC_HEX];
    ff_text secret = FF_TEXT("000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f");
    cr_assert(ff_hmac_key_decode(secret, &key));
    for (int i = 0; i < 3; i++) {
        ff_hmac_token_digest(&key, FF_TEXT(ID), FF_TEXT("wpk:" ID), FF_TEXT("1767225600000"), hex);
        expect_text(((ff_text){hex, sizeof(hex)}), "f79cf2a62ddc79ca0120f2d3daaad944fcd32f90");
    }
}

/* RFC 2202. */
Test(hmac, published_values) {
    expect_digest(FF_TEXT("0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b"),
                  (ff_text[]){FF_TEXT("Hi "), FF_TEXT("There")}, 2,
                  "b617318655057264e28bc0b6fb378c8ef146be00");
    expect_digest(FF_TEXT("4a656665"), (ff_text[]){FF_TEXT("what do ya want for nothing?")}, 1,
                  "effcdf6ae5eb2fa2d27416d5f184df9c259a7c79");
    char long_secret[160];
    memset(long_secret, 'a', sizeof(long_secret));
    expect_digest((ff_text){long_secret, sizeof(long_secret)},
                  (ff_text[]){FF_TEXT("Test Using Larger Than Block-Size Key - Hash Key First")}, 1,
                  "aa4ae5e15272d00e95705637ce8a3b55ed402112");
}

Test(hmac, empty_key_and_empty_message) {
    expect_digest(FF_TEXT(""), NULL, 0, "fbdb1d1b18aa6c08324b7d64b71fb76370690e1d");
    expect_digest(FF_TEXT(""), (ff_text[]){FF_TEXT_ABSENT}, 1,
                  "fbdb1d1b18aa6c08324b7d64b71fb76370690e1d");
}

Test(hmac, keys_at_the_block_size) {
    char secret[2 * 65];
    memset(secret, '7', sizeof(secret));
    ff_hmac_key key;
    cr_assert(ff_hmac_key_decode((ff_text){secret, 128}, &key));
    cr_expect(key.len == 64 && key.bytes[63] == 0x77);
    cr_assert(ff_hmac_key_decode((ff_text){secret, 130}, &key));
    cr_expect(key.len == FF_HMAC_SIZE);
}

Test(hmac, secrets_in_either_case_are_the_same) {
    ff_hmac_key lower;
    ff_hmac_key upper;
    cr_assert(ff_hmac_key_decode(FF_TEXT("abcdef"), &lower));
    cr_assert(ff_hmac_key_decode(FF_TEXT("ABCdEF"), &upper));
    cr_expect(lower.len == 3 && upper.len == 3 && memcmp(lower.bytes, upper.bytes, 3) == 0);
}

Test(hmac, secrets_that_do_not_decode) {
    ff_hmac_key key;
    cr_expect(!ff_hmac_key_decode(FF_TEXT("abc"), &key));
    cr_expect(!ff_hmac_key_decode(FF_TEXT("zz"), &key));
    cr_expect(!ff_hmac_key_decode(FF_TEXT("a "), &key));
    cr_expect(!ff_hmac_key_decode(FF_TEXT("+a"), &key));
    cr_expect(!ff_hmac_key_decode(FF_TEXT("0x"), &key));
    cr_expect(!ff_hmac_key_decode(FF_TEXT("00\0000"), &key));
    cr_expect(!ff_hmac_key_decode(FF_TEXT_ABSENT, &key));
    char long_secret[4002];
    memset(long_secret, 'a', sizeof(long_secret));
    cr_expect(ff_hmac_key_decode((ff_text){long_secret, 4002}, &key));
    cr_expect(!ff_hmac_key_decode((ff_text){long_secret, 4001}, &key));
    long_secret[4001] = 'g';
    cr_expect(!ff_hmac_key_decode((ff_text){long_secret, 4002}, &key));
    long_secret[4001] = 'a';
    long_secret[0] = ' ';
    cr_expect(!ff_hmac_key_decode((ff_text){long_secret, 4002}, &key));
}

Test(hmac, comparison) {
    cr_expect(ff_hmac_equal(FF_TEXT("abc"), FF_TEXT("abc")));
    cr_expect(!ff_hmac_equal(FF_TEXT("abc"), FF_TEXT("abC")));
    cr_expect(!ff_hmac_equal(FF_TEXT("abc"), FF_TEXT("abcd")));
    cr_expect(!ff_hmac_equal(FF_TEXT_ABSENT, FF_TEXT("")));
}
