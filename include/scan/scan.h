/* One pass of a scanner over its indexes, in steps: a round of the schedule, a look at one index whose first entry
 * is due, or a run asked for by a command. */
#ifndef FF_SCAN_SCAN_H
#define FF_SCAN_SCAN_H

#include "scan/backoff.h"
#include "scan/scanner.h"

/* What a pass is confined to. */
typedef struct ff_scope {
    int32_t partition; /* -1: all */
    ff_lane *lane;     /* NULL: all */
    unsigned indexes;  /* a bit for each of the scanner's indexes; 0: all */
    uint64_t limit;    /* candidates; 0: no limit */
    bool changed_only; /* leaves out partitions that nobody wrote to since the last such pass */
    bool by_command;   /* that may name a key: then, in a cluster, other slots cannot be read */
} ff_scope;

#define FF_SCOPE_ALL ((ff_scope){.partition = -1})

typedef struct ff_scan {
    const ff_scanner *scanner;
    ff_scope scope;
    ff_backoff *backoff;
    size_t index_at;
    ff_lane *lane;
    int32_t partition; /* -1: none yet */
    bool in_slot;
    bool unsettled; /* in the index at hand something is wrong, or another tenant's */
    double now;
    ff_walk walk;
    ff_progress progress;
    ff_tally tally;
    uint64_t left;    /* entries that were looked at and stay */
    double oldest;    /* score of the oldest of them */
    uint64_t entries; /* in the indexes that were visited, of a scanner that counts them */
    bool started;
} ff_scan;

typedef enum {
    FF_SCAN_MORE,  /* the time or the number of candidates was used up */
    FF_SCAN_ENDED, /* all was visited, or the limit of the scope is reached */
    FF_SCAN_STUCK, /* nothing may be written now */
} ff_scan_state;

void ff_scan_begin(ff_scan *scan, const ff_scanner *scanner, ff_backoff *backoff,
                   const ff_scope *scope);

/* Right after the beginning of a pass over one index: leaves out what is below the score. */
void ff_scan_start_at(ff_scan *scan, double score);

/* Visits up to `most` candidates, at least one, and stops after the deadline (monotonic µs; 0: none). */
ff_scan_state ff_scan_step(ff_scan *scan, ValkeyModuleCtx *ctx, uint64_t most, uint64_t deadline);

void ff_scan_free(ff_scan *scan);

void ff_tally_add(ff_tally *sum, const ff_tally *more);

#endif
