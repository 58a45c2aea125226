/* The reasons for which executions are blocked, as users name them. */
#ifndef FF_COMMANDS_BLOCKING_H
#define FF_COMMANDS_BLOCKING_H

#include "store/words.h"

typedef struct ff_blocking {
    const char *name;           /* what users say */
    const char *index;          /* of the lane, where such executions are */
    const ff_word *reason;      /* blocking_reason of the core */
    const ff_word *eligibility; /* eligibility_state of the core */
} ff_blocking;

enum { FF_BLOCKING_COUNT = 4 };

/* The names in the order of the reasons, up to a NULL: for FF_OPTION_CHOICE. */
extern const char *const ff_blocking_names[FF_BLOCKING_COUNT + 1];

ff_blocking ff_blocking_at(int position);

#endif
