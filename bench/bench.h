/* What the programs of this directory share: settings, and who competes. */
#ifndef FF_BENCH_BENCH_H
#define FF_BENCH_BENCH_H

#include "figures.h"
#include "load.h"

/* Set once from the command line and the environment. */
typedef struct bench_settings {
    enum { SCALE_FULL, SCALE_QUICK, SCALE_SMOKE } scale;
    const char *reference;  /* path of the reference library, or NULL */
    const char *compat;     /* path of lua-compat/flowfabric.lua */
    const char *report_dir; /* where REPORT.md and its charts go */
    const char *bullmq;     /* path of the BullMQ script, or NULL when it cannot run */
} bench_settings;

extern bench_settings settings;

/* How much of something: all of it, what is enough for QUICK=1 (two minutes for everything), and
 * just enough to see that the programs work (QUICK=smoke). */
size_t scaled(size_t full, size_t quick, size_t smoke);

/* Server time of the wire functions; prints only. */
void bench_wire(void);

#endif
