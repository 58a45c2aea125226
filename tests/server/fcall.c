/* FCALL of the wire functions: through the forwarding library, and intercepted without Lua. */
#include "harness.h"
#include "wire.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FUNCTIONS = 59 };

static const char *library_text(void) {
    FILE *file = fopen("lua-compat/flowfabric.lua", "r");
    cr_assert_not_null(file, "run the tests from the top of the repository");
    char *code = calloc(1, 1 << 20);
    cr_assert_gt(fread(code, 1, (1 << 20) - 1, file), 0);
    fclose(file);
    return server_keep(code);
}

static void load_library(test_server *server) {
    cr_assert_str_eq(server_text(server, "FUNCTION", "LOAD", library_text()), "flowfabric");
}

/* Sends a wire call as a client of the reference does. */
static redisReply *fcall(test_server *server, const wire_call *call) {
    bytes words[3 + WIRE_MAX_KEYS + WIRE_MAX_ARGUMENTS];
    char numkeys[16];
    size_t count = 0;
    snprintf(numkeys, sizeof numkeys, "%zu", call->key_count);
    words[count++] = text("FCALL");
    words[count++] = text(call->function);
    words[count++] = text(numkeys);
    for (size_t i = 0; i < call->key_count; i++) words[count++] = call->keys[i];
    for (size_t i = 0; i < call->argument_count; i++) words[count++] = call->arguments[i];
    return server_send(server, count, words);
}

static void expect_created(const redisReply *reply) {
    cr_assert_eq(reply->type, REDIS_REPLY_ARRAY, "%s", reply->str);
    cr_assert_eq(reply->element[0]->integer, 1);
    cr_assert_str_eq(reply->element[1]->str, "OK");
}

Test(fcall_library, registers_every_function) {
    test_server *server = server_start(NULL);
    load_library(server);
    const redisReply *list = server_call(server, "FUNCTION", "LIST");
    cr_assert_eq(list->elements, 1);
    size_t functions = 0;
    for (size_t i = 0; i + 1 < list->element[0]->elements; i += 2) {
        if (strcmp(list->element[0]->element[i]->str, "functions") == 0) {
            functions = list->element[0]->element[i + 1]->elements;
        }
    }
    cr_assert_eq(functions, FUNCTIONS);
}

/* A client of the reference asks for the version before it loads its own library. */
Test(fcall_library, tells_the_version_that_clients_look_for) {
    test_server *server = server_start(NULL);
    load_library(server);
    cr_assert_str_eq(server_text(server, "FCALL", "ff_version", "0"), "34");
    cr_assert_str_eq(server_text(server, "FCALL_RO", "ff_version", "0"), "34");
}

Test(fcall_library, works_in_a_transaction) {
    test_server *server = server_start(&(server_options){.frozen_clock = true});
    load_library(server);
    wire_call call = wire_create();
    server_do(server, "MULTI");
    fcall(server, &call);
    fcall(server, &call);
    const redisReply *replies = server_call(server, "EXEC");
    cr_assert_eq(replies->elements, 2);
    expect_created(replies->element[0]);
    cr_assert_str_eq(replies->element[1]->element[1]->str, "DUPLICATE");
}

Test(fcall_library, replicas_see_effects_and_refuse_writes) {
    test_server *primary = server_start(&(server_options){.frozen_clock = true});
    load_library(primary);
    test_server *replica = server_start_replica(primary, NULL);
    wire_call call = wire_create();
    expect_created(fcall(primary, &call));
    server_expect_same_data(primary, replica);
    const redisReply *refused = fcall(replica, &call);
    cr_assert_eq(refused->type, REDIS_REPLY_ERROR);
    cr_assert_eq(strncmp(refused->str, "READONLY", 8), 0, "%s", refused->str);
    cr_assert_str_eq(server_text(replica, "FCALL_RO", "ff_version", "0"), "34");
}

static void expect_routed(const server_options *options, bool with_library) {
    test_server *nodes[2];
    server_start_cluster(nodes, 2, options);
    for (size_t i = 0; with_library && i < 2; i++) load_library(nodes[i]);
    test_server *owner = server_of_key(nodes, 2, EXEC_KEY("core"));
    test_server *other = owner == nodes[0] ? nodes[1] : nodes[0];
    wire_call call = wire_create();
    const redisReply *moved = fcall(other, &call);
    cr_assert_eq(moved->type, REDIS_REPLY_ERROR);
    cr_assert_eq(strncmp(moved->str, "MOVED ", 6), 0, "%s", moved->str);
    expect_created(fcall(owner, &call));
}

Test(fcall_library, is_routed_in_a_cluster) { expect_routed(NULL, true); }

Test(fcall_intercepted, is_routed_in_a_cluster) {
    expect_routed(&(server_options){.config = "ff.intercept-fcall yes"}, false);
}

Test(fcall_intercepted, can_be_switched) {
    test_server *server = server_start(NULL);
    server_expect_error(server, "ERR Function not found", "FCALL", "ff_version", "0");
    server_do(server, "CONFIG", "SET", "ff.intercept-fcall", "yes");
    cr_assert_str_eq(server_text(server, "FCALL", "ff_version", "0"), "34");
    cr_assert_str_eq(server_text(server, "fcall_ro", "ff_version", "0"), "34");
    server_do(server, "CONFIG", "SET", "ff.intercept-fcall", "no");
    server_expect_error(server, "ERR Function not found", "FCALL", "ff_version", "0");
}

Test(fcall_intercepted, leaves_other_functions_alone) {
    test_server *server = server_start(&(server_options){.config = "ff.intercept-fcall yes"});
    server_do(server, "FUNCTION", "LOAD",
              "#!lua name=mine\n"
              "redis.register_function('mine', function() return 'mine' end)\n"
              "redis.register_function('ff_mine', function() return 'ff mine' end)\n");
    cr_assert_str_eq(server_text(server, "FCALL", "mine", "0"), "mine");
    cr_assert_str_eq(server_text(server, "FCALL", "ff_mine", "0"), "ff mine");
    server_expect_error(server, "ERR Function not found", "FCALL", "ff_nobody", "0");
}

Test(fcall_intercepted, access_is_decided_by_what_runs) {
    test_server *server = server_start(&(server_options){.config = "ff.intercept-fcall yes"});
    server_do(server, "ACL", "SETUSER", "caller", "on", "nopass", "~*", "+fcall");
    server_do(server, "ACL", "SETUSER", "worker", "on", "nopass", "~ff:*", "+ff.call");
    redisContext *caller = server_connect(server);
    connection_call(caller, "AUTH", "caller", "any");
    const redisReply *refused = connection_call(caller, "FCALL", "ff_version", "0");
    cr_assert_eq(refused->type, REDIS_REPLY_ERROR);
    cr_assert_eq(strncmp(refused->str, "NOPERM", 6), 0, "%s", refused->str);
    redisContext *worker = server_connect(server);
    connection_call(worker, "AUTH", "worker", "any");
    cr_assert_str_eq(connection_call(worker, "FCALL", "ff_version", "0")->str, "34");
}
