#include "engine/result.h"

static ff_value *append(ff_result *out) {
    out->values =
        ff_txn_grow(out->txn, out->values, out->count, &out->capacity, sizeof *out->values);
    return &out->values[out->count++];
}

void ff_result_add(ff_result *out, ff_str *value) {
    *append(out) = (ff_value){.str = ff_str_or_empty(value)};
}

void ff_result_add_word(ff_result *out, const ff_word *word) { ff_result_add(out, word->str); }

void ff_result_add_number(ff_result *out, double value) {
    ff_result_add(out, ff_str_number(out->txn, value));
}

ff_value *ff_result_add_list(ff_result *out, size_t count) {
    ff_value *items = ff_arena_array(&out->txn->arena, count, sizeof *items);
    *append(out) = (ff_value){.items = items, .count = count};
    return items;
}

ff_verdict ff_succeed(ff_result *out, ff_code code) {
    out->code = code;
    return FF_COMMIT;
}

ff_verdict ff_ok_word(ff_result *out, const ff_word *word) {
    ff_result_add_word(out, word);
    return ff_ok(out);
}

ff_verdict ff_refuse(ff_result *out, ff_code code) {
    out->code = code;
    return FF_DISCARD;
}

ff_verdict ff_refuse_keeping(ff_result *out, ff_code code) {
    out->code = code;
    return FF_COMMIT;
}

ff_verdict ff_refuse_with(ff_result *out, ff_code code, ff_str *detail) {
    out->count = 0;
    ff_result_add(out, detail);
    return ff_refuse(out, code);
}

ff_verdict ff_bad_input(ff_result *out, const char *sentence) {
    /* Also where the reply would have had another shape. */
    out->shape = FF_SHAPE_WRAPPED;
    return ff_refuse_with(out, FF_INVALID_INPUT, ff_str_make(out->txn, ff_text_of(sentence)));
}

ff_verdict ff_not_a_number(ff_result *out, const char *name, const ff_str *text) {
    ff_text got = text ? ff_str_text(text) : FF_TEXT("nil");
    out->shape = FF_SHAPE_WRAPPED;
    return ff_refuse_with(
        out, FF_INVALID_INPUT,
        FF_CONCAT(out->txn, ff_text_of(name), FF_TEXT(" must be a number, got: "), got));
}

ff_verdict ff_not_a_number_field(ff_result *out, const ff_word *field, const ff_str *text) {
    ff_text name = ff_arena_dup(&out->txn->arena, field->text);
    return ff_not_a_number(out, name.ptr, text);
}

size_t ff_given(const void *arguments, size_t named) {
    ff_str *const *slots = arguments;
    size_t given = 0;
    while (given < named && slots[given]) given++;
    return given;
}

static bool need(ff_result *out, const void *slots, size_t needed, const char *what) {
    size_t given = ff_given(slots, needed);
    if (given == needed) return true;
    ff_text sentence =
        ff_arena_printf(&out->txn->arena, "expected %zu %s, got %zu", needed, what, given);
    ff_bad_input(out, sentence.ptr);
    return false;
}

bool ff_need_keys(ff_result *out, const void *keys, size_t needed) {
    return need(out, keys, needed, "keys");
}

bool ff_need_arguments(ff_result *out, const void *arguments, size_t needed) {
    return need(out, arguments, needed, "arguments");
}

ff_verdict ff_too_few_arguments(ff_result *out, const char *expected, size_t given) {
    ff_text sentence =
        ff_arena_printf(&out->txn->arena, "expected %s arguments, got %zu", expected, given);
    return ff_bad_input(out, sentence.ptr);
}
