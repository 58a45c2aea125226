/* Where leases have run out, and when the next one will.
 *
 * Leases are indexed by their expiry in one zset per partition. A claim must know which of them
 * hold something that is due, without looking at all of them: the head of each is remembered,
 * and read again only after the index was written or time has passed it. */
#ifndef FF_CLAIM_LAPSE_H
#define FF_CLAIM_LAPSE_H

#include "valkeymodule.h"

#include <stdbool.h>
#include <stdint.h>

void ff_lapse_load(void);
void ff_lapse_unload(void);

/* Tells that the index of a partition was written. */
void ff_lapse_mark(uint16_t partition);

/* Reads what is not known; to be called before the questions below. */
void ff_lapse_refresh(ValkeyModuleCtx *ctx, double now);

/* The first partition from `from` on that has a lease which ran out; -1 when there is none. */
int32_t ff_lapse_next(uint32_t from, double now);

/* When the next lease runs out; infinity when none will. May be too early, never too late. */
double ff_lapse_after_now(void);

/* Whether a partition was seen with a lease that ran out since this was last asked. */
bool ff_lapse_take_news(void);

#endif
