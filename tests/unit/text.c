#include "unit.h"

Test(text, absent_is_not_empty) {
    cr_expect(ff_text_is_absent(FF_TEXT_ABSENT));
    cr_expect(ff_text_is_absent(ff_text_of(NULL)));
    cr_expect(!ff_text_is_absent(FF_TEXT("")));
    cr_expect(!ff_text_is_set(FF_TEXT("")));
    cr_expect(!ff_text_is_set(FF_TEXT_ABSENT));
    cr_expect(ff_text_is_set(FF_TEXT("\0")));
    expect_text(ff_text_or_empty(FF_TEXT_ABSENT), "");
    expect_text(ff_text_or_empty(FF_TEXT("x")), "x");
}

Test(text, equality) {
    cr_expect(ff_text_equal(FF_TEXT("a\0b"), FF_TEXT("a\0b")));
    cr_expect(!ff_text_equal(FF_TEXT("a\0b"), FF_TEXT("a\0c")));
    cr_expect(!ff_text_equal(FF_TEXT("a"), FF_TEXT("ab")));
    cr_expect(ff_text_equal(FF_TEXT(""), ff_text_of("")));
    cr_expect(!ff_text_equal(FF_TEXT_ABSENT, FF_TEXT("")));
    cr_expect(!ff_text_equal(FF_TEXT_ABSENT, FF_TEXT_ABSENT));
    cr_expect(ff_text_equal_cstr(FF_TEXT("lane"), "lane"));
    cr_expect(!ff_text_equal_cstr(FF_TEXT("a\0"), "a"));
    cr_expect(ff_text_equal_ignoring_case(FF_TEXT("PrioritY"), FF_TEXT("pRIORITy")));
    cr_expect(!ff_text_equal_ignoring_case(FF_TEXT("[a"), FF_TEXT("{a")));
    cr_expect(!ff_text_equal_ignoring_case(FF_TEXT("\xc3\xa9"), FF_TEXT("\xc3\x89")));
    cr_expect(!ff_text_equal_ignoring_case(FF_TEXT("a"), FF_TEXT_ABSENT));
}

Test(text, order_is_by_unsigned_byte) {
    cr_expect(ff_text_compare(FF_TEXT("GPU"), FF_TEXT("_")) < 0);
    cr_expect(ff_text_compare(FF_TEXT("_"), FF_TEXT("gpu")) < 0);
    cr_expect(ff_text_compare(FF_TEXT("z"), FF_TEXT("\xc3\xa9")) < 0);
    cr_expect(ff_text_compare(FF_TEXT("a"), FF_TEXT("ab")) < 0);
    cr_expect(ff_text_compare(FF_TEXT("b"), FF_TEXT("ab")) > 0);
    cr_expect(ff_text_compare(FF_TEXT("ab"), FF_TEXT("ab")) == 0);
    cr_expect(ff_text_compare(FF_TEXT_ABSENT, FF_TEXT("")) == 0);
    cr_expect(ff_text_compare(FF_TEXT("a"), FF_TEXT("a\0")) < 0);
}

Test(text, finding_and_slicing) {
    cr_expect(ff_text_find(FF_TEXT("a:b:c"), ':', 0) == 1);
    cr_expect(ff_text_find(FF_TEXT("a:b:c"), ':', 2) == 3);
    cr_expect(ff_text_find(FF_TEXT("a:b:c"), ':', 4) == 5);
    cr_expect(ff_text_find(FF_TEXT("a"), 'a', 9) == 1);
    cr_expect(ff_text_find(FF_TEXT_ABSENT, 'a', 0) == 0);
    cr_expect(ff_text_contains(FF_TEXT("x ff:noop: y"), FF_TEXT("ff:noop:")));
    cr_expect(!ff_text_contains(FF_TEXT("ff:noo"), FF_TEXT("ff:noop:")));
    cr_expect(ff_text_contains(FF_TEXT("x"), FF_TEXT("")));
    cr_expect(!ff_text_contains(FF_TEXT_ABSENT, FF_TEXT("x")));
    cr_expect(ff_text_starts_with(FF_TEXT("hard:usd"), FF_TEXT("hard:")));
    cr_expect(!ff_text_starts_with(FF_TEXT("har"), FF_TEXT("hard:")));
    cr_expect(!ff_text_starts_with(FF_TEXT_ABSENT, FF_TEXT("")));
    expect_text(ff_text_slice(FF_TEXT("abcdef"), 1, 3), "bc");
    expect_text(ff_text_slice(FF_TEXT("abc"), 1, 99), "bc");
    expect_text(ff_text_slice(FF_TEXT("abc"), 9, 99), "");
    cr_expect(ff_text_is_absent(ff_text_slice(FF_TEXT_ABSENT, 0, 5)));
}

Test(text, splitting_keeps_empty_pieces) {
    ff_text rest = FF_TEXT("a,,b,");
    ff_text piece;
    cr_assert(ff_text_split(&rest, ',', &piece));
    expect_text(piece, "a");
    cr_assert(ff_text_split(&rest, ',', &piece));
    expect_text(piece, "");
    cr_assert(ff_text_split(&rest, ',', &piece));
    expect_text(piece, "b");
    cr_assert(ff_text_split(&rest, ',', &piece));
    expect_text(piece, "");
    cr_expect(!ff_text_split(&rest, ',', &piece));

    rest = FF_TEXT("");
    cr_assert(ff_text_split(&rest, ',', &piece));
    expect_text(piece, "");
    cr_expect(!ff_text_split(&rest, ',', &piece));
    rest = FF_TEXT_ABSENT;
    cr_expect(!ff_text_split(&rest, ',', &piece));
}

Test(text, trimming) {
    expect_text(ff_text_trim(FF_TEXT(" \t\n\v\f\r a b \r")), "a b");
    expect_text(ff_text_trim(FF_TEXT("  ")), "");
    expect_text(ff_text_trim(FF_TEXT("\xa0x")), "\xa0x");
    cr_expect(ff_text_is_absent(ff_text_trim(FF_TEXT_ABSENT)));
}

Test(text, hex_digits) {
    cr_expect(ff_hex_value('0') == 0 && ff_hex_value('9') == 9);
    cr_expect(ff_hex_value('a') == 10 && ff_hex_value('F') == 15);
    cr_expect(ff_hex_value('g') < 0 && ff_hex_value('G') < 0 && ff_hex_value('/') < 0);
    cr_expect(ff_hex_value(':') < 0 && ff_hex_value('@') < 0 && ff_hex_value('`') < 0);
    cr_expect(ff_hex_value('\0') < 0 && ff_hex_value('\xff') < 0);
}

Test(text, tag_is_the_first_balanced_group) {
    expect_text(ff_text_tag(FF_TEXT("ff:exec:{fp:7}:{fp:8}:x:core")), "{fp:7}");
    expect_text(ff_text_tag(FF_TEXT("{{a}b}c")), "{{a}b}");
    expect_text(ff_text_tag(FF_TEXT("x{{a}")), "{a}");
    expect_text(ff_text_tag(FF_TEXT("}{}")), "{}");
    expect_text(ff_text_tag(FF_TEXT("}{a}{b")), "{a}");
    cr_expect(ff_text_is_absent(ff_text_tag(FF_TEXT("none"))));
    cr_expect(ff_text_is_absent(ff_text_tag(FF_TEXT("}{"))));
    cr_expect(ff_text_is_absent(ff_text_tag(FF_TEXT_ABSENT)));
}

Test(text, tag_of_many_open_braces_is_linear) {
    size_t len = 4u << 20;
    char *braces = malloc(len);
    cr_assert(braces != NULL);
    memset(braces, '{', len);
    cr_expect(ff_text_is_absent(ff_text_tag((ff_text){braces, len})));
    braces[len - 1] = '}';
    expect_text(ff_text_tag((ff_text){braces, len}), "{}");
    free(braces);
}
