/* Counters and other numbers kept in hash fields, where a missing field counts as 0. */
#ifndef FF_ENGINE_COUNTER_H
#define FF_ENGINE_COUNTER_H

#include "engine/result.h"

/* Adds to a whole number. `after`, if not NULL, gets the sum. False after a refusal was put into `out`:
 * what is stored is no plain 64-bit integer, or the sum would not be one. */
bool ff_counter_add(ff_key *hash, const ff_word *field, int64_t by, int64_t *after, ff_result *out);

/* Reads a number. False after a refusal was put into `out`: what is stored is none. */
bool ff_counter_read(ff_key *hash, const ff_word *field, double *value, ff_result *out);

/* The same for what is to be the score of an index entry: nan is refused too. */
bool ff_counter_read_score(ff_key *hash, const ff_word *field, double *score, ff_result *out);

#endif
