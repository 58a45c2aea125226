/* Where an execution stands in a lane's eligible set. */
#ifndef FF_ENGINE_SCORE_H
#define FF_ENGINE_SCORE_H

#include "store/txn.h"

/* Rule SCORE over plain numbers. */
double ff_score(double priority, double created_at);

/* Below 0 becomes 0, above 9000 becomes 9000; nan stays. */
double ff_priority_clamp(double priority);

/* Rule SCORE over the stored fields, absent counting as 0. NULL on success, else the field that holds no
 * number, or one that gives no score. */
const ff_word *ff_score_of(ff_key *core, double *score);

#endif
