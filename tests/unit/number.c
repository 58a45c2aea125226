#include "base/number.h"

#include "unit.h"

#include <float.h>
#include <math.h>
#include <stdio.h>

static void expect_number(ff_text text, double expected) {
    ff_text exact = unit_exact(text);
    double value = -12345;
    bool parsed = ff_number_parse(exact, &value);
    bool same =
        isnan(expected) ? isnan(value) : value == expected && signbit(value) == signbit(expected);
    cr_expect(parsed && same, "\"%.*s\": parsed %d, %.17g instead of %.17g", (int)text.len,
              text.ptr, parsed, value, expected);
    unit_exact_free(exact);
}

static void expect_no_number(ff_text text) {
    ff_text exact = unit_exact(text);
    double value = -12345;
    cr_expect(!ff_number_parse(exact, &value), "\"%.*s\" passed", (int)text.len, text.ptr);
    cr_expect(value == -12345, "a refusal must leave the value alone");
    unit_exact_free(exact);
}

Test(number, what_is_a_number) {
    expect_number(FF_TEXT("0"), 0);
    expect_number(FF_TEXT("10"), 10);
    expect_number(FF_TEXT("-3"), -3);
    expect_number(FF_TEXT("+5"), 5);
    expect_number(FF_TEXT("5."), 5);
    expect_number(FF_TEXT(".5"), 0.5);
    expect_number(FF_TEXT("-.5"), -0.5);
    expect_number(FF_TEXT("007"), 7);
    expect_number(FF_TEXT("-0"), -0.0);
    expect_number(FF_TEXT("1e3"), 1000);
    expect_number(FF_TEXT("1E+2"), 100);
    expect_number(FF_TEXT("1.5E-2"), 0.015);
    expect_number(FF_TEXT("0x10"), 16);
    expect_number(FF_TEXT("0X1f"), 31);
    expect_number(FF_TEXT("-0X1F"), -31);
    expect_number(FF_TEXT("0x1p4"), 16);
    expect_number(FF_TEXT("0x1.8"), 1.5);
    expect_number(FF_TEXT("inf"), INFINITY);
    expect_number(FF_TEXT("-Inf"), -INFINITY);
    expect_number(FF_TEXT("+INFINITY"), INFINITY);
    expect_number(FF_TEXT("1e400"), INFINITY);
    expect_number(FF_TEXT("nan"), NAN);
    expect_number(FF_TEXT("-NaN"), NAN);
    expect_number(FF_TEXT("nan(12)"), NAN);
    expect_number(FF_TEXT("1767225630000"), 1767225630000);
    expect_number(FF_TEXT("999999999999999"), 999999999999999);
    expect_number(FF_TEXT("9007199254740993"), 9007199254740992);
    expect_number(FF_TEXT("5e-324"), 5e-324);
}

Test(number, blanks_around_are_ignored) {
    expect_number(FF_TEXT(" 10 "), 10);
    expect_number(FF_TEXT("\t\n\v\f\r7\r\f\v\n\t"), 7);
    expect_number(FF_TEXT(" 1767225600000.0 "), 1767225600000);
    expect_no_number(FF_TEXT("\xc2\xa0"
                             "5"));
}

Test(number, what_is_none) {
    expect_no_number(FF_TEXT(""));
    expect_no_number(FF_TEXT(" \t\r\n"));
    expect_no_number(FF_TEXT("-"));
    expect_no_number(FF_TEXT("+"));
    expect_no_number(FF_TEXT("."));
    expect_no_number(FF_TEXT("5x"));
    expect_no_number(FF_TEXT("10ms"));
    expect_no_number(FF_TEXT("1,5"));
    expect_no_number(FF_TEXT("1_0"));
    expect_no_number(FF_TEXT("0x"));
    expect_no_number(FF_TEXT("0x1p"));
    expect_no_number(FF_TEXT("1e"));
    expect_no_number(FF_TEXT("--5"));
    expect_no_number(FF_TEXT("+-5"));
    expect_no_number(FF_TEXT("- 5"));
    expect_no_number(FF_TEXT("5 5"));
    expect_no_number(FF_TEXT("0b1"));
    expect_no_number(FF_TEXT("1.2.3"));
    expect_no_number(FF_TEXT("abc"));
    expect_no_number(FF_TEXT("infinit"));
    expect_no_number(FF_TEXT("nan("));
    expect_no_number(FF_TEXT("\0"
                             "5"));
    expect_no_number(FF_TEXT(" \0"
                             "5"));
    double value;
    cr_expect(!ff_number_parse(FF_TEXT_ABSENT, &value));
}

Test(number, a_nul_ends_the_text) {
    expect_number(FF_TEXT("5\0x"), 5);
    expect_number(FF_TEXT("1500\0junk"), 1500);
    expect_number(FF_TEXT(" 5 \0\xff"), 5);
}

Test(number, huge_texts_are_linear_and_stay_off_the_stack) {
    size_t len = 32u << 20;
    char *text = malloc(len);
    cr_assert(text != NULL);
    double value;
    memset(text, '0', len);
    text[len - 1] = '7';
    cr_expect(ff_number_parse((ff_text){text, len}, &value) && value == 7);
    memset(text, '9', len);
    cr_expect(ff_number_parse((ff_text){text, len}, &value) && isinf(value));
    text[len / 2] = '*';
    cr_expect(!ff_number_parse((ff_text){text, len}, &value));
    memset(text, ' ', len);
    cr_expect(!ff_number_parse((ff_text){text, len}, &value));
    text[len / 2] = '3';
    cr_expect(ff_number_parse((ff_text){text, len}, &value) && value == 3);
    free(text);
}

#define expect_format(function, value, expected) \
    do { \
        char expect_buffer[FF_NUMBER_MAX]; \
        size_t expect_len = function((value), expect_buffer); \
        cr_expect(strcmp(expect_buffer, expected) == 0 && expect_len == strlen(expected), \
                  "%s: got %s instead of %s", #value, expect_buffer, expected); \
    } while (0)

Test(number, fmt14) {
    expect_format(ff_number_format, 0.0, "0");
    expect_format(ff_number_format, -0.0, "-0");
    expect_format(ff_number_format, 1.0, "1");
    expect_format(ff_number_format, -1.0, "-1");
    expect_format(ff_number_format, 1767225630000.0, "1767225630000");
    expect_format(ff_number_format, 1767225601000.25, "1767225601000.2");
    expect_format(ff_number_format, 1767225600000.75, "1767225600000.8");
    expect_format(ff_number_format, 99999999999999.0, "99999999999999");
    expect_format(ff_number_format, -99999999999999.0, "-99999999999999");
    expect_format(ff_number_format, 100000000000000.0, "1e+14");
    expect_format(ff_number_format, 101767225600000.0, "1.017672256e+14");
    expect_format(ff_number_format, 125224014612345.0, "1.2522401461234e+14");
    expect_format(ff_number_format, 12345678901234567.0, "1.2345678901235e+16");
    expect_format(ff_number_format, 99999999999999.5, "1e+14");
    expect_format(ff_number_format, 0.30000000000000004, "0.3");
    expect_format(ff_number_format, 2.5, "2.5");
    expect_format(ff_number_format, 0.00001, "1e-05");
    expect_format(ff_number_format, 1e-7, "1e-07");
    expect_format(ff_number_format, INFINITY, "inf");
    expect_format(ff_number_format, -INFINITY, "-inf");
    expect_format(ff_number_format, -DBL_MAX, "-1.7976931348623e+308");
    expect_format(ff_number_format, 5e-324, "4.9406564584125e-324");
}

Test(number, srvnum) {
    expect_format(ff_number_format_server, 0.0, "0");
    expect_format(ff_number_format_server, -0.0, "0");
    expect_format(ff_number_format_server, 9000.0, "9000");
    expect_format(ff_number_format_server, -7.0, "-7");
    expect_format(ff_number_format_server, 100000000000000.0, "100000000000000");
    expect_format(ff_number_format_server, 4611686018427387904.0, "4611686018427387904");
    expect_format(ff_number_format_server, -4611686018427387904.0, "-4611686018427387904");
    expect_format(ff_number_format_server, 2.5, "2.5");
    expect_format(ff_number_format_server, 1.5, "1.5");
    expect_format(ff_number_format_server, -0.25, "-0.25");
    expect_format(ff_number_format_server, 1.0 / 3.0, "0.3333333333333333");
    expect_format(ff_number_format_server, 0.1 + 0.2, "0.30000000000000004");
    expect_format(ff_number_format_server, 0.001, "0.001");
    expect_format(ff_number_format_server, 0.000001, "0.000001");
    expect_format(ff_number_format_server, 1e-7, "1e-7");
    expect_format(ff_number_format_server, 1.5e-7, "1.5e-7");
    expect_format(ff_number_format_server, 0.00012345, "1.2345e-4");
    expect_format(ff_number_format_server, 0.0012345678, "0.0012345678");
    expect_format(ff_number_format_server, 1234567.5, "1234567.5");
    expect_format(ff_number_format_server, 1234.12345678, "1234.12345678");
    expect_format(ff_number_format_server, 123456.12345678, "1.2345612345678e+5");
    expect_format(ff_number_format_server, 9223372036854775808.0, "9223372036854776000");
    expect_format(ff_number_format_server, -9223372036854775808.0, "-9223372036854776000");
    expect_format(ff_number_format_server, 5e18, "5e+18");
    expect_format(ff_number_format_server, 1e20, "1e+20");
    expect_format(ff_number_format_server, 1e22, "1e+22");
    expect_format(ff_number_format_server, 1e300, "1e+300");
    expect_format(ff_number_format_server, 5e-324, "5e-324");
    expect_format(ff_number_format_server, -2.2250738585072014e-308, "-2.2250738585072014e-308");
    expect_format(ff_number_format_server, INFINITY, "inf");
    expect_format(ff_number_format_server, -INFINITY, "-inf");
}

static double random_double(uint64_t *seed) {
    uint64_t bits = unit_random(seed);
    double value;
    memcpy(&value, &bits, sizeof(value));
    if (unit_random(seed) % 2) return value;
    return (double)(int64_t)unit_random(seed) / pow(10, (double)(unit_random(seed) % 30));
}

Test(number, random_numbers_read_back_the_same) {
    uint64_t seed = 42;
    for (int i = 0; i < 20000; i++) {
        double value = random_double(&seed);
        if (isnan(value)) continue;
        char buffer[FF_NUMBER_MAX];
        size_t len = ff_number_format_server(value, buffer);
        double back;
        cr_assert(len < FF_NUMBER_MAX && buffer[len] == '\0');
        cr_assert(ff_number_parse((ff_text){buffer, len}, &back) && back == value, "%s", buffer);
    }
}

Test(number, random_numbers_print_as_the_c_library_prints_them) {
    uint64_t seed = 43;
    for (int i = 0; i < 20000; i++) {
        double value = random_double(&seed);
        if (i % 3 == 0) value = (double)((int64_t)unit_random(&seed) % 200000000000000);
        char buffer[FF_NUMBER_MAX];
        char expected[FF_NUMBER_MAX];
        ff_number_format(value, buffer);
        snprintf(expected, sizeof(expected), "%.14g", value);
        cr_assert(strcmp(buffer, expected) == 0, "%s instead of %s", buffer, expected);
    }
}

Test(number, wholeness) {
    cr_expect(ff_number_is_whole(0) && ff_number_is_whole(-0.0) && ff_number_is_whole(1e300));
    cr_expect(!ff_number_is_whole(0.5) && !ff_number_is_whole(INFINITY) &&
              !ff_number_is_whole(NAN));
    int64_t integer = 5;
    cr_expect(ff_number_to_integer(-0.0, &integer) && integer == 0);
    cr_expect(ff_number_to_integer(4611686018427387904.0, &integer) && integer == INT64_C(1) << 62);
    cr_expect(ff_number_to_integer(-4611686018427387904.0, &integer));
    integer = 5;
    cr_expect(!ff_number_to_integer(4611686018427388928.0, &integer));
    cr_expect(!ff_number_to_integer(NAN, &integer) && !ff_number_to_integer(INFINITY, &integer));
    cr_expect(!ff_number_to_integer(1.5, &integer) && integer == 5);
}

static void expect_integer(ff_text text, int64_t expected) {
    int64_t value = 77;
    cr_expect(ff_integer_parse(text, &value) && value == expected, "%.*s", (int)text.len, text.ptr);
}

static void expect_no_integer(ff_text text) {
    int64_t value = 77;
    cr_expect(!ff_integer_parse(text, &value) && value == 77, "%.*s", (int)text.len, text.ptr);
}

Test(number, strict_integers) {
    expect_integer(FF_TEXT("0"), 0);
    expect_integer(FF_TEXT("-1"), -1);
    expect_integer(FF_TEXT("9223372036854775807"), INT64_MAX);
    expect_integer(FF_TEXT("-9223372036854775808"), INT64_MIN);
    expect_no_integer(FF_TEXT("9223372036854775808"));
    expect_no_integer(FF_TEXT("-9223372036854775809"));
    expect_no_integer(FF_TEXT("18446744073709551616"));
    expect_no_integer(FF_TEXT("99999999999999999999999"));
    expect_no_integer(FF_TEXT("-0"));
    expect_no_integer(FF_TEXT("00"));
    expect_no_integer(FF_TEXT("01"));
    expect_no_integer(FF_TEXT("-01"));
    expect_no_integer(FF_TEXT("+1"));
    expect_no_integer(FF_TEXT("-+1"));
    expect_no_integer(FF_TEXT("--1"));
    expect_no_integer(FF_TEXT(" 1"));
    expect_no_integer(FF_TEXT("1 "));
    expect_no_integer(FF_TEXT("1\0"));
    expect_no_integer(FF_TEXT("-"));
    expect_no_integer(FF_TEXT(""));
    expect_no_integer(FF_TEXT("0x1"));
    expect_no_integer(FF_TEXT("1.0"));
    expect_no_integer(FF_TEXT_ABSENT);
}

Test(number, random_integers_read_back_the_same) {
    uint64_t seed = 44;
    for (int i = 0; i < 10000; i++) {
        int64_t value = (int64_t)(unit_random(&seed) >> (unit_random(&seed) % 64));
        if (i % 2) value = -value;
        char buffer[FF_NUMBER_MAX];
        size_t len = ff_integer_format(value, buffer);
        int64_t back;
        cr_assert(ff_integer_parse((ff_text){buffer, len}, &back) && back == value, "%s", buffer);
    }
    expect_format(ff_integer_format, INT64_MIN, "-9223372036854775808");
}

Test(number, unsigned_integers) {
    uint64_t value;
    cr_expect(ff_unsigned_parse(FF_TEXT("18446744073709551615"), &value) && value == UINT64_MAX);
    cr_expect(ff_unsigned_parse(FF_TEXT("007"), &value) && value == 7);
    cr_expect(ff_unsigned_parse(FF_TEXT("+7"), &value) && value == 7);
    cr_expect(!ff_unsigned_parse(FF_TEXT("18446744073709551616"), &value));
    cr_expect(!ff_unsigned_parse(FF_TEXT("-1"), &value));
    cr_expect(!ff_unsigned_parse(FF_TEXT("+"), &value));
    cr_expect(!ff_unsigned_parse(FF_TEXT("1.5"), &value));
    cr_expect(!ff_unsigned_parse(FF_TEXT(" 1"), &value));
    cr_expect(!ff_unsigned_parse(FF_TEXT(""), &value));
    cr_expect(!ff_unsigned_parse(FF_TEXT_ABSENT, &value));
}

Test(number, texts_in_an_arena) {
    unit_arena unit;
    ff_arena *arena = unit_arena_open(&unit);
    expect_text(ff_number_text(arena, 1e14), "1e+14");
    expect_text(ff_number_server_text(arena, 1e14), "100000000000000");
    expect_text(ff_integer_text(arena, -5), "-5");
    ff_arena_release(arena);
}
