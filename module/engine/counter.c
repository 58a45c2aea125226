#include "engine/counter.h"

#include <math.h>

bool ff_counter_add(ff_key *hash, const ff_word *field, int64_t by, int64_t *after,
                    ff_result *out) {
    if (ff_hash_increment(hash, field, by, after)) return true;
    ff_str *sentence =
        FF_CONCAT(out->txn, field->text, FF_TEXT(" must be an integer that can be counted, got: "),
                  ff_str_text(ff_hash_get(hash, field)));
    ff_refuse_with(out, FF_INVALID_INPUT, sentence);
    return false;
}

bool ff_counter_read(ff_key *hash, const ff_word *field, double *value, ff_result *out) {
    if (ff_hash_number(hash, field, value) != FF_NUMBER_BAD) return true;
    ff_not_a_number_field(out, field, ff_hash_get(hash, field));
    return false;
}

bool ff_counter_read_score(ff_key *hash, const ff_word *field, double *score, ff_result *out) {
    if (!ff_counter_read(hash, field, score, out)) return false;
    if (!isnan(*score)) return true;
    ff_not_a_number_field(out, field, ff_hash_get(hash, field));
    return false;
}
