/* Admission: a runnable execution that may not start now is parked, and let go again.
 *
 * Parked means runnable, not eligible, and in one of the blocked indexes of its lane; which one is the
 * caller's choice. */
#ifndef FF_ENGINE_ADMISSION_H
#define FF_ENGINE_ADMISSION_H

#include "engine/result.h"

/* ff_block_execution_for_admission */
typedef struct ff_admission_block_keys {
    ff_str *core, *eligible, *blocked;
} ff_admission_block_keys;

typedef struct ff_admission_block_args {
    ff_str *execution_id, *reason, *detail, *now;
} ff_admission_block_args;

ff_verdict ff_admission_block(ff_txn *t, const ff_admission_block_keys *k,
                              const ff_admission_block_args *a, ff_result *out);

/* ff_unblock_execution. Lifts every block but that of a paused lane. */
typedef struct ff_admission_unblock_keys {
    ff_str *core, *blocked, *eligible;
} ff_admission_unblock_keys;

typedef struct ff_admission_unblock_args {
    ff_str *execution_id, *now, *expected_reason;
} ff_admission_unblock_args;

ff_verdict ff_admission_unblock(ff_txn *t, const ff_admission_unblock_keys *k,
                                const ff_admission_unblock_args *a, ff_result *out);

#endif
