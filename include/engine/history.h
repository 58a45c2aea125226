/* The lease history of an execution: a stream of what happened to its leases. */
#ifndef FF_ENGINE_HISTORY_H
#define FF_ENGINE_HISTORY_H

#include "store/txn.h"

enum { FF_HISTORY_MAXLEN = 1000 };

/* Rule HISTORY: appends an entry; `ts`, the clock, is added as its last field. Absent values are written as
 * empty. At most 16 pairs. */
void ff_history_add(ff_key *history, int64_t maxlen, const ff_pair *pairs, size_t count);
#define FF_HISTORY(history, ...) \
    ff_history_add((history), FF_HISTORY_MAXLEN, (const ff_pair[]){__VA_ARGS__}, \
                   sizeof((const ff_pair[]){__VA_ARGS__}) / sizeof(ff_pair))

#endif
