/* Loading and unloading the module, and what it says about itself. */
#include "harness.h"
#include "resp3.h"
#include "wire.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

Test(loading, answers_version) {
    test_server *server = server_start(NULL);
    cr_assert_str_eq(server_text(server, "FF.CALL", "ff_version", "0"), "34");
    cr_assert_str_eq(server_text(server, "FF.CALL_RO", "ff_version", "0"), "34");
    server_stop(server);
}

Test(loading, module_list_names_it) {
    test_server *server = server_start(NULL);
    redisReply *modules = server_call(server, "MODULE", "LIST");
    cr_assert_eq(modules->elements, 1);
    cr_assert_str_eq(modules->element[0]->element[1]->str, "ff");
}

Test(loading, unloads_and_loads_again) {
    test_server *server = server_start(&(server_options){.frozen_clock = true});
    wire_call create = wire_create();
    wire_expect(server, &create, "OK");
    const char *before = server_digest(server);
    server_do(server, "MODULE", "UNLOAD", "ff");
    server_expect_error(server, "ERR unknown command", "FF.CALL", "ff_version", "0");
    server_do(server, "MODULE", "LOAD", getenv("FF_MODULE"));
    cr_assert_str_eq(server_digest(server), before);
    wire_expect(server, &create, "DUPLICATE");
    server_stop(server);
}

Test(loading, bad_arguments_stop_the_start) {
    static const struct {
        const char *arguments, *complaint;
    } bad[] = {
        {"nonsense", "pairs"},
        {"nonsense yes", "nonsense"},
        {"nonsense yes and more", "nonsense"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const char *log =
            server_start_refused(&(server_options){.module_arguments = bad[i].arguments});
        cr_assert(strstr(log, bad[i].complaint), "the log does not say what is wrong: %s", log);
    }
}

Test(loading, bad_arguments_to_module_load_leave_the_server_up) {
    test_server *server = server_start(&(server_options){.without_module = true});
    server_expect_error(server, "ERR", "MODULE", "LOAD", getenv("FF_MODULE"), "nonsense", "yes");
    server_expect_error(server, "ERR unknown command", "FF.CALL", "ff_version", "0");
    server_do(server, "MODULE", "LOAD", getenv("FF_MODULE"));
    cr_assert_str_eq(server_text(server, "FF.CALL", "ff_version", "0"), "34");
}

Test(loading, unknown_configuration_stops_the_start) {
    const char *log = server_start_refused(&(server_options){.config = "ff.nonsense yes"});
    cr_assert(strstr(log, "ff.nonsense"), "%s", log);
}

Test(info, section_has_fields) {
    test_server *server = server_start(NULL);
    const char *info = server_text(server, "INFO", "ff");
    cr_assert(strstr(info, "# ff_"), "%s", info);
    cr_assert(strstr(info, "\nff_"), "%s", info);
    cr_assert(strstr(server_text(server, "INFO", "everything"), "\nff_"));
}

/* FF.INFO tells what INFO ff prints, field by field. */
Test(info, map_and_section_agree) {
    test_server *server = server_start(NULL);
    resp3_connection *connection = resp3_connect(server);
    const resp3_value *map = resp3_call(connection, "FF.INFO");
    cr_assert_eq(map->kind, '%', "%c %s", map->kind, map->text ? map->text : "");
    cr_assert_gt(map->count, 0);
    const char *info = server_text(server, "INFO", "ff");
    for (size_t i = 0; i < map->count; i += 2) {
        const char *name = map->items[i].text;
        cr_assert(name && strstr(info, name), "INFO ff has no %s", name ? name : "name");
    }
    cr_assert_null(resp3_member(map, "no such field"));
}

Test(info, map_is_a_flat_array_on_resp2) {
    test_server *server = server_start(NULL);
    redisReply *flat = server_call(server, "FF.INFO");
    cr_assert_eq(flat->type, REDIS_REPLY_ARRAY);
    cr_assert(flat->elements > 0 && flat->elements % 2 == 0);
    server_expect_error(server, "ERR wrong number of arguments", "FF.INFO", "extra");
}

static bool has_flag(const redisReply *flags, const char *name) {
    for (size_t i = 0; i < flags->elements; i++) {
        if (strcmp(flags->element[i]->str, name) == 0) return true;
    }
    return false;
}

Test(introspection, command_info) {
    test_server *server = server_start(NULL);
    redisReply *reply = server_call(server, "COMMAND", "INFO", "FF.CALL", "FF.CALL_RO", "FF.INFO");
    const redisReply *call = reply->element[0], *read = reply->element[1],
                     *info = reply->element[2];
    cr_assert_eq(call->element[1]->integer, -3);
    cr_assert_eq(read->element[1]->integer, -3);
    cr_assert_eq(info->element[1]->integer, 1);
    cr_assert(has_flag(call->element[2], "write") && has_flag(call->element[2], "denyoom"));
    cr_assert(has_flag(read->element[2], "readonly") && !has_flag(read->element[2], "write"));
    cr_assert(has_flag(info->element[2], "readonly") || !has_flag(info->element[2], "write"));
    for (size_t i = 0; i < 3; i++) {
        cr_assert(has_flag(reply->element[i]->element[6], "@flowfabric"), "command %zu", i);
    }
    cr_assert(has_flag(call->element[6], "@write") && has_flag(read->element[6], "@read"));
}

Test(introspection, command_docs) {
    static const char *const names[] = {"FF.CALL", "FF.CALL_RO", "FF.INFO"};
    test_server *server = server_start(NULL);
    resp3_connection *connection = resp3_connect(server);
    for (size_t i = 0; i < 3; i++) {
        const resp3_value *reply = resp3_call(connection, "COMMAND", "DOCS", names[i]);
        cr_assert_eq(reply->count, 2, "no documentation of %s", names[i]);
        const resp3_value *docs = &reply->items[1];
        cr_assert_not_null(resp3_member(docs, "summary"), "%s has no summary", names[i]);
        cr_assert_not_null(resp3_member(docs, "since"), "%s does not say since when", names[i]);
        cr_assert_not_null(resp3_member(docs, "complexity"), "%s has no complexity", names[i]);
        bool takes_arguments = i < 2;
        cr_assert(!takes_arguments || resp3_member(docs, "arguments"), "%s has no arguments",
                  names[i]);
    }
}

static void expect_keys(test_server *server, const char *command) {
    redisReply *keys = server_call(server, "COMMAND", "GETKEYS", command, "ff_renew_lease", "2",
                                   "k1", "k2", "argument");
    cr_assert_eq(keys->type, REDIS_REPLY_ARRAY);
    cr_assert_eq(keys->elements, 2);
    cr_assert_str_eq(keys->element[0]->str, "k1");
    cr_assert_str_eq(keys->element[1]->str, "k2");
}

Test(introspection, getkeys) {
    test_server *server = server_start(NULL);
    expect_keys(server, "FF.CALL");
    expect_keys(server, "FF.CALL_RO");
    redisReply *none = server_call(server, "COMMAND", "GETKEYS", "FF.CALL", "ff_version", "0");
    cr_assert(none->type == REDIS_REPLY_ERROR || none->elements == 0);
    server_expect_error(server, "ERR", "COMMAND", "GETKEYS", "FF.CALL", "f", "3", "k1");
    server_expect_error(server, "ERR", "COMMAND", "GETKEYS", "FF.CALL", "f", "-1", "k1");
    server_expect_error(server, "ERR", "COMMAND", "GETKEYS", "FF.CALL", "f", "x", "k1");
    cr_assert_str_eq(server_text(server, "PING"), "PONG");
}
