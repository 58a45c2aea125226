/* Suspending a job on a waitpoint, and the signal that resumes it. */
#ifndef FF_BENCH_SUSPENSION_H
#define FF_BENCH_SUSPENSION_H

#include "field.h"

typedef struct waitpoint {
    char id[WIRE_UUID];
    char token[200];
} waitpoint;

/* Installs the secrets that tokens are made with, in every partition. */
void suspension_prepare(const entrant *on);
void suspension_begin(worker *self, const job *held, waitpoint *at);
void suspension_signal(worker *self, const job *held, const waitpoint *at);

/* Those who can suspend. */
bool suspension_wanted(const contestant *who);

#endif
