#include "engine/score.h"

#include <math.h>

double ff_score(double priority, double created_at) {
    return 0 - priority * 1000000000000.0 + created_at;
}

double ff_priority_clamp(double priority) {
    if (priority < 0) return 0;
    return priority > 9000 ? 9000 : priority;
}

const ff_word *ff_score_of(ff_key *core, double *score) {
    double priority;
    double created_at;
    if (ff_hash_number(core, W(priority), &priority) == FF_NUMBER_BAD) return W(priority);
    if (ff_hash_number(core, W(created_at), &created_at) == FF_NUMBER_BAD) return W(created_at);
    *score = ff_score(priority, created_at);
    /* No sorted set takes nan. */
    if (isnan(*score)) return isnan(created_at) ? W(created_at) : W(priority);
    return NULL;
}
