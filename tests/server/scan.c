#include "scan.h"

#include <criterion/criterion.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char *format(const char *pattern, ...) {
    char *made = NULL;
    va_list arguments;
    va_start(arguments, pattern);
    cr_assert(vasprintf(&made, pattern, arguments) >= 0);
    va_end(arguments);
    return server_keep(made);
}

const char *eid(int number) { return format(FP ":e0000000-0000-4000-8000-%012d", number); }

const char *edge(int number) { return format("ed000000-0000-4000-8000-%012d", number); }

const char *exec_key(int number, const char *suffix) {
    return format("ff:exec:" FP ":%s:%s", eid(number), suffix);
}

const char *at(int64_t ms) { return format("%lld", (long long)(START + ms)); }

test_server *scan_start(void) { return server_start(&(server_options){.frozen_clock = true}); }

static int64_t member(const redisReply *map, const char *name) {
    for (size_t i = 0; i + 1 < map->elements; i += 2) {
        if (strcmp(map->element[i]->str, name) == 0) return map->element[i + 1]->integer;
    }
    cr_assert_fail("the reply has no %s", name);
    return -1;
}

tally scan_run_words(test_server *server, command_words words) {
    redisReply *map = server_call_words(server, words);
    cr_assert_eq(map->type, REDIS_REPLY_ARRAY, "%s", map->str ? map->str : "no map");
    return (tally){member(map, "scanned"), member(map, "processed"), member(map, "refused"),
                   member(map, "skipped"), member(map, "errors")};
}

/* ---- By the command and by the timer ---- */

enum { RUNS_MOST = 100 };

static struct {
    bool compared, by_timer;
    size_t run;
    const char *digests[RUNS_MOST]; /* after each run by the command */
} both;

static const redisReply *status_of(test_server *server, const char *name) {
    redisReply *list = server_call(server, "FF.SCANNER", "LIST");
    for (size_t i = 0; i < list->elements; i++) {
        if (strcmp(list->element[i]->element[1]->str, name) == 0) return list->element[i];
    }
    cr_assert_fail("there is no scanner %s", name);
    return NULL;
}

static tally totals_of(test_server *server, const char *name) {
    const redisReply *status = status_of(server, name);
    return (tally){member(status, "scanned"), member(status, "processed"),
                   member(status, "refused"),
                   member(status, "skipped") + member(status, "unknown") +
                       member(status, "filtered") + member(status, "backed_off"),
                   member(status, "errors")};
}

/* The scanner is let go alone, until its round is over. */
static tally run_by_timer(test_server *server, const char *name) {
    tally before = totals_of(server, name);
    int64_t cycles = member(status_of(server, name), "cycles");
    server_do(server, "FF.SCANNER", "RESUME", name);
    eventually(member(status_of(server, name), "cycles") > cycles);
    server_do(server, "FF.SCANNER", "PAUSE", name);
    tally after = totals_of(server, name);
    return (tally){after.scanned - before.scanned, after.processed - before.processed,
                   after.refused - before.refused, after.skipped - before.skipped,
                   after.errors - before.errors};
}

static void compare_data(test_server *server, const char *name) {
    const char *digest = server_digest(server);
    cr_assert_lt(both.run, RUNS_MOST);
    if (both.by_timer) {
        cr_assert_str_eq(digest, both.digests[both.run], "run %zu, of %s: the data differs",
                         both.run, name);
    }
    both.digests[both.run++] = digest;
}

tally scan_run(test_server *server, const char *name) {
    tally counted = both.by_timer ? run_by_timer(server, name)
                                  : scan_command(server, "FF.SCANNER", "RUN", name);
    if (both.compared) compare_data(server, name);
    return counted;
}

/* On a frozen clock only what fits into one tick is done. */
static void let_nobody_run(test_server *server) {
    redisReply *list = server_call(server, "FF.SCANNER", "LIST");
    for (size_t i = 0; i < list->elements; i++) {
        server_do(server, "FF.SCANNER", "PAUSE", list->element[i]->element[1]->str);
    }
    server_do(server, "CONFIG", "SET", "ff.scanner-slice-us", "1000000", "ff.scanners", "yes");
}

void scan_both_ways(void (*body)(test_server *server)) {
    both.compared = true;
    for (int way = 0; way < 2; way++) {
        test_server *server = scan_start();
        both.by_timer = way == 1;
        both.run = 0;
        if (both.by_timer) let_nobody_run(server);
        body(server);
        cr_assert_gt(both.run, 0, "no scanner was run");
        server_stop(server);
    }
}

static bool is_expected(tally got, tally wanted) {
    if (!both.by_timer) return memcmp(&got, &wanted, sizeof got) == 0;
    return got.processed == wanted.processed && got.refused == wanted.refused &&
           got.scanned >= wanted.scanned && got.skipped >= wanted.skipped &&
           got.errors >= wanted.errors;
}

void tally_expect(tally got, tally wanted, const char *what, int line) {
    cr_assert(is_expected(got, wanted),
              "%s, line %d: scanned %ld processed %ld refused %ld skipped %ld errors %ld", what,
              line, (long)got.scanned, (long)got.processed, (long)got.refused, (long)got.skipped,
              (long)got.errors);
}

/* What all records have. */
static void write_core(test_server *server, int number, const char *phase, const char *ownership,
                       const char *eligibility, const char *attempt, const char *public_state) {
    server_do(server, "HSET", X(number, "core"), "execution_id", eid(number), "namespace", "ns",
              "lane_id", "default", "priority", "0", "created_at", at(0), "lifecycle_phase", phase,
              "ownership_state", ownership, "eligibility_state", eligibility, "terminal_outcome",
              "none", "attempt_state", attempt, "public_state", public_state, "last_transition_at",
              at(0));
    server_do(server, "SADD", IDX("all_executions"), eid(number));
}

void write_runnable(test_server *server, int number, const char *eligibility) {
    write_core(server, number, "runnable", "unowned", eligibility, "pending_first_attempt",
               "waiting");
}

void write_blocked(test_server *server, int number, const char *kind, const char *reason) {
    write_runnable(server, number, format("blocked_by_%s", kind));
    server_do(server, "HSET", X(number, "core"), "blocking_reason", reason, "public_state",
              "rate_limited");
    server_do(server, "ZADD", format(LANE("blocked:%s"), kind), at(number), eid(number));
}

void write_active(test_server *server, int number, int64_t lease_expires) {
    write_core(server, number, "active", "leased", "not_applicable", "running_attempt", "active");
    server_do(server, "HSET", X(number, "core"), "current_attempt_index", "0", "current_attempt_id",
              "a-1", "total_attempt_count", "1", "current_lease_id", "l-1", "current_lease_epoch",
              "1", "current_worker_id", "w", "current_worker_instance_id", "wi", "lease_expires_at",
              at(lease_expires));
    server_do(server, "HSET", X(number, "lease:current"), "lease_id", "l-1");
    server_do(server, "ZADD", IDX("lease_expiry"), at(lease_expires), eid(number));
    server_do(server, "ZADD", LANE("active"), at(lease_expires), eid(number));
    server_do(server, "SADD", IDX("worker:wi:leases"), eid(number));
}

void write_suspended(test_server *server, int number, int64_t timeout, const char *behavior) {
    write_core(server, number, "suspended", "unowned", "not_applicable", "attempt_interrupted",
               "suspended");
    server_do(server, "HSET", X(number, "core"), "current_attempt_index", "0",
              "current_suspension_id", "s-1", "current_waitpoint_id", "wp-1");
    server_do(server, "HSET", X(number, "suspension:current"), "suspension_id", "s-1", "timeout_at",
              at(timeout), "timeout_behavior", behavior, "closed_at", "");
    server_do(server, "ZADD", IDX("suspension_timeout"), at(timeout), eid(number));
    server_do(server, "ZADD", LANE("suspended"), at(timeout), eid(number));
}

void write_terminal(test_server *server, int number, const char *outcome, int64_t ended) {
    write_core(server, number, "terminal", "unowned", "not_applicable", "attempt_terminal",
               strcmp(outcome, "success") == 0 ? "completed" : outcome);
    server_do(server, "HSET", X(number, "core"), "terminal_outcome", outcome, "completed_at",
              at(ended), "total_attempt_count", "1");
    server_do(server, "ZADD", LANE("terminal"), at(ended), eid(number));
}

static void write_flow(test_server *server) {
    server_do(server, "HSET", FLOW_KEY("core"), "flow_id", FLOW, "public_flow_state", "open");
    server_do(server, "SADD", IDX("flow_index"), FLOW);
}

void write_edge(test_server *server, int number, int upstream, int downstream) {
    const char *child_core = X(downstream, "core");
    write_flow(server);
    server_do(server, "SADD", FLOW_KEY("members"), eid(upstream), eid(downstream));
    server_do(server, "HSET", X(upstream, "core"), "flow_id", FLOW);
    server_do(server, "HSET", child_core, "flow_id", FLOW, "eligibility_state",
              "blocked_by_dependencies", "public_state", "waiting_children");
    server_do(server, "HSET", format(FLOW_KEY("edge:%s"), edge(number)), "upstream_execution_id",
              eid(upstream), "downstream_execution_id", eid(downstream));
    server_do(server, "SADD", format(FLOW_KEY("out:%s"), eid(upstream)), edge(number));
    server_do(server, "SADD", format(FLOW_KEY("in:%s"), eid(downstream)), edge(number));
    server_do(server, "HSET", exec_key(downstream, format("dep:%s", edge(number))), "edge_id",
              edge(number), "state", "unsatisfied", "upstream_execution_id", eid(upstream));
    server_do(server, "HINCRBY", X(downstream, "deps:meta"), "unsatisfied_required_count", "1");
    server_do(server, "SADD", X(downstream, "deps:unresolved"), edge(number));
    server_do(server, "SADD", X(downstream, "deps:all_edges"), edge(number));
    server_do(server, "ZREM", LANE("eligible"), eid(downstream));
    server_do(server, "ZADD", LANE("blocked:dependencies"), at(0), eid(downstream));
}

int64_t eligible_anywhere(test_server *server) {
    return server_integer(
        server, "EVAL",
        "local n = 0 for i = 0, 255 do n = n + redis.call('ZCARD', 'ff:idx:{fp:' .. "
        "i .. '}:lane:default:eligible') end return n",
        "0");
}

void write_backlog(test_server *server, int from, int to) {
    server_do(
        server, "EVAL",
        "for i = tonumber(ARGV[1]), tonumber(ARGV[2]) do local t = '{fp:' .. (i % 256) .. '}' "
        "local e = t .. ':e0000000-0000-4000-8000-' .. string.format('%012d', i) "
        "redis.call('HSET', 'ff:exec:' .. t .. ':' .. e .. ':core', 'lifecycle_phase', "
        "'runnable', 'eligibility_state', 'not_eligible_until_time', 'delay_until', '1', "
        "'priority', '0', 'created_at', '1', 'execution_id', e, 'namespace', 'n') "
        "redis.call('ZADD', 'ff:idx:' .. t .. ':lane:default:delayed', 1, e) end",
        "0", format("%d", from), format("%d", to));
}

int lines_with(test_server *server, const char *words) {
    const char *command = format("cat %s/*log | grep -c '%s'", server_directory(server), words);
    char line[32] = "";
    FILE *pipe = popen(command, "r");
    cr_assert(pipe && fgets(line, sizeof line, pipe), "the log cannot be read");
    pclose(pipe);
    return atoi(line);
}

void expect_slices(test_server *server, int64_t least) {
    int64_t ticks = info_number(server, "ticks");
    int64_t longest = info_number(server, "tick_us_longest");
    cr_log_info("%ld ticks, the longest %ld us", (long)ticks, (long)longest);
    cr_assert_geq(ticks, least, "all was done in %ld ticks", (long)ticks);
    cr_assert_lt(longest, 5000000, "the longest tick took %ld us", (long)longest);
}

void scan_expect_same_data(test_server *primary, test_server *replica) {
    server_do(primary, "SET", "behind:all", "else");
    server_expect_same_data(primary, replica);
    server_do(primary, "DEL", "behind:all");
}

void field_is(test_server *server, const char *key, const char *field, const char *wanted) {
    redisReply *reply = server_call(server, "HGET", key, field);
    cr_assert(reply->str && strcmp(reply->str, wanted) == 0, "%s of %s is %s, not %s", field, key,
              reply->str ? reply->str : "missing", wanted);
}

bool in_zset(test_server *server, const char *key, const char *name) {
    return server_call(server, "ZSCORE", key, name)->type != REDIS_REPLY_NIL;
}

double score_in(test_server *server, const char *key, const char *name) {
    redisReply *reply = server_call(server, "ZSCORE", key, name);
    cr_assert(reply->str, "%s is not in %s", name, key);
    return strtod(reply->str, NULL);
}

int64_t info_number(test_server *server, const char *field) {
    const char *value = server_info(server, "ff", format("ff_%s", field));
    cr_assert(value, "INFO ff has no %s", field);
    return strtoll(value, NULL, 10);
}
