/* The native commands about one execution among the server's own mechanisms: introspection,
 * ACLs, transactions, replicas, clusters, bad input. */
#include "native.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum role { READER, WORKER, OPERATOR };

/* A call of every command that gets as far as looking for its execution, and what it is to whom. */
typedef struct sample {
    const char *name; /* as the server has it */
    enum role role;   /* the least that may use it */
    bool finds;       /* refuses with NOT_FOUND when there is no such execution */
    const char *words[20];
} sample;

#define ID FP ":f10f0001-0000-4000-8000-000000000404"

static const sample samples[] = {
    {"ff.create", WORKER, false, {"FF.CREATE", ID, "default", "job"}},
    {"ff.renew", WORKER, true, {"FF.RENEW", ID, "l", "1", "a"}},
    {"ff.progress", WORKER, true, {"FF.PROGRESS", ID, "l", "1"}},
    {"ff.complete", WORKER, true, {"FF.COMPLETE", ID, "l", "1", "a"}},
    {"ff.fail", WORKER, true, {"FF.FAIL", ID, "l", "1", "a", "why"}},
    {"ff.delay", WORKER, true, {"FF.DELAY", ID, "l", "1", "a", "FOR", "5"}},
    {"ff.waitchildren", WORKER, true, {"FF.WAITCHILDREN", ID, "l", "1", "a"}},
    {"ff.cancel", WORKER, true, {"FF.CANCEL", ID, "why"}},
    {"ff.suspend",
     WORKER,
     true,
     {"FF.SUSPEND", ID, "l", "1", "a", "REASON", "r", "CONDITION", "{}"}},
    {"ff.signal", WORKER, true, {"FF.SIGNAL", ID, "w", "go", "TOKEN", "t"}},
    {"ff.resume", WORKER, true, {"FF.RESUME", ID}},
    {"ff.waitpoint|create", WORKER, true, {"FF.WAITPOINT", "CREATE", ID, "l", "1", "a"}},
    {"ff.waitpoint|close", WORKER, true, {"FF.WAITPOINT", "CLOSE", ID, "w"}},
    {"ff.waitpoint|list", READER, true, {"FF.WAITPOINT", "LIST", ID}},
    {"ff.waitpoint|token", READER, true, {"FF.WAITPOINT", "TOKEN", ID, "w"}},
    {"ff.priority", WORKER, true, {"FF.PRIORITY", ID, "5"}},
    {"ff.tag", WORKER, true, {"FF.TAG", ID, "1", "a.b", "c"}},
    {"ff.replay", WORKER, true, {"FF.REPLAY", ID}},
    {"ff.append", WORKER, true, {"FF.APPEND", ID, "0", "l", "1", "log", "x"}},
    {"ff.read", READER, true, {"FF.READ", ID, "0"}},
    {"ff.summary", READER, true, {"FF.SUMMARY", ID, "0"}},
    {"ff.get", READER, true, {"FF.GET", ID}},
    {"ff.list", READER, false, {"FF.LIST", "PARTITION", FP}},
    {"ff.revoke", OPERATOR, true, {"FF.REVOKE", ID, "why"}},
    {"ff.expire", OPERATOR, true, {"FF.EXPIRE", ID, "why"}},
    {"ff.block", OPERATOR, true, {"FF.BLOCK", ID, "operator", "why"}},
    {"ff.unblock", OPERATOR, true, {"FF.UNBLOCK", ID}},
};

enum { SAMPLES = sizeof samples / sizeof *samples };

static size_t words_of(const sample *s) {
    size_t count = 0;
    while (s->words[count]) count++;
    return count;
}

Test(native_surroundings, keys) {
    test_server *server = native_start();
    for (size_t i = 0; i < SAMPLES; i++) {
        const sample *s = &samples[i];
        const char *words[24] = {"COMMAND", "GETKEYS"};
        memcpy(words + 2, s->words, words_of(s) * sizeof *words);
        redisReply *keys = server_call_words(server, words);
        cr_assert_eq(keys->type, REDIS_REPLY_ARRAY, "%s: %s", s->name, keys->str);
        cr_assert_eq(keys->elements, 1, "%s", s->name);
        const char *wanted = strcmp(s->name, "ff.list") == 0 ? FP : ID;
        cr_assert_str_eq(keys->element[0]->str, wanted, "%s", s->name);
    }
    redisReply *keys = server_call(server, "COMMAND", "GETKEYS", "FF.CREATE", "*", "l", "k",
                                   "PAYLOAD", "FLOW", "FLOW", FP ":x");
    cr_assert_eq(keys->elements, 1);
    cr_assert_str_eq(keys->element[0]->str, FP ":x");
    /* What names no slot is no key. */
    cr_assert_eq(server_call(server, "COMMAND", "GETKEYS", "FF.CREATE", "*", "l", "k")->type,
                 REDIS_REPLY_ERROR);
    cr_assert_eq(server_call(server, "COMMAND", "GETKEYS", "FF.LIST")->type, REDIS_REPLY_ERROR);
}

static bool may(redisContext *connection, const sample *s) {
    redisReply *reply = connection_call_words(connection, s->words);
    return !(reply->type == REDIS_REPLY_ERROR && strncmp(reply->str, "NOPERM", 6) == 0);
}

static redisContext *log_in(test_server *server, const char *name) {
    redisContext *connection = server_connect(server);
    redisReply *reply = connection_call(connection, "AUTH", name, "secret");
    cr_assert_neq(reply->type, REDIS_REPLY_ERROR, "%s", reply->str);
    return connection;
}

Test(native_surroundings, users) {
    test_server *server = native_start();
    server_do(server, "ACL", "SETUSER", "reader", "on", ">secret", "~{fp:*", "-@all",
              "+@flowfabric", "-@write", "-@dangerous");
    server_do(server, "ACL", "SETUSER", "worker", "on", ">secret", "~{fp:*", "-@all",
              "+@flowfabric", "-@admin");
    server_do(server, "ACL", "SETUSER", "operator", "on", ">secret", "~{fp:*", "-@all",
              "+@flowfabric");
    redisContext *users[] = {log_in(server, "reader"), log_in(server, "worker"),
                             log_in(server, "operator")};
    for (size_t i = 0; i < SAMPLES; i++) {
        for (enum role role = READER; role <= OPERATOR; role++) {
            cr_assert_eq(may(users[role], &samples[i]), role >= samples[i].role, "%s as %d",
                         samples[i].name, (int)role);
        }
    }
    /* Keys are matched: one of another partition is refused, `*` names none. */
    server_do(server, "ACL", "SETUSER", "narrow", "on", ">secret", "~{fp:7}*", "+@flowfabric");
    redisContext *narrow = log_in(server, "narrow");
    redisReply *reply =
        connection_call(narrow, "FF.GET", "{fp:8}:f10f0001-0000-4000-8000-000000000404");
    cr_assert_eq(strncmp(reply->str, "NOPERM", 6), 0, "%s", reply->str);
    reply = connection_call(narrow, "FF.CREATE", "*", "l", "k");
    cr_assert_eq(reply->type, REDIS_REPLY_ARRAY, "%s", reply->str);
    reply = connection_call(narrow, "FF.CREATE", "*", "l", "k", "FLOW", "{fp:8}:x");
    cr_assert_eq(strncmp(reply->str, "NOPERM", 6), 0, "%s", reply->str);
}

Test(native_surroundings, missing_executions) {
    test_server *server = native_start();
    for (size_t i = 0; i < SAMPLES; i++) {
        if (samples[i].finds) native_refused_words(server, "NOT_FOUND ", samples[i].words);
    }
}

/* Every command with an id that is none, too few words, too many, and an unknown option. */
Test(native_surroundings, bad_input) {
    static const char *const ids[] = {
        "",
        "*",
        "x",
        "{fp:7}",
        "{fp:7}:",
        "{fp:07}:f10f0001-0000-4000-8000-000000000404",
        "{fp:256}:f10f0001-0000-4000-8000-000000000404",
        "{fp:99999}:f10f0001-0000-4000-8000-000000000404",
        "{b:1}:f10f0001-0000-4000-8000-000000000404",
        "{fp:7}:f10f0001-0000-4000-8000-00000000040",
        "{fp:7}:f10f0001-0000-4000-8000-0000000004041",
        "{fp:7}:g10f0001-0000-4000-8000-000000000404",
        "f10f0001-0000-4000-8000-000000000404",
        "{fp:7}:f10f0001-0000-4000-8000-000000000404\r\nPING",
    };
    test_server *server = native_start();
    for (size_t i = 0; i < SAMPLES; i++) {
        const sample *s = &samples[i];
        size_t count = words_of(s);
        size_t at = s->words[1][0] == '{' ? 1 : 2;
        const char *words[24];
        memcpy(words, s->words, sizeof s->words);
        for (size_t j = 0; s->finds && j < sizeof ids / sizeof *ids; j++) {
            /* A partition and `*` have a meaning of their own here. */
            if (strcmp(s->name, "ff.unblock") == 0 && (j == 1 || j == 3)) continue;
            words[at] = ids[j];
            native_refused_words(server, "ERR '", words);
        }
        memcpy(words, s->words, sizeof s->words);
        words[count] = "SURPLUS";
        words[count + 1] = NULL;
        native_refused_words(server, "ERR ", words);
        if (strcmp(s->name, "ff.list") == 0) continue;
        memcpy(words, s->words, sizeof s->words);
        words[count - 1] = NULL;
        native_refused_words(server, "ERR ", words);
    }
}

/* Bytes of any kind in every place: refused without a trace, or accepted; the server lives. */
Test(native_surroundings, odd_words) {
    static const char *const odd[] = {"",      " ",     "\xff\xfe",   "%s%n", "-1",
                                      "1e400", "nan",   "{",          "[]",   "9223372036854775808",
                                      "null",  "CLAIM", "\r\n+OK\r\n"};
    test_server *server = native_start();
    for (size_t i = 0; i < SAMPLES; i++) {
        size_t count = words_of(&samples[i]);
        for (size_t j = 1; j < count; j++) {
            for (size_t k = 0; k < sizeof odd / sizeof *odd; k++) {
                const char *words[24];
                memcpy(words, samples[i].words, sizeof samples[i].words);
                words[j] = odd[k];
                server_call_words(server, words);
            }
        }
    }
    cr_assert_str_eq(server_text(server, "PING"), "PONG");
}

static char *repeat(const char *piece, size_t times) {
    size_t length = strlen(piece);
    char *repeated = malloc(length * times + 1);
    for (size_t i = 0; i < times; i++) memcpy(repeated + i * length, piece, length);
    repeated[length * times] = '\0';
    return server_keep(repeated);
}

Test(native_surroundings, large_values) {
    test_server *server = native_start();
    const char *deep = repeat("[", 10000);
    native_refused(server, "INVALID_POLICY_JSON ", "FF.CREATE", native_id(1), "default", "job",
                   "POLICY", deep);
    const char *nested = spell("%s%s", deep, repeat("]", 10000));
    native_refused(server, "INVALID_POLICY_JSON ", "FF.CREATE", native_id(1), "default", "job",
                   "POLICY", nested);
    native_refused(server, "INVALID_CAPABILITIES ", "FF.CREATE", native_id(1), "default", "job",
                   "CAPS", repeat("a,", 1000000));
    const char *big = repeat("0123456789abcdef", 4 * 1024 * 1024);
    server_do(server, "FF.CREATE", native_id(2), "default", "job", "PAYLOAD", big);
    cr_assert_eq(server_integer(server, "STRLEN", native_key(2, "payload")), 64 * 1024 * 1024);
    held h = native_claim_next(server);
    native_refused(server, "ERR CONDITION must be a JSON object", "FF.SUSPEND", FENCE(h), "REASON",
                   "r", "CONDITION", nested);
    native_refused(server, "ERR RETRY must be", "FF.FAIL", FENCE(h), "why", "RETRY", nested);
    native_refused(server, "RETENTION_LIMIT_EXCEEDED ", "FF.APPEND", h.id, "0", h.lease, h.epoch,
                   "log", big);
    server_do(server, "FF.COMPLETE", FENCE(h), "RESULT", big);
    cr_assert_eq(server_integer(server, "STRLEN", native_key(2, "result")), 64 * 1024 * 1024);
}

/* One life with everything in it. */
static void live(test_server *server) {
    held h = native_claim(server, 1);
    server_do(server, "FF.TAG", h.id, "1", "a.b", "c");
    server_do(server, "FF.PROGRESS", h.id, h.lease, h.epoch, "PCT", "5");
    server_do(server, "FF.APPEND", h.id, "0", h.lease, h.epoch, "log", "x");
    server_do(server, "FF.APPEND", h.id, "0", h.lease, h.epoch, "log", "{\"a\":1}", "MODE",
              "summary");
    server_do(server, "FF.RENEW", FENCE(h));
    redisReply *reply =
        server_call(server, "FF.SUSPEND", FENCE(h), "REASON", "r", "CONDITION", "{}", "TIMEOUT",
                    "5000", "fail", "NUM_EXTRA_WAITPOINTS", "1", "k", "IDEMPOTENCY_KEY", "i");
    redisReply *door = map_value(reply, "waitpoints")->element[0];
    server_do(server, "FF.SIGNAL", h.id, map_text(door, "waitpoint_id"), "go", "TOKEN",
              map_text(door, "token"), "PAYLOAD", "p", "IDEMPOTENT", "s");
    h = native_claim_next(server);
    server_do(server, "FF.DELAY", FENCE(h), "FOR", "10");
    server_do(server, "FF.BLOCK", h.id, "operator", "x");
    server_do(server, "FF.UNBLOCK", h.id);
    server_do(server, "FF.PRIORITY", h.id, "9");
    h = native_claim_next(server);
    server_do(server, "FF.REVOKE", h.id, "why");
    h = native_claim_next(server);
    server_do(server, "FF.FAIL", FENCE(h), "why");
    server_do(server, "FF.REPLAY", h.id);
    h = native_claim_next(server);
    reply = server_call(server, "FF.WAITPOINT", "CREATE", FENCE(h));
    server_do(server, "FF.WAITPOINT", "CLOSE", h.id, map_text(reply, "waitpoint_id"));
    server_do(server, "FF.SUSPEND", FENCE(h), "REASON", "r", "CONDITION", "{}");
    server_do(server, "FF.RESUME", h.id, "DELAY", "100");
    server_do(server, "FF.CANCEL", h.id, "why");
    h = native_claim(server, 2);
    native_create(server, 3);
    server_do(server, "FF.COMPLETE", FENCE(h), "RESULT", "r", "CLAIM", "default", "w", "wi");
    server_do(server, "FF.EXPIRE", native_id(3), "why");
    h = native_claim(server, 4);
    server_do(server, "FF.WAITCHILDREN", FENCE(h));
}

Test(native_surroundings, replicas) {
    test_server *primary = native_start();
    test_server *replica = server_start_replica(primary, NULL);
    live(primary);
    server_expect_same_data(primary, replica);
    for (size_t i = 0; i < SAMPLES; i++) {
        redisReply *reply = server_call_words(replica, samples[i].words);
        bool refused = reply->type == REDIS_REPLY_ERROR && strncmp(reply->str, "READONLY", 8) == 0;
        cr_assert_eq(refused, samples[i].role != READER, "%s: %s", samples[i].name, reply->str);
    }
    redisReply *reply = server_call(replica, "FF.GET", native_id(1), "WITH", "attempts,history");
    cr_assert_str_eq(map_text(reply, "state"), "cancelled");
    cr_assert_eq(map_value(server_call(replica, "FF.LIST"), "executions")->elements, 4);

    /* A reader that waits at a replica is woken by what arrives from the primary. */
    held h = native_claim(primary, 5);
    server_expect_same_data(primary, replica);
    redisContext *reader = native_send(replica, "FF.READ", h.id, "0", "BLOCK", "0");
    native_expect_blocked(replica, 1);
    server_do(primary, "FF.APPEND", h.id, "0", h.lease, h.epoch, "log", "x");
    cr_assert_eq(map_value(native_receive(reader), "entries")->elements, 1);
    reader = native_send(replica, "FF.READ", h.id, "0", "FROM", "$", "BLOCK", "0");
    native_expect_blocked(replica, 1);
    server_do(primary, "FF.COMPLETE", FENCE(h));
    cr_assert(!map_is_null(native_receive(reader), "closed_at"));
}

Test(native_surroundings, a_replica_without_the_module) {
    test_server *primary = native_start();
    test_server *replica = server_start_replica(primary, &(server_options){.without_module = true});
    live(primary);
    server_expect_same_data(primary, replica);
}

Test(native_surroundings, append_only_file) {
    test_server *server =
        server_start(&(server_options){.frozen_clock = true, .append_only = true});
    server_do(server, "HSET", SECRET_KEY, "current_kid", "k1", "secret:k1", "00");
    live(server);
    const char *before = server_digest(server);
    server_restart(server, false);
    cr_assert_str_eq(server_digest(server), before);
}

Test(native_surroundings, transactions) {
    test_server *server = native_start();
    held h = native_claim(server, 1);
    server_do(server, "MULTI");
    server_call(server, "FF.PROGRESS", h.id, h.lease, h.epoch, "PCT", "7");
    server_call(server, "FF.RENEW", h.id, "other", h.epoch, h.attempt);
    server_call(server, "FF.GET", h.id, "FIELDS", "1", "progress_pct");
    server_call(server, "FF.COMPLETE", FENCE(h), "CLAIM", "default", "w", "wi", "BLOCK", "0");
    redisReply *replies = server_call(server, "EXEC");
    cr_assert_eq(replies->elements, 4);
    cr_assert_eq(replies->element[1]->type, REDIS_REPLY_ERROR);
    cr_assert_eq(map_integer(replies->element[2], "progress_pct"), 7);
    cr_assert_str_eq(map_text(replies->element[3], "state"), "completed");
    redisReply *reply =
        server_call(server, "EVAL", "return server.call('FF.CREATE', KEYS[1], 'default', 'job')",
                    "1", native_id(2));
    cr_assert_eq(map_integer(reply, "created"), 1);
}

Test(native_surroundings, a_full_memory_refuses_writes) {
    test_server *server = native_start();
    native_create(server, 1);
    server_do(server, "CONFIG", "SET", "maxmemory", "1");
    native_refused(server, "OOM ", "FF.CREATE", native_id(2), "default", "job");
    cr_assert_neq(server_call(server, "FF.GET", native_id(1))->type, REDIS_REPLY_ERROR);
}

Test(native_surroundings, cluster) {
    enum { NODES = 3 };
    test_server *nodes[NODES];
    server_start_cluster(nodes, NODES, NULL);
    test_server *home = server_of_key(nodes, NODES, FP);
    server_do(home, "FF.CREATE", native_id(1), "default", "job");
    for (size_t i = 0; i < NODES; i++) {
        redisReply *reply = server_call(nodes[i], "FF.GET", native_id(1));
        if (nodes[i] == home) {
            cr_assert_eq(reply->type, REDIS_REPLY_ARRAY, "%s", reply->str);
        } else {
            cr_assert_eq(strncmp(reply->str, "MOVED ", 6), 0, "%s", reply->str);
        }
        for (int j = 0; j < 20; j++) {
            reply = server_call(nodes[i], "FF.CREATE", "*", "default", "job");
            cr_assert_eq(reply->type, REDIS_REPLY_ARRAY, "%s", reply->str);
            cr_assert(server_of_key(nodes, NODES, map_text(reply, "execution_id")) == nodes[i]);
        }
        redisReply *page = server_call(nodes[i], "FF.LIST", "COUNT", "1000");
        cr_assert_eq(map_value(page, "executions")->elements, nodes[i] == home ? 21 : 20);
        server_do(nodes[i], "MULTI");
        server_call(nodes[i], "FF.CREATE", "*", "default", "job");
        server_call(nodes[i], "FF.LIST");
        redisReply *replies = server_call(nodes[i], "EXEC");
        cr_assert_eq(replies->element[0]->type, REDIS_REPLY_ERROR);
        cr_assert_eq(replies->element[1]->type, REDIS_REPLY_ERROR);
    }
    /* An idempotency key has one home, and the others name it. */
    size_t created = 0;
    for (size_t i = 0; i < NODES; i++) {
        redisReply *reply =
            server_call(nodes[i], "FF.CREATE", "*", "default", "job", "IDEMPOTENT", "k", "60000");
        if (reply->type == REDIS_REPLY_ARRAY) {
            created++;
        } else {
            cr_assert(strstr(reply->str, "use {fp:"), "%s", reply->str);
        }
    }
    cr_assert_eq(created, 1);
    redisReply *reply = server_call(home, "FF.CREATE", native_id(2), "default", "job", "BUDGETS",
                                    "1", "b1000001-0000-4000-8000-000000000011");
    cr_assert(strstr(reply->str, "use {b:3}:b1000001"), "%s", reply->str);
}

/* Finish this and take the next, in a cluster: two steps, one reply. */
Test(native_surroundings, complete_and_claim_in_a_cluster) {
    test_server *nodes[3];
    server_start_cluster(nodes, 3, NULL);
    test_server *home = server_of_key(nodes, 3, FP);
    held h = native_claim(home, 1);
    redisReply *other = server_call(home, "FF.CREATE", "*", "default", "job");
    redisReply *reply = server_call(home, "FF.COMPLETE", FENCE(h), "CLAIM", "default", "w", "wi");
    cr_assert_str_eq(map_text(reply, "state"), "completed");
    redisReply *claimed = map_value(reply, "claimed");
    cr_assert_eq(claimed->elements, 1);
    cr_assert_str_eq(map_text(claimed->element[0], "execution_id"),
                     map_text(other, "execution_id"));
    held last = native_claim(home, 2);
    server_do(home, "MULTI");
    server_call(home, "FF.COMPLETE", FENCE(last), "CLAIM", "default", "w", "wi");
    redisReply *replies = server_call(home, "EXEC");
    cr_assert_eq(replies->element[0]->type, REDIS_REPLY_ERROR);
    native_field(home, 2, "public_state", "active");
}
