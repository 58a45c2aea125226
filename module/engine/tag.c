#include "engine/tag.h"

static bool is_lower(char byte) { return byte >= 'a' && byte <= 'z'; }

static bool is_namespace_byte(char byte) {
    return is_lower(byte) || (byte >= '0' && byte <= '9') || byte == '_';
}

bool ff_tag_name_is_valid(ff_text name) {
    if (name.len == 0 || !is_lower(name.ptr[0])) return false;
    size_t dot = 1;
    while (dot < name.len && is_namespace_byte(name.ptr[dot])) dot++;
    return dot + 1 < name.len && name.ptr[dot] == '.' && name.ptr[dot + 1] != '.';
}

bool ff_tags_check(const ff_strs *pairs, const ff_key *owner, ff_code missing, ff_result *out) {
    if (pairs->count == 0 || pairs->count % 2) {
        ff_bad_input(out, "tags must be non-empty even-length key/value pairs");
        return false;
    }
    if (!ff_key_exists(owner)) {
        ff_refuse(out, missing);
        return false;
    }
    for (size_t i = 0; i < pairs->count; i += 2) {
        if (!ff_tag_name_is_valid(ff_str_text(pairs->items[i]))) {
            ff_refuse_with(out, FF_INVALID_TAG_KEY, pairs->items[i]);
            return false;
        }
    }
    return true;
}

void ff_tags_write(ff_key *tags, const ff_strs *pairs, ff_result *out) {
    for (size_t i = 0; i < pairs->count; i += 2) {
        ff_hash_set(tags, ff_field_str(out->txn, pairs->items[i]), pairs->items[i + 1]);
    }
    ff_result_add_number(out, (double)(pairs->count / 2));
}

ff_verdict ff_execution_tag(ff_txn *t, const ff_execution_tag_keys *k,
                            const ff_execution_tag_args *a, ff_result *out) {
    if (!ff_tags_check(&a->pairs, ff_any_open(t, k->core), FF_EXECUTION_NOT_FOUND, out)) {
        return FF_DISCARD;
    }
    ff_tags_write(ff_hash_open(t, k->tags), &a->pairs, out);
    ff_hash_set_now(ff_hash_open(t, k->core), W(last_mutation_at));
    return ff_ok(out);
}
