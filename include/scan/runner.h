/* The runner: one schedule for all scanners and for the dispatch of completions, on one timer.
 *
 * A tick works for at most ff.scanner-slice-us, giving each scanner that has something to do its turn, and goes on in
 * the next tick where it stopped. When nothing is left the timer is set to whatever comes first: the next round
 * of a scanner, or the time at which the first entry of an index becomes due. Whether the node may write is asked at
 * each tick, and again for each partition. */
#ifndef FF_SCAN_RUNNER_H
#define FF_SCAN_RUNNER_H

#include "scan/scan.h"

int ff_runner_load(ValkeyModuleCtx *ctx);
void ff_runner_unload(void);

/* Makes changed settings take effect. */
void ff_runner_apply(ValkeyModuleCtx *ctx);

/* Checks a value of ff.lanes. */
bool ff_runner_lanes_are_valid(ff_text text);

/* Asks for a tick at a time of the wall clock (ms); 0 is right after this. */
void ff_runner_wake(double at);

/* Asks for a round of a scanner soon. May be called at any time. */
void ff_runner_nudge(ff_scanner_id id);

/* A scanner that is let go on starts a round at once, or goes on with the one it was in. */
void ff_runner_pause(ff_scanner_id id, bool paused);

/* Runs one scan to its end, or to the limit of its scope. */
void ff_runner_run(ValkeyModuleCtx *ctx, ff_scanner_id id, const ff_scope *scope, ff_tally *sum);

/* What is known about one scanner. Times are in ms, of the wall clock where they are points in time. */
typedef struct ff_scanner_status {
    const char *name;
    const char *state; /* off, paused, running, waiting */
    long long interval_ms;
    uint64_t cycles, slices_cut;
    uint64_t last_us, longest_us;
    double last_started_at;
    ff_tally totals;
    uint64_t failing;     /* candidates in the backoff table */
    uint64_t backlog;     /* entries that the last round looked at and left in the index */
    uint64_t entries;     /* in its indexes after the last round, if it counts them */
    double oldest_age_ms; /* of the oldest of them; 0 when there is none */
} ff_scanner_status;

ff_scanner_status ff_runner_status(ff_scanner_id id);

typedef struct ff_runner_totals {
    uint64_t ticks, busy_us, longest_tick_us;
} ff_runner_totals;

ff_runner_totals ff_runner_sum(void);

#endif
