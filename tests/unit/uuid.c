#include "base/uuid.h"

#include "unit.h"

Test(uuid, both_forms_either_case) {
    static const uint8_t bytes[16] = {0xf1, 0x0f, 0x00, 0x04, 0xab, 0xcd, 0x40, 0x00,
                                      0x80, 0x00, 0x01, 0x23, 0x45, 0x67, 0x89, 0xef};
    ff_uuid uuid;
    cr_assert(ff_uuid_parse(FF_TEXT("f10f0004-abcd-4000-8000-0123456789ef"), &uuid));
    cr_expect(memcmp(uuid.bytes, bytes, 16) == 0);
    memset(&uuid, 0, sizeof(uuid));
    cr_assert(ff_uuid_parse(FF_TEXT("F10F0004ABCD400080000123456789EF"), &uuid));
    cr_expect(memcmp(uuid.bytes, bytes, 16) == 0);
    char text[FF_UUID_TEXT];
    ff_uuid_format(&uuid, text);
    expect_text(((ff_text){text, sizeof(text)}), "f10f0004-abcd-4000-8000-0123456789ef");
}

Test(uuid, refused) {
    ff_uuid uuid;
    cr_expect(!ff_uuid_parse(FF_TEXT(""), &uuid));
    cr_expect(!ff_uuid_parse(FF_TEXT_ABSENT, &uuid));
    cr_expect(!ff_uuid_parse(FF_TEXT("f10f0004-abcd-4000-8000-0123456789e"), &uuid));
    cr_expect(!ff_uuid_parse(FF_TEXT("f10f0004-abcd-4000-8000-0123456789eff"), &uuid));
    cr_expect(!ff_uuid_parse(FF_TEXT("f10f0004-abcd-4000-8000-0123456789eg"), &uuid));
    cr_expect(!ff_uuid_parse(FF_TEXT("f10f0004aabcd-4000-8000-0123456789ef"), &uuid));
    cr_expect(!ff_uuid_parse(FF_TEXT("f10f000-4abcd-4000-8000-0123456789ef"), &uuid));
    cr_expect(!ff_uuid_parse(FF_TEXT("f10f0004-abcd-4000-8000-01234567\0009ef"), &uuid));
    cr_expect(!ff_uuid_parse(FF_TEXT("{10f0004abcd400080000123456789e}"), &uuid));
}

Test(uuid, random_ones_read_back_the_same) {
    uint64_t seed = 5;
    for (int i = 0; i < 2000; i++) {
        uint64_t random[2] = {unit_random(&seed), unit_random(&seed)};
        ff_uuid uuid = ff_uuid_v4((const uint8_t *)random);
        char text[FF_UUID_TEXT];
        ff_uuid_format(&uuid, text);
        cr_assert(text[14] == '4' && strchr("89ab", text[19]));
        ff_uuid back;
        cr_assert(ff_uuid_parse((ff_text){text, sizeof(text)}, &back));
        cr_assert(memcmp(&back, &uuid, sizeof(back)) == 0);
        cr_assert(ff_uuid_is_canonical((ff_text){text, sizeof(text)}));
    }
}

Test(uuid, canonical_spelling) {
    cr_expect(ff_uuid_is_canonical(FF_TEXT("f10f0004-abcd-4000-8000-0123456789ef")));
    cr_expect(!ff_uuid_is_canonical(FF_TEXT("F10f0004-abcd-4000-8000-0123456789ef")));
    cr_expect(!ff_uuid_is_canonical(FF_TEXT("f10f0004abcd400080000123456789ef")));
    cr_expect(!ff_uuid_is_canonical(FF_TEXT("nonsense")));
    cr_expect(!ff_uuid_is_canonical(FF_TEXT_ABSENT));
}
