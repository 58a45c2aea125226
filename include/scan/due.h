/* When the first entry of each timed index becomes due.
 *
 * Every write to such an index marks it; a little later, and no more often than every few milliseconds, the heads of
 * the marked ones are read. So the runner knows when to wake, without reading anything on the way of a write and without
 * polling. Entries that stay after they were visited (a lease that was marked but not reclaimed) do not count: what is
 * waited for is the first entry behind the last visit, or one that appeared before it. */
#ifndef FF_SCAN_DUE_H
#define FF_SCAN_DUE_H

#include "presence.h"

enum { FF_DUE_DELAY_MS = 4 };

/* Starts over: everything that may hold something is to be read. */
void ff_due_start(void);

/* Forgets everything. */
void ff_due_stop(void);

/* Whether heads are to be read, and reads them until the deadline. */
bool ff_due_is_marked(void);
void ff_due_refresh(ValkeyModuleCtx *ctx, uint64_t deadline);

/* The earliest due time of an index, in all partitions and lanes; infinity when nothing is waited for. */
double ff_due_earliest(ff_index index);

/* The next index that is due, and the score from which on there is something to visit. */
typedef struct ff_due_place {
    ff_index index;
    ff_lane *lane;
    uint16_t partition;
    double from;
} ff_due_place;
bool ff_due_next(ff_index index, double now, ff_due_place *place);

/* An index was visited up to `now`. */
void ff_due_handled(ValkeyModuleCtx *ctx, ff_index index, ff_lane *lane, uint16_t partition,
                    double now);

/* An index cannot be visited for now. */
void ff_due_postpone(ff_index index, ff_lane *lane, uint16_t partition);

/* An entry may have appeared: an index was written. */
void ff_due_mark(ff_index index, ff_lane *lane, uint16_t partition);

/* Whether first entries of the index are waited for. */
bool ff_due_watches(ff_index index);

#endif
