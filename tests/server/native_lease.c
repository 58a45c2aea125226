/* The commands of a worker that holds a lease. */
#include "native.h"

#include <criterion/criterion.h>
#include <string.h>

#define CONDITION "{\"required_signal_names\":[\"go\"]}"

/* Commands that are fenced by lease, epoch and attempt: name, subcommand, what follows the
 * fence. */
typedef struct fenced {
    const char *names[3];
    const char *rest[8];
} fenced;

static const fenced fenced_commands[] = {
    {{"FF.RENEW"}, {"LEASE", "5000"}},
    {{"FF.COMPLETE"}, {"RESULT", "r"}},
    {{"FF.FAIL"}, {"broken"}},
    {{"FF.DELAY"}, {"FOR", "1000"}},
    {{"FF.WAITCHILDREN"}, {NULL}},
    {{"FF.SUSPEND"}, {"REASON", "step_boundary", "CONDITION", CONDITION}},
    {{"FF.WAITPOINT", "CREATE"}, {"TTL", "1000"}},
};

enum { FENCED = sizeof fenced_commands / sizeof *fenced_commands };

static redisReply *send_fenced(test_server *server, const fenced *f, held h) {
    const char *words[16];
    size_t count = 0;
    for (size_t i = 0; f->names[i]; i++) words[count++] = f->names[i];
    words[count++] = h.id;
    words[count++] = h.lease;
    words[count++] = h.epoch;
    words[count++] = h.attempt;
    for (size_t i = 0; f->rest[i]; i++) words[count++] = f->rest[i];
    words[count] = NULL;
    return server_call_words(server, words);
}

static void expect_refused(test_server *server, held h, const char *word, bool changes_nothing) {
    for (size_t i = 0; i < FENCED; i++) {
        const char *before = server_digest(server);
        redisReply *reply = send_fenced(server, &fenced_commands[i], h);
        const char *name = fenced_commands[i].names[0];
        cr_assert_eq(reply->type, REDIS_REPLY_ERROR, "%s: %s expected", name, word);
        size_t length = strlen(word);
        cr_assert(strncmp(reply->str, word, length) == 0 && reply->str[length] == ' ',
                  "%s: '%s' instead of %s", name, reply->str, word);
        if (changes_nothing) cr_assert_str_eq(server_digest(server), before, "%s", name);
    }
}

Test(native_lease, fences) {
    test_server *server = native_start();
    held h = native_claim(server, 1);
    held wrong = h;
    wrong.id = native_id(2);
    expect_refused(server, wrong, "NOT_FOUND", true);
    wrong = h;
    wrong.lease = "another";
    expect_refused(server, wrong, "STALE_LEASE", true);
    wrong = h;
    wrong.epoch = "01";
    expect_refused(server, wrong, "STALE_LEASE", true);
    wrong = h;
    wrong.attempt = "another";
    expect_refused(server, wrong, "STALE_LEASE", true);
    wrong.attempt = "";
    expect_refused(server, wrong, "PARTIAL_FENCE_TRIPLE", true);
    wrong.lease = wrong.epoch = "";
    expect_refused(server, wrong, "FENCE_REQUIRED", true);
    wrong = h;
    native_create(server, 3);
    wrong.id = native_id(3);
    expect_refused(server, wrong, "EXECUTION_NOT_ACTIVE", true);
    server_set_time(server, FROZEN_START_MS + 30000);
    expect_refused(server, h, "LEASE_EXPIRED", false);
    native_field(server, 1, "ownership_state", "lease_expired_reclaimable");
}

Test(native_lease, a_revoked_lease_is_refused) {
    test_server *server = native_start();
    held h = native_claim(server, 1);
    server_do(server, "FF.REVOKE", h.id, "maintenance");
    expect_refused(server, h, "LEASE_REVOKED", true);
    native_refused(server, "LEASE_REVOKED ", "FF.PROGRESS", h.id, h.lease, h.epoch);
    native_refused(server, "LEASE_REVOKED ", "FF.CANCEL", h.id, "x", "LEASE", h.lease, h.epoch);
}

Test(native_lease, renew) {
    test_server *server = native_start();
    held h = native_claim(server, 1);
    server_set_time(server, FROZEN_START_MS + 10000);
    redisReply *reply = server_call(server, "FF.RENEW", FENCE(h));
    cr_assert_eq(map_integer(reply, "expires_at"), FROZEN_START_MS + 40000);
    reply = server_call(server, "ff.renew", FENCE(h), "lease", "5000");
    cr_assert_eq(map_integer(reply, "expires_at"), FROZEN_START_MS + 15000);
    native_field(server, 1, "lease_expires_at", "1767225615000");
    cr_assert_str_eq(server_text(server, "ZSCORE", native_index("lease_expiry"), h.id),
                     "1767225615000");
    cr_assert_eq(server_integer(server, "PEXPIRETIME", native_key(1, "lease:current")),
                 FROZEN_START_MS + 20000);
    native_refused(server, "ERR LEASE must be an integer between 1 and", "FF.RENEW", FENCE(h),
                   "LEASE", "0");
    native_refused(server, "ERR LEASE must be an integer", "FF.RENEW", FENCE(h), "LEASE", "long");
    native_refused(server, "ERR option LEASE needs a value", "FF.RENEW", FENCE(h), "LEASE");
    native_refused(server, "ERR option LEASE given twice", "FF.RENEW", FENCE(h), "LEASE", "1",
                   "LEASE", "1");
    native_refused(server, "ERR unknown option 'SOON'", "FF.RENEW", FENCE(h), "SOON");
    native_refused(server, "ERR wrong number of arguments", "FF.RENEW", h.id, h.lease, h.epoch);
}

Test(native_lease, progress) {
    test_server *server = native_start();
    held h = native_claim(server, 1);
    redisReply *reply =
        server_call(server, "FF.PROGRESS", h.id, h.lease, h.epoch, "PCT", "40", "MESSAGE", "half");
    cr_assert_str_eq(map_text(reply, "state"), "active");
    native_field(server, 1, "progress_pct", "40");
    native_field(server, 1, "progress_message", "half");
    server_do(server, "FF.PROGRESS", h.id, h.lease, h.epoch);
    native_field(server, 1, "progress_pct", "40");
    native_refused(server, "STALE_LEASE ", "FF.PROGRESS", h.id, "other", h.epoch);
    native_refused(server, "NOT_FOUND ", "FF.PROGRESS", native_id(9), h.lease, h.epoch);
    native_refused(server, "ERR PCT must be an integer between 0 and 100, got: 101", "FF.PROGRESS",
                   h.id, h.lease, h.epoch, "PCT", "101");
    native_refused(server, "ERR option MESSAGE needs a value", "FF.PROGRESS", h.id, h.lease,
                   h.epoch, "MESSAGE");
    server_set_time(server, FROZEN_START_MS + 30000);
    native_refused(server, "LEASE_EXPIRED ", "FF.PROGRESS", h.id, h.lease, h.epoch);
    native_create(server, 2);
    native_refused(server, "EXECUTION_NOT_ACTIVE ", "FF.PROGRESS", native_id(2), h.lease, h.epoch);
}

Test(native_lease, complete) {
    test_server *server = native_start();
    held h = native_claim(server, 1);
    redisReply *reply = server_call(server, "FF.COMPLETE", FENCE(h), "RESULT", "done");
    cr_assert_eq(reply->elements, 2);
    cr_assert_str_eq(map_text(reply, "state"), "completed");
    cr_assert_str_eq(server_text(server, "GET", native_key(1, "result")), "done");
    cr_assert(native_in(server, native_lane("terminal"), 1));
    cr_assert(!native_in(server, native_index("lease_expiry"), 1));
    redisReply *again = server_call(server, "FF.COMPLETE", FENCE(h));
    cr_assert_str_eq(again->str, spell("EXECUTION_NOT_ACTIVE the execution is not active: outcome "
                                       "success, epoch 1, phase terminal, attempt %s",
                                       h.attempt));
}

Test(native_lease, complete_and_claim) {
    test_server *server = native_start();
    held h = native_claim(server, 1);
    native_create(server, 2);
    redisReply *reply =
        server_call(server, "FF.COMPLETE", FENCE(h), "RESULT", "r", "CLAIM", "default", "w", "wi");
    cr_assert_str_eq(map_text(reply, "state"), "completed");
    redisReply *claimed = map_value(reply, "claimed");
    cr_assert_eq(claimed->elements, 1);
    cr_assert_str_eq(map_text(claimed->element[0], "execution_id"), native_id(2));
    held next = {native_id(2), map_text(claimed->element[0], "lease_id"), "1",
                 map_text(claimed->element[0], "attempt_id")};

    native_refused(server, "ERR option CLAIM needs a lane, a worker and an instance", "FF.COMPLETE",
                   FENCE(next), "CLAIM");
    native_refused(server, "ERR option CLAIM needs a lane, a worker and an instance", "FF.COMPLETE",
                   FENCE(next), "CLAIM", "default", "w");
    native_refused(server, "ERR COUNT must be", "FF.COMPLETE", FENCE(next), "CLAIM", "default", "w",
                   "wi", "COUNT", "0");
    held stale = next;
    stale.lease = "x";
    native_create(server, 3);
    native_refused(server, "STALE_LEASE ", "FF.COMPLETE", FENCE(stale), "CLAIM", "default", "w",
                   "wi");
    native_field(server, 3, "public_state", "waiting");
    held last = native_claim_next(server);
    cr_assert_str_eq(last.id, native_id(3));

    reply = server_call(server, "FF.COMPLETE", FENCE(next), "CLAIM", "default", "w", "wi");
    cr_assert_eq(map_value(reply, "claimed")->elements, 0);
    redisContext *waiting = native_send(server, "FF.COMPLETE", FENCE(last), "CLAIM", "default", "w",
                                        "wi", "BLOCK", "0");
    native_expect_blocked(server, 1);
    native_field(server, 3, "public_state", "completed");
    native_create(server, 4);
    reply = native_receive(waiting);
    cr_assert_str_eq(map_text(reply, "state"), "completed");
    cr_assert_str_eq(map_text(map_value(reply, "claimed")->element[0], "execution_id"),
                     native_id(4));
}

Test(native_lease, fail_for_good) {
    test_server *server = native_start();
    held h = native_claim(server, 1);
    native_refused(server, "ERR RETRY must be a JSON object", "FF.FAIL", FENCE(h), "r", "RETRY",
                   "often");
    native_refused(server, "ERR RETRY must be a JSON object", "FF.FAIL", FENCE(h), "r", "RETRY",
                   "[1]");
    native_refused(server, "ERR option RETRY needs a value", "FF.FAIL", FENCE(h), "r", "RETRY");
    native_refused(server, "INVALID_INPUT ", "FF.FAIL", FENCE(h), "r", "RETRY",
                   "{\"max_retries\":\"many\"}");
    redisReply *reply = server_call(server, "FF.FAIL", FENCE(h), "broken", "CATEGORY", "bug");
    cr_assert_eq(reply->elements, 2);
    cr_assert_str_eq(map_text(reply, "state"), "failed");
    native_field(server, 1, "failure_reason", "broken");
    cr_assert_str_eq(
        server_text(server, "HGET", spell("ff:attempt:" FP ":%s:0", h.id), "failure_category"),
        "bug");
}

Test(native_lease, fail_and_retry) {
    test_server *server = native_start();
    held h = native_claim(server, 1);
    redisReply *reply =
        server_call(server, "FF.FAIL", FENCE(h), "broken", "RETRY",
                    "{\"max_retries\":1,\"backoff\":{\"type\":\"fixed\",\"delay_ms\":250}}");
    cr_assert_str_eq(map_text(reply, "state"), "delayed");
    cr_assert_eq(map_integer(reply, "retry_at"), FROZEN_START_MS + 250);
    cr_assert(native_in(server, native_lane("delayed"), 1));
}

/* Without RETRY the execution's own policy decides. */
Test(native_lease, fail_by_own_policy) {
    test_server *server = native_start();
    server_do(server, "FF.CREATE", native_id(1), "default", "job", "POLICY",
              "{\"retry_policy\":{\"max_retries\":2,\"backoff\":{\"type\":\"exponential\","
              "\"initial_delay_ms\":100}}}");
    held h = native_claim_next(server);
    redisReply *reply = server_call(server, "FF.FAIL", FENCE(h), "broken");
    cr_assert_eq(map_integer(reply, "retry_at"), FROZEN_START_MS + 100);
    server_do(server, "FF.CREATE", native_id(2), "default", "job", "POLICY",
              "{\"retry_policy\":[2]}");
    h = native_claim_next(server);
    cr_assert_str_eq(map_text(server_call(server, "FF.FAIL", FENCE(h), "broken"), "state"),
                     "failed");
}

Test(native_lease, delay) {
    test_server *server = native_start();
    held h = native_claim(server, 1);
    native_refused(server, "ERR wrong number of arguments", "FF.DELAY", FENCE(h));
    native_refused(server, "ERR unknown option 'IN'", "FF.DELAY", FENCE(h), "IN", "5");
    native_refused(server, "ERR FOR must be an integer", "FF.DELAY", FENCE(h), "FOR", "-1");
    redisReply *reply = server_call(server, "FF.DELAY", FENCE(h), "FOR", "1000");
    cr_assert_str_eq(map_text(reply, "state"), "delayed");
    cr_assert_eq(map_integer(reply, "delay_until"), FROZEN_START_MS + 1000);
    native_field(server, 1, "delay_until", "1767225601000");
    h = native_claim(server, 2);
    reply = server_call(server, "FF.DELAY", FENCE(h), "AT", "1767225605000");
    cr_assert_eq(map_integer(reply, "delay_until"), FROZEN_START_MS + 5000);
}

Test(native_lease, wait_for_children) {
    test_server *server = native_start();
    held h = native_claim(server, 1);
    redisReply *reply = server_call(server, "FF.WAITCHILDREN", FENCE(h));
    cr_assert_str_eq(map_text(reply, "state"), "waiting_children");
    cr_assert(native_in(server, native_lane("blocked:dependencies"), 1));
    native_refused(server, "ERR wrong number of arguments", "FF.WAITCHILDREN", FENCE(h), "more");
}

/* The wire function lets anybody cancel what another holds. */
Test(native_lease, cancel) {
    test_server *server = native_start();
    held h = native_claim(server, 1);
    native_refused(server, "FENCE_REQUIRED an active execution", "FF.CANCEL", h.id, "why");
    native_refused(server, "STALE_LEASE ", "FF.CANCEL", h.id, "why", "LEASE", "other", h.epoch);
    native_refused(server, "STALE_LEASE ", "FF.CANCEL", h.id, "why", "LEASE", h.lease, "9");
    native_refused(server, "ERR option LEASE needs epoch", "FF.CANCEL", h.id, "why", "LEASE",
                   h.lease);
    native_refused(server, "NOT_FOUND ", "FF.CANCEL", native_id(9), "why");
    redisReply *reply = server_call(server, "FF.CANCEL", h.id, "why", "LEASE", h.lease, h.epoch);
    cr_assert_str_eq(map_text(reply, "state"), "cancelled");
    cr_assert_str_eq(map_text(reply, "previous_phase"), "active");
    native_refused(server, "EXECUTION_NOT_ACTIVE ", "FF.CANCEL", h.id, "why");

    h = native_claim(server, 2);
    reply = server_call(server, "FF.CANCEL", h.id, "why", "OPERATOR");
    cr_assert_str_eq(map_text(reply, "state"), "cancelled");
    native_field(server, 2, "cancelled_by", "operator_override");

    native_create(server, 3);
    reply = server_call(server, "FF.CANCEL", native_id(3), "why");
    cr_assert_str_eq(map_text(reply, "previous_phase"), "runnable");
    native_field(server, 3, "cancellation_reason", "why");
}

/* The wire function takes a revoked execution out of the index in which it would be found. */
Test(native_lease, revoke) {
    test_server *server = native_start();
    held h = native_claim(server, 1);
    native_refused(server, "STALE_LEASE ", "FF.REVOKE", h.id, "why", "LEASE", "other");
    native_refused(server, "NOT_FOUND ", "FF.REVOKE", native_id(9), "why");
    redisReply *reply = server_call(server, "FF.REVOKE", h.id, "why", "LEASE", h.lease);
    cr_assert_str_eq(map_text(reply, "status"), "OK");
    cr_assert_str_eq(map_text(reply, "outcome"), "revoked");
    cr_assert_str_eq(map_text(reply, "lease_id"), h.lease);
    cr_assert_eq(map_integer(reply, "lease_epoch"), 1);
    cr_assert(native_in(server, native_index("lease_expiry"), 1));
    reply = server_call(server, "FF.REVOKE", h.id, "why");
    cr_assert_str_eq(map_text(reply, "status"), "ALREADY_SATISFIED");
    cr_assert_str_eq(map_text(reply, "outcome"), "already_revoked");

    held next = native_claim_next(server);
    cr_assert_str_eq(next.id, h.id);
    cr_assert_str_eq(next.epoch, "2");
    native_create(server, 2);
    native_refused(server, "EXECUTION_NOT_ACTIVE ", "FF.REVOKE", native_id(2), "why");
}

Test(native_lease, expire) {
    test_server *server = native_start();
    held h = native_claim(server, 1);
    redisReply *reply = server_call(server, "FF.EXPIRE", h.id, "too_late");
    cr_assert_str_eq(map_text(reply, "state"), "expired");
    cr_assert_str_eq(map_text(reply, "outcome"), "expired");
    native_field(server, 1, "failure_reason", "too_late");
    reply = server_call(server, "FF.EXPIRE", h.id, "too_late");
    cr_assert_str_eq(map_text(reply, "outcome"), "already_terminal");
    native_refused(server, "NOT_FOUND ", "FF.EXPIRE", native_id(9), "too_late");
}

/* A slot of a quota policy is held while the execution is active, and no longer. */
Test(native_lease, slots_are_freed) {
    static const char *const quota = "a1000001-0000-4000-8000-000000000059";
    test_server *server = native_start();
    const char *reference = spell("{q:5}:%s", quota);
    server_do(server, "FF.QUOTA", "CREATE", reference, "CONCURRENCY", "1");
    const char *concurrency = spell("ff:quota:{q:5}:%s:concurrency", quota);
    for (size_t i = 0; i < FENCED - 1; i++) {
        if (i == 0) continue; /* a renewal keeps it */
        server_do(server, "FF.CREATE", native_id((int)i), "default", "job", "QUOTA", reference);
        held h = native_claim_next(server);
        cr_assert_str_eq(server_text(server, "GET", concurrency), "1");
        redisReply *reply = send_fenced(server, &fenced_commands[i], h);
        cr_assert_neq(reply->type, REDIS_REPLY_ERROR, "%s", reply->str);
        cr_assert_str_eq(server_text(server, "GET", concurrency), "0", "%s",
                         fenced_commands[i].names[0]);
        if (i > 2) server_do(server, "FF.CANCEL", h.id, "over");
    }
    server_do(server, "FF.CREATE", native_id(20), "default", "job", "QUOTA", reference);
    native_claim_next(server);
    server_do(server, "FF.CANCEL", native_id(20), "over", "OPERATOR");
    cr_assert_str_eq(server_text(server, "GET", concurrency), "0");
    server_do(server, "FF.CREATE", native_id(21), "default", "job", "QUOTA", reference);
    native_claim_next(server);
    server_do(server, "FF.EXPIRE", native_id(21), "over");
    cr_assert_str_eq(server_text(server, "GET", concurrency), "0");
}

Test(native_lease, maps_on_resp3) {
    test_server *server = native_start();
    held h = native_claim(server, 1);
    resp3_connection *connection = resp3_connect(server);
    resp3_value *reply = resp3_call(connection, "FF.RENEW", FENCE(h));
    cr_assert_eq(reply->kind, '%');
    cr_assert_eq(resp3_member(reply, "expires_at")->kind, ':');
    reply = resp3_call(connection, "FF.COMPLETE", FENCE(h), "CLAIM", "default", "w", "wi");
    cr_assert_eq(reply->kind, '%');
    cr_assert_str_eq(resp3_member(reply, "state")->text, "completed");
    cr_assert_eq(resp3_member(reply, "claimed")->kind, '*');
}
