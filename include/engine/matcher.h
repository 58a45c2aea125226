/* A signal against the recorded progress of a flat condition (engine/condition.h). */
#ifndef FF_ENGINE_MATCHER_H
#define FF_ENGINE_MATCHER_H

#include "engine/result.h"

/* Offers a signal to the free matchers of a condition record, in order, and stages what the first that
 * takes it changes. Returns the signal's effect, or NULL with the refusal in `out`. */
const ff_word *ff_matcher_deliver(ff_key *condition, const ff_str *name, ff_str *signal_id,
                                  ff_result *out);

#endif
