/* Work that is blocked and comes back: the steps that more than one scenario takes. */
#ifndef FF_BENCH_BLOCKED_H
#define FF_BENCH_BLOCKED_H

#include "field.h"

/* One pass of the reference's unblock scanner over all partitions, from outside: at most 100
 * candidates of `set` (budget or route) in each. How many became eligible. */
size_t blocked_pass(worker *self, const char *set);

/* Creates executions and blocks them on one budget that is used up. */
void blocked_prepare(worker *self, size_t count);

typedef enum { BLOCKED_FROM_OUTSIDE, BLOCKED_BY_COMMAND, BLOCKED_BY_SCANNER } blocked_method;

typedef struct blocked_figures {
    double seconds; /* from the clearing of the budget until all are eligible */
    double
        paused_seconds; /* the same if a scanner from outside made its pauses; it does not here */
    double idle_p99_us, busy_p99_us; /* of a GET by somebody else, before and meanwhile */
} blocked_figures;

blocked_figures blocked_run(const entrant *on, blocked_method method, size_t count);

/* Who takes part, by which method, and under which name. */
bool blocked_wanted(const contestant *who);
blocked_method blocked_method_of(const contestant *who);
void blocked_rename(field *all);

#endif
