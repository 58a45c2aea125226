/* Who can do what: the workers that this node knows of.
 *
 * An execution that the worker at hand cannot run is parked only if nobody known could run it. Known are the
 * workers registered in the execution's namespace, by their keys, and the claimers that wait. */
#ifndef FF_CLAIM_ROUTE_H
#define FF_CLAIM_ROUTE_H

#include "base/capability.h"
#include "valkeymodule.h"

int ff_route_load(ValkeyModuleCtx *ctx);
void ff_route_unload(void);

/* Whether a worker registered in the namespace has all the capabilities. */
bool ff_route_has_worker(ValkeyModuleCtx *ctx, double now, ff_text namespace,
                         const ff_capability_set *required);

#endif
