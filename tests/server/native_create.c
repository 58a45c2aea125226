/* FF.CREATE */
#include "native.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BUDGET_ID "b1000001-0000-4000-8000-000000000011"
#define BUDGET_REF "{b:3}:" BUDGET_ID
#define QUOTA_ID "a1000001-0000-4000-8000-000000000059"
#define QUOTA_REF "{q:5}:" QUOTA_ID
#define FLOW_ID "f1000001-0000-4000-8000-000000002039"
#define FLOW_REF FP ":" FLOW_ID

Test(native_create, with_everything) {
    test_server *server = native_start();
    redisReply *reply =
        server_call(server, "ff.create", native_id(1), "fast lane", "mail", "Namespace", "acme",
                    "PAYLOAD", "hello", "PRIORITY", "9000", "CREATOR", "ann", "POLICY",
                    "{\"max_replay_count\":3}", "CAPS", "zoo,gpu", "TAGS", "2", "team.name", "x",
                    "plain", "y", "DELAY", "500", "DEADLINE", "1767225700000", "IDEMPOTENT", "once",
                    "60000", "BUDGETS", "1", BUDGET_REF, "QUOTA", QUOTA_REF);
    cr_assert_eq(reply->elements, 6);
    cr_assert_str_eq(map_text(reply, "execution_id"), native_id(1));
    cr_assert_str_eq(map_text(reply, "state"), "delayed");
    cr_assert_eq(map_integer(reply, "created"), 1);
    static const char *const fields[][2] = {
        {"lane_id", "fast lane"},
        {"execution_kind", "mail"},
        {"namespace", "acme"},
        {"priority", "9000"},
        {"creator_identity", "ann"},
        {"required_capabilities", "gpu,zoo"},
        {"delay_until", "1767225600500"},
        {"partition_id", "7"},
        {"budget_ids", BUDGET_ID},
        {"quota_policy_id", QUOTA_ID},
        {"execution_id", FP ":f10f0001-0000-4000-8000-000000000001"},
    };
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        native_field(server, 1, fields[i][0], fields[i][1]);
    }
    cr_assert_str_eq(server_text(server, "GET", native_key(1, "payload")), "hello");
    cr_assert_str_eq(server_text(server, "GET", native_key(1, "policy")),
                     "{\"max_replay_count\":3}");
    cr_assert_str_eq(server_text(server, "HGET", native_key(1, "tags"), "plain"), "y");
    cr_assert(native_in(server, native_index("lane:fast lane:delayed"), 1));
    cr_assert(native_in(server, native_index("execution_deadline"), 1));
    cr_assert_eq(server_integer(server, "SISMEMBER", native_index("all_executions"), native_id(1)),
                 1);
    cr_assert_str_eq(server_text(server, "GET", "ff:idem:" FP ":acme:once"), native_id(1));
    cr_assert_eq(server_integer(server, "PTTL", "ff:idem:" FP ":acme:once"), 60000);
}

Test(native_create, where) {
    test_server *server = native_start();
    redisReply *reply = server_call(server, "FF.CREATE", "{fp:12}", "default", "job");
    cr_assert_eq(strncmp(map_text(reply, "execution_id"), "{fp:12}:", 8), 0);
    cr_assert_str_eq(map_text(reply, "state"), "waiting");
    bool seen[256] = {0};
    size_t different = 0;
    for (int i = 0; i < 100; i++) {
        reply = server_call(server, "FF.CREATE", "*", "default", "job");
        int partition = atoi(map_text(reply, "execution_id") + strlen("{fp:"));
        if (!seen[partition]) different++;
        seen[partition] = true;
    }
    cr_assert_geq(different, 60, "%zu", different);
    /* Other spellings of an id are brought into the usual one. */
    reply = server_call(server, "FF.CREATE", "{fp:7}:F10F0001000040008000000000000005", "default",
                        "job");
    cr_assert_str_eq(map_text(reply, "execution_id"), native_id(5));
    reply = server_call(server, "FF.GET", "{fp:7}:F10F0001-0000-4000-8000-000000000005", "FIELDS",
                        "1", "state");
    cr_assert_str_eq(map_text(reply, "state"), "waiting");
}

Test(native_create, an_id_exists_once) {
    test_server *server = native_start();
    native_claim(server, 1);
    redisReply *reply =
        server_call(server, "FF.CREATE", native_id(1), "other", "kind", "PAYLOAD", "p");
    cr_assert_eq(map_integer(reply, "created"), 0);
    cr_assert_str_eq(map_text(reply, "state"), "active");
    native_field(server, 1, "lane_id", "default");
}

Test(native_create, idempotent) {
    test_server *server = native_start();
    redisReply *first =
        server_call(server, "FF.CREATE", "*", "default", "job", "IDEMPOTENT", "k", "1000");
    const char *id = map_text(first, "execution_id");
    redisReply *second =
        server_call(server, "FF.CREATE", "*", "default", "job", "IDEMPOTENT", "k", "1000");
    cr_assert_str_eq(map_text(second, "execution_id"), id);
    cr_assert_eq(map_integer(second, "created"), 0);
    redisReply *tenant = server_call(server, "FF.CREATE", "*", "default", "job", "IDEMPOTENT", "k",
                                     "1000", "NAMESPACE", "other");
    cr_assert_eq(map_integer(tenant, "created"), 1);
    native_refused(server, "ERR option IDEMPOTENT needs ttl-ms", "FF.CREATE", "*", "l", "k",
                   "IDEMPOTENT", "x");
    native_refused(server, "ERR IDEMPOTENT ttl-ms must be an integer between 1", "FF.CREATE", "*",
                   "l", "k", "IDEMPOTENT", "x", "0");
    native_refused(server, "ERR an idempotency key must not contain", "FF.CREATE", "*", "l", "k",
                   "IDEMPOTENT", "ff:noop:", "10");
    server_set_time(server, FROZEN_START_MS + 1001);
    redisReply *later =
        server_call(server, "FF.CREATE", "*", "default", "job", "IDEMPOTENT", "k", "1000");
    cr_assert_eq(map_integer(later, "created"), 1);
}

/* The wire function leaves an execution that is due already in the delayed index, where no claim
 * looks. */
Test(native_create, due_already_is_eligible_at_once) {
    test_server *server = native_start();
    redisReply *reply =
        server_call(server, "FF.CREATE", native_id(1), "default", "job", "AT", "1767225599000");
    cr_assert_str_eq(map_text(reply, "state"), "waiting");
    cr_assert(native_in(server, native_lane("eligible"), 1));
    cr_assert(!native_in(server, native_lane("delayed"), 1));
    reply = server_call(server, "FF.CREATE", native_id(2), "default", "job", "DELAY", "0");
    cr_assert_str_eq(map_text(reply, "state"), "waiting");
    native_claim_next(server);
    native_claim_next(server);
}

Test(native_create, refusals) {
    test_server *server = native_start();
    const char *long_lane = "01234567890123456789012345678901234567890123456789012345678901234";
    static const char *const bad_places[] = {"",
                                             "?",
                                             "{fp:7",
                                             "{fp:07}",
                                             "{fp:256}",
                                             "{fp:-1}",
                                             "{b:1}",
                                             "fp:7",
                                             "{fp:x}",
                                             "{fp:7}:",
                                             "{fp:7}:x",
                                             "{fp:07}:f10f0001-0000-4000-8000-000000000001",
                                             "{fp:256}:f10f0001-0000-4000-8000-000000000001",
                                             "{b:1}:f10f0001-0000-4000-8000-000000000001",
                                             "f10f0001-0000-4000-8000-000000000001"};
    for (size_t i = 0; i < sizeof bad_places / sizeof *bad_places; i++) {
        native_refused(server, spell("ERR '%s' ", bad_places[i]), "FF.CREATE", bad_places[i], "l",
                       "k");
    }
    native_refused(server, "ERR the lane must be 1 to 64", "FF.CREATE", "*", "", "k");
    native_refused(server, "ERR the lane must be 1 to 64", "FF.CREATE", "*", "a\tb", "k");
    native_refused(server, "ERR the lane must be 1 to 64", "FF.CREATE", "*", long_lane, "k");
    native_refused(server, "ERR the kind must not be empty", "FF.CREATE", "*", "l", "");
    native_refused(server, "ERR NAMESPACE must not be empty", "FF.CREATE", "*", "l", "k",
                   "NAMESPACE", "");
    native_refused(server, "ERR PRIORITY must be an integer between 0 and 9000, got: 9001",
                   "FF.CREATE", "*", "l", "k", "PRIORITY", "9001");
    native_refused(server, "ERR options DELAY and AT exclude each other", "FF.CREATE", "*", "l",
                   "k", "DELAY", "1", "AT", "2");
    native_refused(server, "ERR TAGS announces 4 values, but 3 follow", "FF.CREATE", "*", "l", "k",
                   "TAGS", "2", "a", "b", "c");
    native_refused(server, "ERR the count of TAGS must be", "FF.CREATE", "*", "l", "k", "TAGS",
                   "-1");
    native_refused(server, "ERR option PAYLOAD given twice", "FF.CREATE", "*", "l", "k", "PAYLOAD",
                   "a", "payload", "b");
    native_refused(server, "ERR unknown option 'LANE'", "FF.CREATE", "*", "l", "k", "LANE", "b");
    native_refused(server, "INVALID_POLICY_JSON ", "FF.CREATE", "*", "l", "k", "POLICY", "{");
    native_refused(server, "INVALID_CAPABILITIES ", "FF.CREATE", "*", "l", "k", "POLICY",
                   "{\"routing_requirements\":{\"required_capabilities\":[1]}}");
    native_refused(server, "INVALID_CAPABILITIES ", "FF.CREATE", "*", "l", "k", "CAPS", "a,,b");
    native_refused(server, "INVALID_CAPABILITIES ", "FF.CREATE", "*", "l", "k", "CAPS", "a b");
    native_refused(server, "ERR CAPS excludes a POLICY", "FF.CREATE", "*", "l", "k", "CAPS", "a",
                   "POLICY", "{\"routing_requirements\":{\"required_capabilities\":[\"a\"]}}");
    native_refused(server, "ERR '{b:4}' is not a budget", "FF.CREATE", "*", "l", "k", "BUDGETS",
                   "1", "{b:4}");
    native_refused(server,
                   "ERR the tag of '{b:4}:" BUDGET_ID "' is not that of its id: use " BUDGET_REF,
                   "FF.CREATE", "*", "l", "k", "BUDGETS", "1", "{b:4}:" BUDGET_ID);
    native_refused(server, "ERR '" BUDGET_REF "' is not a quota policy", "FF.CREATE", "*", "l", "k",
                   "QUOTA", BUDGET_REF);
    native_refused(server, "ERR wrong number of arguments", "FF.CREATE", "*", "l");
}

Test(native_create, a_wrong_type_refuses_everything) {
    test_server *server = native_start();
    server_do(server, "SET", native_lane("eligible"), "text");
    native_refused(server, "WRONGTYPE ", "FF.CREATE", native_id(1), "default", "job", "PAYLOAD",
                   "p");
}

Test(native_create, in_a_flow) {
    test_server *server = native_start();
    native_refused(server, "NOT_FOUND no such flow", "FF.CREATE", native_id(1), "default", "job",
                   "FLOW", FLOW_REF);
    server_do(server, "FF.FLOW", "CREATE", FLOW_REF, "order");
    redisReply *reply =
        server_call(server, "FF.CREATE", native_id(1), "default", "job", "FLOW", FLOW_REF);
    cr_assert_str_eq(map_text(reply, "state"), "waiting");
    native_field(server, 1, "flow_id", FLOW_ID);
    reply = server_call(server, "FF.CREATE", native_id(2), "default", "job", "FLOW", FLOW_REF,
                        "AFTER", "1", native_id(1));
    cr_assert_str_eq(map_text(reply, "state"), "waiting_children");
    cr_assert(!native_in(server, native_lane("eligible"), 2));
    cr_assert_eq(server_integer(server, "SCARD", native_key(2, "deps:unresolved")), 1);
    /* A bare id, and the partition of the flow. */
    reply = server_call(server, "FF.CREATE", "*", "default", "job", "FLOW", FLOW_ID);
    cr_assert_eq(strncmp(map_text(reply, "execution_id"), FP ":", strlen(FP) + 1), 0);

    native_refused(server, "ERR AFTER needs a FLOW", "FF.CREATE", native_id(4), "default", "job",
                   "AFTER", "1", native_id(1));
    native_refused(server, "ERR '{fp:8}' is not in the partition of its FLOW: use " FP " or *",
                   "FF.CREATE", "{fp:8}", "default", "job", "FLOW", FLOW_REF);
    native_refused(
        server,
        spell("EXECUTION_NOT_IN_FLOW both ends of an edge must be members of the flow: %s",
              native_id(9)),
        "FF.CREATE", native_id(4), "default", "job", "FLOW", FLOW_REF, "AFTER", "1", native_id(9));
    native_refused(server, "ERR AFTER '{fp:8}:" FLOW_ID "' is not in the flow's partition " FP,
                   "FF.CREATE", native_id(4), "default", "job", "FLOW", FLOW_REF, "AFTER", "1",
                   "{fp:8}:" FLOW_ID);
    native_refused(server, "SELF_REFERENCING_EDGE ", "FF.CREATE", native_id(4), "default", "job",
                   "FLOW", FLOW_REF, "AFTER", "1", native_id(4));
    native_refused(server, "ERR AFTER excludes DELAY and AT", "FF.CREATE", native_id(4), "default",
                   "job", "FLOW", FLOW_REF, "DELAY", "5", "AFTER", "1", native_id(1));
    native_refused(server, "ERR the count of AFTER", "FF.CREATE", native_id(4), "default", "job",
                   "FLOW", FLOW_REF, "AFTER", "0");
    native_refused(server, "ERR 'x' is not an execution id", "FF.CREATE", native_id(4), "default",
                   "job", "FLOW", FLOW_REF, "AFTER", "1", "x");
    native_refused(server,
                   "ERR the tag of '{fp:8}:" FLOW_ID "' is not that of its id: use " FLOW_REF,
                   "FF.CREATE", native_id(4), "default", "job", "FLOW", "{fp:8}:" FLOW_ID);
}

/* What is waited for may be over already. */
Test(native_create, after_what_has_ended) {
    test_server *server = native_start();
    server_do(server, "FF.FLOW", "CREATE", FLOW_REF, "order");
    server_do(server, "FF.CREATE", native_id(1), "default", "job", "FLOW", FLOW_REF);
    held h = native_claim_next(server);
    server_do(server, "FF.COMPLETE", FENCE(h));
    server_do(server, "FF.CREATE", native_id(2), "default", "job", "FLOW", FLOW_REF);
    h = native_claim_next(server);
    server_do(server, "FF.FAIL", FENCE(h), "broken");
    redisReply *reply = server_call(server, "FF.CREATE", native_id(3), "default", "job", "FLOW",
                                    FLOW_REF, "AFTER", "1", native_id(1));
    cr_assert_str_eq(map_text(reply, "state"), "waiting");
    cr_assert(native_in(server, native_lane("eligible"), 3));
    reply = server_call(server, "FF.CREATE", native_id(4), "default", "job", "FLOW", FLOW_REF,
                        "AFTER", "2", native_id(1), native_id(2));
    cr_assert_str_eq(map_text(reply, "state"), "skipped");
    cr_assert(native_in(server, native_lane("terminal"), 4));
}

/* The end of a member promotes what waits for it in the same step. */
Test(native_create, dependents_are_resolved_with_the_end) {
    test_server *server = native_start();
    server_do(server, "FF.FLOW", "CREATE", FLOW_REF, "order");
    server_do(server, "FF.CREATE", native_id(1), "default", "job", "FLOW", FLOW_REF);
    server_do(server, "FF.CREATE", native_id(2), "default", "job", "FLOW", FLOW_REF, "AFTER", "1",
              native_id(1));
    server_do(server, "FF.CREATE", native_id(3), "default", "job", "FLOW", FLOW_REF, "AFTER", "1",
              native_id(2));
    held h = native_claim_next(server);
    server_do(server, "MULTI");
    server_call(server, "FF.COMPLETE", FENCE(h));
    server_call(server, "HGET", native_key(2, "core"), "public_state");
    redisReply *replies = server_call(server, "EXEC");
    cr_assert_str_eq(replies->element[1]->str, "waiting");
    server_do(server, "FF.CANCEL", native_id(2), "why");
    native_field(server, 3, "public_state", "skipped");
}
