/* Telling the world that a flow member has ended. */
#ifndef FF_ENGINE_COMPLETION_H
#define FF_ENGINE_COMPLETION_H

#include "store/txn.h"

/* A flow member that the transaction ends: its dependents are to be resolved after the commit. */
typedef struct ff_ended {
    struct ff_ended *next;
    ff_str *execution_id;
    ff_str *flow_id;
} ff_ended;

/* Notes that a flow member has ended; nothing happens when flow_id is not set. */
void ff_completion_note(ff_txn *t, ff_str *flow_id, ff_str *execution_id);

/* Rule ANNOUNCE: publishes on ff:dag:completions and notes the end, only when flow_id is set. */
void ff_completion_announce(ff_txn *t, ff_str *flow_id, ff_str *execution_id,
                            const ff_word *outcome);

#endif
