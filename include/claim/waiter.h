/* Claimers that wait.
 *
 * A worker that finds nothing may wait for something (FF.CLAIM … BLOCK). It joins the group of
 * those who would be given the same executions, at its end. A write to the queue of a lane stirs
 * the groups that wait for that lane; right after the command that wrote, a timer serves the
 * stirred groups: the one whose first waiter came first, and of it that waiter, until nothing is
 * left that any of them could have. So nobody polls, and an execution goes to the first who
 * matches. What becomes claimable by time alone (a lease runs out, a grant lapses) has an alarm.
 *
 * The claim is made by the timer, the reply is sent by the server's callback for unblocked
 * clients. A waiter that is gone was told so before: its group does not know it any more. */
#ifndef FF_CLAIM_WAITER_H
#define FF_CLAIM_WAITER_H

#include "claim/claim.h"

void ff_waiters_load(ValkeyModuleCtx *ctx);
void ff_waiters_unload(void);

/* Sends the reply of a command that claims, once it is known what was handed out. */
typedef struct ff_claim_teller {
    void (*send)(ValkeyModuleCtx *ctx, const ff_answer *claimed, void *data);
    void (*release)(void *data); /* called once, whatever becomes of the client */
    void *data;
} ff_claim_teller;

/* Whether a command that claims can be served in this context: not in a transaction or script of
 * a cluster, where the server would look up all keys in one slot. */
bool ff_claim_is_possible(ValkeyModuleCtx *ctx);

/* Serves a command that claims. True: it is done, and the list is complete. False: the client
 * was blocked, and the teller will send the reply (NULL: the list alone); the command must not.
 * `keyed` says that the command has declared a key. Nothing may be staged in the list's
 * transaction. The order is copied. */
bool ff_claim_serve(ValkeyModuleCtx *ctx, const ff_claim_order *order, bool keyed, ff_answer *list,
                    const ff_claim_teller *teller);

/* The queue of a lane was written. Called from within the write. */
void ff_waiters_stir(ff_text lane);

/* A lease was written: when the next one runs out may have changed. */
void ff_waiters_reconsider(void);

/* Whether somebody waits who could take such an execution. */
bool ff_waiters_cover(ff_text lane, uint16_t partition, ff_text namespace,
                      const ff_capability_set *required);

size_t ff_waiters_count(void);

#endif
