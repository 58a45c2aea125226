/* One execution that a worker might get.
 *
 * A candidate is handed out, parked with a reason, or left exactly as it was. All that is
 * written about it is one transaction: the grant that the claim spends is never seen by anybody,
 * and a claim that is refused has taken no quota. */
#ifndef FF_CLAIM_CANDIDATE_H
#define FF_CLAIM_CANDIDATE_H

#include "base/id.h"
#include "claim/claim.h"
#include "claim/limits.h"

/* What all candidates of one call share. */
typedef struct ff_claim_call {
    ValkeyModuleCtx *ctx;
    const ff_claim_order *order;
    ff_answer *list;
    ff_limits limits;
    ff_claim_lane *lane; /* of the candidates at hand */
    double now;
    double retry_at; /* a grant lapses, or doubt may be over */
    /* The same for the engine, made when the first candidate needs them. */
    ff_str *lane_name;
    ff_str *worker, *instance, *capabilities, *grant_ttl, *lease, *renewal, *timeout;
} ff_claim_call;

/* Where a candidate was found. */
typedef struct ff_claim_spot {
    ff_partition partition;
    ff_text tag;
    ff_str *index;
} ff_claim_spot;

typedef enum ff_claim_outcome {
    FF_CLAIM_TAKEN,
    FF_CLAIM_PARKED,  /* no longer in the index it was found in */
    FF_CLAIM_PASSED,  /* left as it was */
    FF_CLAIM_STRANGE, /* of another tenant or lane: left, and not looked at further */
} ff_claim_outcome;

ff_claim_outcome ff_candidate_queued(ff_claim_call *call, const ff_claim_spot *spot,
                                     ff_str *execution_id);
ff_claim_outcome ff_candidate_lapsed(ff_claim_call *call, const ff_claim_spot *spot,
                                     ff_str *execution_id);

#endif
