/* FF.FLOW: building flows step by step and from a document, cancelling, looking at them. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "native.h"

#define FLOW_KEY(reference, suffix) spell("ff:flow:" FP ":%s:%s", (reference) + sizeof FP, suffix)

/* Submits a document to partition 7; the reply is kept. */
static redisReply *submit(test_server *server, const char *document) {
    redisReply *reply = server_call(server, "FF.FLOW", "SUBMIT", FP, document);
    cr_assert_eq(reply->type, REDIS_REPLY_ARRAY, "%s", reply->str);
    return reply;
}

static const char *submitted(const redisReply *reply, const char *name) {
    return map_text(map_value(reply, "members"), name);
}

static const char *exec_key(const char *id, const char *suffix) {
    return spell("ff:exec:" FP ":%s:%s", id, suffix);
}

static void expect_state(test_server *server, const char *id, const char *state) {
    const char *is = server_text(server, "HGET", exec_key(id, "core"), "public_state");
    cr_assert_str_eq(is, state, "%s is %s instead of %s", id, is, state);
}

static void complete_next(test_server *server, const char *expected) {
    held h = native_claim_next(server);
    if (expected) cr_assert_str_eq(h.id, expected);
    server_do(server, "FF.COMPLETE", FENCE(h));
}

static void expect_nothing_to_claim(test_server *server) {
    cr_assert_eq(server_call(server, "FF.CLAIM", "default", "w", "wi")->elements, 0);
}

static const char *create_flow(test_server *server) {
    redisReply *reply = server_call(server, "FF.FLOW", "CREATE", FP, "order");
    return map_text(reply, "flow");
}

/* A reference in partition 7 that nobody has used. */
static const char *missing_flow(void) { return FP ":f10f0001-0000-4000-8000-000000000086"; }

/* A flow with executions 1..count as members. */
static const char *create_members(test_server *server, int count) {
    const char *flow = create_flow(server);
    for (int i = 1; i <= count; i++) {
        native_create(server, i);
        server_do(server, "FF.FLOW", "ADD", flow, native_id(i));
    }
    return flow;
}

/* ---- SUBMIT ---- */

#define DIAMOND \
    "{\"kind\":\"order\",\"namespace\":\"shop\",\"tags\":{\"app.team\":\"blue\"},\"members\":[" \
    "{\"name\":\"a\",\"kind\":\"reserve\"}," \
    "{\"name\":\"b\",\"kind\":\"charge\",\"after\":[\"a\"]}," \
    "{\"name\":\"c\",\"kind\":\"pack\",\"after\":[\"a\"]}," \
    "{\"name\":\"d\",\"kind\":\"ship\",\"after\":[\"b\",\"c\"]}]}"

Test(native_submit, diamond) {
    test_server *server = native_start();
    redisReply *reply = submit(server, DIAMOND);
    const char *flow = map_text(reply, "flow");
    const char *d = submitted(reply, "d");
    expect_state(server, submitted(reply, "a"), "waiting");
    expect_state(server, submitted(reply, "b"), "waiting_children");
    expect_state(server, d, "waiting_children");
    cr_assert_eq(server_integer(server, "ZCARD", native_lane("eligible")), 1);
    cr_assert_eq(server_integer(server, "ZCARD", native_lane("blocked:dependencies")), 3);
    cr_assert_eq(server_integer(server, "SCARD", FLOW_KEY(flow, "members")), 4);
    cr_assert_str_eq(server_text(server, "HGET", FLOW_KEY(flow, "tags"), "app.team"), "blue");
    cr_assert_str_eq(server_text(server, "HGET", exec_key(d, "core"), "namespace"), "shop");

    complete_next(server, submitted(reply, "a"));
    expect_state(server, d, "waiting_children");
    complete_next(server, NULL);
    expect_state(server, d, "waiting_children");
    complete_next(server, NULL);
    expect_state(server, d, "waiting");
    complete_next(server, d);
    expect_nothing_to_claim(server);

    redisReply *got = server_call(server, "FF.FLOW", "GET", flow, "MEMBERS", "EDGES");
    cr_assert_eq(map_integer(got, "node_count"), 4);
    cr_assert_eq(map_integer(got, "edge_count"), 4);
    redisReply *members = map_value(got, "members");
    redisReply *edges = map_value(got, "edges");
    cr_assert(members->elements == 4 && edges->elements == 4);
    for (size_t i = 0; i < 4; i++) {
        cr_assert_str_eq(map_text(members->element[i], "state"), "completed");
        cr_assert_str_eq(map_text(edges->element[i], "state"), "satisfied");
        cr_assert_str_eq(map_text(edges->element[i], "policy"), "all_of");
    }
}

Test(native_submit, every_field) {
    test_server *server = native_start();
    const char *policy = "{\"routing_requirements\": {\"other\":[]},\"big\":12345678901234567890}";
    redisReply *reply = submit(
        server,
        spell(
            "{\"members\":[{\"name\":\"one\",\"lane\":\"gpu lane\",\"kind\":\"train\",\"payload\":"
            "\"a\\u0000b\",\"priority\":9000,\"policy\":%s,\"caps\":[\"gpu\",\"cuda\"],"
            "\"tags\":{\"app.k\":\"v\"},\"deadline_at\":1767225700000,\"delay_ms\":500,"
            "\"budgets\":[\"f10f0001-0000-4000-8000-000000000001\"],"
            "\"quota\":\"f10f0001-0000-4000-8000-000000000002\"}],\"kind\":\"k\"}",
            policy));
    const char *id = submitted(reply, "one");
    const char *core = exec_key(id, "core");
    expect_state(server, id, "delayed");
    cr_assert_str_eq(server_text(server, "HGET", core, "lane_id"), "gpu lane");
    cr_assert_str_eq(server_text(server, "HGET", core, "priority"), "9000");
    cr_assert_str_eq(server_text(server, "HGET", core, "required_capabilities"), "cuda,gpu");
    cr_assert_str_eq(server_text(server, "HGET", core, "delay_until"), "1767225600500");
    cr_assert_str_eq(server_text(server, "HGET", core, "budget_ids"),
                     "f10f0001-0000-4000-8000-000000000001");
    cr_assert_str_eq(server_text(server, "HGET", core, "quota_policy_id"),
                     "f10f0001-0000-4000-8000-000000000002");
    cr_assert_str_eq(server_text(server, "GET", exec_key(id, "policy")), policy,
                     "a policy is stored as it is spelled");
    cr_assert_eq(server_call(server, "GET", exec_key(id, "payload"))->len, 3);
    cr_assert_str_eq(server_text(server, "HGET", exec_key(id, "tags"), "app.k"), "v");
    cr_assert_str_eq(server_text(server, "ZSCORE", native_index("execution_deadline"), id),
                     "1767225700000");
}

Test(native_submit, resp3_and_places) {
    test_server *server = native_start();
    resp3_connection *connection = resp3_connect(server);
    const char *document = "{\"kind\":\"k\",\"members\":[{\"name\":\"x\",\"kind\":\"y\"}]}";
    const resp3_value *reply = resp3_call(connection, "FF.FLOW", "SUBMIT", "*", document);
    cr_assert_eq(reply->kind, '%');
    const resp3_value *members = resp3_member(reply, "members");
    cr_assert_eq(members->kind, '%');
    cr_assert_eq(resp3_member(members, "x")->kind, '$');
    const char *flow = resp3_member(reply, "flow")->text;
    const resp3_value *got = resp3_call(connection, "FF.FLOW", "GET", flow);
    cr_assert_eq(got->kind, '%');
    cr_assert_eq(resp3_member(got, "node_count")->integer, 1);
    cr_assert_eq(resp3_member(got, "cancelled_at")->kind, '_');
    cr_assert_eq(resp3_member(got, "tags")->kind, '%');
    native_refused(server, "ALREADY_EXISTS", "FF.FLOW", "SUBMIT", flow, document);
    server_do(server, "FF.FLOW", "SUBMIT", "f10f0001-0000-4000-8000-000000000001", document);
    native_refused(server, "ALREADY_EXISTS", "FF.FLOW", "SUBMIT",
                   "f10f0001-0000-4000-8000-000000000001", document);
}

/* Whichever way a document is wrong, the sentence says where, and nothing is written. */
Test(native_submit, refusals) {
    static const struct {
        const char *document, *error;
    } cases[] = {
        {"", "ERR the document is no valid JSON"},
        {"{", "ERR the document is no valid JSON"},
        {"[]", "ERR the document must be an object"},
        {"{}", "ERR kind is missing"},
        {"{\"kind\":\"k\"}", "ERR members is missing"},
        {"{\"kind\":\"\",\"members\":[]}", "ERR kind must not be empty"},
        {"{\"kind\":7}", "ERR kind must be a string"},
        {"{\"kind\":\"k\",\"members\":[]}", "ERR members must be an array"},
        {"{\"kind\":\"k\",\"members\":{}}", "ERR members must be an array"},
        {"{\"kind\":\"k\",\"memberz\":[]}", "ERR memberz is not a known member"},
        {"{\"kind\":\"k\",\"namespace\":\"\",\"members\":[]}", "ERR namespace must not be empty"},
        {"{\"kind\":\"k\",\"tags\":[],\"members\":[]}", "ERR tags must be an object of strings"},
        {"{\"kind\":\"k\",\"tags\":{\"a.b\":1}}", "ERR tags must be an object of strings"},
        {"{\"kind\":\"k\",\"tags\":{\"bad\":\"x\"},\"members\":[{\"name\":\"a\",\"kind\":\"k\"}]}",
         "INVALID_TAG_KEY"},
        {"{\"kind\":\"k\",\"members\":[7]}", "ERR member 0 must be an object"},
        {"{\"kind\":\"k\",\"members\":[{\"name\":\"a\",\"kind\":\"k\"},{\"kind\":\"k\"}]}",
         "ERR member 1: name is missing"},
        {"{\"kind\":\"k\",\"members\":[{\"name\":\"a\"}]}", "ERR member 0 ('a'): kind is missing"},
        {"{\"kind\":\"k\",\"members\":[{\"name\":\"\"}]}", "ERR member 0: name must be a string"},
    };
    /* Of a member named a and one more field. */
    static const struct {
        const char *field, *error;
    } fields[] = {
        {"\"what\":1", "ERR member 0 ('a'): what is not a known member"},
        {"\"lane\":\"\"", "ERR member 0 ('a'): lane must be"},
        {"\"lane\":null", "ERR member 0 ('a'): lane must be"},
        {"\"kind\":null", "ERR member 0 ('a'): kind must be a string"},
        {"\"payload\":{}", "ERR member 0 ('a'): payload must be a string"},
        {"\"priority\":9001",
         "ERR member 0 ('a'): priority must be a whole number between 0 and 9000"},
        {"\"priority\":-1", "ERR member 0 ('a'): priority must be"},
        {"\"priority\":1.5", "ERR member 0 ('a'): priority must be"},
        {"\"priority\":\"1\"", "ERR member 0 ('a'): priority must be"},
        {"\"policy\":[]", "ERR member 0 ('a'): policy must be an object"},
        {"\"policy\":{\"routing_requirements\":7}", "INVALID_POLICY_JSON"},
        {"\"policy\":{\"routing_requirements\":{\"required_capabilities\":[\"a b\"]}}",
         "INVALID_CAPABILITIES"},
        {"\"policy\":{\"routing_requirements\":{\"required_capabilities\":[\"a\"]}},\"caps\":\"b\"",
         "ERR member 0 ('a'): CAPS excludes"},
        {"\"caps\":\"a,,b\"", "INVALID_CAPABILITIES"},
        {"\"caps\":[\"a,b\"]", "ERR member 0 ('a'): caps must not have a comma"},
        {"\"caps\":7", "ERR member 0 ('a'): caps must be"},
        {"\"caps\":[7]", "ERR member 0 ('a'): caps must be"},
        {"\"tags\":7", "ERR member 0 ('a'): tags must be"},
        {"\"delay_ms\":-1", "ERR member 0 ('a'): delay_ms must be"},
        {"\"delay_ms\":1e300", "ERR member 0 ('a'): delay_ms must be"},
        {"\"deadline_at\":\"soon\"", "ERR member 0 ('a'): deadline_at must be"},
        {"\"budgets\":\"x\"", "ERR member 0 ('a'): budgets must be an array"},
        {"\"budgets\":[\"x\"]", "ERR member 0 ('a'): 'x' is not a budget"},
        {"\"quota\":7", "ERR member 0 ('a'): quota must be"},
        {"\"quota\":\"{q:0}:f10f0001-0000-4000-8000-000000000001\"",
         "ERR member 0 ('a'): the tag of '{q:0}:f10f0001-0000-4000-8000-000000000001' is not that of "
         "its id: use {q:"},
        {"\"after\":\"b\"", "ERR member 0 ('a'): after must be an array"},
        {"\"after\":[\"nobody\"]",
         "ERR member 0 ('a'): nobody in \"after\" is not a member's name"},
        {"\"after\":[\"b\",\"b\"]", "ERR member 0 ('a'): b is in \"after\" more than once"},
        {"\"after\":[\"a\"]", "CYCLE_DETECTED member 0 ('a') waits for itself"},
        {"\"after\":[\"c\"]", "CYCLE_DETECTED"},
        {"\"join\":\"any_of\"", "ERR member 0 ('a'): join needs \"after\""},
        {"\"after\":[\"b\"],\"join\":\"most\"", "ERR member 0 ('a'): join must be"},
        {"\"after\":[\"b\"],\"join\":{\"quorum\":1,\"x\":2}", "ERR member 0 ('a'): join must be"},
        {"\"after\":[\"b\"],\"join\":{\"quorum\":2}", "ERR member 0 ('a'): join needs a quorum"},
        {"\"after\":[\"b\"],\"join\":{\"quorum\":0}", "ERR member 0 ('a'): join needs a quorum"},
        {"\"after\":[\"b\"],\"join\":{\"quorum\":\"1\"}",
         "ERR member 0 ('a'): join.quorum must be"},
        {"\"after\":[\"b\"],\"on_satisfied\":\"let_run\"",
         "ERR member 0 ('a'): on_satisfied needs"},
        {"\"after\":[\"b\"],\"join\":\"any_of\",\"on_satisfied\":\"x\"",
         "ERR member 0 ('a'): on_satisfied must be"},
    };
    test_server *server = native_start();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        native_refused(server, cases[i].error, "FF.FLOW", "SUBMIT", FP, cases[i].document);
    }
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        native_refused(server, fields[i].error, "FF.FLOW", "SUBMIT", FP,
                       spell("{\"kind\":\"k\",\"members\":[{\"name\":\"a\",\"kind\":\"k\",%s},"
                             "{\"name\":\"b\",\"kind\":\"k\"},"
                             "{\"name\":\"c\",\"kind\":\"k\",\"after\":[\"a\"]}]}",
                             fields[i].field));
    }
    native_refused(server, "ERR member 1 ('a'): a is the name of another member", "FF.FLOW",
                   "SUBMIT", FP,
                   "{\"kind\":\"k\",\"members\":[{\"name\":\"a\",\"kind\":\"k\"},{\"name\":\"a\","
                   "\"kind\":\"k\"}]}");
    server_do(server, "LPUSH", native_index("flow_index"), "x");
    native_refused(server, "WRONGTYPE", "FF.FLOW", "SUBMIT", FP, DIAMOND);
}

Test(native_submit, cycles_are_named) {
    test_server *server = native_start();
    native_refused(server, "CYCLE_DETECTED member 2 ('c') waits for itself", "FF.FLOW", "SUBMIT",
                   FP,
                   "{\"kind\":\"k\",\"members\":[{\"name\":\"a\",\"kind\":\"k\",\"after\":[\"b\"]},"
                   "{\"name\":\"b\",\"kind\":\"k\",\"after\":[\"c\"]},"
                   "{\"name\":\"c\",\"kind\":\"k\",\"after\":[\"c\"]}]}");
}

static char *repeated(const char *piece, size_t times, const char *before, const char *after) {
    size_t size = strlen(piece) * times + strlen(before) + strlen(after) + 1;
    char *document = malloc(size);
    char *end = stpcpy(document, before);
    for (size_t i = 0; i < times; i++) end = stpcpy(end, piece);
    stpcpy(end, after);
    return server_keep(document);
}

Test(native_submit, limits) {
    test_server *server = native_start();
    const char *deep = repeated("[", 10000, "{\"kind\":", "");
    native_refused(server, "ERR the document is no valid JSON", "FF.FLOW", "SUBMIT", FP, deep);
    const char *bomb = repeated("0,", 300000, "{\"kind\":\"k\",\"members\":[", "0,[],[]]}");
    native_refused(server, "ERR members must be an array of 1 to 10000", "FF.FLOW", "SUBMIT", FP,
                   bomb);
    bomb = repeated("0,", 600000, "{\"kind\":\"k\",\"members\":[", "0]}");
    native_refused(server, "ERR the document holds more than 500000 values", "FF.FLOW", "SUBMIT",
                   FP, bomb);
    const char *large = repeated("0123456789abcdef", 4 * 1024 * 1024, "{\"kind\":\"", "\"}");
    native_refused(server, "ERR the document is larger than 16 MiB", "FF.FLOW", "SUBMIT", FP,
                   large);
    const char *edges = repeated(
        "\"a\",", 20000, "{\"kind\":\"k\",\"members\":[{\"name\":\"b\",\"after\":[", "\"a\"]}]}");
    native_refused(server, "ERR member 0 ('b'): after makes more than 20000 edges", "FF.FLOW",
                   "SUBMIT", FP, edges);
    const char *name = repeated("n", 129, "{\"kind\":\"k\",\"members\":[{\"name\":\"", "\"}]}");
    native_refused(server, "ERR member 0: name must be a string of 1 to 128 bytes", "FF.FLOW",
                   "SUBMIT", FP, name);
    cr_assert_str_eq(server_text(server, "PING"), "PONG");
}

Test(native_submit, delay_and_dependencies_both_hold) {
    test_server *server = native_start();
    redisReply *reply = submit(
        server, "{\"kind\":\"k\",\"members\":[{\"name\":\"a\",\"kind\":\"k\"},{\"name\":\"b\","
                "\"kind\":\"k\",\"delay_ms\":5000,\"after\":[\"a\"]}]}");
    const char *b = submitted(reply, "b");
    expect_state(server, b, "waiting_children");
    complete_next(server, submitted(reply, "a"));
    expect_state(server, b, "delayed");
    cr_assert_str_eq(server_text(server, "ZSCORE", native_lane("delayed"), b), "1767225605000");
    expect_nothing_to_claim(server);
    server_set_time(server, FROZEN_START_MS + 5000);
    server_do(server, "FF.SCANNER", "RUN", "delayed_promoter");
    complete_next(server, b);
}

Test(native_submit, quorum_cancels_the_rest) {
    test_server *server = native_start();
    redisReply *reply =
        submit(server,
               "{\"kind\":\"race\",\"members\":[{\"name\":\"w1\",\"kind\":\"k\"},{\"name\":\"w2\","
               "\"kind\":\"k\"},{\"name\":\"w3\",\"kind\":\"k\"},{\"name\":\"join\",\"kind\":\"k\","
               "\"after\":[\"w1\",\"w2\",\"w3\"],\"join\":{\"quorum\":2},\"on_satisfied\":"
               "\"cancel_remaining\"}]}");
    const char *join = submitted(reply, "join");
    complete_next(server, NULL);
    expect_state(server, join, "waiting_children");
    complete_next(server, NULL);
    expect_state(server, join, "waiting");
    server_do(server, "FF.RECONCILE", FP, "sibling_cancel");
    int cancelled = 0;
    for (int i = 1; i <= 3; i++) {
        const char *id = submitted(reply, spell("w%d", i));
        const char *state = server_text(server, "HGET", exec_key(id, "core"), "public_state");
        cancelled += strcmp(state, "cancelled") == 0;
    }
    cr_assert_eq(cancelled, 1);
    complete_next(server, join);
    expect_nothing_to_claim(server);
}

/* ---- Step by step ---- */

Test(native_flow, create) {
    test_server *server = native_start();
    redisReply *reply = server_call(server, "FF.FLOW", "CREATE", FP, "order", "NAMESPACE", "shop",
                                    "TAGS", "2", "app.a", "1", "app.b", "2");
    const char *flow = map_text(reply, "flow");
    cr_assert_eq(strncmp(flow, FP ":", sizeof FP), 0);
    cr_assert_str_eq(map_text(reply, "state"), "open");
    cr_assert_eq(map_integer(reply, "created"), 1);
    cr_assert_eq(server_integer(server, "HLEN", FLOW_KEY(flow, "tags")), 2);
    reply = server_call(server, "FF.FLOW", "CREATE", flow, "another", "TAGS", "1", "app.c", "3");
    cr_assert_eq(map_integer(reply, "created"), 0);
    cr_assert_eq(server_integer(server, "HLEN", FLOW_KEY(flow, "tags")), 2,
                 "what exists is left alone");
    cr_assert_str_eq(server_text(server, "HGET", FLOW_KEY(flow, "core"), "flow_kind"), "order");
    reply = server_call(server, "FF.FLOW", "CREATE", flow + sizeof FP, "bare");
    cr_assert_str_eq(map_text(reply, "flow"), flow);

    const char *wrong = spell("{fp:8}%s", flow + sizeof FP - 1);
    native_refused(server, spell("ERR the tag of '%s' is not that of its id: use %s", wrong, flow),
                   "FF.FLOW", "CREATE", wrong, "k");
    native_refused(server, "ERR '{fp:256}' is not a partition", "FF.FLOW", "CREATE", "{fp:256}",
                   "k");
    native_refused(server, "ERR '{b:1}' is not a partition", "FF.FLOW", "CREATE", "{b:1}", "k");
    native_refused(server, "ERR 'x' is not a place: expected {fp:N}:<uuid>, {fp:N} or *", "FF.FLOW",
                   "CREATE", "x", "k");
    native_refused(server, "ERR the kind must not be empty", "FF.FLOW", "CREATE", FP, "");
    native_refused(server, "INVALID_TAG_KEY", "FF.FLOW", "CREATE", FP, "k", "TAGS", "1", "bad",
                   "v");
    native_refused(server, "ERR", "FF.FLOW", "CREATE", FP, "k", "TAGS", "2", "a.b", "v");
    native_refused(server, "ERR", "FF.FLOW", "CREATE", FP, "k", "NAMESPACE");
    native_refused(server, "ERR", "FF.FLOW", "CREATE", FP, "k", "NAMESPACE", "a", "namespace", "b");
    native_refused(server, "ERR", "FF.FLOW", "CREATE", FP, "k", "COLOUR", "red");
    native_refused(server, "ERR wrong number of arguments", "FF.FLOW", "CREATE", FP);
    native_refused(server, "ERR unknown subcommand", "FF.FLOW", "DESTROY", FP);
}

Test(native_flow, add) {
    test_server *server = native_start();
    const char *flow = create_flow(server);
    const char *other = create_flow(server);
    native_create(server, 1);
    native_refused(server, "NOT_FOUND no such execution", "FF.FLOW", "ADD", flow, native_id(2));
    redisReply *reply = server_call(server, "FF.FLOW", "ADD", flow, native_id(1));
    cr_assert_str_eq(map_text(reply, "status"), "OK");
    cr_assert_eq(map_integer(reply, "node_count"), 1);
    reply = server_call(server, "FF.FLOW", "ADD", flow, native_id(1));
    cr_assert_str_eq(map_text(reply, "status"), "ALREADY_SATISFIED");
    native_refused(
        server,
        spell("ALREADY_MEMBER_OF_DIFFERENT_FLOW the execution belongs to another flow: %s",
              flow + sizeof FP),
        "FF.FLOW", "ADD", other, native_id(1));
    native_refused(server, "ERR the execution {fp:8}:", "FF.FLOW", "ADD", flow,
                   "{fp:8}:f10f0001-0000-4000-8000-000000000001");
    native_refused(server, "ERR 'x' is not an execution id", "FF.FLOW", "ADD", flow, "x");
    native_refused(server, "NOT_FOUND no such flow", "FF.FLOW", "GET",
                   "f10f0001-0000-4000-8000-000000000009");
    server_do(server, "FF.FLOW", "CANCEL", flow, "over");
    native_create(server, 3);
    native_refused(server, "FLOW_ALREADY_TERMINAL", "FF.FLOW", "ADD", flow, native_id(3));
}

Test(native_flow, edges) {
    test_server *server = native_start();
    const char *flow = create_members(server, 3);
    redisReply *reply = server_call(server, "FF.FLOW", "EDGE", flow, native_id(1), native_id(2));
    cr_assert_eq(map_integer(reply, "graph_revision"), 4);
    cr_assert_str_eq(map_text(reply, "state"), "waiting_children");
    cr_assert_eq(strlen(map_text(reply, "edge_id")), 36);
    native_refused(server, "CYCLE_DETECTED", "FF.FLOW", "EDGE", flow, native_id(2), native_id(1));
    native_refused(server, "SELF_REFERENCING_EDGE", "FF.FLOW", "EDGE", flow, native_id(1),
                   native_id(1));
    native_create(server, 9);
    native_refused(
        server,
        spell("EXECUTION_NOT_IN_FLOW both ends of an edge must be members of the flow: %s",
              native_id(9)),
        "FF.FLOW", "EDGE", flow, native_id(1), native_id(9));
    const char *absent = missing_flow();
    native_refused(server, "NOT_FOUND no such flow", "FF.FLOW", "EDGE", absent, native_id(1),
                   native_id(2));
    native_refused(server, "ERR POLICY must be", "FF.FLOW", "EDGE", flow, native_id(1),
                   native_id(3), "POLICY", "some");
    native_refused(server, "ERR POLICY must be", "FF.FLOW", "EDGE", flow, native_id(1),
                   native_id(3), "POLICY");
    native_refused(server, "ERR POLICY must be", "FF.FLOW", "EDGE", flow, native_id(1),
                   native_id(3), "POLICY", "quorum");
    native_refused(server, "ERR the quorum must be", "FF.FLOW", "EDGE", flow, native_id(1),
                   native_id(3), "POLICY", "quorum", "0");
    native_refused(server, "ERR POLICY is given more than once", "FF.FLOW", "EDGE", flow,
                   native_id(1), native_id(3), "POLICY", "any_of", "POLICY", "any_of");
    native_refused(server, "ERR ON_SATISFIED needs POLICY", "FF.FLOW", "EDGE", flow, native_id(1),
                   native_id(3), "ON_SATISFIED", "let_run");
    native_refused(server, "ERR ON_SATISFIED", "FF.FLOW", "EDGE", flow, native_id(1), native_id(3),
                   "POLICY", "any_of", "ON_SATISFIED", "maybe");
    native_refused(server, "ERR", "FF.FLOW", "EDGE", flow, native_id(1), native_id(3), "WHAT", "x");
    server_do(server, "FF.CANCEL", native_id(1), "r");
    expect_state(server, native_id(2), "skipped");
}

Test(native_flow, policies_of_edges) {
    test_server *server = native_start();
    const char *flow = create_members(server, 4);
    const char *group = FLOW_KEY(flow, spell("edgegroup:%s", native_id(4)));
    server_do(server, "FF.FLOW", "EDGE", flow, native_id(1), native_id(4), "ON_SATISFIED",
              "cancel_remaining", "POLICY", "quorum", "2");
    server_do(server, "FF.FLOW", "EDGE", flow, native_id(2), native_id(4), "POLICY", "quorum", "2",
              "ON_SATISFIED", "cancel_remaining");
    server_do(server, "FF.FLOW", "EDGE", flow, native_id(3), native_id(4));
    native_refused(server, "INVALID_INPUT", "FF.FLOW", "EDGE", flow, native_id(3), native_id(4),
                   "POLICY", "quorum", "1", "ON_SATISFIED", "cancel_remaining");
    native_refused(server, "INVALID_INPUT", "FF.FLOW", "EDGE", flow, native_id(3), native_id(4),
                   "POLICY", "quorum", "2");
    native_refused(server, "INVALID_INPUT", "FF.FLOW", "EDGE", flow, native_id(3), native_id(4),
                   "POLICY", "all_of");
    cr_assert_str_eq(server_text(server, "HGET", group, "n"), "3");
    cr_assert_str_eq(server_text(server, "HGET", group, "k"), "2");
    cr_assert_str_eq(server_text(server, "HGET", group, "on_satisfied"), "cancel_remaining");
}

/* An edge from a member that has ended already is settled at once: nobody would do it later. */
Test(native_flow, edge_from_ended_upstream) {
    test_server *server = native_start();
    const char *flow = create_members(server, 4);
    held h = native_claim_next(server);
    server_do(server, "FF.COMPLETE", FENCE(h), "RESULT", "done");
    int ended = atoi(h.id + strlen(h.id) - 1);
    int next = ended % 4 + 1;
    int after = next % 4 + 1;
    redisReply *reply = server_call(server, "FF.FLOW", "EDGE", flow, h.id, native_id(next), "DATA",
                                    "result", "KIND", "success_only");
    cr_assert_str_eq(map_text(reply, "state"), "waiting");
    cr_assert_str_eq(server_text(server, "GET", native_key(next, "payload")), "done");
    server_do(server, "FF.FLOW", "EDGE", flow, native_id(next), native_id(after));
    server_do(server, "FF.CANCEL", native_id(next), "r");
    expect_state(server, native_id(after), "skipped");
    int last = after % 4 + 1;
    reply = server_call(server, "FF.FLOW", "EDGE", flow, native_id(next), native_id(last));
    cr_assert_str_eq(map_text(reply, "state"), "skipped");
}

Test(native_flow, tags) {
    test_server *server = native_start();
    const char *flow = create_flow(server);
    redisReply *reply =
        server_call(server, "FF.FLOW", "TAG", flow, "2", "app.a", "1", "app.b", "2");
    cr_assert_eq(map_integer(reply, "tags"), 2);
    redisReply *tags = map_value(server_call(server, "FF.FLOW", "GET", flow), "tags");
    cr_assert_str_eq(map_text(tags, "app.a"), "1");
    native_refused(server, "INVALID_TAG_KEY", "FF.FLOW", "TAG", flow, "1", "Bad", "1");
    native_refused(server, "ERR 2 tags need 4 values", "FF.FLOW", "TAG", flow, "2", "a.b", "1");
    native_refused(server, "ERR the count of tags", "FF.FLOW", "TAG", flow, "x", "a.b", "1");
    native_refused(server, "NOT_FOUND no such flow", "FF.FLOW", "TAG",
                   "f10f0001-0000-4000-8000-000000000009", "1", "a.b", "1");
}

/* ---- CANCEL ---- */

Test(native_flow, cancel) {
    test_server *server = native_start();
    const char *flow = create_members(server, 4);
    server_do(server, "FF.FLOW", "EDGE", flow, native_id(3), native_id(4));
    held ended = native_claim_next(server);
    server_do(server, "FF.COMPLETE", FENCE(ended));
    held active = native_claim_next(server);
    redisReply *reply = server_call(server, "FF.FLOW", "CANCEL", flow, "no longer wanted");
    cr_assert_str_eq(map_text(reply, "state"), "cancelled");
    cr_assert_eq(map_integer(reply, "cancelled"), 3);
    cr_assert_eq(map_integer(reply, "ended_before"), 1);
    cr_assert_eq(map_integer(reply, "pending"), 0);
    expect_state(server, active.id, "cancelled");
    expect_state(server, native_id(4), "cancelled");
    cr_assert_str_eq(
        server_text(server, "HGET", exec_key(active.id, "core"), "cancellation_reason"),
        "no longer wanted");
    cr_assert_eq(server_integer(server, "EXISTS", FLOW_KEY(flow, "pending_cancels"),
                                native_index("cancel_backlog")),
                 0);
    redisReply *got = server_call(server, "FF.FLOW", "GET", flow);
    cr_assert_eq(map_integer(got, "cancelled_at"), FROZEN_START_MS);
    cr_assert_str_eq(map_text(got, "cancel_reason"), "no longer wanted");
    native_refused(server, "FLOW_ALREADY_TERMINAL", "FF.FLOW", "CANCEL", flow, "again");
    native_refused(server, "FLOW_ALREADY_TERMINAL", "FF.FLOW", "EDGE", flow, native_id(1),
                   native_id(2));
    native_refused(server, "NOT_FOUND no such flow", "FF.FLOW", "CANCEL",
                   "f10f0001-0000-4000-8000-000000000009", "r");
    native_refused(server, "EXECUTION_NOT_ACTIVE", "FF.COMPLETE", FENCE(active));
    expect_nothing_to_claim(server);
}

/* What is beyond the limit is owed, and the scanner does it. */
Test(native_flow, cancel_beyond_the_limit) {
    test_server *server = native_start();
    server_do(server, "CONFIG", "SET", "ff.cascade-limit", "2");
    const char *flow = create_members(server, 5);
    redisReply *reply = server_call(server, "FF.FLOW", "CANCEL", flow, "r");
    cr_assert_eq(map_integer(reply, "cancelled"), 2);
    cr_assert_eq(map_integer(reply, "pending"), 3);
    cr_assert_eq(server_integer(server, "SCARD", FLOW_KEY(flow, "pending_cancels")), 3);
    cr_assert_eq(server_integer(server, "ZCARD", native_index("cancel_backlog")), 1);
    server_do(server, "FF.RECONCILE", FP, "cancel");
    for (int i = 1; i <= 5; i++) expect_state(server, native_id(i), "cancelled");
    cr_assert_eq(server_integer(server, "EXISTS", FLOW_KEY(flow, "pending_cancels"),
                                native_index("cancel_backlog")),
                 0);
}

/* The slot of a member that was running goes back to its quota. */
Test(native_flow, cancel_frees_slots) {
    test_server *server = native_start();
    redisReply *created = server_call(server, "FF.QUOTA", "CREATE", "{q:3}", "CONCURRENCY", "1");
    const char *quota = map_text(created, "quota");
    redisReply *reply =
        submit(server, spell("{\"kind\":\"k\",\"members\":[{\"name\":\"a\",\"kind\":"
                             "\"k\",\"quota\":\"%s\"}]}",
                             quota));
    native_claim_next(server);
    cr_assert_eq(map_integer(server_call(server, "FF.QUOTA", "GET", quota), "running"), 1);
    server_do(server, "FF.FLOW", "CANCEL", map_text(reply, "flow"), "r");
    cr_assert_eq(map_integer(server_call(server, "FF.QUOTA", "GET", quota), "running"), 0);
}

/* ---- LIST ---- */

Test(native_flow, list) {
    test_server *server = native_start();
    const char *partitions[] = {"{fp:0}", "{fp:7}", "{fp:7}", "{fp:255}"};
    for (int i = 0; i < 4; i++) {
        server_do(server, "FF.FLOW", "CREATE", partitions[i], "k", "NAMESPACE", i ? "ns" : "other");
    }
    redisReply *reply = server_call(server, "FF.FLOW", "LIST");
    cr_assert_str_eq(map_text(reply, "cursor"), "0");
    cr_assert_eq(map_value(reply, "flows")->elements, 4);
    cr_assert_str_eq(map_text(map_value(reply, "flows")->element[0], "namespace"), "other");
    reply = server_call(server, "FF.FLOW", "LIST", "NAMESPACE", "ns", "PARTITION", FP);
    cr_assert_eq(map_value(reply, "flows")->elements, 2);
    size_t seen = 0;
    const char *cursor = "0";
    int calls = 0;
    do {
        reply = server_call(server, "FF.FLOW", "LIST", "CURSOR", cursor, "COUNT", "1");
        seen += map_value(reply, "flows")->elements;
        cursor = map_text(reply, "cursor");
    } while (strcmp(cursor, "0") != 0 && ++calls < 10);
    cr_assert(seen == 4 && calls < 10);
    native_refused(server, "ERR CURSOR must be", "FF.FLOW", "LIST", "CURSOR", "x");
    native_refused(server, "ERR CURSOR must be", "FF.FLOW", "LIST", "CURSOR", "256-0");
    native_refused(server, "ERR CURSOR must be", "FF.FLOW", "LIST", "CURSOR", "1-");
    native_refused(server, "ERR COUNT", "FF.FLOW", "LIST", "COUNT", "0");
    native_refused(server, "ERR PARTITION must be {fp:N}", "FF.FLOW", "LIST", "PARTITION", "{b:1}");
}

/* A page ends with what was looked at, whether or not it was wanted. */
Test(native_flow, a_page_is_bounded) {
    enum { MANY = 300 };
    test_server *server = native_start();
    for (int i = 0; i < MANY; i++) server_do(server, "FF.FLOW", "CREATE", FP, "k");
    server_do(server, "FF.FLOW", "CREATE", FP, "k", "NAMESPACE", "rare");
    size_t seen = 0;
    int calls = 0;
    const char *cursor = "0";
    do {
        redisReply *page = server_call(server, "FF.FLOW", "LIST", "PARTITION", FP, "NAMESPACE",
                                       "rare", "COUNT", "10", "CURSOR", cursor);
        seen += map_value(page, "flows")->elements;
        cursor = map_text(page, "cursor");
        calls++;
    } while (strcmp(cursor, "0") != 0);
    cr_assert_eq(seen, 1);
    cr_assert_gt(calls, MANY / 10 / 4);
    native_refused(server, "ERR CURSOR must be", "FF.FLOW", "LIST", "PARTITION", FP, "CURSOR",
                   "8-0");
}

/* ---- The surroundings ---- */

Test(native_flow, in_a_transaction) {
    test_server *server = native_start();
    server_do(server, "MULTI");
    server_do(server, "FF.FLOW", "SUBMIT", FP, DIAMOND);
    server_do(server, "FF.FLOW", "SUBMIT", FP, "{}");
    server_do(server, "FF.FLOW", "LIST");
    redisReply *replies = server_call(server, "EXEC");
    cr_assert_eq(replies->elements, 3);
    cr_assert_eq(replies->element[1]->type, REDIS_REPLY_ERROR);
    cr_assert_eq(map_value(replies->element[2], "flows")->elements, 1);
}

static redisContext *log_in(test_server *server, const char *name, const char *keys,
                            const char *may, const char *may_not) {
    redisContext *connection = server_connect(server);
    server_do(server, "ACL", "SETUSER", name, "reset", "on", "nopass", keys, may, may_not);
    redisReply *reply = connection_call(connection, "AUTH", name, "x");
    cr_assert_neq(reply->type, REDIS_REPLY_ERROR, "%s", reply->str);
    return connection;
}

static bool is_denied(const redisReply *reply) {
    return reply->type == REDIS_REPLY_ERROR && strncmp(reply->str, "NOPERM", 6) == 0;
}

Test(native_flow, permissions) {
    test_server *server = native_start();
    const char *flow = create_flow(server);
    redisContext *reader = log_in(server, "reader", "~{fp:*", "+@read", "-@dangerous");
    redisContext *worker = log_in(server, "worker", "~{fp:*", "+@flowfabric", "-@dangerous");
    redisContext *elsewhere = log_in(server, "elsewhere", "~{fp:8}*", "+@flowfabric", "+@read");
    redisContext *boss = log_in(server, "boss", "~*", "+@flowfabric", "+@read");
    cr_assert_not(is_denied(connection_call(reader, "FF.FLOW", "GET", flow)));
    cr_assert_not(is_denied(connection_call(reader, "FF.WORKER", "LIST")));
    cr_assert(is_denied(connection_call(reader, "FF.FLOW", "TAG", flow, "1", "a.b", "c")));
    cr_assert(is_denied(connection_call(reader, "FF.SECRET", "LIST")));
    cr_assert_not(is_denied(connection_call(worker, "FF.FLOW", "SUBMIT", FP, DIAMOND)));
    cr_assert(is_denied(connection_call(worker, "FF.SECRET", "ROTATE", "k2", "00")));
    cr_assert(is_denied(connection_call(worker, "FF.BUDGET", "RESET",
                                        "{b:1}:f10f0001-0000-4000-8000-000000000001")));
    cr_assert(is_denied(connection_call(worker, "FF.QUOTA", "CREATE", "{q:1}", "RATE", "1", "1")));
    cr_assert(is_denied(connection_call(elsewhere, "FF.FLOW", "GET", flow)));
    cr_assert_not(is_denied(connection_call(boss, "FF.SECRET", "ROTATE", "k2", "00")));
}

/* Everything that changes flows; returns one that is still open. */
static const char *change_flows(test_server *server) {
    redisReply *reply = submit(server, DIAMOND);
    complete_next(server, NULL);
    const char *built = create_members(server, 3);
    server_do(server, "FF.FLOW", "EDGE", built, native_id(1), native_id(2), "POLICY", "any_of");
    server_do(server, "FF.FLOW", "TAG", built, "1", "a.b", "c");
    server_do(server, "FF.FLOW", "CANCEL", map_text(reply, "flow"), "r");
    return built;
}

Test(native_flow, replicas) {
    test_server *server = native_start();
    test_server *replica = server_start_replica(server, NULL);
    const char *flow = change_flows(server);
    server_expect_same_data(server, replica);
    redisReply *got = server_call(replica, "FF.FLOW", "GET", flow, "MEMBERS", "EDGES");
    cr_assert_eq(map_integer(got, "node_count"), 3);
    cr_assert_eq(map_value(server_call(replica, "FF.FLOW", "LIST"), "flows")->elements, 2);
    server_expect_error(replica, "READONLY", "FF.FLOW", "CANCEL", flow, "r");
    server_expect_error(replica, "READONLY", "FF.FLOW", "SUBMIT", "*", DIAMOND);
}

Test(native_flow, replica_without_the_module) {
    test_server *server = native_start();
    test_server *replica = server_start_replica(server, &(server_options){.without_module = true});
    change_flows(server);
    server_expect_same_data(server, replica);
}

Test(native_flow, introspection) {
    test_server *server = native_start();
    static const char *const names[] = {
        "ff.flow|create",      "ff.flow|add",     "ff.flow|edge",     "ff.flow|submit",
        "ff.flow|cancel",      "ff.flow|get",     "ff.flow|list",     "ff.flow|tag",
        "ff.budget|create",    "ff.budget|spend", "ff.budget|report", "ff.budget|release",
        "ff.budget|reset",     "ff.budget|get",   "ff.quota|create",  "ff.quota|admit",
        "ff.quota|release",    "ff.quota|get",    "ff.worker|list",   "ff.worker|register",
        "ff.worker|heartbeat", "ff.worker|dead",  "ff.secret|rotate", "ff.secret|list",
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        redisReply *docs = server_call(server, "COMMAND", "DOCS", names[i]);
        cr_assert(docs->elements == 2, "%s", names[i]);
        redisReply *entry = docs->element[1];
        cr_assert(strlen(map_text(entry, "summary")) > 10, "%s", names[i]);
        cr_assert_str_eq(map_text(entry, "since"), "0.1.0");
        cr_assert(strlen(map_text(entry, "complexity")) > 3, "%s", names[i]);
    }
    redisReply *keys = server_call(server, "COMMAND", "GETKEYS", "FF.FLOW", "CREATE", FP, "k");
    cr_assert(keys->elements == 1 && strcmp(keys->element[0]->str, FP) == 0);
    keys = server_call(server, "COMMAND", "GETKEYS", "FF.FLOW", "LIST", "PARTITION", FP);
    cr_assert(keys->elements == 1 && strcmp(keys->element[0]->str, FP) == 0);
    server_expect_error(server, "ERR", "COMMAND", "GETKEYS", "FF.FLOW", "CREATE", "*", "k");
    server_expect_error(server, "ERR", "COMMAND", "GETKEYS", "FF.BUDGET", "GET",
                        "f10f0001-0000-4000-8000-000000000001");
}

Test(native_flow, in_a_cluster) {
    test_server *nodes[2];
    server_start_cluster(nodes, 2, &(server_options){0});
    for (int i = 0; i < 20; i++) {
        redisReply *reply = server_call(nodes[i % 2], "FF.FLOW", "SUBMIT", "*", DIAMOND);
        cr_assert_eq(reply->type, REDIS_REPLY_ARRAY, "%s", reply->str);
        const char *flow = map_text(reply, "flow");
        cr_assert_eq(server_of_key(nodes, 2, flow), nodes[i % 2],
                     "a node picks its own partitions");
        server_expect_error(nodes[(i + 1) % 2], "MOVED", "FF.FLOW", "GET", flow);
        reply = server_call(nodes[i % 2], "FF.FLOW", "GET", strchr(flow, '}') + 2);
        cr_assert(reply->type == REDIS_REPLY_ERROR && strstr(reply->str, flow), "%s", reply->str);
        cr_assert_eq(
            map_integer(server_call(nodes[i % 2], "FF.FLOW", "CANCEL", flow, "r"), "cancelled"), 4);
    }
    for (int i = 0; i < 2; i++) {
        redisReply *reply = server_call(nodes[i], "FF.FLOW", "LIST");
        cr_assert_eq(map_value(reply, "flows")->elements, 10);
    }
    server_do(nodes[0], "MULTI");
    server_do(nodes[0], "FF.FLOW", "SUBMIT", "*", DIAMOND);
    redisReply *replies = server_call(nodes[0], "EXEC");
    cr_assert_eq(replies->element[0]->type, REDIS_REPLY_ERROR,
                 "a transaction reaches one slot only");
}
