/* Backoff: a candidate that failed three times in a row is left alone for ten rounds. */
#ifndef FF_SCAN_BACKOFF_H
#define FF_SCAN_BACKOFF_H

#include <stdbool.h>
#include <stdint.h>

#include "base/text.h"
#include "valkeymodule.h"

typedef struct ff_backoff {
    ValkeyModuleDict *failures; /* by candidate */
    uint64_t round;
} ff_backoff;

/* Whether the candidate is to be passed over. */
bool ff_backoff_holds(ff_backoff *backoff, ff_text candidate);

/* True with the failure that makes it be left alone. */
bool ff_backoff_failed(ff_backoff *backoff, ff_text candidate);
void ff_backoff_succeeded(ff_backoff *backoff, ff_text candidate);

/* Once per round of the scanner. */
void ff_backoff_next_round(ff_backoff *backoff);

uint64_t ff_backoff_count(const ff_backoff *backoff);
void ff_backoff_reset(ff_backoff *backoff);

#endif
