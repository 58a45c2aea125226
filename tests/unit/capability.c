#include "base/capability.h"

#include "unit.h"

static ff_capability_set parse(ff_arena *arena, const char *csv) {
    ff_capability_set set;
    cr_assert(ff_capability_parse(arena, ff_text_of(csv), &set) == FF_CAPABILITY_FINE, "%s", csv);
    return set;
}

/* `count` tokens of `width` bytes, joined with ','. The caller frees it. */
static ff_text many(size_t count, size_t width) {
    size_t len = count * (width + 1) - 1;
    char *csv = malloc(len + 1);
    cr_assert(csv != NULL);
    for (size_t i = 0; i <= len; i++) csv[i] = i % (width + 1) == width ? ',' : 'x';
    return (ff_text){csv, len};
}

static ff_capability_problem problem_of(ff_text csv) {
    unit_arena unit;
    ff_capability_set set;
    ff_capability_problem problem = ff_capability_parse(unit_arena_open(&unit), csv, &set);
    if (problem) cr_expect(set.count == 0);
    ff_arena_release(&unit.arena);
    return problem;
}

Test(capability, csv_is_a_set_in_byte_order) {
    unit_arena unit;
    ff_arena *arena = unit_arena_open(&unit);
    ff_capability_set set = parse(arena, ",gpu,, gpu,GPU,gpu,_x,\xc3\xa9,a\nb,");
    cr_assert(set.count == 6);
    expect_text(set.tokens[0], " gpu");
    expect_text(set.tokens[1], "GPU");
    expect_text(set.tokens[2], "_x");
    expect_text(set.tokens[3], "a\nb");
    expect_text(set.tokens[4], "gpu");
    expect_text(set.tokens[5], "\xc3\xa9");
    expect_text(ff_capability_csv(arena, &set), " gpu,GPU,_x,a\nb,gpu,\xc3\xa9");
    ff_arena_release(arena);
}

Test(capability, empty_lists) {
    unit_arena unit;
    ff_arena *arena = unit_arena_open(&unit);
    cr_expect(parse(arena, NULL).count == 0);
    cr_expect(parse(arena, "").count == 0);
    cr_expect(parse(arena, ",,,").count == 0);
    ff_capability_set none = parse(arena, "");
    expect_text(ff_capability_csv(arena, &none), "");
    ff_arena_release(arena);
}

Test(capability, bounds_of_a_csv) {
    char commas[4097];
    memset(commas, ',', sizeof(commas));
    cr_expect(problem_of((ff_text){commas, 4096}) == FF_CAPABILITY_FINE);
    cr_expect(problem_of((ff_text){commas, 4097}) == FF_CAPABILITY_TOO_MANY_BYTES);
    ff_text tokens = many(257, 1);
    cr_expect(problem_of((ff_text){tokens.ptr, 511}) == FF_CAPABILITY_FINE);
    cr_expect(problem_of((ff_text){tokens.ptr, 512}) == FF_CAPABILITY_FINE, "a comma at the end");
    cr_expect(problem_of(tokens) == FF_CAPABILITY_TOO_MANY_TOKENS, "repeats count");
    unit_exact_free(tokens);
    ff_text both = many(300, 20);
    cr_expect(problem_of(both) == FF_CAPABILITY_TOO_MANY_BYTES, "bytes come first");
    unit_exact_free(both);
}

Test(capability, words) {
    cr_expect_str_eq(ff_capability_problem_word(FF_CAPABILITY_EMPTY_TOKEN), "empty_token");
    cr_expect_str_eq(ff_capability_problem_word(FF_CAPABILITY_COMMA_IN_TOKEN), "comma_in_token");
    cr_expect_str_eq(ff_capability_problem_word(FF_CAPABILITY_CONTROL_OR_WHITESPACE),
                     "control_or_whitespace");
    cr_expect_str_eq(ff_capability_problem_word(FF_CAPABILITY_TOO_MANY_TOKENS), "too_many_tokens");
    cr_expect_str_eq(ff_capability_problem_word(FF_CAPABILITY_TOO_MANY_BYTES), "too_many_bytes");
}

static void expect_match(const char *required_csv, const char *worker_csv, const char *missing) {
    unit_arena unit;
    ff_arena *arena = unit_arena_open(&unit);
    ff_capability_set required = parse(arena, required_csv);
    ff_capability_set worker = parse(arena, worker_csv);
    ff_text lacks = ff_capability_missing(arena, &required, &worker);
    cr_expect(ff_text_equal_cstr(lacks, missing), "%s of %s: missing %.*s instead of %s",
              required_csv, worker_csv, (int)lacks.len, lacks.ptr, missing);
    cr_expect(ff_capability_covers(&worker, &required) == (*missing == '\0'));
    ff_arena_release(arena);
}

Test(capability, matching) {
    expect_match("", "", "");
    expect_match(",,,", "", "");
    expect_match("", "gpu", "");
    expect_match("gpu", "gpu", "");
    expect_match("gpu", "cpu,gpu,tpu", "");
    expect_match("gpu,cpu", "tpu,cpu,gpu", "");
    expect_match("gpu", "", "gpu");
    expect_match("gpu", "GPU", "gpu");
    expect_match("gpu", " gpu", "gpu");
    expect_match("gpu", "gpu2,gp", "gpu");
    expect_match("z,a,_,A,\xc3\xa9,a,z", "m", "A,_,a,z,\xc3\xa9");
    expect_match("a,b,c,d", "b,d,e", "a,c");
}

Test(capability, policy_tokens) {
    cr_expect(ff_capability_check_token(FF_TEXT("gpu")) == FF_CAPABILITY_FINE);
    cr_expect(ff_capability_check_token(FF_TEXT("\xc2\xa0\xff")) == FF_CAPABILITY_FINE);
    cr_expect(ff_capability_check_token(FF_TEXT("")) == FF_CAPABILITY_EMPTY_TOKEN);
    cr_expect(ff_capability_check_token(FF_TEXT(" ,")) == FF_CAPABILITY_COMMA_IN_TOKEN);
    cr_expect(ff_capability_check_token(FF_TEXT("a b")) == FF_CAPABILITY_CONTROL_OR_WHITESPACE);
    cr_expect(ff_capability_check_token(FF_TEXT("a\0")) == FF_CAPABILITY_CONTROL_OR_WHITESPACE);
    cr_expect(ff_capability_check_token(FF_TEXT("\x7f")) == FF_CAPABILITY_CONTROL_OR_WHITESPACE);
    cr_expect(ff_capability_check_token(FF_TEXT("!~")) == FF_CAPABILITY_FINE);
}

Test(capability, policy_list_is_sorted_and_keeps_repeats) {
    unit_arena unit;
    ff_arena *arena = unit_arena_open(&unit);
    ff_text csv;
    ff_text tokens[] = {FF_TEXT("b"), FF_TEXT("a"), FF_TEXT("b"), FF_TEXT("B")};
    cr_expect(ff_capability_required_csv(arena, tokens, 4, &csv) == FF_CAPABILITY_FINE);
    expect_text(csv, "B,a,b,b");
    cr_expect(ff_capability_required_csv(arena, NULL, 0, &csv) == FF_CAPABILITY_FINE);
    expect_text(csv, "");
    ff_text bad[] = {FF_TEXT("a"), FF_TEXT("b c"), FF_TEXT("")};
    cr_expect(ff_capability_required_csv(arena, bad, 3, &csv) ==
              FF_CAPABILITY_CONTROL_OR_WHITESPACE);
    ff_arena_release(arena);
}

Test(capability, bounds_of_a_policy_list) {
    unit_arena unit;
    ff_arena *arena = unit_arena_open(&unit);
    static char wide[4097];
    memset(wide, 'w', sizeof(wide));
    ff_text tokens[300];
    for (size_t i = 0; i < 300; i++) tokens[i] = FF_TEXT("x");
    ff_text csv;
    cr_expect(ff_capability_required_csv(arena, tokens, 256, &csv) == FF_CAPABILITY_FINE);
    cr_expect(csv.len == 511);
    cr_expect(ff_capability_required_csv(arena, tokens, 257, &csv) ==
              FF_CAPABILITY_TOO_MANY_TOKENS);
    tokens[299] = FF_TEXT("");
    cr_expect(ff_capability_required_csv(arena, tokens, 300, &csv) == FF_CAPABILITY_EMPTY_TOKEN,
              "a bad element comes before the bounds");
    tokens[0] = (ff_text){wide, 4094};
    cr_expect(ff_capability_required_csv(arena, tokens, 2, &csv) == FF_CAPABILITY_FINE);
    cr_expect(csv.len == 4096);
    tokens[0] = (ff_text){wide, 4095};
    cr_expect(ff_capability_required_csv(arena, tokens, 2, &csv) == FF_CAPABILITY_TOO_MANY_BYTES);
    tokens[0] = (ff_text){wide, 4097};
    cr_expect(ff_capability_required_csv(arena, tokens, 257, &csv) ==
              FF_CAPABILITY_TOO_MANY_TOKENS);
    ff_arena_release(arena);
}

Test(capability, worker_tokens_know_unicode) {
    static const char *const bad[] = {
        "a\xc2\x80",    "\xc2\x85",     "\xc2\x9f",     "\xc2\xa0",
        "\xe1\x9a\x80", "\xe2\x80\x80", "\xe2\x80\x8a", "\xe2\x80\xa8",
        "\xe2\x80\xa9", "\xe2\x80\xaf", "\xe2\x81\x9f", "\xe3\x80\x80",
        "a b",          "\t",           "\x7f",         "\xf0\x9f\x98\x80\xc2\xa0"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        cr_expect(ff_capability_check_worker_token(ff_text_of(bad[i])) ==
                      FF_CAPABILITY_CONTROL_OR_WHITESPACE,
                  "number %zu", i);
    }
    static const char *const good[] = {"gpu",
                                       "\xc2\xa1",
                                       "\xe2\x80\x8b",
                                       "\xe1\x9a\x81",
                                       "\xf0\x9f\x98\x80",
                                       "\xc2\xa0\xff",
                                       "\xff\xc2\xa0",
                                       "\x80",
                                       "\xc2",
                                       "\xc2\xa0\xed\xa0\x80",
                                       "\xe3\x80\x81",
                                       "\xc2\xa0\xc0\x80",
                                       "\xc2\xa0\xf4\x90\x80\x80",
                                       "\xc2\xa0\xe0\x80\x80"};
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        ff_text exact = unit_exact(ff_text_of(good[i]));
        cr_expect(ff_capability_check_worker_token(exact) == FF_CAPABILITY_FINE, "number %zu", i);
        unit_exact_free(exact);
    }
    cr_expect(ff_capability_check_worker_token(FF_TEXT("")) == FF_CAPABILITY_EMPTY_TOKEN);
    cr_expect(ff_capability_check_worker_token(FF_TEXT("a,b")) == FF_CAPABILITY_COMMA_IN_TOKEN);
}

Test(capability, worker_lists) {
    unit_arena unit;
    ff_arena *arena = unit_arena_open(&unit);
    ff_capability_set set;
    cr_expect(ff_capability_parse_worker(arena, FF_TEXT_ABSENT, &set) == FF_CAPABILITY_FINE);
    cr_expect(set.count == 0);
    cr_expect(ff_capability_parse_worker(arena, FF_TEXT("b,a,b"), &set) == FF_CAPABILITY_FINE);
    expect_text(ff_capability_csv(arena, &set), "a,b");
    cr_expect(ff_capability_parse_worker(arena, FF_TEXT("a,,b"), &set) ==
              FF_CAPABILITY_EMPTY_TOKEN);
    cr_expect(ff_capability_parse_worker(arena, FF_TEXT("a,"), &set) == FF_CAPABILITY_EMPTY_TOKEN);
    cr_expect(ff_capability_parse_worker(arena, FF_TEXT(","), &set) == FF_CAPABILITY_EMPTY_TOKEN);
    cr_expect(set.count == 0);
    ff_text repeated = many(5000, 4);
    cr_expect(ff_capability_parse_worker(arena, repeated, &set) == FF_CAPABILITY_FINE);
    cr_expect(set.count == 1);
    unit_exact_free(repeated);
    ff_arena_release(arena);
}

Test(capability, bounds_of_a_worker_list) {
    unit_arena unit;
    ff_arena *arena = unit_arena_open(&unit);
    ff_buffer csv;
    ff_buffer_init(&csv, arena);
    ff_capability_set set;
    for (int i = 0; i < 257; i++) {
        if (i > 0) ff_buffer_append_byte(&csv, ',');
        ff_buffer_append(&csv, ff_arena_printf(arena, "%015d", i));
        if (i != 255) continue;
        cr_expect(ff_capability_parse_worker(arena, ff_buffer_text(&csv), &set) ==
                  FF_CAPABILITY_FINE);
        cr_expect(set.count == 256 && ff_capability_csv(arena, &set).len == 4095);
    }
    cr_expect(ff_capability_parse_worker(arena, ff_buffer_text(&csv), &set) ==
              FF_CAPABILITY_TOO_MANY_TOKENS);
    static char wide[4097];
    memset(wide, 'w', sizeof(wide));
    cr_expect(ff_capability_parse_worker(arena, (ff_text){wide, 4096}, &set) == FF_CAPABILITY_FINE);
    cr_expect(ff_capability_parse_worker(arena, (ff_text){wide, 4097}, &set) ==
              FF_CAPABILITY_TOO_MANY_BYTES);
    ff_arena_release(arena);
}
