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
#include "store/txn.h"

/* Where a search goes on in one of the two sources of a lane: so many partitions further in the ring,
 * and there behind an entry (member NULL: at the beginning). */
typedef struct ff_claim_stop {
    uint32_t offset;
    ff_zset_entry behind;
    long long taken; /* from that partition so far */
} ff_claim_stop;

typedef struct ff_claim_place {
    ff_claim_stop queued;
    ff_claim_stop lapsed;
} ff_claim_place;

typedef struct ff_claim_search {
    uint32_t start;         /* where the ring begins */
    ff_claim_place *places; /* one for each lane of the order */
    size_t place_count;
    bool skipped; /* a partition that had more, since the search began */
    /* Set by each call: */
    bool exhausted;  /* there is nothing more for the worker, as far as is known */
    bool cut;        /* a partition was left before its end; the places say where */
    double retry_at; /* when there may be something by time alone; infinity: never */
} ff_claim_search;

/* How much one call may look at. */
typedef struct ff_claim_bounds {
    long long partitions; /* of each lane and source, counting those that hold something */
    long long passed;     /* candidates parked or stepped over */
    long long strangers; /* of other tenants and lanes: so many in each partition, on the average */
    bool thorough;       /* ends where it has to leave a partition early, to go on there */
} ff_claim_bounds;

/* What the configuration allows to a call. */
ff_claim_bounds ff_claim_bounds_configured(void);

/* Makes a search that has not begun; its places go into the arena, which must outlive it. */
void ff_claim_search_make(ff_claim_search *search, const ff_claim_order *order, ff_arena *arena);

/* Begins it, or begins it anew, for the worker. */
void ff_claim_search_begin(ff_claim_search *search, const ff_claim_order *order);

/* Gives back what the places hold. */
void ff_claim_search_end(ff_claim_search *search);

/* Hands out executions and appends a map for each to the list, whose transaction must have no key
 * open, until that has order->count maps. The writes are committed when it returns. In a cluster it
 * must run without a key declared (commands/request.h). Returns how many were handed out. */
size_t ff_claim_run(ValkeyModuleCtx *ctx, const ff_claim_order *order, ff_claim_search *search,
                    const ff_claim_bounds *bounds, ff_answer *list);

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
