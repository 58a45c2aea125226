/* Reading the stream of an attempt, and waiting for more of it or for its end. */
#ifndef FF_COMMANDS_TAIL_H
#define FF_COMMANDS_TAIL_H

#include "commands/request.h"

/* What a reader asks for. */
typedef struct ff_tail {
    ff_str *execution_id;
    ff_str *index; /* of the attempt */
    ff_str *from;  /* as XRANGE takes it */
    bool without_best_effort;
    int64_t count;
} ff_tail;

/* Reads, and fills in answer or result. True when there is no need to wait: frames were found,
 * or the stream is closed, or the call is refused. */
bool ff_tail_read(ff_txn *t, const ff_tail *tail, ff_answer *answer, ff_result *result);

/* Blocks the client until ff_tail_read says so, or the time is up (0: never): then it gets what
 * there is. To be called only where a client can be blocked. */
void ff_tail_wait(ValkeyModuleCtx *ctx, const ff_tail *tail, int64_t timeout_ms);

/* Starts listening for what readers wait for. */
void ff_tail_load(void);

#endif
