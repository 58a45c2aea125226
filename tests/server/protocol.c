/* What FF.CALL refuses before any function is reached. */
#include "harness.h"
#include "wire.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

Test(protocol, unknown_function) {
    static const char *const names[] = {"ff_no_such_function", "FF_VERSION", "version", "", "ff_"};
    test_server *server = server_start(NULL);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        wire_call call = {.function = names[i], .key_count = 1, .keys = {text("k")}};
        wire_expect_error(server, &call, "ERR unknown function");
    }
}

Test(protocol, unknown_function_of_any_bytes) {
    test_server *server = server_start(NULL);
    for (const hostile_value *value = hostile_values(); value->name; value++) {
        bytes words[] = {text("FF.CALL"), value->value, text("0")};
        redisReply *reply = server_send(server, 3, words);
        cr_assert_eq(reply->type, REDIS_REPLY_ERROR, "%s", value->name);
        cr_assert_eq(strncmp(reply->str, "ERR unknown function", 20), 0, "%s: %s", value->name,
                     reply->str);
    }
    cr_assert_str_eq(server_text(server, "PING"), "PONG");
}

Test(protocol, too_few_words) {
    static const char *const commands[] = {"FF.CALL", "FF.CALL_RO"};
    test_server *server = server_start(NULL);
    for (size_t i = 0; i < 2; i++) {
        const char *prefix = "ERR wrong number of arguments";
        server_expect_error(server, prefix, commands[i]);
        server_expect_error(server, prefix, commands[i], "ff_version");
    }
}

/* A count of keys that is no count, or that the words do not bear out. */
Test(protocol, numkeys_that_lies) {
    static const char *const counts[] = {"-1",
                                         "3",
                                         "1000000",
                                         "2147483648",
                                         "4294967297",
                                         "9223372036854775807",
                                         "9223372036854775808",
                                         "18446744073709551617",
                                         "-9223372036854775808",
                                         "x",
                                         "",
                                         "1.5",
                                         "1e0",
                                         "0x1",
                                         " 1",
                                         "1 ",
                                         "nan",
                                         "inf",
                                         "+1"};
    test_server *server = server_start(NULL);
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        const char *commands[] = {"FF.CALL", "FF.CALL_RO"};
        for (size_t j = 0; j < 2; j++) {
            redisReply *reply =
                server_call(server, commands[j], "ff_version", counts[i], "k1", "k2");
            cr_assert_eq(reply->type, REDIS_REPLY_ERROR, "%s with %s keys", commands[j], counts[i]);
            cr_assert(strncmp(reply->str, "ERR", 3) == 0 && strstr(reply->str, "keys"),
                      "%s with %s keys: %s", commands[j], counts[i], reply->str);
        }
    }
    cr_assert_eq(server_integer(server, "DBSIZE"), 0);
    cr_assert_str_eq(server_text(server, "PING"), "PONG");
}

Test(protocol, read_only_call_refuses_functions_that_write) {
    test_server *server = server_start(NULL);
    redisReply *reply = server_call(server, "FF.CALL_RO", "ff_renew_lease", "1", "k", "x");
    cr_assert_eq(reply->type, REDIS_REPLY_ERROR);
    cr_assert_eq(strncmp(reply->str, "ERR", 3), 0, "%s", reply->str);
    cr_assert_eq(server_integer(server, "DBSIZE"), 0);
    server_expect_error(server, "ERR unknown function", "FF.CALL_RO", "ff_nothing", "0");
}

Test(protocol, version_ignores_keys_and_arguments) {
    test_server *server = server_start(NULL);
    cr_assert_str_eq(server_text(server, "FF.CALL", "ff_version", "2", "k1", "k2", "a", "b"), "34");
}
