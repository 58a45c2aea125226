/* FF.CALL among the server's own mechanisms: transactions, scripts, ACLs, memory limits, keyspace
 * notifications, clusters. */
#include "harness.h"
#include "wire.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static test_server *start(void) { return server_start(&(server_options){.frozen_clock = true}); }

Test(transactions, calls_in_multi) {
    test_server *server = start();
    test_server *replica = server_start_replica(server, &(server_options){.without_module = true});
    wire_call create = wire_create();
    server_do(server, "MULTI");
    wire_send(server, &create);
    wire_send(server, &create);
    redisReply *replies = server_call(server, "EXEC");
    cr_assert_eq(replies->elements, 2);
    cr_assert_str_eq(replies->element[0]->element[1]->str, "OK");
    cr_assert_str_eq(replies->element[1]->element[1]->str, "DUPLICATE");
    server_expect_same_data(server, replica);
}

Test(transactions, a_refusal_in_multi_does_not_stop_the_rest) {
    test_server *server = start();
    wire_call create = wire_create(), bad = wire_create();
    bad.arguments[CREATE_PRIORITY] = text("high");
    server_do(server, "MULTI");
    wire_send(server, &bad);
    wire_send(server, &create);
    redisReply *replies = server_call(server, "EXEC");
    cr_assert_eq(replies->element[0]->element[0]->integer, 0);
    cr_assert_eq(replies->element[1]->element[0]->integer, 1);
}

/* Sends the call from a Lua script with the words of the call as KEYS and ARGV. */
static redisReply *send_from_script(test_server *server, const char *invocation,
                                    const wire_call *call) {
    bytes words[3 + WIRE_MAX_KEYS + WIRE_MAX_ARGUMENTS];
    char script[400], count_text[24];
    snprintf(script, sizeof script,
             "local words = {}; for _, k in ipairs(KEYS) do words[#words + 1] = k end; "
             "for _, a in ipairs(ARGV) do words[#words + 1] = a end; "
             "return server.%s('FF.CALL', '%s', #KEYS, unpack(words))",
             invocation, call->function);
    snprintf(count_text, sizeof count_text, "%zu", call->key_count);
    size_t count = 0;
    words[count++] = text("EVAL");
    words[count++] = text(script);
    words[count++] = text(count_text);
    for (size_t i = 0; i < call->key_count; i++) words[count++] = call->keys[i];
    for (size_t i = 0; i < call->argument_count; i++) words[count++] = call->arguments[i];
    return server_send(server, count, words);
}

Test(scripts, calls_from_lua) {
    test_server *server = start();
    test_server *replica = server_start_replica(server, &(server_options){.without_module = true});
    wire_call create = wire_create();
    redisReply *reply = send_from_script(server, "call", &create);
    cr_assert_eq(reply->type, REDIS_REPLY_ARRAY, "%s", reply->str ? reply->str : "");
    cr_assert_eq(reply->element[0]->integer, 1);
    cr_assert_str_eq(reply->element[1]->str, "OK");
    server_expect_same_data(server, replica);
}

Test(scripts, errors_reach_lua) {
    test_server *server = start();
    wire_call create = wire_create();
    wire_write_type(server, create.keys[CREATE_ALL_KEY], "string");
    const char *before = server_digest(server);
    redisReply *reply = send_from_script(server, "pcall", &create);
    cr_assert_eq(reply->type, REDIS_REPLY_ERROR);
    cr_assert_eq(strncmp(reply->str, "WRONGTYPE", 9), 0, "%s", reply->str);
    cr_assert_str_eq(server_digest(server), before);
}

Test(acl, user_without_the_command) {
    test_server *server = start();
    server_do(server, "ACL", "SETUSER", "limited", "on", "nopass", "~*", "+@all", "-ff.call");
    server_do(server, "AUTH", "limited", "x");
    wire_call create = wire_create();
    redisReply *reply = wire_send(server, &create);
    cr_assert_eq(reply->type, REDIS_REPLY_ERROR);
    cr_assert_eq(strncmp(reply->str, "NOPERM", 6), 0, "%s", reply->str);
    cr_assert_eq(server_integer(server, "DBSIZE"), 0);
}

Test(acl, category_grants_the_commands) {
    test_server *server = start();
    server_do(server, "ACL", "SETUSER", "worker", "on", "nopass", "~ff:*", "-@all", "+@flowfabric");
    redisContext *worker = server_connect(server);
    connection_call(worker, "AUTH", "worker", "x");
    redisReply *version = connection_call(worker, "FF.CALL", "ff_version", "0");
    cr_assert_str_eq(version->str, "34");
    redisReply *foreign = connection_call(worker, "FF.CALL", "ff_renew_lease", "1", "other:key");
    cr_assert_eq(foreign->type, REDIS_REPLY_ERROR);
    cr_assert_eq(strncmp(foreign->str, "NOPERM", 6), 0, "%s", foreign->str);
    redisReply *plain = connection_call(worker, "GET", "ff:x");
    cr_assert_eq(strncmp(plain->str, "NOPERM", 6), 0, "%s", plain->str);
    redisReply *info = connection_call(worker, "FF.INFO");
    cr_assert_eq(info->type, REDIS_REPLY_ARRAY);
    redisFree(worker);
}

Test(acl, readers_may_read) {
    test_server *server = start();
    server_do(server, "ACL", "SETUSER", "reader", "on", "nopass", "~*", "-@all", "+@read");
    redisContext *reader = server_connect(server);
    connection_call(reader, "AUTH", "reader", "x");
    redisReply *read = connection_call(reader, "FF.CALL_RO", "ff_version", "0");
    cr_assert_str_eq(read->str, "34");
    redisReply *write = connection_call(reader, "FF.CALL", "ff_version", "0");
    cr_assert_eq(strncmp(write->str, "NOPERM", 6), 0, "%s", write->str);
    redisFree(reader);
}

Test(memory, full_memory_refuses_and_writes_nothing) {
    test_server *server = start();
    wire_write_lease(server);
    server_do(server, "CONFIG", "SET", "maxmemory", "1");
    wire_call create = wire_create(), renew = wire_renew();
    create.keys[CREATE_CORE_KEY] = text(EXEC_KEY("other"));
    wire_expect_error(server, &create, "OOM");
    wire_expect_error(server, &renew, "OOM");
    cr_assert_str_eq(server_text(server, "FF.CALL_RO", "ff_version", "0"), "34");
    redisReply *reply = send_from_script(server, "pcall", &create);
    cr_assert_eq(reply->type, REDIS_REPLY_ERROR, "a script must not get around the limit");
    server_do(server, "CONFIG", "SET", "maxmemory", "0");
    cr_assert_eq(server_integer(server, "EXISTS", EXEC_KEY("other")), 0);
    wire_expect(server, &renew, "OK");
}

Test(replicas_required, too_few_replicas_refuse_writes) {
    test_server *server = start();
    server_do(server, "CONFIG", "SET", "min-replicas-to-write", "1");
    wire_call create = wire_create();
    wire_expect_error(server, &create, "NOREPLICAS");
}

/* Reads keyspace events until the given command has been announced; returns all of them, one
 * "event key" to a line. */
static const char *events_until(redisContext *subscriber, const char *last) {
    char *all = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&all, &size);
    for (;;) {
        redisReply *message = NULL;
        cr_assert(redisGetReply(subscriber, (void **)&message) == REDIS_OK);
        const char *event = strchr(message->element[2]->str, ':') + 1;
        bool done = strcmp(event, last) == 0;
        fprintf(out, "%s %s\n", event, message->element[3]->str);
        freeReplyObject(message);
        if (done) break;
    }
    fclose(out);
    return server_keep(all);
}

static void expect_events(const char *seen, const char *const *expected, size_t count) {
    for (size_t i = 0; i < count; i++) {
        char line[300];
        snprintf(line, sizeof line, "%s\n", expected[i]);
        cr_assert(strstr(seen, line), "'%s' was not announced; this was:\n%s", expected[i], seen);
    }
}

#define COUNT(array) (sizeof(array) / sizeof *(array))

Test(notifications, writes_are_announced) {
    static const char *const created[] = {
        "hset " EXEC_KEY("core"),
        "set " EXEC_KEY("payload"),
        "set " EXEC_KEY("policy"),
        "hset " EXEC_KEY("tags"),
        "zadd " INDEX_KEY("lane:default:eligible"),
        "sadd " INDEX_KEY("all_executions"),
        "zadd " INDEX_KEY("execution_deadline"),
        "set ff:idem:" TAG ":ns:once",
        "expire ff:idem:" TAG ":ns:once",
    };
    static const char *const renewed[] = {
        "hset " EXEC_KEY("core"),
        "hset " EXEC_KEY("lease:current"),
        "expire " EXEC_KEY("lease:current"),
        "zadd " INDEX_KEY("lease_expiry"),
    };
    static const char *const lapsed[] = {
        "hset " EXEC_KEY("core"),
        "xadd " EXEC_KEY("lease:history"),
        "hset ff:stream:" TAG ":" EID ":0:meta",
    };
    test_server *server = start();
    server_do(server, "CONFIG", "SET", "notify-keyspace-events", "EA");
    redisContext *subscriber = server_connect(server);
    wire_call create = wire_create(), renew = wire_renew();

    connection_call(subscriber, "PSUBSCRIBE", "__keyevent@0__:*");
    wire_expect(server, &create, "OK");
    server_do(server, "INCR", "end");
    expect_events(events_until(subscriber, "incrby"), created, COUNT(created));

    wire_write_lease(server);
    server_set_time(server, FROZEN_START_MS + 1000);
    server_do(server, "INCR", "end");
    events_until(subscriber, "incrby");
    wire_expect(server, &renew, "OK");
    server_do(server, "INCR", "end");
    expect_events(events_until(subscriber, "incrby"), renewed, COUNT(renewed));

    server_set_time(server, FROZEN_START_MS + 31000);
    wire_send(server, &renew);
    server_do(server, "INCR", "end");
    expect_events(events_until(subscriber, "incrby"), lapsed, COUNT(lapsed));
    redisFree(subscriber);
}

static long long heard(test_server *server) { return server_integer(server, "LISTENER.COUNT"); }

static void create_one(test_server *server) {
    server_do(server, "FF.CREATE", "*", "default", "job");
}

/* While nobody else is there, events stay inside the module. */
Test(notifications, a_module_that_comes_later_hears_them) {
    const char *listener = getenv("FF_LISTENER");
    cr_assert_not_null(listener, "FF_LISTENER is not set");
    test_server *server = server_start(NULL);
    create_one(server);
    server_do(server, "MODULE", "LOAD", listener);
    cr_assert_eq(heard(server), 0);
    create_one(server);
    long long of_one = heard(server);
    cr_assert_geq(of_one, 3);
    server_do(server, "CONFIG", "SET", "notify-keyspace-events", "");
    create_one(server);
    cr_assert_eq(heard(server), 2 * of_one);
    server_do(server, "MODULE", "UNLOAD", "listener");
    create_one(server);
    server_do(server, "MODULE", "LOAD", listener);
    create_one(server);
    cr_assert_eq(heard(server), of_one);
}

Test(notifications, clients_hear_them_as_long_as_the_setting_says) {
    test_server *server = server_start(&(server_options){.config = "notify-keyspace-events EA"});
    redisContext *subscriber = server_connect(server);
    connection_call(subscriber, "PSUBSCRIBE", "__keyevent@0__:*");
    create_one(server);
    server_do(server, "INCR", "end");
    cr_assert_not_null(strstr(events_until(subscriber, "incrby"), "zadd ff:idx:"));
    server_do(server, "CONFIG", "SET", "notify-keyspace-events", "");
    create_one(server);
    server_do(server, "CONFIG", "SET", "notify-keyspace-events", "EA");
    server_do(server, "INCR", "end");
    cr_assert_str_eq(events_until(subscriber, "incrby"), "incrby end\n");
    redisFree(subscriber);
}

/* Two parts of the module follow the server's settings; neither may take the other's place. A record that is made in
 * one go sends a restore. */
Test(notifications, settings_are_followed_by_all_who_need_them) {
    test_server *server = server_start(NULL);
    redisContext *subscriber = server_connect(server);
    connection_call(subscriber, "PSUBSCRIBE", "__keyevent@0__:*");
    server_do(server, "CONFIG", "SET", "notify-keyspace-events", "EA");
    create_one(server);
    server_do(server, "INCR", "end");
    cr_assert_not_null(strstr(events_until(subscriber, "incrby"), "restore ff:exec:"));
    server_do(server, "CONFIG", "SET", "hash-max-listpack-entries", "10");
    create_one(server);
    server_do(server, "INCR", "end");
    const char *events = events_until(subscriber, "incrby");
    cr_assert_not_null(strstr(events, "hset ff:exec:"));
    cr_assert_null(strstr(events, "restore ff:exec:"));
    redisFree(subscriber);
}

/* WATCH must notice what the module writes. */
Test(notifications, watched_keys_are_touched) {
    test_server *server = start();
    wire_write_lease(server);
    redisContext *other = server_connect(server);
    connection_call(other, "WATCH", EXEC_KEY("core"));
    connection_call(other, "MULTI");
    connection_call(other, "PING");
    server_set_time(server, FROZEN_START_MS + 1000);
    wire_call renew = wire_renew();
    wire_expect(server, &renew, "OK");
    redisReply *result = connection_call(other, "EXEC");
    cr_assert_eq(result->type, REDIS_REPLY_NIL, "the transaction was not aborted");
    redisFree(other);
}

Test(cluster, calls_are_routed_by_their_keys) {
    test_server *nodes[3];
    server_start_cluster(nodes, 3, &(server_options){0});
    wire_call create = wire_create();
    test_server *owner = server_of_key(nodes, 3, EXEC_KEY("core"));
    for (size_t i = 0; i < 3; i++) {
        if (nodes[i] != owner) wire_expect_error(nodes[i], &create, "MOVED");
    }
    wire_call split = create;
    split.keys[CREATE_ALL_KEY] = text("ff:idx:{fp:8}:all_executions");
    wire_expect_error(owner, &split, "CROSSSLOT");
    wire_expect(owner, &create, "OK");
    cr_assert_eq(server_integer(owner, "HLEN", EXEC_KEY("core")), 50);
    for (size_t i = 0; i < 3; i++) {
        cr_assert_str_eq(server_text(nodes[i], "FF.CALL", "ff_version", "0"), "34");
    }
}
