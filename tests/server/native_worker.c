/* FF.WORKER and FF.SECRET. */
#include <criterion/criterion.h>
#include <string.h>

#include "native.h"

#define ALIVE "ff:worker:default:i1:alive"
#define CAPS "ff:worker:default:i1:caps"
#define INDEX "ff:idx:default:workers"

static void expect_status(const redisReply *reply, const char *status) {
    cr_assert_str_eq(map_text(reply, "status"), status);
}

static redisReply *list(test_server *server, size_t count) {
    redisReply *reply = server_call(server, "FF.WORKER", "LIST");
    cr_assert_eq(reply->type, REDIS_REPLY_ARRAY, "%s", reply->str);
    cr_assert_eq(reply->elements, count, "%zu workers instead of %zu", reply->elements, count);
    return reply;
}

Test(native_worker, life) {
    test_server *server = native_start();
    redisReply *reply = server_call(server, "FF.WORKER", "REGISTER", "w", "i1", "LANES", "2", "a",
                                    "b", "CAPS", "gpu,cpu,gpu", "TTL", "5000");
    expect_status(reply, "registered");
    cr_assert_eq(map_integer(reply, "expires_at"), FROZEN_START_MS + 5000);
    expect_status(server_call(server, "FF.WORKER", "REGISTER", "w", "i1", "TTL", "5000", "LANES",
                              "1", "a", "CAPS", "gpu,cpu"),
                  "refreshed");
    cr_assert_str_eq(server_text(server, "HGET", CAPS, "caps_csv"), "cpu,gpu");
    cr_assert_str_eq(server_text(server, "HGET", CAPS, "lanes_csv"), "a");
    cr_assert_eq(server_integer(server, "PTTL", ALIVE), 5000);
    cr_assert_eq(server_integer(server, "SISMEMBER", INDEX, "i1"), 1);

    redisReply *worker = list(server, 1)->element[0];
    cr_assert_str_eq(map_text(worker, "instance"), "i1");
    cr_assert_str_eq(map_text(worker, "worker"), "w");
    cr_assert_str_eq(map_text(worker, "namespace"), "default");
    cr_assert_eq(map_value(worker, "lanes")->elements, 1);
    cr_assert_str_eq(map_value(worker, "capabilities")->element[1]->str, "gpu");
    cr_assert_eq(map_integer(worker, "expires_at"), FROZEN_START_MS + 5000);

    server_set_time(server, FROZEN_START_MS + 4000);
    reply = server_call(server, "FF.WORKER", "HEARTBEAT", "i1");
    expect_status(reply, "refreshed");
    cr_assert_eq(map_integer(reply, "ttl_ms"), 5000);
    worker = list(server, 1)->element[0];
    cr_assert_eq(map_integer(worker, "expires_at"), FROZEN_START_MS + 9000);
    cr_assert_eq(map_integer(worker, "last_heartbeat_at"), FROZEN_START_MS + 4000);
    server_set_time(server, FROZEN_START_MS + 9001);
    list(server, 0);
    reply = server_call(server, "FF.WORKER", "HEARTBEAT", "i1");
    expect_status(reply, "not_registered");
    cr_assert(map_is_null(reply, "ttl_ms"));
}

Test(native_worker, dead) {
    test_server *server = native_start();
    server_do(server, "FF.WORKER", "REGISTER", "w", "i1");
    server_do(server, "FF.WORKER", "REGISTER", "w", "i1", "NAMESPACE", "other");
    expect_status(server_call(server, "FF.WORKER", "DEAD", "i1"), "removed");
    expect_status(server_call(server, "FF.WORKER", "DEAD", "i1"), "not_registered");
    cr_assert_eq(server_integer(server, "EXISTS", ALIVE, CAPS, INDEX), 0);
    cr_assert_str_eq(map_text(list(server, 1)->element[0], "namespace"), "other");
    expect_status(server_call(server, "FF.WORKER", "HEARTBEAT", "i1"), "not_registered");
}

Test(native_worker, filters) {
    test_server *server = native_start();
    server_do(server, "FF.WORKER", "REGISTER", "w", "i1", "LANES", "1", "a");
    server_do(server, "FF.WORKER", "REGISTER", "w", "i2", "LANES", "2", "a", "b");
    server_do(server, "FF.WORKER", "REGISTER", "w", "i3", "NAMESPACE", "x", "LANES", "1", "b");
    cr_assert_eq(server_call(server, "FF.WORKER", "LIST", "LANE", "a")->elements, 2);
    cr_assert_eq(server_call(server, "FF.WORKER", "LIST", "LANE", "b", "NAMESPACE", "x")->elements,
                 1);
    cr_assert_eq(server_call(server, "FF.WORKER", "LIST", "NAMESPACE", "y")->elements, 0);
    resp3_connection *connection = resp3_connect(server);
    const resp3_value *all = resp3_call(connection, "FF.WORKER", "LIST");
    cr_assert(all->kind == '*' && all->count == 3 && all->items[0].kind == '%');
}

Test(native_worker, refusals) {
    test_server *server = native_start();
    native_refused(server, "ERR the worker must not be empty", "FF.WORKER", "REGISTER", "", "i");
    native_refused(server, "ERR the worker instance must not", "FF.WORKER", "REGISTER", "w", "");
    native_refused(server, "ERR the NAMESPACE of a worker", "FF.WORKER", "REGISTER", "w", "i",
                   "NAMESPACE", "a:b");
    native_refused(server, "ERR NAMESPACE", "FF.WORKER", "REGISTER", "w", "i", "NAMESPACE", "");
    native_refused(server, "ERR TTL", "FF.WORKER", "REGISTER", "w", "i", "TTL", "0");
    native_refused(server, "ERR TTL", "FF.WORKER", "REGISTER", "w", "i", "TTL", "1.5");
    native_refused(server, "ERR a lane of a worker", "FF.WORKER", "REGISTER", "w", "i", "LANES",
                   "1", "a,b");
    native_refused(server, "ERR LANES", "FF.WORKER", "REGISTER", "w", "i", "LANES", "2", "a");
    native_refused(server, "INVALID_CAPABILITIES", "FF.WORKER", "REGISTER", "w", "i", "CAPS",
                   "a,,b");
    native_refused(server, "ERR", "FF.WORKER", "HEARTBEAT", "i", "TTL", "1");
    native_refused(server, "ERR wrong number", "FF.WORKER", "DEAD");
    server_do(server, "SET", CAPS, "text");
    native_refused(server, "WRONGTYPE", "FF.WORKER", "REGISTER", "w", "i1");
    list(server, 0);
}

static void register_by_wire(test_server *server) {
    server_do(server, "FF.CALL", "ff_register_worker", "3", ALIVE, CAPS, INDEX, "i1", "w", "a,b",
              "gpu", "60000", "1767225600000");
}

/* Whoever writes the keys, the worker is known; and forgotten when they go. */
Test(native_worker, follows_the_keys) {
    test_server *server = native_start();
    register_by_wire(server);
    redisReply *worker = list(server, 1)->element[0];
    cr_assert_eq(map_value(worker, "lanes")->elements, 2);
    cr_assert_eq(map_integer(worker, "expires_at"), FROZEN_START_MS + 60000);
    server_do(server, "HSET", CAPS, "caps_csv", "gpu,x");
    cr_assert_eq(map_value(list(server, 1)->element[0], "capabilities")->elements, 2);
    server_do(server, "PEXPIRE", CAPS, "1000");
    cr_assert_eq(map_integer(list(server, 1)->element[0], "expires_at"), FROZEN_START_MS + 1000);
    server_do(server, "DEL", CAPS);
    list(server, 0);
    register_by_wire(server);
    server_do(server, "FLUSHALL");
    list(server, 0);
}

/* A claim is a sign of life as well, for a minute. */
Test(native_worker, claims_count) {
    test_server *server = native_start();
    server_do(server, "FF.CLAIM", "default", "w", "i9", "CAPS", "b,a");
    redisReply *worker = list(server, 1)->element[0];
    cr_assert_str_eq(map_text(worker, "instance"), "i9");
    cr_assert(map_is_null(worker, "namespace"), "it takes work of any");
    cr_assert(map_is_null(worker, "registered_at"));
    cr_assert_eq(map_value(worker, "capabilities")->elements, 2);
    cr_assert_eq(map_integer(worker, "expires_at"), FROZEN_START_MS + 60000);
    expect_status(server_call(server, "FF.WORKER", "HEARTBEAT", "i9"), "not_registered");
    server_set_time(server, FROZEN_START_MS + 60001);
    list(server, 0);
}

/* An execution that was parked for want of a capable worker comes back when one registers or
 * claims. */
Test(native_worker, unblocks_by_capability) {
    for (int claims = 0; claims < 2; claims++) {
        test_server *server = native_start();
        server_do(server, "FF.CREATE", native_id(1), "default", "job", "CAPS", "gpu");
        cr_assert_eq(server_call(server, "FF.CLAIM", "default", "w", "i1")->elements, 0);
        cr_assert(native_in(server, native_lane("blocked:route"), 1));
        server_do(server, "FF.SCANNER", "RUN", "unblock");
        cr_assert(native_in(server, native_lane("blocked:route"), 1));
        if (claims) {
            server_do(server, "FF.CLAIM", "default", "w", "i2", "CAPS", "gpu");
        } else {
            server_do(server, "FF.WORKER", "REGISTER", "w", "i2", "CAPS", "gpu");
        }
        server_do(server, "FF.SCANNER", "RUN", "unblock");
        cr_assert(native_in(server, native_lane("eligible"), 1));
    }
}

/* Hundreds of workers come and go; only the living are kept in mind. */
Test(native_worker, many) {
    test_server *server = native_start();
    for (int i = 0; i < 500; i++) {
        server_do(server, "FF.WORKER", "REGISTER", "w", spell("i%03d", i), "TTL", "1000");
    }
    list(server, 500);
    server_set_time(server, FROZEN_START_MS + 1001);
    for (int i = 0; i < 1000; i++) {
        server_do(server, "FF.WORKER", "REGISTER", "w", spell("j%03d", i), "TTL", "1000");
    }
    list(server, 1000);
}

Test(native_worker, survives_restarts) {
    for (int append_only = 0; append_only < 2; append_only++) {
        test_server *server = server_start(&(server_options){.append_only = append_only});
        server_do(server, "FF.WORKER", "REGISTER", "w", "i1", "CAPS", "gpu", "TTL", "100000");
        int64_t expires = map_integer(list(server, 1)->element[0], "expires_at");
        server_restart(server, true);
        redisReply *worker = list(server, 1)->element[0];
        cr_assert_eq(map_integer(worker, "expires_at"), expires);
        cr_assert_str_eq(map_value(worker, "capabilities")->element[0]->str, "gpu");
        server_stop(server);
    }
}

Test(native_worker, replicas) {
    test_server *server = native_start();
    server_do(server, "FF.WORKER", "REGISTER", "w", "i1", "CAPS", "gpu");
    test_server *replica = server_start_replica(server, NULL);
    list(replica, 1);
    server_do(server, "FF.WORKER", "REGISTER", "w", "i2");
    server_do(server, "FF.WORKER", "HEARTBEAT", "i1");
    server_do(server, "FF.SECRET", "ROTATE", "k2", "aabb");
    server_expect_same_data(server, replica);
    list(replica, 2);
    server_do(server, "FF.WORKER", "DEAD", "i1");
    server_expect_same_data(server, replica);
    list(replica, 1);
    cr_assert_eq(server_call(replica, "FF.SECRET", "LIST")->elements, 2);
    server_expect_error(replica, "READONLY", "FF.WORKER", "REGISTER", "w", "i3");
    server_expect_error(replica, "READONLY", "FF.SECRET", "ROTATE", "k3", "00");
}

/* A worker is known where it registered, whichever nodes its keys belong to. */
Test(native_worker, in_a_cluster) {
    test_server *nodes[2];
    server_start_cluster(nodes, 2, &(server_options){0});
    for (int i = 0; i < 12; i++) {
        const char *instance = spell("i%d", i);
        expect_status(server_call(nodes[0], "FF.WORKER", "REGISTER", "w", instance, "CAPS", "gpu"),
                      "registered");
        expect_status(server_call(nodes[0], "FF.WORKER", "REGISTER", "w", instance, "CAPS", "gpu"),
                      "refreshed");
        expect_status(server_call(nodes[0], "FF.WORKER", "HEARTBEAT", instance), "refreshed");
    }
    list(nodes[0], 12);
    list(nodes[1], 0);
    int64_t keys = server_integer(nodes[0], "DBSIZE");
    cr_assert(keys > 0 && keys < 25, "only the keys whose slot is here are written");
    cr_assert_eq(server_integer(nodes[1], "DBSIZE"), 0);
    for (int i = 0; i < 12; i++) {
        expect_status(server_call(nodes[0], "FF.WORKER", "DEAD", spell("i%d", i)), "removed");
    }
    list(nodes[0], 0);
    cr_assert_eq(server_integer(nodes[0], "DBSIZE"), 0);
}

/* ---- Secrets ---- */

Test(native_secret, rotate_and_list) {
    test_server *server = native_start(); /* which has a secret on one partition */
    redisReply *states = server_call(server, "FF.SECRET", "LIST");
    cr_assert_eq(states->elements, 2);
    cr_assert(map_is_null(states->element[0], "current_kid"));
    cr_assert_eq(map_integer(states->element[0], "partitions"), 255);
    redisReply *reply = server_call(server, "FF.SECRET", "ROTATE", "k2", "aabb", "GRACE", "1000");
    expect_status(reply, "rotated");
    cr_assert_str_eq(map_text(reply, "previous_kid"), "k1");
    cr_assert_eq(map_integer(reply, "partitions"), 256);
    cr_assert_eq(map_integer(reply, "rotated"), 256);
    cr_assert_str_eq(server_text(server, "HGET", SECRET_KEY, "current_kid"), "k2");
    cr_assert_str_eq(server_text(server, "HGET", "ff:sec:{fp:255}:waitpoint_hmac", "secret:k2"),
                     "aabb");
    reply = server_call(server, "FF.SECRET", "ROTATE", "k2", "aabb");
    expect_status(reply, "noop");
    cr_assert_eq(map_integer(reply, "rotated"), 0);
    states = server_call(server, "FF.SECRET", "LIST");
    redisReply *verifying = map_value(states->element[1], "verifying");
    cr_assert_str_eq(map_text(verifying->element[0], "kid"), "k1");
    cr_assert_eq(map_integer(verifying->element[0], "expires_at"), FROZEN_START_MS + 1000);
    server_set_time(server, FROZEN_START_MS + 1001);
    states = server_call(server, "FF.SECRET", "LIST");
    cr_assert_eq(states->elements, 1, "all partitions agree once the old one is over");
    cr_assert_eq(map_integer(states->element[0], "partitions"), 256);
    native_refused(server, "ROTATION_CONFLICT", "FF.SECRET", "ROTATE", "k2", "ccdd");
    native_refused(server, "INVALID_KID", "FF.SECRET", "ROTATE", "k:2", "ccdd");
    native_refused(server, "INVALID_KID", "FF.SECRET", "ROTATE", "", "ccdd");
    native_refused(server, "INVALID_SECRET_HEX", "FF.SECRET", "ROTATE", "k3", "abc");
    native_refused(server, "ERR GRACE", "FF.SECRET", "ROTATE", "k3", "ab", "GRACE", "-1");
    native_refused(server, "ERR", "FF.SECRET", "ROTATE", "k3", "ab", "TTL", "1");
}

/* One partition that cannot follow keeps all others back. */
Test(native_secret, all_or_nothing) {
    test_server *server = native_start();
    server_do(server, "HSET", "ff:sec:{fp:200}:waitpoint_hmac", "current_kid", "k2", "secret:k2",
              "ff");
    native_refused(server, "ROTATION_CONFLICT", "FF.SECRET", "ROTATE", "k2", "aabb");
    server_do(server, "DEL", "ff:sec:{fp:200}:waitpoint_hmac");
    server_do(server, "SET", "ff:sec:{fp:200}:waitpoint_hmac", "text");
    native_refused(server, "WRONGTYPE", "FF.SECRET", "ROTATE", "k2", "aabb");
}

Test(native_secret, is_not_shown) {
    test_server *server = native_start();
    server_do(server, "CONFIG", "SET", "slowlog-log-slower-than", "0");
    server_do(server, "FF.SECRET", "ROTATE", "k2", "aabbccdd");
    redisReply *log = server_call(server, "SLOWLOG", "GET", "1");
    redisReply *words = log->element[0]->element[3];
    cr_assert_str_eq(words->element[0]->str, "FF.SECRET");
    for (size_t i = 0; i < words->elements; i++) {
        cr_assert_neq(strcmp(words->element[i]->str, "aabbccdd"), 0);
    }
}

Test(native_secret, in_a_cluster) {
    test_server *nodes[2];
    server_start_cluster(nodes, 2, &(server_options){0});
    int64_t total = 0;
    for (int i = 0; i < 2; i++) {
        redisReply *reply = server_call(nodes[i], "FF.SECRET", "ROTATE", "k1", "aabb");
        total += map_integer(reply, "rotated");
        cr_assert_eq(server_integer(nodes[i], "DBSIZE"), map_integer(reply, "rotated"));
    }
    cr_assert_eq(total, 256);
}
