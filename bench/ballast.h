/* Executions that are merely there. */
#ifndef FF_BENCH_BALLAST_H
#define FF_BENCH_BALLAST_H

#include "field.h"

typedef enum {
    BALLAST_WAITING,
    BALLAST_ACTIVE,
    BALLAST_SUSPENDED,
    BALLAST_COMPLETED
} ballast_state;

/* Creates `count` executions by the wire functions, spread over the partitions and over `lanes`
 * lanes of their own, and leads them to the state. What a signal needs must be there if they are
 * suspended. */
void ballast_load(const entrant *on, size_t count, size_t lanes, ballast_state state);

#endif
