/* Telling the world that a flow member has ended. */
#ifndef FF_ENGINE_COMPLETION_H
#define FF_ENGINE_COMPLETION_H

#include "store/txn.h"

/* Rule ANNOUNCE: publishes on ff:dag:completions, only when flow_id is set. */
void ff_completion_announce(ff_txn *t, const ff_str *flow_id, const ff_str *execution_id,
                            const ff_word *outcome);

#endif
