#include "base/fnv.h"

#include "unit.h"

Test(fnv, known_values) {
    cr_expect(ff_fnv1a(FF_TEXT("")) == UINT64_C(0xcbf29ce484222325));
    cr_expect(ff_fnv1a(FF_TEXT("a")) == UINT64_C(0xaf63dc4c8601ec8c));
    cr_expect(ff_fnv1a(FF_TEXT("foobar")) == UINT64_C(0x85944171f73967e8));
    cr_expect(ff_fnv1a(FF_TEXT("\xff")) == (UINT64_C(0xcbf29ce484222325) ^ 0xff) * 0x100000001b3);
}

Test(fnv, modulus_takes_the_low_16_bits) {
    cr_expect(ff_fnv1a_mod(FF_TEXT("foobar"), 256) == 0xe8);
    cr_expect(ff_fnv1a_mod(FF_TEXT("foobar"), 1000) == 0x67e8 % 1000);
    cr_expect(ff_fnv1a_mod(FF_TEXT("a"), 65535) == 0xec8c);
    cr_expect(ff_fnv1a_mod(FF_TEXT("a"), 1) == 0);
}

Test(fnv, digest_folds_both_halves) {
    char hex[8];
    ff_fnv1a_digest(FF_TEXT("foobar"), hex);
    expect_text(((ff_text){hex, 8}), "72ad2699");
    ff_fnv1a_digest(FF_TEXT(""), hex);
    expect_text(((ff_text){hex, 8}), "4fd0bfc1");
}
