/* What the tests of scanners share: executions written by hand in the states that scanners look for. */
#ifndef FF_TESTS_SERVER_SCAN_H
#define FF_TESTS_SERVER_SCAN_H

#include "harness.h"

/* Partition 7 holds the executions and the flow; the budget and the quota have their own. */
#define FP "{fp:7}"
#define FLOW "f1000001-0000-4000-8000-000000002039"
#define BUDGET "b1000001-0000-4000-8000-000000000011"
#define BUDGET_KEY(suffix) "ff:budget:{b:3}:" BUDGET suffix
#define QUOTA "a1000001-0000-4000-8000-000000000059"
#define QUOTA_KEY(suffix) "ff:quota:{q:5}:" QUOTA suffix
#define IDX(suffix) "ff:idx:" FP ":" suffix
#define LANE(suffix) "ff:idx:" FP ":lane:default:" suffix
#define FLOW_KEY(suffix) "ff:flow:" FP ":" FLOW ":" suffix

#define START FROZEN_START_MS

/* Formats text that lives as long as the process. */
const char *format(const char *pattern, ...) __attribute__((format(printf, 1, 2)));

/* The execution id with that number, an edge id, and keys of an execution: X(1, "core"). */
const char *eid(int number);
const char *edge(int number);
const char *exec_key(int number, const char *suffix);
#define X(number, suffix) exec_key(number, suffix)

/* A time in ms from the start of the frozen clock, as text. */
const char *at(int64_t ms);

/* A server on a frozen clock with all scanners off. */
test_server *scan_start(void);

/* A test of one scanner. Its body runs twice, on two servers: once each run of a scanner is by the command, once by the
 * timer, and after each run both servers must hold the same data. */
#define ScannerTest(suite, name) \
    static void suite##_##name(test_server *server); \
    Test(suite, name) { scan_both_ways(suite##_##name); } \
    static void suite##_##name(test_server *server)
void scan_both_ways(void (*body)(test_server *server));

/* What a run counted. */
typedef struct tally {
    int64_t scanned, processed, refused, skipped, errors;
} tally;

tally scan_run_words(test_server *server, command_words words);
#define scan_command(server, ...) scan_run_words(server, WORDS(__VA_ARGS__))

/* One whole cycle, in the way that the test is in. */
tally scan_run(test_server *server, const char *name);

/* The timer may look twice at what it leaves where it is, once when it is due and once in the round: then there may be
 * more that is scanned, skipped or wrong. */
void tally_expect(tally got, tally wanted, const char *what, int line);
#define scan_expect(server, name, ...) \
    tally_expect(scan_run(server, name), (tally){__VA_ARGS__}, name, __LINE__)

/* Execution records; further fields are set by the caller. */
void write_runnable(test_server *server, int number, const char *eligibility);
/* Blocked by `kind` (budget, quota, route), for that reason. */
void write_blocked(test_server *server, int number, const char *kind, const char *reason);
void write_active(test_server *server, int number, int64_t lease_expires);
void write_suspended(test_server *server, int number, int64_t timeout, const char *behavior);
void write_terminal(test_server *server, int number, const char *outcome, int64_t ended);

/* An edge between two members of the flow, applied to the downstream, which waits for it. */
void write_edge(test_server *server, int number, int upstream, int downstream);

/* Executions whose delay is long over, with numbers, in all partitions; and how many are eligible there. */
void write_backlog(test_server *server, int from, int to);
int64_t eligible_anywhere(test_server *server);

/* How many lines of the log have the words. */
int lines_with(test_server *server, const char *words);

/* Fails unless the work was done in so many ticks at least. The longest is reported; its bound is wide, since a busy
 * machine may stop the server for a while in the middle of one. */
void expect_slices(test_server *server, int64_t least);

/* As server_expect_same_data, of what the timer wrote, too: WAIT only knows of what its own client did. */
void scan_expect_same_data(test_server *primary, test_server *replica);

/* Comparing fields and indexes. */
void field_is(test_server *server, const char *key, const char *field, const char *wanted);
bool in_zset(test_server *server, const char *key, const char *member);
double score_in(test_server *server, const char *key, const char *member);
int64_t info_number(test_server *server, const char *field);

/* Waits until the expression holds, for some seconds of real time at least. */
#define eventually_within(seconds, condition) \
    do { \
        int tries_ = 0; \
        while (!(condition)) { \
            cr_assert(++tries_ < (seconds)*200, "still not: %s", #condition); \
            usleep(5000); \
        } \
    } while (0)
#define eventually(condition) eventually_within(5, condition)

#endif
