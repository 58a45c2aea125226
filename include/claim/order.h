/* What a worker asks for: the arguments of FF.CLAIM. */
#ifndef FF_CLAIM_ORDER_H
#define FF_CLAIM_ORDER_H

#include "base/arena.h"
#include "base/capability.h"
#include "base/text.h"

#include <stdint.h>

typedef struct ff_claim_order {
    ff_text worker;
    ff_text instance;
    const ff_text *lanes; /* in the order in which they are tried, each once */
    size_t lane_count;
    ff_capability_set capabilities;
    ff_text capabilities_csv; /* sorted */
    ff_text namespace;        /* absent: any */
    ff_text partition_tag;    /* absent: any */
    uint16_t partition;
    int64_t count;
    int64_t lease_ms;
    int64_t timeout_ms;   /* of the attempt; 0: none */
    int64_t grant_ttl_ms; /* 0: the grant is spent at once */
    bool waits;
    int64_t wait_ms; /* 0: for ever */
} ff_claim_order;

/* Reads `lane worker instance [option …]`. The texts stay those of the arguments, the rest goes
 * into the arena. False on bad input; `error` is then a whole error line. */
bool ff_claim_order_parse(ff_arena *arena, const ff_text *arguments, size_t count,
                          ff_claim_order *order, ff_text *error);

/* A copy that owns its texts. */
void ff_claim_order_copy(ff_arena *arena, const ff_claim_order *order, ff_claim_order *copy);

/* Whether two workers would be given the same executions: the same lanes in the same order,
 * capabilities, namespace and partition, and both for a lease or both for a grant. */
bool ff_claim_order_alike(const ff_claim_order *a, const ff_claim_order *b);

/* Whether the worker may be given executions of that lane, partition and namespace. */
bool ff_claim_order_admits(const ff_claim_order *order, ff_text lane, uint16_t partition,
                           ff_text namespace);

#endif
