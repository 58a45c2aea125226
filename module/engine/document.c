#include "engine/document.h"

#include "base/number.h"

static void release(void *value) { ff_json_free(value); }

ff_json *ff_document_own(ff_txn *t, ff_json *value) {
    if (value) ff_txn_own(t, value, release);
    return value;
}

ff_json *ff_document_read(ff_txn *t, const ff_str *text) {
    return text ? ff_document_own(t, ff_json_parse(ff_str_text(text))) : NULL;
}

typedef struct flat_field {
    ff_text name;
    ff_text value;
} flat_field;

static bool flatten_array(ff_arena *arena, const ff_json *array, flat_field *fields) {
    for (size_t i = 0; i < ff_json_array_length(array); i++) {
        fields[i].name = ff_integer_text(arena, (int64_t)i + 1);
        fields[i].value = ff_json_flat_text(arena, ff_json_at(array, i));
        if (ff_text_is_absent(fields[i].value)) return false;
    }
    return true;
}

static bool flatten_object(ff_arena *arena, const ff_json *object, flat_field *fields) {
    ff_json_walk walk = ff_json_members(object);
    for (size_t i = 0; ff_json_next(&walk, arena); i++) {
        fields[i].name = walk.name;
        fields[i].value = ff_json_flat_text(arena, walk.value);
        if (ff_text_is_absent(fields[i].value)) return false;
    }
    return true;
}

bool ff_document_flatten(ff_key *hash, const ff_json *document) {
    ff_txn *t = ff_key_txn(hash);
    if (!ff_json_is_container(document)) return false;
    bool is_array = ff_json_is_array(document);
    size_t count = is_array ? ff_json_array_length(document) : ff_json_object_length(document);
    flat_field *fields = ff_arena_array(&t->arena, count, sizeof *fields);
    bool written = is_array ? flatten_array(&t->arena, document, fields)
                            : flatten_object(&t->arena, document, fields);
    if (!written) return false;
    for (size_t i = 0; i < count; i++) {
        ff_hash_set(hash, ff_field(t, fields[i].name), ff_str_make(t, fields[i].value));
    }
    return true;
}
