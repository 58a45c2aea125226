/* The state vector of an execution: the fields of `core` that every transition writes together. */
#ifndef FF_ENGINE_VECTOR_H
#define FF_ENGINE_VECTOR_H

#include "store/txn.h"

/* NULL leaves a field as it is. blocking_detail goes with blocking_reason. */
typedef struct ff_vector {
    const ff_word *phase;
    const ff_word *ownership;
    const ff_word *eligibility;
    const ff_word *blocking;
    const ff_word *outcome;
    const ff_word *attempt;
    const ff_word *public_state;
    ff_str *detail;
} ff_vector;

void ff_vector_set(ff_key *core, const ff_vector *vector);

/* last_transition_at and last_mutation_at, the time of the change. */
void ff_vector_set_times(ff_key *core, ff_str *at);

/* Empties the given fields of a hash. */
void ff_fields_clear(ff_key *hash, const ff_word *const *fields, size_t count);
#define FF_CLEAR(hash, ...) \
    ff_fields_clear((hash), (const ff_word *const[]){__VA_ARGS__}, \
                    sizeof((const ff_word *const[]){__VA_ARGS__}) / sizeof(const ff_word *))

#endif
