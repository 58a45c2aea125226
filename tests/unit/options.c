#include "base/options.h"

#include "unit.h"

typedef struct sample {
    bool administrator;
    ff_text namespace;
    ff_text key;
    int64_t priority, any, key_ttl, delay, at;
    int mode;
    ff_text_list tags, lanes, claim;
} sample;

static const char *const modes[] = {"all_of", "any_of", NULL};

static const ff_option rows[] = {
    FF_OPTION("OPERATOR", FF_OPTION_FLAG, sample, administrator),
    FF_OPTION("NAMESPACE", FF_OPTION_NONEMPTY, sample, namespace),
    FF_OPTION("PRIORITY", FF_OPTION_INTEGER, sample, priority, .max = 9000),
    FF_OPTION("ANY", FF_OPTION_INTEGER, sample, any),
    FF_OPTION("IDEMPOTENT", FF_OPTION_TEXT, sample, key),
    FF_OPTION_THEN(FF_OPTION_DURATION, sample, key_ttl, .min = 1, .label = "ttl-ms"),
    FF_OPTION("DELAY", FF_OPTION_DURATION, sample, delay, .group = 1),
    FF_OPTION("AT", FF_OPTION_TIME, sample, at, .group = 1),
    FF_OPTION("POLICY", FF_OPTION_CHOICE, sample, mode, .choices = modes),
    FF_OPTION("TAGS", FF_OPTION_PAIRS, sample, tags),
    FF_OPTION("LANES", FF_OPTION_LIST, sample, lanes, .min = 1, .max = 3),
    FF_OPTION("CLAIM", FF_OPTION_REST, sample, claim),
};

enum { ROW_OPERATOR, ROW_NAMESPACE, ROW_PRIORITY, ROW_ANY, ROW_IDEMPOTENT, ROW_TTL, ROW_DELAY };

/* Splits `line` at blanks into arguments; "-" alone stands for an empty one. */
static size_t arguments_of(const char *line, ff_text *arguments) {
    ff_text rest = *line ? ff_text_of(line) : FF_TEXT_ABSENT;
    size_t count = 0;
    while (ff_text_split(&rest, ' ', &arguments[count])) {
        if (ff_text_equal_cstr(arguments[count], "-")) arguments[count] = FF_TEXT("");
        count++;
    }
    return count;
}

static uint64_t expect_parse(const char *line, sample *out) {
    unit_arena unit;
    ff_arena *arena = unit_arena_open(&unit);
    static ff_text arguments[64];
    size_t count = arguments_of(line, arguments);
    uint64_t given = 0;
    ff_text error = FF_TEXT_ABSENT;
    bool fine =
        ff_options_parse(FF_OPTION_TABLE(rows), arguments, count, out, &given, arena, &error);
    cr_assert(fine, "%s: %.*s", line, (int)error.len, error.ptr);
    ff_arena_release(arena);
    return given;
}

static void expect_error(const char *line, const char *sentence) {
    unit_arena unit;
    ff_arena *arena = unit_arena_open(&unit);
    ff_text arguments[64];
    size_t count = arguments_of(line, arguments);
    sample out = {0};
    ff_text error = FF_TEXT_ABSENT;
    bool fine =
        ff_options_parse(FF_OPTION_TABLE(rows), arguments, count, &out, NULL, arena, &error);
    cr_expect(!fine && ff_text_equal_cstr(error, sentence), "%s: \"%.*s\" instead of \"%s\"", line,
              (int)error.len, error.ptr, sentence);
    ff_arena_release(arena);
}

Test(options, nothing_given_keeps_the_defaults) {
    sample out = {.priority = 5, .namespace = FF_TEXT("default"), .mode = 1};
    cr_expect(expect_parse("", &out) == 0);
    cr_expect(out.priority == 5 && out.mode == 1 && !out.administrator);
    expect_text(out.namespace, "default");
}

Test(options, any_order_any_case) {
    sample out = {0};
    uint64_t given =
        expect_parse("priority 9000 Tags 2 a 1 b 2 OPERATOR idempotent k 60000 NameSpace tenant "
                     "policy ANY_OF lanes 1 x delay 0 any -9223372036854775808",
                     &out);
    cr_expect(out.priority == 9000 && out.administrator && out.mode == 1 && out.delay == 0);
    cr_expect(out.key_ttl == 60000 && out.any == INT64_MIN);
    expect_text(out.key, "k");
    expect_text(out.namespace, "tenant");
    cr_assert(out.tags.count == 4 && out.lanes.count == 1);
    expect_text(out.tags.items[2], "b");
    expect_text(out.tags.items[3], "2");
    expect_text(out.lanes.items[0], "x");
    cr_expect(given >> ROW_DELAY & 1 && given >> ROW_IDEMPOTENT & 1);
    cr_expect(!(given >> ROW_TTL & 1), "a further value has no bit of its own");
}

Test(options, values_that_look_like_keywords) {
    sample out = {0};
    expect_parse("NAMESPACE PRIORITY TAGS 1 TAGS DELAY IDEMPOTENT AT 7", &out);
    expect_text(out.namespace, "PRIORITY");
    expect_text(out.tags.items[1], "DELAY");
    expect_text(out.key, "AT");
    cr_expect(out.key_ttl == 7 && out.at == 0);
}

Test(options, rest_takes_everything) {
    sample out = {0};
    expect_parse("OPERATOR CLAIM lane worker OPERATOR OPERATOR", &out);
    cr_expect(out.claim.count == 4);
    out = (sample){0};
    expect_parse("CLAIM", &out);
    cr_expect(out.claim.count == 0);
}

Test(options, empty_values_and_lists) {
    sample out = {0};
    expect_parse("IDEMPOTENT - 1 TAGS 0", &out);
    cr_expect(!ff_text_is_absent(out.key) && out.key.len == 0);
    cr_expect(out.tags.count == 0);
}

Test(options, sentences) {
    expect_error("WHAT 1", "unknown option 'WHAT'");
    expect_error("-", "unknown option ''");
    expect_error("PRIORITYX 1", "unknown option 'PRIORITYX'");
    expect_error("priority", "option PRIORITY needs a value");
    expect_error("PRIORITY abc", "PRIORITY must be an integer between 0 and 9000, got: abc");
    expect_error("PRIORITY 9001", "PRIORITY must be an integer between 0 and 9000, got: 9001");
    expect_error("PRIORITY -1", "PRIORITY must be an integer between 0 and 9000, got: -1");
    expect_error("PRIORITY 1.0", "PRIORITY must be an integer between 0 and 9000, got: 1.0");
    expect_error("PRIORITY -", "PRIORITY must be an integer between 0 and 9000, got: ");
    expect_error("ANY x", "ANY must be an integer, got: x");
    expect_error("PRIORITY 1 priority 2", "option PRIORITY given twice");
    expect_error("OPERATOR OPERATOR", "option OPERATOR given twice");
    expect_error("NAMESPACE -", "NAMESPACE must not be empty");
    expect_error("DELAY 1 AT 2", "options DELAY and AT exclude each other");
    expect_error("AT 1 DELAY 2", "options AT and DELAY exclude each other");
    expect_error("DELAY 4503599627370496",
                 "DELAY must be an integer between 0 and 4503599627370495, got: 4503599627370496");
    expect_error("IDEMPOTENT", "option IDEMPOTENT needs a value");
    expect_error("IDEMPOTENT k", "option IDEMPOTENT needs ttl-ms");
    expect_error("IDEMPOTENT k 0",
                 "IDEMPOTENT ttl-ms must be an integer between 1 and 4503599627370495, got: 0");
    expect_error("POLICY most", "POLICY must be one of all_of, any_of, got: most");
    expect_error("TAGS", "option TAGS needs a value");
    expect_error("TAGS 2 a 1 b", "TAGS announces 4 values, but 3 follow");
    expect_error("TAGS x", "the count of TAGS must be an integer between 0 and 2147483647, got: x");
    expect_error("LANES 4 a b c d",
                 "the count of LANES must be an integer between 1 and 3, got: 4");
    expect_error("LANES 0", "the count of LANES must be an integer between 1 and 3, got: 0");
    expect_error("LANES 2147483647 a",
                 "the count of LANES must be an integer between 1 and 3, got: 2147483647");
    expect_error("TAGS 2147483647 a", "TAGS announces 4294967294 values, but 1 follow");
}

Test(options, sentences_stay_on_one_line) {
    unit_arena unit;
    ff_arena *arena = unit_arena_open(&unit);
    sample out = {0};
    ff_text error = FF_TEXT_ABSENT;
    ff_text hostile[] = {FF_TEXT("a\r\n-ERR b\0c")};
    cr_expect(!ff_options_parse(FF_OPTION_TABLE(rows), hostile, 1, &out, NULL, arena, &error));
    expect_text(error, "unknown option 'a?"
                       "?-ERR b?c'");
    char huge[10000];
    memset(huge, '%', sizeof(huge));
    ff_text big[] = {FF_TEXT("PRIORITY"), {huge, sizeof(huge)}};
    cr_expect(!ff_options_parse(FF_OPTION_TABLE(rows), big, 2, &out, NULL, arena, &error));
    cr_expect(error.len < 250);
    ff_arena_release(arena);
}

Test(options, required_ones) {
    static const ff_option needed[] = {
        FF_OPTION("REASON", FF_OPTION_TEXT, sample, namespace, .required = true),
        FF_OPTION("AT", FF_OPTION_TIME, sample, at, .group = 1, .required = true),
        FF_OPTION("FOR", FF_OPTION_DURATION, sample, delay, .group = 1, .required = true),
    };
    unit_arena unit;
    ff_arena *arena = unit_arena_open(&unit);
    ff_option_table table = FF_OPTION_TABLE(needed);
    sample out = {0};
    ff_text error = FF_TEXT_ABSENT;
    ff_text arguments[] = {FF_TEXT("FOR"), FF_TEXT("5"), FF_TEXT("REASON"), FF_TEXT("r")};
    cr_expect(ff_options_parse(table, arguments, 4, &out, NULL, arena, &error));
    cr_expect(!ff_options_parse(table, arguments, 2, &out, NULL, arena, &error));
    expect_text(error, "option REASON is required");
    cr_expect(!ff_options_parse(table, arguments + 2, 2, &out, NULL, arena, &error));
    expect_text(error, "one of the options AT, FOR is required");
    ff_arena_release(arena);
}

Test(options, positional_integers) {
    unit_arena unit;
    ff_arena *arena = unit_arena_open(&unit);
    int64_t value = 0;
    ff_text error = FF_TEXT_ABSENT;
    cr_expect(ff_argument_integer("epoch", FF_TEXT("7"), 0, 10, &value, arena, &error));
    cr_expect(value == 7);
    cr_expect(!ff_argument_integer("epoch", FF_TEXT("11"), 0, 10, &value, arena, &error));
    expect_text(error, "epoch must be an integer between 0 and 10, got: 11");
    cr_expect(!ff_argument_integer("epoch", FF_TEXT_ABSENT, 0, 10, &value, arena, &error));
    expect_text(error, "epoch must be an integer between 0 and 10, got: nil");
    cr_expect(value == 7);
    ff_arena_release(arena);
}

/* Random words, mostly out of the table: whatever comes in, no read beyond the arguments. */
Test(options, random_arguments) {
    static const char *const words[] = {"OPERATOR", "NAMESPACE", "PRIORITY", "IDEMPOTENT", "DELAY",
                                        "AT",       "POLICY",    "TAGS",     "LANES",      "CLAIM",
                                        "1",        "2",         "any_of",   "-5",         ""};
    uint64_t seed = 99;
    size_t accepted = 0;
    for (int i = 0; i < 20000; i++) {
        size_t count = unit_random(&seed) % 8;
        ff_text *arguments = malloc((count + 1) * sizeof(ff_text));
        cr_assert(arguments != NULL);
        for (size_t k = 0; k < count; k++) {
            arguments[k] = ff_text_of(words[unit_random(&seed) % 15]);
        }
        ff_text *exact = realloc(arguments, count ? count * sizeof(ff_text) : 1);
        cr_assert(exact != NULL);
        unit_arena unit;
        ff_arena *arena = unit_arena_open(&unit);
        sample out = {0};
        ff_text error = FF_TEXT_ABSENT;
        bool fine =
            ff_options_parse(FF_OPTION_TABLE(rows), exact, count, &out, NULL, arena, &error);
        cr_assert(fine != ff_text_is_set(error));
        accepted += fine;
        ff_arena_release(arena);
        free(exact);
    }
    cr_expect(accepted > 100);
}
