/* Executions that are merely there. */
#ifndef FF_BENCH_BALLAST_H
#define FF_BENCH_BALLAST_H

#include "field.h"

/* Creates `count` executions, spread over the partitions and over `lanes` lanes of their own, and leads
 * them through their whole life when `ended`. */
void ballast_load(const entrant *on, size_t count, size_t lanes, bool ended);

#endif
