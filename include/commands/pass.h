/* Passes of scanners that a command runs: over what, and what is answered. */
#ifndef FF_COMMANDS_PASS_H
#define FF_COMMANDS_PASS_H

#include "commands/request.h"
#include "scan/runner.h"

/* How many candidates a pass looks at, unless another LIMIT is given, and the largest one. */
enum { FF_PASS_LIMIT = 10000, FF_PASS_LIMIT_MAX = 1000000 };

/* `*` (-1), or a partition of the family that exists and is served here. False after a refusal. */
bool ff_pass_partition(ff_request *r, ff_text text, ff_family family, int32_t *number);

ff_verdict ff_pass_answer(ff_request *r, const ff_tally *tally);

#endif
