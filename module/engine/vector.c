#include "engine/vector.h"

static void set_unless_kept(ff_key *core, const ff_word *field, const ff_word *value) {
    if (value) ff_hash_set_word(core, field, value);
}

void ff_vector_set(ff_key *core, const ff_vector *vector) {
    set_unless_kept(core, W(lifecycle_phase), vector->phase);
    set_unless_kept(core, W(ownership_state), vector->ownership);
    set_unless_kept(core, W(eligibility_state), vector->eligibility);
    set_unless_kept(core, W(blocking_reason), vector->blocking);
    if (vector->detail) ff_hash_set(core, W(blocking_detail), vector->detail);
    set_unless_kept(core, W(terminal_outcome), vector->outcome);
    set_unless_kept(core, W(attempt_state), vector->attempt);
    set_unless_kept(core, W(public_state), vector->public_state);
}

void ff_vector_set_times(ff_key *core, ff_str *at) {
    ff_hash_set(core, W(last_transition_at), at);
    ff_hash_set(core, W(last_mutation_at), at);
}

void ff_fields_clear(ff_key *hash, const ff_word *const *fields, size_t count) {
    for (size_t i = 0; i < count; i++) ff_hash_set_empty(hash, fields[i]);
}
