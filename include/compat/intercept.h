/* FCALL of a wire function, served without Lua. */
#ifndef FF_COMPAT_INTERCEPT_H
#define FF_COMPAT_INTERCEPT_H

#include "valkeymodule.h"

/* Starts or stops intercepting, as ff.intercept-fcall says. */
void ff_intercept_apply(ValkeyModuleCtx *ctx);

#endif
