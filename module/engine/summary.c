#include "engine/summary.h"

#include "base/number.h"
#include "engine/document.h"

enum {
    MERGE_LEVELS = 17,     /* objects that may nest in a patch, the root included */
    SENTINEL_LEVELS = 32,  /* below the root; deeper sentinels keep their text */
    SPARSE_POSITIONS = 10, /* more than this many positions must not be mostly holes */
};

typedef struct merge {
    ff_arena *arena;
    bool too_deep;
    bool too_sparse;
} merge;

static bool starts_with_false(const ff_json *value) {
    return ff_json_kind(ff_json_at(value, 0)) == FF_JSON_FALSE;
}

static bool has_members(const ff_json *value) { return ff_json_object_length(value) > 0; }

static void merge_members(merge *m, ff_json *target, const ff_json *patch, unsigned level);
static ff_json *merge_positions(merge *m, const ff_json *patch, unsigned level);

/* What a member of a patch gives where there is nothing to merge it with. */
static ff_json *value_of(merge *m, ff_json *value, unsigned level) {
    if (starts_with_false(value)) return merge_positions(m, value, level + 1);
    if (!has_members(value)) return ff_json_share(value);
    ff_json *object = ff_json_new_object();
    merge_members(m, object, value, level + 1);
    return object;
}

static bool enter(merge *m, unsigned level) {
    if (level >= MERGE_LEVELS) m->too_deep = true;
    return !m->too_deep;
}

/* Nulls leave holes: nothing at the end, nulls in the middle. */
static ff_json *merge_positions(merge *m, const ff_json *patch, unsigned level) {
    ff_json *array = ff_json_new_array();
    size_t filled = 0;
    if (!enter(m, level)) return array;
    for (size_t i = 0; i < ff_json_array_length(patch); i++) {
        ff_json *element = ff_json_at(patch, i);
        if (ff_json_kind(element) == FF_JSON_NULL) continue;
        ff_json_array_set(array, i, value_of(m, element, level));
        filled++;
    }
    size_t positions = ff_json_array_length(array);
    if (positions > SPARSE_POSITIONS && positions > 2 * filled) m->too_sparse = true;
    return array;
}

/* The positions become names beside the members that are there; a member of the same name stays. */
static void merge_positions_into(merge *m, ff_json *target, const ff_json *patch, unsigned level) {
    if (!enter(m, level)) return;
    for (size_t i = 0; i < ff_json_array_length(patch); i++) {
        ff_json *element = ff_json_at(patch, i);
        if (ff_json_kind(element) == FF_JSON_NULL) continue;
        ff_text name = ff_integer_text(m->arena, (int64_t)i + 1);
        ff_json *value = value_of(m, element, level);
        if (ff_json_member_text(target, name)) {
            ff_json_free(value);
        } else {
            ff_json_set(target, name, value);
        }
    }
}

static void merge_member(merge *m, ff_json *target, ff_text name, ff_json *value, unsigned level) {
    ff_json *existing = ff_json_member_text(target, name);
    if (ff_json_kind(value) == FF_JSON_NULL) {
        ff_json_remove(target, name);
    } else if (has_members(value) && ff_json_is_object(existing)) {
        merge_members(m, existing, value, level + 1);
    } else if (starts_with_false(value) && has_members(existing)) {
        merge_positions_into(m, existing, value, level + 1);
    } else {
        ff_json_set(target, name, value_of(m, value, level));
    }
}

static void merge_members(merge *m, ff_json *target, const ff_json *patch, unsigned level) {
    ff_json_walk walk = ff_json_members(patch);
    if (!enter(m, level)) return;
    while (!m->too_deep && ff_json_next(&walk, m->arena)) {
        merge_member(m, target, walk.name, walk.value, level);
    }
}

static bool is_sentinel(const ff_json *value) {
    return ff_text_equal(ff_json_string(value), FF_TEXT("__ff_null__"));
}

static void write_nulls(ff_arena *arena, ff_json *value, unsigned level) {
    if (level > SENTINEL_LEVELS) return;
    for (size_t i = 0; i < ff_json_array_length(value); i++) {
        ff_json *element = ff_json_at(value, i);
        if (is_sentinel(element)) {
            ff_json_array_set(value, i, ff_json_new_null());
        } else {
            write_nulls(arena, element, level + 1);
        }
    }
    ff_json_walk walk = ff_json_members(value);
    while (ff_json_next(&walk, arena)) {
        if (is_sentinel(walk.value)) {
            ff_json_set(value, walk.name, ff_json_new_null());
        } else {
            write_nulls(arena, walk.value, level + 1);
        }
    }
}

static bool is_empty_array(const ff_json *value) {
    return ff_json_is_array(value) && ff_json_array_length(value) == 0;
}

/* The stored document as an object; NULL when something else is stored. */
static ff_json *read_target(ff_txn *t, const ff_str *stored) {
    if (!ff_str_is_set(stored)) return ff_document_own(t, ff_json_new_object());
    ff_json *document = ff_document_read(t, stored);
    if (is_empty_array(document)) return ff_document_own(t, ff_json_new_object());
    return ff_json_is_object(document) ? document : NULL;
}

/* NULL when all is well. */
static const char *judge_patch(const ff_str *summary, const ff_str *patch_kind,
                               const ff_json *patch) {
    if (!ff_str_is_set(summary)) return "summary mode requires stream_summary key";
    if (ff_str_is_set(patch_kind) && !ff_str_is(patch_kind, W(json_merge_patch))) {
        return "unsupported patch_kind";
    }
    if (patch == NULL) return "patch payload is not valid JSON";
    if (!ff_json_is_object(patch) && !is_empty_array(patch)) return "patch must be a JSON object";
    return NULL;
}

static ff_verdict refuse(ff_result *out, ff_code code, const char *sentence) {
    ff_bad_input(out, sentence);
    return ff_refuse_keeping(out, code);
}

static bool store(ff_key *summary, ff_text document, ff_str **version) {
    ff_txn *t = ff_key_txn(summary);
    int64_t number;
    if (!ff_hash_increment(summary, W(version), 1, &number)) return false;
    *version = ff_str_number(t, (double)number);
    ff_hash_set(summary, W(document), ff_str_make(t, document));
    ff_hash_set_word(summary, W(patch_kind), W(json_merge_patch));
    ff_hash_set_now(summary, W(last_updated_ms));
    if (number == 1) ff_hash_set_now(summary, W(first_applied_ms));
    return true;
}

bool ff_summary_patch(ff_txn *t, ff_str *summary_name, const ff_str *patch_kind, ff_str *patch_text,
                      ff_str **version, ff_result *out, ff_verdict *verdict) {
    const ff_json *patch = ff_document_read(t, patch_text);
    const char *problem = judge_patch(summary_name, patch_kind, patch);
    if (problem) {
        *verdict = refuse(out, FF_INVALID_INPUT, problem);
        return false;
    }
    ff_key *summary = ff_hash_open(t, summary_name);
    ff_json *target = read_target(t, ff_hash_get(summary, W(document)));
    if (target == NULL) {
        *verdict = refuse(out, FF_CORRUPTION, "stored summary document not decodeable");
        return false;
    }
    merge m = {.arena = &t->arena};
    merge_members(&m, target, patch, 0);
    if (m.too_deep) {
        *verdict = refuse(out, FF_INVALID_INPUT, "patch_depth_exceeded");
        return false;
    }
    write_nulls(&t->arena, target, 0);
    ff_text document = ff_json_write(&t->arena, target);
    if (m.too_sparse || ff_text_is_absent(document)) {
        *verdict = ff_bad_input(out, "the patched document holds what JSON cannot: a number that "
                                     "is not finite, or an array that is mostly holes");
        return false;
    }
    if (store(summary, document, version)) return true;
    *verdict = ff_bad_input(out, "the stored version is no whole number");
    return false;
}

ff_verdict ff_summary_read(ff_txn *t, const ff_summary_read_keys *k, const ff_summary_read_args *a,
                           ff_result *out) {
    (void)a;
    ff_key *summary = ff_hash_open(t, k->summary);
    ff_result_add(out, ff_hash_get(summary, W(document)));
    ff_result_add(out, ff_str_or(ff_hash_get(summary, W(version)), W(zero)));
    ff_result_add(out, ff_hash_get(summary, W(patch_kind)));
    ff_result_add(out, ff_str_or(ff_hash_get(summary, W(last_updated_ms)), W(zero)));
    ff_result_add(out, ff_str_or(ff_hash_get(summary, W(first_applied_ms)), W(zero)));
    return ff_ok(out);
}
