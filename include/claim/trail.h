/* Trails: how calls get behind what one call may look at.
 *
 * A call looks at a bounded number of candidates. If every call began at the same place, what lies
 * behind many that its worker cannot have would never be seen. So the search of a call that was cut
 * short is kept, as a trail, for the calls that would be given the same executions. While there is
 * a trail each of them divides its bounds: one part is for a search of its own, which sees what is
 * new at the head of the queues, the other goes on along the trail. They take turns in being first,
 * so that neither keeps the other from work. When the trail has come to the end of the ring it is
 * given up. */
#ifndef FF_CLAIM_TRAIL_H
#define FF_CLAIM_TRAIL_H

#include "claim/claim.h"

void ff_trails_load(void);
void ff_trails_unload(void);

/* Serves a call: fills the empty list with up to order->count executions, and tells how far the
 * search of its own has come; that must have begun. Returns how many were handed out. */
size_t ff_trail_run(ValkeyModuleCtx *ctx, const ff_claim_order *order, ff_claim_search *search,
                    ff_answer *list);

#endif
