/* The claim cycle: finds executions for a worker, and hands them out.
 *
 * One call visits partitions in a ring, from a place that depends on the worker and moves with
 * time, and takes the first execution that the worker may have: from the queues of its lanes,
 * and from the leases that ran out or were revoked, each asked first in turn. On the way, what
 * may not start now is parked with a reason; what the worker cannot have, but others can, is
 * stepped over. All of it is bounded, whatever the queues hold. */
#ifndef FF_CLAIM_CLAIM_H
#define FF_CLAIM_CLAIM_H

#include "claim/order.h"
#include "commands/answer.h"

/* How far a search has come, for one that goes on in several calls: the partitions passed in the
 * ring, for each lane and source. */
typedef struct ff_claim_place {
    uint32_t queued;
    uint32_t lapsed;
} ff_claim_place;

typedef struct ff_claim_search {
    uint32_t start;         /* where the ring begins */
    ff_claim_place *places; /* one for each lane of the order, all zero at the beginning */
    bool exhausted;  /* set by the call: there is nothing more for the worker, as far as is known */
    double retry_at; /* set by the call: when that may change by time alone; infinity: never */
} ff_claim_search;

/* Begins a search for the worker. The places must be zeroed by the caller. */
void ff_claim_search_begin(ff_claim_search *search, const ff_claim_order *order);

/* Hands out up to order->count executions and appends a map for each to the list, whose
 * transaction must have no key open. The writes are committed when it returns. `search` is NULL
 * unless it goes on. In a cluster it must run without a key declared (commands/request.h).
 * Returns how many were handed out. */
size_t ff_claim_run(ValkeyModuleCtx *ctx, const ff_claim_order *order, ff_claim_search *search,
                    ff_answer *list);

/* What each lane has seen; lanes that were never claimed from are not among them. */
typedef struct ff_claim_lane {
    struct ff_claim_lane *next;
    ff_text name;
    bool lapsed_first; /* which source is asked first next time */
    uint64_t claimed, granted, empty_calls, blocked, stepped_over;
    uint64_t microseconds; /* spent in all calls */
} ff_claim_lane;

const ff_claim_lane *ff_claim_lanes(void);

int ff_claim_load(ValkeyModuleCtx *ctx);
void ff_claim_unload(void);

#endif
