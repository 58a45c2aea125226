/* The module's configuration: ff.* lines of valkey.conf, CONFIG SET, and loadmodule arguments, which set
 * the default of what they name. */
#ifndef FF_CONFIG_H
#define FF_CONFIG_H

#include "valkeymodule.h"

typedef struct ff_configuration {
    long long flow_partitions;
    long long budget_partitions;
    long long quota_partitions;
    int intercept_fcall;
} ff_configuration;

extern ff_configuration ff_config;

/* Registers every setting and takes over what the server was configured with. `argv` are the loadmodule
 * arguments, pairs of a name without "ff." and a value. On failure the reason is logged. */
int ff_config_load(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc);

#endif
