/* What the module makes in one go must be the very bytes that the server would have made. */
#include "harness.h"
#include "native.h"
#include "wire.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Values at the borders of every encoding that the packed form has. */
static const char *const values[] = {
    "",
    "0",
    "127",
    "128",
    "-1",
    "4095",
    "4096",
    "-4096",
    "-4097",
    "32767",
    "32768",
    "-32768",
    "-32769",
    "8388607",
    "8388608",
    "-8388608",
    "-8388609",
    "2147483647",
    "2147483648",
    "-2147483648",
    "-2147483649",
    "9223372036854775807",
    "-9223372036854775808",
    "9223372036854775808",
    "-9223372036854775809",
    "007",
    "+5",
    "-0",
    " 1",
    "1e3",
    "text",
    "\303\251",
    "a text of sixty-three bytes, which is one below the next encoding",
    "a text of sixty-four bytes: it is the longest that is kept packed",
};

enum { VALUE_COUNT = sizeof values / sizeof *values };

/* The tags of an execution, as JSON and as the words of the HSET that has the same effect. */
typedef struct tag_list {
    char json[8192];
    const char *words[2 + 2 * VALUE_COUNT + 1];
    char names[VALUE_COUNT][16];
    char cut[VALUE_COUNT][65];
} tag_list;

static void make_tags(tag_list *tags) {
    char *to = tags->json;
    char *end = tags->json + sizeof tags->json;
    size_t word = 0;
    tags->words[word++] = "HSET";
    tags->words[word++] = "plain";
    for (size_t i = 0; i < VALUE_COUNT; i++) {
        snprintf(tags->names[i], sizeof tags->names[i], "tag.%zu", i);
        snprintf(tags->cut[i], sizeof tags->cut[i], "%s", values[i]);
        to += snprintf(to, (size_t)(end - to), "%s\"%s\":\"%s\"", i ? "," : "{", tags->names[i],
                       tags->cut[i]);
        tags->words[word++] = tags->names[i];
        tags->words[word++] = tags->cut[i];
    }
    snprintf(to, (size_t)(end - to), "}");
    tags->words[word] = NULL;
}

static const redisReply *create_with_tags(test_server *server, const char *json) {
    wire_call call = wire_create();
    call.arguments[CREATE_TAGS] = text(json);
    return wire_send(server, &call);
}

static void expect_same_dump(test_server *server, const char *a, const char *b) {
    const redisReply *left = server_call(server, "DUMP", a);
    const redisReply *right = server_call(server, "DUMP", b);
    cr_assert_eq(left->len, right->len);
    cr_assert_arr_eq(left->str, right->str, left->len);
}

Test(packed, same_bytes_as_the_server_makes) {
    test_server *server = server_start(&(server_options){.config = "rdbcompression no"});
    tag_list tags;
    make_tags(&tags);
    create_with_tags(server, tags.json);
    server_do_words(server, tags.words);
    cr_assert_eq(server_integer(server, "HLEN", EXEC_KEY("tags")), VALUE_COUNT);
    expect_same_dump(server, EXEC_KEY("tags"), "plain");
}

Test(packed, core_is_kept_packed) {
    test_server *server = server_start(&(server_options){0});
    wire_call call = wire_create();
    wire_expect(server, &call, "OK");
    cr_assert_str_eq(server_text(server, "OBJECT", "ENCODING", EXEC_KEY("core")), "listpack");
}

Test(packed, a_long_value_is_left_to_the_server) {
    test_server *server = server_start(&(server_options){0});
    wire_call call = wire_create();
    char kind[66];
    memset(kind, 'k', sizeof kind - 1);
    kind[sizeof kind - 1] = '\0';
    call.arguments[CREATE_KIND] = text(kind);
    wire_expect(server, &call, "OK");
    cr_assert_str_eq(server_text(server, "OBJECT", "ENCODING", EXEC_KEY("core")), "hashtable");
    cr_assert_str_eq(server_text(server, "HGET", EXEC_KEY("core"), "execution_kind"), kind);
}

Test(packed, follows_the_configuration) {
    test_server *server = server_start(&(server_options){0});
    server_do(server, "CONFIG", "SET", "hash-max-listpack-entries", "10");
    wire_call call = wire_create();
    wire_expect(server, &call, "OK");
    cr_assert_str_eq(server_text(server, "OBJECT", "ENCODING", EXEC_KEY("core")), "hashtable");
}

Test(packed, works_where_restore_has_no_name) {
    test_server *server = server_start(
        &(server_options){.frozen_clock = true, .config = "rename-command RESTORE \"\""});
    test_server *replica = server_start_replica(server, NULL);
    native_create(server, 1);
    native_claim_next(server);
    cr_assert_eq(server_integer(server, "HLEN", native_key(1, "core")), 49);
    cr_assert_eq(server_integer(server, "XLEN", native_key(1, "lease:history")), 1);
    server_expect_same_data(server, replica);
}

/* ---- Streams ---- */

#define COPY "ff:copy"
#define APPEND(h) "FF.APPEND", (h).id, "0", (h).lease, (h).epoch

static const char *frames_key(void) { return spell("ff:stream:" FP ":%s:0", native_id(1)); }

/* Adds the entries of a stream to another, one by one. */
static void copy_stream(test_server *server, const char *from) {
    const redisReply *entries = server_call(server, "XRANGE", from, "-", "+");
    for (size_t i = 0; i < entries->elements; i++) {
        const redisReply *entry = entries->element[i];
        const redisReply *fields = entry->element[1];
        const char *words[64] = {"XADD", COPY, entry->element[0]->str};
        cr_assert_lt(fields->elements, 60);
        for (size_t j = 0; j < fields->elements; j++) words[3 + j] = fields->element[j]->str;
        server_do_words(server, words);
    }
}

static void expect_plain_stream(test_server *server, const char *key) {
    server_do(server, "DEL", COPY);
    copy_stream(server, key);
    expect_same_dump(server, key, COPY);
}

Test(packed, a_stream_has_the_bytes_that_the_server_makes) {
    test_server *server = native_start();
    server_do(server, "CONFIG", "SET", "rdbcompression", "no");
    held h = native_claim(server, 1);
    for (size_t i = 1; i < VALUE_COUNT; i++) {
        server_do(server, "DEL", frames_key());
        server_do(server, APPEND(h), "log", values[i]);
        expect_plain_stream(server, frames_key());
        server_do(server, APPEND(h), "log", values[VALUE_COUNT - i]);
        cr_assert_eq(server_integer(server, "XLEN", frames_key()), 2);
        expect_plain_stream(server, frames_key());
    }
}

Test(packed, a_stream_takes_no_more_memory_than_it_needs) {
    test_server *server = native_start();
    native_claim(server, 1);
    const char *history = native_key(1, "lease:history");
    cr_assert_lt(server_integer(server, "MEMORY", "USAGE", history), 1024);
    copy_stream(server, history);
    cr_assert_gt(server_integer(server, "MEMORY", "USAGE", COPY), 4096,
                 "or the server has become thrifty by itself");
}

Test(packed, a_long_frame_is_left_to_the_server) {
    test_server *server = native_start();
    held h = native_claim(server, 1);
    char *payload = calloc(1, 5001);
    memset(payload, 'p', 5000);
    server_do(server, APPEND(h), "log", payload);
    expect_plain_stream(server, frames_key());
    free(payload);
}

/* Two streams begin with a signal; one of them can take no more entries. */
Test(packed, a_stream_is_taken_back_when_another_is_full) {
    test_server *server = native_start();
    test_server *replica = server_start_replica(server, NULL);
    held h = native_claim(server, 1);
    const redisReply *reply =
        server_call(server, "FF.SUSPEND", FENCE(h), "REASON", "waiting_for_approval", "CONDITION",
                    "{\"required_signal_names\":[\"go\"]}");
    const redisReply *door = map_value(reply, "waitpoints")->element[0];
    const char *waitpoint = map_text(door, "waitpoint_id"), *token = map_text(door, "token");
    server_do(server, "XADD", "ff:part:" FP ":signal_delivery",
              "18446744073709551615-18446744073709551615", "a", "b");
    native_refused(server, "ERR", "FF.SIGNAL", native_id(1), waitpoint, "go", "TOKEN", token);
    server_expect_same_data(server, replica);
    server_do(server, "DEL", "ff:part:" FP ":signal_delivery");
    server_do(server, "FF.SIGNAL", native_id(1), waitpoint, "go", "TOKEN", token);
    cr_assert_eq(server_integer(server, "XLEN", spell("ff:wp:" FP ":%s:signals", waitpoint)), 1);
    server_expect_same_data(server, replica);
}
