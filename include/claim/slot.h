/* Concurrency slots: what an admitted execution holds of its quota policy while it is active.
 *
 * A claim takes the slot. Whatever ends the execution, or takes it out of `active`, gives it
 * back with ff_slot_free. */
#ifndef FF_CLAIM_SLOT_H
#define FF_CLAIM_SLOT_H

#include "base/id.h"
#include "store/txn.h"

void ff_slot_load(ValkeyModuleCtx *ctx);
void ff_slot_unload(void);

/* Gives back the slot that the execution holds, if it holds one: in the transaction itself, or,
 * in a cluster, right after the command, since its keys are in another slot of the cluster (and
 * nothing happens when that is another node's). To be called when the transaction will be
 * committed. */
void ff_slot_free(ff_txn *t, ff_key *core, ff_str *execution_id);

/* The keys of a quota policy: `tag` of its partition, then ff:quota:<tag>:<id><suffix>. */
ff_text ff_quota_tag(ff_txn *t, ff_text policy_id, ff_partition *home);
ff_str *ff_quota_key(ff_txn *t, ff_text tag, ff_text policy_id, const char *suffix,
                     ff_text execution_id);

#endif
