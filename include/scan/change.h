/* Which flow partitions may have changed.
 *
 * A walk over all executions of a partition that found everything in order finds the same the next time, unless
 * something was written there since, by whomever. So the walk leaves out what was not. */
#ifndef FF_SCAN_CHANGE_H
#define FF_SCAN_CHANGE_H

#include <stdbool.h>
#include <stdint.h>

/* To be called before the watch begins. */
void ff_change_load(void);
void ff_change_unload(void);

/* Everything may have changed. */
void ff_change_everywhere(void);

void ff_change_in(uint16_t partition);
bool ff_change_is_in(uint16_t partition);

/* From now on only further changes count. */
void ff_change_forget(uint16_t partition);

#endif
