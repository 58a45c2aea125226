#include "cluster.h"
#include "native.h"

#include <criterion/criterion.h>
#include <string.h>

void cluster_start(test_server **nodes, const char *config) {
    server_start_cluster(nodes, CLUSTER_NODES, &(server_options){.config = config});
}

const char *cluster_tag(test_server **nodes, const test_server *node, const char *family,
                        int from) {
    for (int number = from;; number++) {
        const char *tag = spell("{%s:%d}", family, number);
        if (server_of_key(nodes, CLUSTER_NODES, tag) == node) return tag;
    }
}

const char *cluster_id(const char *tag, int number) {
    return spell("%s:f10f0001-0000-4000-8000-%012d", tag, number);
}

const char *cluster_lane(const char *tag, const char *suffix) {
    return spell("ff:idx:%s:lane:default:%s", tag, suffix);
}

const char *cluster_core(const char *id) {
    int tag = (int)(strchr(id, '}') + 1 - id);
    return spell("ff:exec:%.*s:%s:core", tag, id, id);
}

bool cluster_has(test_server *server, const char *key, const char *member) {
    redisReply *score = server_call(server, "ZSCORE", key, member);
    cr_assert_neq(score->type, REDIS_REPLY_ERROR, "%s", score->str);
    return score->type != REDIS_REPLY_NIL;
}

static const char *slot_of(test_server *server, const char *tag) {
    return spell("%lld", (long long)server_integer(server, "CLUSTER", "KEYSLOT", tag));
}

void cluster_begin_move(test_server *from, test_server *to, const char *tag) {
    const char *slot = slot_of(from, tag);
    server_do(to, "CLUSTER", "SETSLOT", slot, "IMPORTING", server_text(from, "CLUSTER", "MYID"));
    server_do(from, "CLUSTER", "SETSLOT", slot, "MIGRATING", server_text(to, "CLUSTER", "MYID"));
}

static void move_keys(test_server *from, test_server *to, const char *slot) {
    const char *port = spell("%d", server_port(to));
    redisReply *keys = server_call(from, "CLUSTER", "GETKEYSINSLOT", slot, "1000");
    for (size_t i = 0; i < keys->elements; i++) {
        server_do(from, "MIGRATE", "127.0.0.1", port, keys->element[i]->str, "0", "5000");
    }
}

void cluster_end_move(test_server *from, test_server *to, const char *tag, bool moved) {
    const char *slot = slot_of(from, tag);
    if (!moved) {
        server_do(from, "CLUSTER", "SETSLOT", slot, "STABLE");
        server_do(to, "CLUSTER", "SETSLOT", slot, "STABLE");
        return;
    }
    const char *owner = server_text(to, "CLUSTER", "MYID");
    move_keys(from, to, slot);
    server_do(to, "CLUSTER", "SETSLOT", slot, "NODE", owner);
    server_do(from, "CLUSTER", "SETSLOT", slot, "NODE", owner);
}
