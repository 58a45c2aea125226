/* Completion dispatch: when a flow member has ended, what waits for it is resolved.
 *
 * A transaction notes the members that it ends (engine/completion.h). A native command, and a scanner, resolve
 * their dependents right after the commit, in the same step, up to ff.cascade-limit; a wire function must have the effects
 * of its page and no others, so its members go to a queue that is worked right after the call. What is in the queue may
 * be lost with the node: the dependency reconciler finds it again. */
#ifndef FF_SCAN_DISPATCH_H
#define FF_SCAN_DISPATCH_H

#include "store/txn.h"

/* After a commit of a wire function. Nothing happens unless scanners are on. */
void ff_dispatch_later(const ff_txn *t);

/* After a commit of a native command or a scanner. Any number of transactions may follow from it. */
void ff_dispatch_now(ValkeyModuleCtx *ctx, const ff_txn *t);

/* ---- For the runner ---- */

bool ff_dispatch_is_waiting(void);

/* Works on the queue until the deadline (monotonic µs), at least one edge. */
void ff_dispatch_work(ValkeyModuleCtx *ctx, uint64_t deadline);

void ff_dispatch_forget(void);
uint64_t ff_dispatch_length(void);

#endif
