/* FF.APPEND, FF.READ, FF.SUMMARY */
#include "native.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#define APPEND(h) "FF.APPEND", (h).id, "0", (h).lease, (h).epoch

static redisReply *frame(const redisReply *page, size_t position) {
    redisReply *entries = map_value(page, "entries");
    cr_assert_gt(entries->elements, position);
    return entries->element[position];
}

Test(native_frame, append_and_read) {
    test_server *server = native_start();
    held h = native_claim(server, 1);
    redisReply *reply = server_call(server, APPEND(h), "log", "one");
    cr_assert_str_eq(map_text(reply, "id"), "1767225600000-0");
    cr_assert_eq(map_integer(reply, "frames"), 1);
    cr_assert(map_is_null(reply, "summary_version"));
    reply = server_call(server, APPEND(h), "log", "two", "MODE", "best_effort", "TTL_MS", "5000",
                        "ENCODING", "json", "CORRELATION_ID", "c", "SOURCE", "me", "TS", "5",
                        "WINDOW_FLOOR", "8", "WINDOW_CEILING", "16", "ALPHA", "0.5");
    cr_assert_eq(map_integer(reply, "frames"), 2);
    server_do(server, APPEND(h), "log", "three", "RETENTION_MAXLEN", "100", "MAX_PAYLOAD_BYTES",
              "5");

    reply = server_call(server, "FF.READ", h.id, "0");
    cr_assert_eq(map_value(reply, "entries")->elements, 3);
    redisReply *second = frame(reply, 1);
    cr_assert_str_eq(map_text(second, "id"), "1767225600000-1");
    redisReply *fields = map_value(second, "fields");
    cr_assert_str_eq(map_text(fields, "payload"), "two");
    cr_assert_str_eq(map_text(fields, "ts"), "5");
    cr_assert_str_eq(map_text(fields, "mode"), "best_effort");
    cr_assert_str_eq(map_text(fields, "correlation_id"), "c");
    cr_assert_str_eq(map_text(reply, "next"), "(1767225600000-2");
    cr_assert(map_is_null(reply, "closed_at"));

    reply = server_call(server, "FF.READ", h.id, "0", "COUNT", "1");
    reply = server_call(server, "FF.READ", h.id, "0", "FROM", map_text(reply, "next"), "VISIBILITY",
                        "exclude_best_effort");
    cr_assert_eq(map_value(reply, "entries")->elements, 1);
    cr_assert_str_eq(map_text(map_value(frame(reply, 0), "fields"), "payload"), "three");
    reply = server_call(server, "FF.READ", h.id, "0", "FROM", "1767225600000-2");
    cr_assert_eq(map_value(reply, "entries")->elements, 1);
    reply = server_call(server, "FF.READ", h.id, "0", "FROM", "$");
    cr_assert_eq(map_value(reply, "entries")->elements, 0);

    server_do(server, "FF.COMPLETE", FENCE(h));
    reply = server_call(server, "FF.READ", h.id, "0", "FROM", "$", "BLOCK", "0");
    cr_assert_eq(map_integer(reply, "closed_at"), FROZEN_START_MS);
    cr_assert_str_eq(map_text(reply, "closed_reason"), "attempt_success");
}

Test(native_frame, append_refusals) {
    test_server *server = native_start();
    held h = native_claim(server, 1);
    native_refused(server, "NOT_FOUND ", "FF.APPEND", native_id(9), "0", h.lease, h.epoch, "log",
                   "x");
    native_refused(server, "STALE_OWNER_CANNOT_APPEND ", "FF.APPEND", h.id, "1", h.lease, h.epoch,
                   "log", "x");
    native_refused(server, "STALE_OWNER_CANNOT_APPEND ", "FF.APPEND", h.id, "0", "other", h.epoch,
                   "log", "x");
    native_refused(server, "RETENTION_LIMIT_EXCEEDED ", APPEND(h), "log", "four",
                   "MAX_PAYLOAD_BYTES", "3");
    native_refused(server, "ERR attempt-index must be an integer", "FF.APPEND", h.id, "first",
                   h.lease, h.epoch, "log", "x");
    native_refused(server, "ERR MODE must be one of durable, summary, best_effort, got: loud",
                   APPEND(h), "log", "x", "MODE", "loud");
    native_refused(server, "ERR ALPHA must be a number", APPEND(h), "log", "x", "ALPHA", "2");
    native_refused(server, "ERR TTL_MS must be an integer", APPEND(h), "log", "x", "TTL_MS", "-1");
    native_refused(server, "ERR wrong number of arguments", APPEND(h), "log");
    redisReply *reply = server_call(server, APPEND(h), "log", "x", "MODE", "summary");
    cr_assert_eq(strncmp(reply->str, "INVALID_INPUT ", 14), 0, "%s", reply->str);
    server_do(server, "HSET", spell("ff:attempt:" FP ":%s:0:summary", h.id), "document", "[");
    native_refused(server, "CORRUPTION ", APPEND(h), "log", "{}", "MODE", "summary");
    server_do(server, "FF.COMPLETE", FENCE(h));
    native_refused(server, "STREAM_CLOSED ", APPEND(h), "log", "x");
}

Test(native_frame, summary) {
    test_server *server = native_start();
    held h = native_claim(server, 1);
    redisReply *reply = server_call(server, "FF.SUMMARY", h.id, "0");
    cr_assert(map_is_null(reply, "document"));
    cr_assert_eq(map_integer(reply, "version"), 0);
    reply = server_call(server, APPEND(h), "delta", "{\"a\":1}", "MODE", "summary", "PATCH_KIND",
                        "json-merge-patch");
    cr_assert_eq(map_integer(reply, "summary_version"), 1);
    reply = server_call(server, "FF.SUMMARY", h.id, "0");
    cr_assert_str_eq(map_text(reply, "document"), "{\"a\":1}");
    cr_assert_eq(map_integer(reply, "version"), 1);
    cr_assert_str_eq(map_text(reply, "patch_kind"), "json-merge-patch");
    cr_assert_eq(map_integer(reply, "first_applied_ms"), FROZEN_START_MS);
    native_refused(server, "NOT_FOUND ", "FF.SUMMARY", native_id(9), "0");
    native_refused(server, "ERR attempt-index must be", "FF.SUMMARY", h.id, "x");
}

Test(native_frame, read_refusals) {
    test_server *server = native_start();
    held h = native_claim(server, 1);
    static const char *const ids[] = {"", "x", "1-", "-1", "(", "1-2-3", "+", "((1", "1.5", "$1"};
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
        native_refused(server, "ERR FROM must be a stream id", "FF.READ", h.id, "0", "FROM",
                       ids[i]);
    }
    native_refused(server, "NOT_FOUND ", "FF.READ", native_id(9), "0");
    native_refused(server, "NOT_FOUND ", "FF.READ", native_id(9), "0", "BLOCK", "0");
    native_refused(server, "ERR COUNT must be an integer between 1 and 10000", "FF.READ", h.id, "0",
                   "COUNT", "10001");
    native_refused(server, "ERR BLOCK must be an integer", "FF.READ", h.id, "0", "BLOCK", "-1");
    native_refused(server, "ERR VISIBILITY must be one of", "FF.READ", h.id, "0", "VISIBILITY",
                   "x");
    server_do(server, "SET", spell("ff:stream:" FP ":%s:0", h.id), "text");
    native_refused(server, "WRONGTYPE ", "FF.READ", h.id, "0", "BLOCK", "0");
}

Test(native_frame, read_waits_for_more) {
    test_server *server = native_start();
    held h = native_claim(server, 1);
    redisContext *reader = native_send(server, "FF.READ", h.id, "0", "BLOCK", "0");
    redisContext *second = native_send(server, "FF.READ", h.id, "0", "BLOCK", "0");
    native_expect_blocked(server, 2);
    server_do(server, "FF.PROGRESS", h.id, h.lease, h.epoch);
    native_expect_blocked(server, 2);
    server_do(server, APPEND(h), "log", "one");
    redisReply *reply = native_receive(reader);
    cr_assert_str_eq(map_text(map_value(frame(reply, 0), "fields"), "payload"), "one");
    native_receive(second);
    native_expect_blocked(server, 0);
}

/* A reader that waits for what comes after the first entry. */
static redisContext *wait_behind_first(test_server *server, held h) {
    server_do(server, APPEND(h), "log", "one");
    redisContext *reader = native_send(server, "FF.READ", h.id, "0", "FROM", "$", "BLOCK", "0");
    native_expect_blocked(server, 1);
    return reader;
}

Test(native_frame, read_waits_for_the_end) {
    test_server *server = native_start();
    held h = native_claim(server, 1);
    redisContext *reader = wait_behind_first(server, h);
    server_do(server, "FF.FAIL", FENCE(h), "broken");
    redisReply *reply = native_receive(reader);
    cr_assert_str_eq(map_text(reply, "closed_reason"), "attempt_failure");
    /* One that never had a frame ends with its attempt, or with the execution. */
    h = native_claim(server, 2);
    reader = native_send(server, "FF.READ", h.id, "0", "BLOCK", "0");
    native_create(server, 3);
    redisContext *other = native_send(server, "FF.READ", native_id(3), "0", "BLOCK", "0");
    native_expect_blocked(server, 2);
    server_do(server, "FF.COMPLETE", FENCE(h));
    server_do(server, "FF.CANCEL", native_id(3), "why");
    cr_assert_str_eq(map_text(native_receive(reader), "closed_reason"), "ended_success");
    cr_assert_str_eq(map_text(native_receive(other), "closed_reason"), "cancelled");
}

/* A plain command, or a wire function, wakes a reader as well. */
Test(native_frame, read_is_woken_by_anybody) {
    test_server *server = native_start();
    held h = native_claim(server, 1);
    redisContext *reader = wait_behind_first(server, h);
    server_do(server, "HSET", spell("ff:stream:" FP ":%s:0:meta", h.id), "closed_at", "7");
    cr_assert_eq(map_integer(native_receive(reader), "closed_at"), 7);
    reader = native_send(server, "FF.READ", native_id(1), "1", "BLOCK", "0");
    native_expect_blocked(server, 1);
    server_do(server, "DEL", native_key(1, "core"));
    redisReply *reply = native_receive(reader);
    cr_assert_eq(strncmp(reply->str, "NOT_FOUND ", 10), 0, "%s", reply->str);
}

/* What a reader waits for may go without a word about each key. */
Test(native_frame, read_is_woken_when_the_data_goes) {
    test_server *server = native_start();
    for (int i = 0; i < 6; i++) {
        held h = native_claim(server, 1);
        if (i % 2) server_do(server, APPEND(h), "log", "one");
        redisContext *reader = native_send(server, "FF.READ", h.id, "0", "FROM", "$", "BLOCK", "0");
        redisContext *second = native_send(server, "FF.READ", h.id, "1", "BLOCK", "0");
        native_expect_blocked(server, 2);
        if (i / 2 == 0) server_do(server, "FLUSHALL");
        if (i / 2 == 1) server_do(server, "FLUSHDB");
        if (i / 2 == 2) server_do(server, "SWAPDB", "0", "1");
        redisReply *reply = native_receive(reader);
        cr_assert_eq(strncmp(reply->str, "NOT_FOUND ", 10), 0, "%s", reply->str);
        reply = native_receive(second);
        cr_assert_eq(strncmp(reply->str, "NOT_FOUND ", 10), 0, "%s", reply->str);
        native_expect_blocked(server, 0);
        server_do(server, "FLUSHALL");
    }
}

Test(native_frame, read_is_woken_when_its_stream_goes) {
    test_server *server = native_start();
    held h = native_claim(server, 1);
    redisContext *reader = wait_behind_first(server, h);
    server_do(server, "DEL", spell("ff:stream:" FP ":%s:0", h.id));
    redisReply *reply = native_receive(reader);
    cr_assert_eq(map_value(reply, "entries")->elements, 0);
    cr_assert(map_is_null(reply, "closed_at"));
    /* Whoever asks again is there when it goes on. */
    reader =
        native_send(server, "FF.READ", h.id, "0", "FROM", map_text(reply, "next"), "BLOCK", "0");
    native_expect_blocked(server, 1);
    server_do(server, "FF.COMPLETE", FENCE(h));
    cr_assert_not(map_is_null(native_receive(reader), "closed_at"));
}

Test(native_frame, waiting_ends) {
    test_server *server = server_start(NULL);
    native_create(server, 1);
    redisReply *reply = server_call(server, "FF.READ", native_id(1), "0", "BLOCK", "20");
    cr_assert_eq(map_value(reply, "entries")->elements, 0);
    cr_assert_str_eq(map_text(reply, "next"), "-");
    redisContext *reader = server_connect(server);
    redisReply *id = connection_call(reader, "CLIENT", "ID");
    redisContext *blocked = native_send(server, "FF.READ", native_id(1), "0", "BLOCK", "0");
    native_expect_blocked(server, 1);
    server_do(server, "CLIENT", "UNBLOCK", spell("%lld", id->integer + 1));
    cr_assert_eq(map_value(native_receive(blocked), "entries")->elements, 0);
    blocked = native_send(server, "FF.READ", native_id(1), "0", "BLOCK", "0");
    native_expect_blocked(server, 1);
    redisFree(blocked);
    native_expect_blocked(server, 0);
    /* Where nobody can wait there is an answer at once. */
    server_do(server, "MULTI");
    server_call(server, "FF.READ", native_id(1), "0", "BLOCK", "0");
    redisReply *replies = server_call(server, "EXEC");
    cr_assert_eq(map_value(replies->element[0], "entries")->elements, 0);
    reply = server_call(server, "EVAL", "return server.call('FF.READ', KEYS[1], 0, 'BLOCK', 0)",
                        "1", native_id(1));
    cr_assert_eq(map_value(reply, "entries")->elements, 0);
}

Test(native_frame, maps_on_resp3) {
    test_server *server = native_start();
    held h = native_claim(server, 1);
    resp3_connection *connection = resp3_connect(server);
    resp3_value *reply = resp3_call(connection, APPEND(h), "log", "one");
    cr_assert_eq(reply->kind, '%');
    cr_assert_eq(resp3_member(reply, "summary_version")->kind, '_');
    reply = resp3_call(connection, "FF.READ", h.id, "0", "BLOCK", "0");
    cr_assert_eq(reply->kind, '%');
    const resp3_value *first = &resp3_member(reply, "entries")->items[0];
    cr_assert_eq(first->kind, '%');
    cr_assert_eq(resp3_member(first, "fields")->kind, '%');
    reply = resp3_call(connection, "FF.SUMMARY", h.id, "0");
    cr_assert_eq(reply->kind, '%');
}
