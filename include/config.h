/* The module's configuration: ff.* lines of valkey.conf, CONFIG SET, and loadmodule arguments, which set
 * the default of what they name. */
#ifndef FF_CONFIG_H
#define FF_CONFIG_H

#include "base/text.h"
#include "scan/catalog.h"
#include "valkeymodule.h"

typedef struct ff_configuration {
    long long flow_partitions;
    long long budget_partitions;
    long long quota_partitions;
    int intercept_fcall;
    long long claim_partitions_per_scan;
    long long claim_rotation_ms;
    long long claim_block_limit;
    long long claim_lookahead;
    int scanners;
    long long scanner_interval_ms[FF_SCANNER_COUNT]; /* 0: off */
    long long scanner_slice_us;
    long long scan_batch;
    long long retention_ms;
    long long cascade_limit;
    int inline_cascade;
    ff_text lanes;            /* comma-separated */
    ff_text filter_namespace; /* empty: not filtered */
    ff_text filter_tag;       /* name=value, likewise */
} ff_configuration;

extern ff_configuration ff_config;

/* Registers every setting and takes over what the server was configured with. `argv` are the loadmodule
 * arguments, pairs of a name without "ff." and a value. On failure the reason is logged. */
int ff_config_load(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc);
void ff_config_unload(void);

#endif
