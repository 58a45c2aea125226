/* What the native commands do not inherit: each defect of the wire function, and the native
 * command beside it. */
#include "native.h"

#include <criterion/criterion.h>
#include <string.h>

#define FLOW_ID "f1000001-0000-4000-8000-000000002039"
#define FLOW_REF FP ":" FLOW_ID
#define QUOTA_ID "a1000001-0000-4000-8000-000000000059"
#define QUOTA_REF "{q:5}:" QUOTA_ID
#define SUSPEND "REASON", "step_boundary", "CONDITION", "{\"required_signal_names\":[\"go\"]}"

static const char *attempt_key(int number) {
    return spell("ff:attempt:" FP ":%s:0", native_id(number));
}

static const char *stream_meta_key(int number) {
    return spell("ff:stream:" FP ":%s:0:meta", native_id(number));
}

static const char *waitpoint_key(const char *id, const char *suffix) {
    return spell("ff:wp:" FP ":%s%s", id, suffix);
}

static const char *first_waitpoint(const redisReply *suspended) {
    return map_text(map_value(suspended, "waitpoints")->element[0], "waitpoint_id");
}

static const char *token_of(const redisReply *suspended) {
    return map_text(map_value(suspended, "waitpoints")->element[0], "token");
}

static redisReply *suspend(test_server *server, int number) {
    held h = native_claim(server, number);
    return server_call(server, "FF.SUSPEND", FENCE(h), SUSPEND);
}

/* As existing clients call it: with the suspension where the waitpoint and its condition should
 * be. */
static void cancel_by_wire(test_server *server, int number) {
    const char *suspension = native_key(number, "suspension:current");
    redisReply *reply = server_call(
        server, "FF.CALL", "ff_cancel_execution", "21", native_key(number, "core"),
        attempt_key(number), stream_meta_key(number), native_key(number, "lease:current"),
        native_key(number, "lease:history"), native_index("lease_expiry"),
        native_index("worker:wi:leases"), suspension, suspension, suspension,
        native_index("suspension_timeout"), native_lane("terminal"),
        native_index("attempt_timeout"), native_index("execution_deadline"),
        native_lane("eligible"), native_lane("delayed"), native_lane("blocked:dependencies"),
        native_lane("blocked:budget"), native_lane("blocked:quota"), native_lane("blocked:route"),
        native_lane("blocked:operator"), native_id(number), "why", "", "", "");
    cr_assert_str_eq(reply->element[1]->str, "OK");
}

Test(native_defects, cancelling_what_another_holds) {
    test_server *server = native_start();
    native_claim(server, 1);
    cancel_by_wire(server, 1);
    native_field(server, 1, "public_state", "cancelled");
    held h = native_claim(server, 2);
    native_refused(server, "FENCE_REQUIRED ", "FF.CANCEL", h.id, "why");
    server_do(server, "FF.CANCEL", h.id, "why", "LEASE", h.lease, h.epoch);
    native_claim(server, 3);
    server_do(server, "FF.CANCEL", native_id(3), "why", "OPERATOR");
}

Test(native_defects, cancelling_leaves_the_waitpoint_open) {
    test_server *server = native_start();
    const char *id = first_waitpoint(suspend(server, 1));
    cancel_by_wire(server, 1);
    cr_assert_str_eq(server_text(server, "HGET", waitpoint_key(id, ""), "state"), "active");
    id = first_waitpoint(suspend(server, 2));
    server_do(server, "FF.CANCEL", native_id(2), "why");
    cr_assert_str_eq(server_text(server, "HGET", waitpoint_key(id, ""), "state"), "closed");
    cr_assert_str_eq(server_text(server, "HGET", waitpoint_key(id, ":condition"), "closed"), "1");
}

static void revoke_by_wire(test_server *server, int number) {
    redisReply *reply = server_call(
        server, "FF.CALL", "ff_revoke_lease", "5", native_key(number, "core"),
        native_key(number, "lease:current"), native_key(number, "lease:history"),
        native_index("lease_expiry"), native_index("worker:wi:leases"), native_id(number), "", "x");
    cr_assert_str_eq(reply->element[2]->str, "revoked");
}

Test(native_defects, nobody_finds_a_revoked_execution) {
    test_server *server = native_start();
    native_claim(server, 1);
    revoke_by_wire(server, 1);
    cr_assert_eq(server_call(server, "FF.CLAIM", "default", "w", "wi")->elements, 0);
    native_claim(server, 2);
    server_do(server, "FF.REVOKE", native_id(2), "x");
    cr_assert_str_eq(native_claim_next(server).id, native_id(2));
}

Test(native_defects, due_already) {
    test_server *server = native_start();
    const char *id = native_id(1);
    redisReply *reply =
        server_call(server, "FF.CALL", "ff_create_execution", "8", native_key(1, "core"),
                    native_key(1, "payload"), native_key(1, "policy"), native_key(1, "tags"),
                    native_lane("delayed"), "ff:noop:" FP, native_index("execution_deadline"),
                    native_index("all_executions"), id, "ns", "default", "job", "0", "", "", "",
                    "1767225599000", "", "", "", "7");
    cr_assert_str_eq(reply->element[1]->str, "OK");
    cr_assert(native_in(server, native_lane("delayed"), 1));
    cr_assert_eq(server_call(server, "FF.CLAIM", "default", "w", "wi")->elements, 0);
    server_do(server, "FF.CREATE", native_id(2), "default", "job", "AT", "1767225599000");
    cr_assert_str_eq(native_claim_next(server).id, native_id(2));
}

static void resume_by_wire(test_server *server, int number, const char *waitpoint,
                           const char *delay) {
    server_do(server, "FF.CALL", "ff_resume_execution", "8", native_key(number, "core"),
              native_key(number, "suspension:current"), waitpoint_key(waitpoint, ""),
              waitpoint_key(waitpoint, ":signals"), native_index("suspension_timeout"),
              native_lane("eligible"), native_lane("delayed"), native_lane("suspended"),
              native_id(number), "operator", delay);
}

static const char *promote(test_server *server, int number) {
    redisReply *reply = server_call(server, "FF.CALL", "ff_promote_delayed", "3",
                                    native_key(number, "core"), native_lane("delayed"),
                                    native_lane("eligible"), native_id(number), "1767225600500");
    return reply->element[reply->element[0]->integer ? 2 : 1]->str;
}

Test(native_defects, a_delayed_resume_is_never_due) {
    test_server *server = native_start();
    resume_by_wire(server, 1, first_waitpoint(suspend(server, 1)), "500");
    cr_assert_str_eq(promote(server, 1), "invalid_input");
    suspend(server, 2);
    server_do(server, "FF.RESUME", native_id(2), "DELAY", "500");
    cr_assert_str_eq(promote(server, 2), "promoted");
}

/* Sends `go` to a waitpoint with the wire function; returns its answer's second element. */
static const char *signal_by_wire(test_server *server, int number, const char *waitpoint,
                                  const char *token) {
    redisReply *reply = server_call(
        server, "FF.CALL", "ff_deliver_signal", "15", native_key(number, "core"),
        waitpoint_key(waitpoint, ":condition"), waitpoint_key(waitpoint, ":signals"),
        native_key(number, "signals"), "ff:signal:" FP ":s1", "ff:signal:" FP ":s1:payload",
        "ff:noop:" FP, waitpoint_key(waitpoint, ""), native_key(number, "suspension:current"),
        native_lane("eligible"), native_lane("suspended"), native_lane("delayed"),
        native_index("suspension_timeout"), SECRET_KEY, "ff:part:" FP ":signal_delivery", "s1",
        native_id(number), waitpoint, "go", "", "", "", "", "json", "", "", "waitpoint", "",
        "86400000", "0", "1000", "10000", token);
    return reply->element[1]->str;
}

/* Suspends the execution again and says whether the old token ends that suspension. */
static bool old_token_works(test_server *server, int number, const char *waitpoint,
                            const char *token) {
    held h = native_claim_next(server);
    cr_assert_str_eq(h.id, native_id(number));
    server_do(server, "FF.SUSPEND", FENCE(h), SUSPEND);
    return strcmp(signal_by_wire(server, number, waitpoint, token), "OK") == 0;
}

Test(native_defects, an_old_token_ends_the_next_suspension) {
    test_server *server = native_start();
    redisReply *old = suspend(server, 1);
    resume_by_wire(server, 1, first_waitpoint(old), "0");
    cr_assert(old_token_works(server, 1, first_waitpoint(old), token_of(old)));
    server_do(server, "FF.CANCEL", native_id(1), "over");
    old = suspend(server, 2);
    server_do(server, "FF.RESUME", native_id(2));
    cr_assert(!old_token_works(server, 2, first_waitpoint(old), token_of(old)));
}

Test(native_defects, a_closed_waitpoint_ends_the_next_suspension) {
    test_server *server = native_start();
    redisReply *old = suspend(server, 1);
    server_do(server, "FF.CALL", "ff_close_waitpoint", "3", native_key(1, "core"),
              waitpoint_key(first_waitpoint(old), ""), native_index("pending_waitpoint_expiry"),
              first_waitpoint(old), "x");
    cr_assert_str_eq(signal_by_wire(server, 1, first_waitpoint(old), token_of(old)), "OK");
    server_do(server, "FF.CANCEL", native_id(1), "over");
    old = suspend(server, 2);
    server_do(server, "FF.WAITPOINT", "CLOSE", native_id(2), first_waitpoint(old));
    cr_assert_str_eq(signal_by_wire(server, 2, first_waitpoint(old), token_of(old)),
                     "waitpoint_closed");
}

/* 2 waits for 1, which fails, is replayed, and succeeds; then 2 is replayed. */
static void skip_and_recover(test_server *server) {
    server_do(server, "FF.FLOW", "CREATE", FLOW_REF, "order");
    server_do(server, "FF.CREATE", native_id(1), "default", "job", "FLOW", FLOW_REF);
    server_do(server, "FF.CREATE", native_id(2), "default", "job", "FLOW", FLOW_REF, "AFTER", "1",
              native_id(1));
    held h = native_claim_next(server);
    server_do(server, "FF.FAIL", FENCE(h), "broken");
    native_field(server, 2, "public_state", "skipped");
    server_do(server, "FF.REPLAY", native_id(1));
    h = native_claim_next(server);
    server_do(server, "FF.COMPLETE", FENCE(h));
}

Test(native_defects, a_replayed_member_waits_for_ever) {
    const char *group = spell("ff:flow:" FP ":" FLOW_ID ":edgegroup:%s", native_id(2));
    test_server *server = native_start();
    skip_and_recover(server);
    redisReply *edges = server_call(server, "SMEMBERS", native_key(2, "deps:all_edges"));
    const char *edge = edges->element[0]->str;
    server_do(server, "FF.CALL", "ff_replay_execution", "8", native_key(2, "core"),
              native_lane("terminal"), native_lane("eligible"), native_key(2, "lease:history"),
              native_lane("blocked:dependencies"), native_key(2, "deps:meta"),
              native_key(2, "deps:unresolved"), native_key(2, spell("dep:%s", edge)), native_id(2),
              "0", edge);
    native_field(server, 2, "public_state", "waiting_children");
    cr_assert_str_eq(server_text(server, "HGET", group, "group_state"), "impossible");
    server_do(server, "FLUSHALL");
    skip_and_recover(server);
    server_do(server, "FF.REPLAY", native_id(2));
    native_field(server, 2, "public_state", "waiting");
    cr_assert_str_eq(server_text(server, "HGET", group, "group_state"), "satisfied");
}

/* 2 waits for 1, whose lease was revoked and must not be taken over any more. */
static void come_to_the_cap(test_server *server) {
    server_do(server, "FF.FLOW", "CREATE", FLOW_REF, "order");
    server_do(server, "FF.CREATE", native_id(1), "default", "job", "FLOW", FLOW_REF, "POLICY",
              "{\"max_reclaim_count\":0}");
    server_do(server, "FF.CREATE", native_id(2), "default", "job", "FLOW", FLOW_REF, "AFTER", "1",
              native_id(1));
    native_claim_next(server);
    server_do(server, "FF.REVOKE", native_id(1), "x");
}

Test(native_defects, the_reclaim_cap_tells_nobody) {
    test_server *server = native_start();
    come_to_the_cap(server);
    redisReply *reply = server_call(
        server, "FF.CALL", "ff_reclaim_execution", "14", native_key(1, "core"),
        native_key(1, "claim_grant"), attempt_key(1), stream_meta_key(1), attempt_key(1),
        attempt_key(1), native_key(1, "attempts"), native_key(1, "lease:current"),
        native_key(1, "lease:history"), native_index("lease_expiry"),
        native_index("worker:wi:leases"), native_lane("active"), native_index("attempt_timeout"),
        native_index("execution_deadline"), native_id(1), "w", "wi", "default", "lease", "1000",
        "attempt", "", "100");
    cr_assert_str_eq(reply->element[1]->str, "max_retries_exhausted");
    native_field(server, 1, "public_state", "failed");
    native_field(server, 2, "public_state", "waiting_children");
    server_do(server, "FLUSHALL");
    come_to_the_cap(server);
    cr_assert_eq(server_call(server, "FF.CLAIM", "default", "w", "wi")->elements, 0);
    native_field(server, 1, "public_state", "failed");
    native_field(server, 2, "public_state", "skipped");
}

/* As a wire client resets it: the record appears with nothing but the counters. */
Test(native_defects, resetting_what_was_never_there) {
    test_server *server = native_start();
    const char *budget = "b1000001-0000-4000-8000-000000000011";
    const char *record = spell("ff:budget:{b:3}:%s", budget);
    native_refused(server, "NOT_FOUND no such budget", "FF.BUDGET", "RESET", budget);
    native_refused(server, "NOT_FOUND no such budget", "FF.BUDGET", "SPEND", budget, native_id(1),
                   "1", "tokens", "1");
    server_do(server, "FF.CALL", "ff_reset_budget", "3", record, spell("%s:usage", record),
              "ff:idx:{b:3}:budget_resets", budget, "1767225600000");
    cr_assert_eq(server_integer(server, "EXISTS", record), 1, "the wire function makes one");
}

Test(native_defects, a_slot_outlives_its_work) {
    test_server *server = native_start();
    const char *concurrency = "ff:quota:{q:5}:" QUOTA_ID ":concurrency";
    server_do(server, "FF.QUOTA", "CREATE", QUOTA_REF, "CONCURRENCY", "5");
    for (int i = 1; i <= 2; i++) {
        server_do(server, "FF.CREATE", native_id(i), "default", "job", "QUOTA", QUOTA_REF);
    }
    held h = native_claim_next(server);
    cr_assert_str_eq(h.id, native_id(1));
    server_do(server, "FF.CALL", "ff_complete_execution", "12", native_key(1, "core"),
              attempt_key(1), native_index("lease_expiry"), native_index("worker:wi:leases"),
              native_lane("terminal"), native_key(1, "lease:current"),
              native_key(1, "lease:history"), native_lane("active"), stream_meta_key(1),
              native_key(1, "result"), native_index("attempt_timeout"),
              native_index("execution_deadline"), FENCE(h), "", "");
    native_field(server, 1, "public_state", "completed");
    cr_assert_str_eq(server_text(server, "GET", concurrency), "1");
    h = native_claim_next(server);
    cr_assert_str_eq(server_text(server, "GET", concurrency), "2");
    server_do(server, "FF.COMPLETE", FENCE(h));
    cr_assert_str_eq(server_text(server, "GET", concurrency), "1");
}
