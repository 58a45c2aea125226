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

/* What a run counted. */
typedef struct tally {
    int64_t scanned, processed, refused, skipped, errors;
} tally;

tally scan_run_words(test_server *server, command_words words);
#define scan_run(server, name) scan_run_words(server, WORDS("FF.SCANNER", "RUN", name))
#define scan_command(server, ...) scan_run_words(server, WORDS(__VA_ARGS__))

void tally_expect(tally got, tally wanted, const char *what, int line);
#define scan_expect(server, name, ...) \
    tally_expect(scan_run(server, name), (tally){__VA_ARGS__}, name, __LINE__)

/* Execution records; further fields are set by the caller. */
void write_runnable(test_server *server, int number, const char *eligibility);
void write_active(test_server *server, int number, int64_t lease_expires);
void write_suspended(test_server *server, int number, int64_t timeout, const char *behavior);
void write_terminal(test_server *server, int number, const char *outcome, int64_t ended);

/* An edge between two members of the flow, applied to the downstream, which waits for it. */
void write_edge(test_server *server, int number, int upstream, int downstream);

/* Comparing fields and indexes. */
void field_is(test_server *server, const char *key, const char *field, const char *wanted);
bool in_zset(test_server *server, const char *key, const char *member);
double score_in(test_server *server, const char *key, const char *member);
int64_t info_number(test_server *server, const char *field);

/* Waits, for a few seconds of real time, until the expression holds. */
#define eventually(condition) \
    do { \
        int tries_ = 0; \
        while (!(condition)) { \
            cr_assert(++tries_ < 1000, "still not: %s", #condition); \
            usleep(5000); \
        } \
    } while (0)

#endif
