/* Back to runnable: how a suspension ends when its execution is to go on, whoever ends it. */
#ifndef FF_ENGINE_RESUME_H
#define FF_ENGINE_RESUME_H

#include "store/txn.h"

typedef struct ff_resume {
    ff_str *execution_id;
    ff_str *eligible, *delayed, *suspended; /* the lane's indexes */
    double delay;                           /* milliseconds; nothing above 0: at once */
    ff_str *signal_name;                    /* of the signal that did it, NULL for other causes */
} ff_resume;

/* Rule RESUME-CORE: the state vector, and from the suspended index into the delayed or the eligible one.
 * NULL when it is staged; otherwise nothing is, and the field of core that gives no score is returned. */
const ff_word *ff_resume_core(ff_key *core, const ff_resume *resume);

#endif
