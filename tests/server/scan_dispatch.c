/* Completion dispatch: what waits for a flow member is resolved when it ends. */
#include "scan.h"

#include <criterion/criterion.h>
#include <string.h>
#include <unistd.h>

/* A frozen clock holds back all but the first slice of long work: those tests let it run. */
static test_server *start_running(void) { return server_start(NULL); }

/* Ends an active execution by the wire function. */
static void cancel_by_wire(test_server *server, int number, const char *source) {
    const char *keys[21];
    for (int i = 0; i < 21; i++) keys[i] = format("ff:unused:" FP ":%d", i);
    keys[0] = X(number, "core");
    keys[11] = LANE("terminal");
    bytes words[3 + 21 + 5] = {text("FF.CALL"), text("ff_cancel_execution"), text("21")};
    for (size_t i = 0; i < 21; i++) words[3 + i] = text(keys[i]);
    const char *arguments[] = {eid(number), "because", source, "", ""};
    for (size_t i = 0; i < 5; i++) words[24 + i] = text(arguments[i]);
    redisReply *reply = server_send(server, 29, words);
    cr_assert(reply->type == REDIS_REPLY_ARRAY && reply->element[0]->integer == 1);
}

/* 1 -> 2 -> 3 -> ... */
static void write_chain(test_server *server, int length) {
    for (int i = 2; i <= length; i++) write_runnable(server, i, "blocked_by_dependencies");
    for (int i = 2; i <= length; i++) write_edge(server, i, i - 1, i);
}

static bool is(test_server *server, int number, const char *state) {
    return strcmp(server_text(server, "HGET", X(number, "core"), "public_state"), state) == 0;
}

Test(dispatch, a_wire_function_ends_alone_without_scanners) {
    test_server *server = scan_start();
    write_active(server, 1, 1000);
    write_chain(server, 3);
    cancel_by_wire(server, 1, "operator_override");
    usleep(50000);
    cr_assert(is(server, 2, "waiting_children") && is(server, 3, "waiting_children"));
}

Test(dispatch, follows_a_wire_function_from_the_queue) {
    static const char *const sources[] = {"operator_override", "flow_cascade"};
    for (size_t i = 0; i < 2; i++) {
        test_server *server = start_running();
        server_do(server, "CONFIG", "SET", "ff.scanners", "yes");
        write_active(server, 1, 1000);
        write_chain(server, 60);
        cancel_by_wire(server, 1, sources[i]);
        eventually(is(server, 60, "skipped"));
        for (int n = 2; n <= 60; n++) cr_assert(is(server, n, "skipped"), "%d", n);
        server_stop(server);
    }
}

Test(dispatch, inline_cascade_no_leaves_it_to_the_reconciler) {
    test_server *server = scan_start();
    server_do(server, "CONFIG", "SET", "ff.scanners", "yes");
    server_do(server, "CONFIG", "SET", "ff.inline-cascade", "no");
    write_active(server, 1, 1000);
    write_chain(server, 2);
    cancel_by_wire(server, 1, "operator_override");
    usleep(50000);
    cr_assert(is(server, 2, "waiting_children"));
}

/* A scanner that ends a member resolves what waits for it in the same step. */
ScannerTest(dispatch, inside_the_step_of_a_scanner) {
    test_server *replica = server_start_replica(server, &(server_options){.without_module = true});
    write_active(server, 1, 1000);
    write_chain(server, 20);
    server_do(server, "ZADD", IDX("execution_deadline"), at(0), eid(1));
    scan_expect(server, "execution_deadline", .scanned = 1, .processed = 1);
    for (int n = 2; n <= 20; n++) cr_assert(is(server, n, "skipped"), "%d", n);
    scan_expect_same_data(server, replica);
}

/* What exceeds the limit is finished right after. */
Test(dispatch, the_rest_of_a_long_cascade_is_queued) {
    test_server *server = start_running();
    server_do(server, "CONFIG", "SET", "ff.cascade-limit", "7");
    write_active(server, 1, 1000);
    write_chain(server, 50);
    server_do(server, "ZADD", IDX("execution_deadline"), at(0), eid(1));
    scan_expect(server, "execution_deadline", .scanned = 1, .processed = 1);
    eventually(is(server, 50, "skipped"));
    eventually(info_number(server, "dispatch_queue") == 0);
}

/* In the step, from the queue, and by the reconciler alone: in the end it is the same. */
Test(dispatch, every_way_comes_to_the_same) {
    static const struct {
        const char *limit, *inline_cascade;
    } ways[] = {{"1000", "yes"}, {"1", "yes"}, {"1000", "no"}};
    const char *digest = NULL;
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        test_server *server = scan_start();
        server_do(server, "CONFIG", "SET", "ff.scanner-slice-us", "1000000", "ff.cascade-limit",
                  ways[i].limit, "ff.inline-cascade", ways[i].inline_cascade);
        write_active(server, 1, 1000);
        write_chain(server, 30);
        for (int n = 31; n <= 40; n++) {
            write_runnable(server, n, "blocked_by_dependencies");
            write_edge(server, n, 1, n);
        }
        server_do(server, "ZADD", IDX("execution_deadline"), at(0), eid(1));
        scan_expect(server, "execution_deadline", .scanned = 1, .processed = 1);
        for (int level = 0; level < 30 && i == 2; level++)
            scan_run(server, "dependency_reconciler");
        eventually(info_number(server, "dispatch_queue") == 0);
        for (int n = 2; n <= 40; n++) cr_assert(is(server, n, "skipped"), "%d", n);
        if (digest) cr_assert_str_eq(server_digest(server), digest, "way %zu", i);
        digest = server_digest(server);
        server_stop(server);
    }
}

Test(dispatch, fan_out) {
    test_server *server = start_running();
    server_do(server, "CONFIG", "SET", "ff.cascade-limit", "10");
    write_active(server, 1, 1000);
    for (int i = 2; i <= 300; i++) {
        write_runnable(server, i, "blocked_by_dependencies");
        write_edge(server, i, 1, i);
    }
    server_do(server, "ZADD", IDX("execution_deadline"), at(0), eid(1));
    scan_run(server, "execution_deadline");
    eventually(server_integer(server, "ZCARD", LANE("blocked:dependencies")) == 0);
    cr_assert_eq(info_number(server, "dispatch_resolved"), 299);
}

/* What is too much for the queue is counted, and found by an early round of the reconciler. */
Test(dispatch, the_queue_is_bounded) {
    enum { MOST = 100000, BEYOND = 50 };
    test_server *server = start_running();
    server_do(server, "CONFIG", "SET", "ff.dependency-reconciler-interval-ms", "3600000");
    write_active(server, 1, 1000);
    write_chain(server, 2);
    server_do(server, "CONFIG", "SET", "ff.scanners", "yes");
    eventually(info_number(server, "dependency_reconciler_cycles") == 1);
    /* The first to be queued is the first to be dropped. */
    server_do(server, "EVAL",
              "for i = 1, ARGV[1] do local id, core = ARGV[2], KEYS[1] if i > 1 then "
              "id = '" FP ":c0000000-0000-4000-8000-' .. string.format('%012d', i) "
              "core = 'ff:exec:" FP ":' .. id .. ':core' redis.call('HSET', core, "
              "'lifecycle_phase', 'active', 'flow_id', '" FLOW "', 'terminal_outcome', 'none') end "
              "local words = {'ff_cancel_execution', 21, core} "
              "for k = 2, 21 do words[#words + 1] = 'ff:u:" FP ":' .. k end "
              "for _, word in ipairs({id, 'r', 'operator_override', '', ''}) do "
              "words[#words + 1] = word end redis.call('FF.CALL', unpack(words)) end",
              "1", X(1, "core"), format("%d", MOST + BEYOND), eid(1));
    cr_assert_eq(info_number(server, "dispatch_dropped"), BEYOND);
    eventually_within(60, info_number(server, "dispatch_queue") == 0);
    eventually_within(60, is(server, 2, "skipped"));
    cr_assert_eq(info_number(server, "dependency_reconciler_cycles"), 2);
}

/* Replayed before its turn came: its children must not be told that it failed. */
Test(dispatch, only_what_is_still_terminal) {
    test_server *server = scan_start();
    server_do(server, "CONFIG", "SET", "ff.scanners", "yes");
    write_active(server, 1, 1000);
    write_chain(server, 2);
    server_do(server, "EVAL",
              "redis.call('FF.CALL', 'ff_cancel_execution', 21, KEYS[1], 'ff:u:{fp:7}:1', "
              "'ff:u:{fp:7}:2', 'ff:u:{fp:7}:3', 'ff:u:{fp:7}:4', 'ff:u:{fp:7}:5', "
              "'ff:u:{fp:7}:6', 'ff:u:{fp:7}:7', 'ff:u:{fp:7}:8', 'ff:u:{fp:7}:9', "
              "'ff:u:{fp:7}:10', KEYS[2], 'ff:u:{fp:7}:12', 'ff:u:{fp:7}:13', 'ff:u:{fp:7}:14', "
              "'ff:u:{fp:7}:15', 'ff:u:{fp:7}:16', 'ff:u:{fp:7}:17', 'ff:u:{fp:7}:18', "
              "'ff:u:{fp:7}:19', 'ff:u:{fp:7}:20', ARGV[1], 'r', 'operator_override', '', '') "
              "redis.call('HSET', KEYS[1], 'lifecycle_phase', 'runnable', 'terminal_outcome', "
              "'none')",
              "2", X(1, "core"), LANE("terminal"), eid(1));
    usleep(50000);
    cr_assert(is(server, 2, "waiting_children"));
}

/* An edge that is applied after its upstream has ended gets no message: it is looked at anyway. */
Test(dispatch, late_edges) {
    test_server *server = scan_start();
    server_do(server, "CONFIG", "SET", "ff.scanners", "yes");
    write_terminal(server, 1, "success", 0);
    write_runnable(server, 2, "eligible_now");
    write_edge(server, 5, 1, 2);
    server_do(server, "DEL", exec_key(2, format("dep:%s", edge(5))), X(2, "deps:meta"),
              X(2, "deps:unresolved"));
    redisReply *reply = server_call(server, "FF.CALL", "ff_apply_dependency_to_child", "8",
                                    X(2, "core"), X(2, "deps:meta"), X(2, "deps:unresolved"),
                                    exec_key(2, format("dep:%s", edge(5))), LANE("eligible"),
                                    LANE("blocked:dependencies"), X(2, "deps:all_edges"),
                                    format(FLOW_KEY("edgegroup:%s"), eid(2)), FLOW, edge(5), eid(1),
                                    "1", "success_only", "", at(0));
    cr_assert(reply->type == REDIS_REPLY_ARRAY && reply->element[0]->integer == 1);
    eventually(in_zset(server, LANE("eligible"), eid(2)));
}

/* A child of another partition, and a flow that is not of its member's: counted, told once, and left. */
Test(dispatch, misplaced_members) {
    test_server *server = scan_start();
    for (int i = 1; i <= 4; i++) write_active(server, i, 1000);
    for (int i = 11; i <= 12; i++) {
        write_runnable(server, i, "blocked_by_dependencies");
        write_edge(server, i, i - 10, i);
        server_do(server, "HSET", format(FLOW_KEY("edge:%s"), edge(i)), "downstream_execution_id",
                  "{fp:8}:e0000000-0000-4000-8000-000000000001");
    }
    for (int i = 3; i <= 4; i++) {
        server_do(server, "HSET", X(i, "core"), "flow_id", "f1000001-0000-4000-8000-000000000001");
    }
    for (int i = 1; i <= 4; i++) {
        server_do(server, "ZADD", IDX("execution_deadline"), at(0), eid(i));
    }
    scan_expect(server, "execution_deadline", .scanned = 4, .processed = 4);
    cr_assert_eq(info_number(server, "dispatch_misplaced"), 4);
    cr_assert_eq(lines_with(server, "further ones are only counted"), 1);
    cr_assert(is(server, 11, "waiting_children") && is(server, 12, "waiting_children"));
}

/* The message goes out in every case. */
ScannerTest(dispatch, messages_are_published) {
    redisContext *listener = server_connect(server);
    connection_call(listener, "SUBSCRIBE", "ff:dag:completions");
    write_active(server, 1, 1000);
    write_chain(server, 2);
    server_do(server, "ZADD", IDX("execution_deadline"), at(0), eid(1));
    scan_run(server, "execution_deadline");
    static const char *const outcomes[] = {"\"expired\"", "\"skipped\""};
    for (size_t i = 0; i < 2; i++) {
        redisReply *message = NULL;
        cr_assert_eq(redisGetReply(listener, (void **)&message), REDIS_OK);
        cr_assert(strstr(message->element[2]->str, outcomes[i]), "%s", message->element[2]->str);
        freeReplyObject(message);
    }
    redisFree(listener);
}

/* ---- A child that is skipped while it runs ---- */

static const char *join_text(const char *a, const char *b, const char *c) {
    char *all = malloc(strlen(a) + strlen(b) + strlen(c) + 1);
    return server_keep(strcat(strcat(strcpy(all, a), b), c));
}

/* It was claimed behind the engine's back, as after a replay; then its upstream ends badly. */
Test(scan_dispatch, a_running_child_gives_its_lease_back) {
    test_server *server = server_start(NULL);
    const redisReply *flow =
        server_call(server, "FF.FLOW", "SUBMIT", "{fp:7}",
                    "{\"kind\":\"k\",\"members\":[{\"name\":\"a\",\"kind\":\"s\"},"
                    "{\"name\":\"b\",\"kind\":\"s\",\"after\":[\"a\"]}]}");
    const redisReply *members = flow->element[3];
    const char *parent = members->element[1]->str, *child = members->element[3]->str;
    const char *core = join_text("ff:exec:{fp:7}:", child, ":core");
    const char *lease = join_text("ff:exec:{fp:7}:", child, ":lease:current");
    server_do(server, "HSET", core, "lifecycle_phase", "active", "ownership_state", "leased",
              "eligibility_state", "not_applicable", "attempt_state", "running_attempt",
              "current_worker_instance_id", "wi", "lease_expires_at", "9999999999999");
    server_do(server, "HSET", lease, "lease_id", "l");
    server_do(server, "ZADD", "ff:idx:{fp:7}:lane:default:active", "9999999999999", child);
    server_do(server, "ZADD", "ff:idx:{fp:7}:lease_expiry", "9999999999999", child);
    server_do(server, "SADD", "ff:idx:{fp:7}:worker:wi:leases", child);
    server_do(server, "FF.CANCEL", parent, "why", "OPERATOR");
    cr_assert_str_eq(server_text(server, "HGET", core, "public_state"), "skipped");
    cr_assert_eq(server_integer(server, "EXISTS", lease, "ff:idx:{fp:7}:lane:default:active",
                                "ff:idx:{fp:7}:lease_expiry", "ff:idx:{fp:7}:worker:wi:leases"),
                 0);
}
