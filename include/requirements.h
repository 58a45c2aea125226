#ifndef FF_REQUIREMENTS_H
#define FF_REQUIREMENTS_H

#include <stdbool.h>

#include "valkeymodule.h"

/* Whether the server has every function of the module API that is used; logs those it lacks. */
bool ff_requirements_met(ValkeyModuleCtx *ctx);

#endif
