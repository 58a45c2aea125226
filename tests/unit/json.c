#include "base/json.h"

#include "unit.h"

#include <math.h>
#include <stdio.h>

static ff_json *parse_exact(ff_text text) {
    ff_text exact = unit_exact(text);
    ff_json *value = ff_json_parse(exact);
    unit_exact_free(exact);
    return value;
}

/* Reads `input` and expects it to be written as `output` (literals). */
#define expect_json(input, output) \
    do { \
        unit_arena expect_unit; \
        ff_json *expect_value = parse_exact(FF_TEXT(input)); \
        cr_expect(expect_value != NULL, "malformed: %s", input); \
        expect_text(ff_json_write(unit_arena_open(&expect_unit), expect_value), output); \
        ff_json_free(expect_value); \
        ff_arena_release(&expect_unit.arena); \
    } while (0)

#define expect_malformed(input) \
    do { \
        ff_json *expect_value = parse_exact(FF_TEXT(input)); \
        cr_expect(expect_value == NULL, "accepted: %s", input); \
        ff_json_free(expect_value); \
    } while (0)

#define expect_json_number(input, number) \
    do { \
        ff_json *expect_value = parse_exact(FF_TEXT(input)); \
        double expect_got = ff_json_number(expect_value); \
        cr_expect(ff_json_kind(expect_value) == FF_JSON_NUMBER, "no number: %s", input); \
        cr_expect(isnan(number) \
                      ? isnan(expect_got) \
                      : expect_got == (number) && !signbit(expect_got) == !signbit(number), \
                  "%s gives %.17g", input, expect_got); \
        ff_json_free(expect_value); \
    } while (0)

Test(json, ordinary_documents) {
    expect_json("{}", "{}");
    expect_json("null", "null");
    expect_json(" true ", "true");
    expect_json("false", "false");
    expect_json("\"x\"", "\"x\"");
    expect_json("[1, 2.5, \"a\", null, true, false, {\"b\": [3]}]",
                "[1,2.5,\"a\",null,true,false,{\"b\":[3]}]");
    expect_json("\t{\r\n \"b\" : 1 , \"a\" : { \"c\" : 2 } }\n", "{\"b\":1,\"a\":{\"c\":2}}");
    expect_json("{\"\":1}", "{\"\":1}");
}

Test(json, kinds) {
    cr_expect(ff_json_kind(NULL) == FF_JSON_ABSENT);
    ff_json *value = ff_json_parse(FF_TEXT("[null,false,true,1,\"\",[],{},1.5]"));
    static const ff_json_type kinds[] = {FF_JSON_NULL,   FF_JSON_FALSE,  FF_JSON_TRUE,
                                         FF_JSON_NUMBER, FF_JSON_STRING, FF_JSON_ARRAY,
                                         FF_JSON_OBJECT, FF_JSON_NUMBER};
    cr_assert(ff_json_array_length(value) == 8);
    for (size_t i = 0; i < 8; i++) cr_expect(ff_json_kind(ff_json_at(value, i)) == kinds[i]);
    cr_expect(ff_json_kind(ff_json_at(value, 8)) == FF_JSON_ABSENT);
    cr_expect(ff_json_is_on(ff_json_at(value, 0)) && !ff_json_is_on(ff_json_at(value, 1)));
    cr_expect(ff_json_is_on(ff_json_at(value, 6)) && !ff_json_is_on(NULL));
    cr_expect(ff_json_is_container(ff_json_at(value, 5)) && !ff_json_is_container(NULL));
    ff_json_free(value);
    ff_json *null = ff_json_parse(FF_TEXT("null"));
    cr_expect(null != NULL && ff_json_kind(null) == FF_JSON_NULL);
    ff_json_free(null);
}

Test(json, lenient_numbers) {
    expect_json_number("0x10", 16.0);
    expect_json_number("-0X1f", -31.0);
    expect_json_number("0x1p4", 16.0);
    expect_json_number("007", 7.0);
    expect_json_number("+5", 5.0);
    expect_json_number("5.", 5.0);
    expect_json_number("-.5", -0.5);
    expect_json_number("+.5", 0.5);
    expect_json_number("1e3", 1000.0);
    expect_json_number("1E+2", 100.0);
    expect_json_number("-0", -0.0);
    expect_json_number("-0.0", -0.0);
    expect_json_number("0", 0.0);
    expect_json_number("NaN", (double)NAN);
    expect_json_number("nan", (double)NAN);
    expect_json_number("-nan", (double)NAN);
    expect_json_number("Infinity", (double)INFINITY);
    expect_json_number("inf", (double)INFINITY);
    expect_json_number("-inf", -(double)INFINITY);
    expect_json_number("+Infinity", (double)INFINITY);
    expect_json_number("1e999", (double)INFINITY);
    expect_json_number("9223372036854775808", 9223372036854775808.0);
    expect_json_number("18446744073709551616", 18446744073709551616.0);
    expect_json_number("-99999999999999999999", -1e20);
    expect_json_number("9007199254740993", 9007199254740992.0);
    expect_json_number("0.30000000000000004", 0.1 + 0.2);
    expect_json_number("5e-324", 5e-324);
    expect_json_number("123456789012345678.5", 123456789012345678.5);
    expect_json("[0x1F,+5,007,-.5]", "[31,5,7,-0.5]");
}

Test(json, refused_numbers) {
    expect_malformed(".5");
    expect_malformed("[.5]");
    expect_malformed("0x");
    expect_malformed("1e");
    expect_malformed("-");
    expect_malformed("+");
    expect_malformed("+-5");
    expect_malformed("--5");
    expect_malformed("1_0");
    expect_malformed("1.2.3");
    expect_malformed("0b1");
    expect_malformed("1 2");
    expect_malformed("1+2");
    expect_malformed("1-2");
    expect_malformed("[1+2]");
    expect_malformed("infinit");
    expect_malformed("- 5");
    expect_malformed("5\v");
    expect_malformed("5\f");
    expect_malformed("[5\f]");
    expect_malformed("1true");
    expect_malformed("1\"a\"");
}

Test(json, words) {
    expect_malformed("tru");
    expect_malformed("truex");
    expect_malformed("TRUE");
    expect_malformed("[true1]");
    expect_malformed("true false");
    expect_malformed("Null");
    expect_malformed("nul");
    expect_malformed("undefined");
}

Test(json, strings) {
    expect_json("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"");
    expect_json("\"/\"", "\"\\/\"");
    expect_json("\"a\001\x1f\x7f\t\n\"", "\"a\\u0001\\u001f\\u007f\\t\\n\"");
    expect_json("\"\xff\xc3\xa9\x80\"", "\"\xff\xc3\xa9\x80\"");
    expect_json("\"\\u00e9\\u20AC\"", "\"\xc3\xa9\xe2\x82\xac\"");
    expect_json("\"\\ud83d\\ude00\"", "\"\xf0\x9f\x98\x80\"");
    expect_json("\"a\\u0000b\"", "\"a\\u0000b\"");
    expect_json("\"{[,:]}\"", "\"{[,:]}\"");
    ff_json *value = ff_json_parse(FF_TEXT("\"a\\u0000b\""));
    expect_text(ff_json_string(value), "a\0b");
    ff_json_free(value);
}

Test(json, refused_strings) {
    expect_malformed("\"");
    expect_malformed("\"a");
    expect_malformed("\"\\");
    expect_malformed("\"\\\"");
    expect_malformed("\"\\x\"");
    expect_malformed("\"\\'\"");
    expect_malformed("\"\\\0\"");
    expect_malformed("\"\\u12\"");
    expect_malformed("\"\\u12g4\"");
    expect_malformed("\"\\u");
    expect_malformed("\"\\ud83d\"");
    expect_malformed("\"\\ude00\"");
    expect_malformed("\"\\ud83d\\u0041\"");
    expect_malformed("\"\\ud83d\\ud83d\"");
    expect_malformed("\"\\ud83d\\n\"");
    expect_malformed("\"\\ud83d\\");
    expect_malformed("\"a\0b\"");
    expect_malformed("'a'");
}

Test(json, grammar) {
    expect_malformed("");
    expect_malformed(" \t\r\n");
    expect_malformed("[1,]");
    expect_malformed("[,1]");
    expect_malformed("[1 2]");
    expect_malformed("[1");
    expect_malformed("1]");
    expect_malformed("[1}");
    expect_malformed("{\"a\":1]");
    expect_malformed("{\"a\":1,}");
    expect_malformed("{\"a\"}");
    expect_malformed("{\"a\" 1}");
    expect_malformed("{\"a\":}");
    expect_malformed("{a:1}");
    expect_malformed("{1:2}");
    expect_malformed("{null:2}");
    expect_malformed("[\"a\":1]");
    expect_malformed("{} {}");
    expect_malformed("{}x");
    expect_malformed("/*c*/1");
    expect_malformed("//c\n1");
    expect_malformed("\xef\xbb\xbf"
                     "1");
    expect_malformed("\v1");
    expect_malformed("\f1");
    expect_malformed(",");
    expect_malformed(":");
    expect_malformed("]");
    cr_expect(ff_json_parse(FF_TEXT_ABSENT) == NULL);
}

Test(json, a_nul_ends_the_text) {
    expect_malformed("\0");
    expect_malformed("1\0");
    expect_malformed("\0"
                     "1");
    expect_malformed("1\0x");
    expect_json("12\0", "12");
    expect_json("1 \0x", "1");
    expect_json("{}\0]]", "{}");
    expect_malformed("[1\0]");
    expect_malformed("  \0");
}

Test(json, last_duplicate_wins) {
    expect_json("{\"a\":1,\"b\":2,\"a\":[3]}", "{\"a\":[3],\"b\":2}");
    expect_json("{\"a\":{\"x\":1},\"a\":null}", "{\"a\":null}");
}

static ff_text nested(ff_buffer *buffer, size_t levels, const char *open, const char *inner,
                      const char *close) {
    for (size_t i = 0; i < levels; i++) ff_buffer_append(buffer, ff_text_of(open));
    ff_buffer_append(buffer, ff_text_of(inner));
    for (size_t i = 0; i < levels; i++) ff_buffer_append(buffer, ff_text_of(close));
    return ff_buffer_text(buffer);
}

static bool nests(size_t levels, const char *open, const char *inner, const char *close) {
    unit_arena unit;
    ff_arena *arena = unit_arena_open(&unit);
    ff_buffer buffer;
    ff_buffer_init(&buffer, arena);
    ff_json *value = ff_json_parse(nested(&buffer, levels, open, inner, close));
    bool parsed = value != NULL;
    if (parsed) cr_expect(ff_json_write(arena, value).len > levels);
    ff_json_free(value);
    ff_arena_release(arena);
    return parsed;
}

Test(json, depth) {
    cr_expect(nests(1000, "[", "", "]"));
    cr_expect(nests(1000, "[", "1", "]"));
    cr_expect(!nests(1001, "[", "", "]"));
    cr_expect(nests(1000, "{\"a\":", "1", "}"));
    cr_expect(!nests(1001, "{\"a\":", "1", "}"));
    cr_expect(nests(500, "[{\"a\":", "\"x\"", "}]"));
    cr_expect(!nests(1000000, "[", "", ""));
    cr_expect(!nests(500, "[{\"a\":", "[]", "}]"));
}

Test(json, many_siblings_are_not_depth) {
    unit_arena unit;
    ff_arena *arena = unit_arena_open(&unit);
    ff_buffer buffer;
    ff_buffer_init(&buffer, arena);
    for (int i = 0; i < 5000; i++) ff_buffer_append(&buffer, i ? FF_TEXT(",[]") : FF_TEXT("[[]"));
    ff_buffer_append_byte(&buffer, ']');
    ff_json *value = ff_json_parse(ff_buffer_text(&buffer));
    cr_expect(ff_json_array_length(value) == 5000);
    ff_json_free(value);
    ff_arena_release(arena);
}

Test(json, member_names_hold_any_byte) {
    expect_json(
        "{\"a\\u0000b\":1,\"a\":2,\"a\\u0001\\u0002b\":3,\"\001\":4,\"\\u0001\\u0001\":5}",
        "{\"a\\u0000b\":1,\"a\":2,\"a\\u0001\\u0002b\":3,\"\\u0001\":4,\"\\u0001\\u0001\":5}");
    expect_json("{\"a\":\"\\u0001\\u0000\"}", "{\"a\":\"\\u0001\\u0000\"}");
    expect_json("[\"\\u0001\",{\"x\":[\"\\u0000\"],\"\\u0000\":1},\"\\u0001\"]",
                "[\"\\u0001\",{\"x\":[\"\\u0000\"],\"\\u0000\":1},\"\\u0001\"]");
    ff_json *value = ff_json_parse(FF_TEXT("{\"a\\u0000b\":1,\"\\u0001\":2,\"a\":3}"));
    cr_expect(ff_json_number(ff_json_member_text(value, FF_TEXT("a\0b"))) == 1);
    cr_expect(ff_json_number(ff_json_member_text(value, FF_TEXT("\001"))) == 2);
    cr_expect(ff_json_number(ff_json_member_text(value, FF_TEXT("a"))) == 3);
    cr_expect(ff_json_member_text(value, FF_TEXT("a\0c")) == NULL);
    cr_expect(ff_json_member_text(value, FF_TEXT("\001\002")) == NULL);
    ff_json_free(value);
}

Test(json, reading_members) {
    ff_json *value = ff_json_parse(FF_TEXT("{\"n\":1.5,\"s\":\"x\",\"z\":null,\"t\":\" 0x10 \"}"));
    cr_expect(ff_json_object_length(value) == 4);
    cr_expect(ff_json_number(ff_json_member(value, "n")) == 1.5);
    expect_text(ff_json_string(ff_json_member(value, "s")), "x");
    cr_expect(ff_json_kind(ff_json_member(value, "z")) == FF_JSON_NULL);
    cr_expect(ff_json_member(value, "absent") == NULL);
    double number;
    cr_expect(ff_json_to_number(ff_json_member(value, "t"), &number) && number == 16);
    cr_expect(ff_json_to_number(ff_json_member(value, "n"), &number) && number == 1.5);
    cr_expect(!ff_json_to_number(ff_json_member(value, "s"), &number));
    cr_expect(!ff_json_to_number(ff_json_member(value, "z"), &number));
    cr_expect(!ff_json_to_number(NULL, &number));
    ff_json_free(value);
}

Test(json, readers_take_the_wrong_kind) {
    ff_json *value = ff_json_parse(FF_TEXT("[1,\"s\",null]"));
    ff_json *string = ff_json_at(value, 1);
    ff_json *values[] = {NULL, value, string, ff_json_at(value, 2)};
    for (size_t i = 0; i < 4; i++) {
        cr_expect(ff_json_number(values[i]) == 0);
        cr_expect(ff_json_member(values[i], "x") == NULL);
        cr_expect(ff_json_object_length(values[i]) == 0);
        ff_json_walk walk = ff_json_members(values[i]);
        cr_expect(!ff_json_next(&walk, NULL));
    }
    cr_expect(ff_json_array_length(string) == 0 && ff_json_at(string, 0) == NULL);
    cr_expect(ff_text_is_absent(ff_json_string(value)) && ff_text_is_absent(ff_json_string(NULL)));
    ff_json_free(value);
    ff_json_free(NULL);
}

Test(json, walking_in_input_order) {
    unit_arena unit;
    ff_arena *arena = unit_arena_open(&unit);
    ff_json *value = ff_json_parse(FF_TEXT("{\"z\":1,\"a\\u0000\":2,\"m\":null}"));
    ff_json_walk walk = ff_json_members(value);
    cr_assert(ff_json_next(&walk, arena));
    expect_text(walk.name, "z");
    cr_expect(ff_json_number(walk.value) == 1);
    cr_assert(ff_json_next(&walk, arena));
    expect_text(walk.name, "a\0");
    cr_assert(ff_json_next(&walk, arena));
    expect_text(walk.name, "m");
    cr_expect(ff_json_kind(walk.value) == FF_JSON_NULL);
    cr_expect(!ff_json_next(&walk, arena));
    ff_json_free(value);
    ff_arena_release(arena);
}

Test(json, changing_the_member_at_hand_while_walking) {
    unit_arena unit;
    ff_arena *arena = unit_arena_open(&unit);
    ff_json *value = ff_json_parse(FF_TEXT("{\"a\":1,\"b\":2,\"c\":3,\"d\":4}"));
    ff_json_walk walk = ff_json_members(value);
    for (int i = 0; ff_json_next(&walk, arena); i++) {
        ff_text name = ff_arena_dup(arena, walk.name);
        if (i % 2)
            ff_json_remove(value, name);
        else
            ff_json_set(value, name, ff_json_new_null());
    }
    expect_text(ff_json_write(arena, value), "{\"a\":null,\"c\":null}");
    ff_json_free(value);
    ff_arena_release(arena);
}

Test(json, building) {
    unit_arena unit;
    ff_arena *arena = unit_arena_open(&unit);
    ff_json *object = ff_json_new_object();
    ff_json *array = ff_json_new_array();
    ff_json_array_append(array, ff_json_new_boolean(false));
    ff_json_array_set(array, 3, ff_json_new_number(-0.0));
    ff_json_array_set(array, 0, ff_json_new_boolean(true));
    ff_json_set(object, FF_TEXT("list"), array);
    ff_json_set(object, FF_TEXT("s\0"), ff_json_new_string(FF_TEXT("x/\0")));
    ff_json_set(object, FF_TEXT("none"), ff_json_new_null());
    ff_json_set(object, FF_TEXT("empty"), ff_json_new_string(FF_TEXT_ABSENT));
    expect_text(ff_json_write(arena, object),
                "{\"list\":[true,null,null,-0],\"s\\u0000\":\"x\\/\\u0000\",\"none\":null,"
                "\"empty\":\"\"}");
    ff_json_remove(object, FF_TEXT("s\0"));
    ff_json_remove(object, FF_TEXT("s"));
    ff_json_remove(object, FF_TEXT("empty"));
    ff_json_set(object, FF_TEXT("list"), ff_json_new_number(1));
    expect_text(ff_json_write(arena, object), "{\"list\":1,\"none\":null}");
    ff_json_free(object);
    ff_arena_release(arena);
}

Test(json, sharing_between_documents) {
    unit_arena unit;
    ff_arena *arena = unit_arena_open(&unit);
    ff_json *patch = ff_json_parse(FF_TEXT("{\"a\":[1,{\"b\":null}],\"n\":null}"));
    ff_json *target = ff_json_parse(FF_TEXT("{\"a\":0}"));
    ff_json_set(target, FF_TEXT("a"), ff_json_share(ff_json_member(patch, "a")));
    ff_json_set(target, FF_TEXT("n"), ff_json_share(ff_json_member(patch, "n")));
    ff_json_free(patch);
    expect_text(ff_json_write(arena, target), "{\"a\":[1,{\"b\":null}],\"n\":null}");
    cr_expect(ff_json_share(NULL) == NULL);
    ff_json_free(target);
    ff_arena_release(arena);
}

Test(json, writing) {
    expect_json("[]", "{}");
    expect_json("{\"a\":[],\"b\":[[]]}", "{\"a\":{},\"b\":[{}]}");
    expect_json("[12345678901234567,100000000000000,0.30000000000000004,1.0,-0,1e-7]",
                "[1.2345678901235e+16,1e+14,0.3,1,-0,1e-07]");
    expect_json("{\"/\x7f\":1}", "{\"\\/\\u007f\":1}");
    unit_arena unit;
    ff_arena *arena = unit_arena_open(&unit);
    cr_expect(ff_text_is_absent(ff_json_write(arena, NULL)));
    ff_arena_release(arena);
}

Test(json, every_byte_of_a_string) {
    unit_arena unit;
    ff_arena *arena = unit_arena_open(&unit);
    for (int byte = 0; byte < 256; byte++) {
        char raw = (char)byte;
        ff_buffer buffer;
        ff_buffer_init(&buffer, arena);
        ff_json_write_string(&buffer, (ff_text){&raw, 1});
        ff_text text = ff_buffer_text(&buffer);
        bool escaped = byte < 0x20 || byte == 0x7f || raw == '"' || raw == '\\' || raw == '/';
        bool letter = escaped && strchr("\"\\/\b\f\n\r\t", raw) && byte;
        cr_expect(text.len == (letter ? 4u : escaped ? 8u : 3u), "byte %d", byte);
        if (escaped && !letter) {
            char expected[16];
            snprintf(expected, sizeof(expected), "\"\\u%04x\"", (unsigned)byte);
            cr_expect(ff_text_equal_cstr(text, expected), "byte %d", byte);
        }
        ff_json *back = ff_json_parse(text);
        cr_expect(ff_text_equal(ff_json_string(back), (ff_text){&raw, 1}), "byte %d", byte);
        ff_json_free(back);
    }
    ff_buffer buffer;
    ff_buffer_init(&buffer, arena);
    ff_json_write_string(&buffer, FF_TEXT_ABSENT);
    expect_text(ff_buffer_text(&buffer), "\"\"");
    ff_arena_release(arena);
}

Test(json, what_is_not_finite_cannot_be_written) {
    static const char *const documents[] = {"NaN", "[1,Infinity]", "{\"a\":{\"b\":[-inf]}}",
                                            "1e999", "[[[nan]]]"};
    for (size_t i = 0; i < sizeof(documents) / sizeof(documents[0]); i++) {
        unit_arena unit;
        ff_json *value = ff_json_parse(ff_text_of(documents[i]));
        cr_assert(value != NULL, "%s", documents[i]);
        cr_expect(ff_text_is_absent(ff_json_write(unit_arena_open(&unit), value)), "%s",
                  documents[i]);
        ff_json_free(value);
        ff_arena_release(&unit.arena);
    }
}

Test(json, flat_texts) {
    unit_arena unit;
    ff_arena *arena = unit_arena_open(&unit);
    ff_json *value = ff_json_parse(FF_TEXT("[\"x/\",\"\",1e14,true,false,null,{\"a\":\"/\"},[],{},"
                                           "[1,null],inf,[inf],2.5]"));
    cr_assert(ff_json_array_length(value) == 13);
    expect_text(ff_json_flat_text(arena, ff_json_at(value, 0)), "x/");
    expect_text(ff_json_flat_text(arena, ff_json_at(value, 1)), "");
    expect_text(ff_json_flat_text(arena, ff_json_at(value, 2)), "1e+14");
    expect_text(ff_json_flat_text(arena, ff_json_at(value, 3)), "true");
    expect_text(ff_json_flat_text(arena, ff_json_at(value, 4)), "false");
    expect_text(ff_json_flat_text(arena, ff_json_at(value, 5)), "userdata: (nil)");
    expect_text(ff_json_flat_text(arena, ff_json_at(value, 6)), "{\"a\":\"\\/\"}");
    expect_text(ff_json_flat_text(arena, ff_json_at(value, 7)), "{}");
    expect_text(ff_json_flat_text(arena, ff_json_at(value, 8)), "{}");
    expect_text(ff_json_flat_text(arena, ff_json_at(value, 9)), "[1,null]");
    expect_text(ff_json_flat_text(arena, ff_json_at(value, 10)), "inf");
    cr_expect(ff_text_is_absent(ff_json_flat_text(arena, ff_json_at(value, 11))));
    expect_text(ff_json_flat_text(arena, ff_json_at(value, 12)), "2.5");
    cr_expect(ff_text_is_absent(ff_json_flat_text(arena, NULL)));
    ff_json_free(value);
    ff_arena_release(arena);
}

static void append_random(ff_buffer *buffer, uint64_t *seed, int depth) {
    static const char *const scalars[] = {
        "null",         "true", "false",   "-0",
        "0x1F",         "+5.",  "1.25e-7", "\"\\u0000\\ud83d\\ude00/\"",
        "\"\001\xff\"", "\"\""};
    uint64_t choice = unit_random(seed) % 4;
    if (depth == 0 || choice < 2) {
        ff_buffer_append(buffer, ff_text_of(scalars[unit_random(seed) % 10]));
        return;
    }
    bool object = choice == 2;
    uint64_t members = unit_random(seed) % 4;
    ff_buffer_append_byte(buffer, object ? '{' : '[');
    for (uint64_t i = 0; i < members; i++) {
        if (i > 0) ff_buffer_append(buffer, FF_TEXT(" ,\n"));
        if (object) {
            char name[16];
            snprintf(name, sizeof(name), "\"\\u000%d\": ", (int)i);
            ff_buffer_append(buffer, ff_text_of(name));
        }
        append_random(buffer, seed, depth - 1);
    }
    ff_buffer_append_byte(buffer, object ? '}' : ']');
}

/* What was written reads back, and is written the same. */
Test(json, random_documents_are_stable) {
    uint64_t seed = 3;
    for (int i = 0; i < 3000; i++) {
        unit_arena unit;
        ff_arena *arena = unit_arena_open(&unit);
        ff_buffer buffer;
        ff_buffer_init(&buffer, arena);
        append_random(&buffer, &seed, 5);
        ff_json *first = parse_exact(ff_buffer_text(&buffer));
        cr_assert(first != NULL, "%.*s", (int)buffer.len, buffer.data);
        ff_text once = ff_json_write(arena, first);
        ff_json *second = parse_exact(once);
        cr_assert(second != NULL);
        cr_assert(ff_text_equal(once, ff_json_write(arena, second)));
        ff_json_free(first);
        ff_json_free(second);
        ff_arena_release(arena);
    }
}

/* Damaged documents are refused or read, and whatever is read can be written or is not finite. */
Test(json, damaged_documents_do_no_harm) {
    uint64_t seed = 4;
    for (int i = 0; i < 20000; i++) {
        unit_arena unit;
        ff_arena *arena = unit_arena_open(&unit);
        ff_buffer buffer;
        ff_buffer_init(&buffer, arena);
        append_random(&buffer, &seed, 4);
        for (int k = 0; k < 3; k++) {
            static const char bytes[] = "{}[],:\"\\ux0-+.eEnit\x01\xff ";
            buffer.data[unit_random(&seed) % buffer.len] =
                bytes[unit_random(&seed) % sizeof(bytes)];
        }
        ff_text cut =
            ff_text_slice(ff_buffer_text(&buffer), 0, 1 + unit_random(&seed) % buffer.len);
        ff_json *value = parse_exact(cut);
        ff_text written = value ? ff_json_write(arena, value) : FF_TEXT_ABSENT;
        if (written.ptr) {
            ff_json *back = parse_exact(written);
            cr_assert(back != NULL, "%.*s", (int)written.len, written.ptr);
            ff_json_free(back);
        }
        ff_json_free(value);
        ff_arena_release(arena);
    }
}

Test(json, large_documents_are_linear) {
    size_t len = 8u << 20;
    char *text = malloc(len);
    cr_assert(text != NULL);
    memset(text, 1, len);
    text[0] = '"';
    text[len - 1] = '"';
    ff_json *value = ff_json_parse((ff_text){text, len});
    cr_expect(ff_json_string(value).len == len - 2);
    ff_json_free(value);
    memset(text, '9', len);
    value = ff_json_parse((ff_text){text, len});
    cr_expect(isinf(ff_json_number(value)));
    ff_json_free(value);
    memset(text, '[', len);
    cr_expect(ff_json_parse((ff_text){text, len}) == NULL);
    memset(text, '"', len);
    cr_expect(ff_json_parse((ff_text){text, len}) == NULL);
    free(text);
}
