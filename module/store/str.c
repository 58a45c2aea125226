#include <string.h>

#include "base/number.h"
#include "store/key.h"

ff_str *ff_str_make(ff_txn *t, ff_text text) {
    return ff_txn_keep(t, ValkeyModule_CreateString(NULL, text.ptr ? text.ptr : "", text.len));
}

ff_str *ff_str_number(ff_txn *t, double value) {
    char digits[FF_NUMBER_MAX];
    size_t length = ff_number_format(value, digits);
    return ff_str_make(t, ff_text_make(digits, length));
}

ff_str *ff_str_server_number(ff_txn *t, double value) {
    char digits[FF_NUMBER_MAX];
    size_t length = ff_number_format_server(value, digits);
    return ff_str_make(t, ff_text_make(digits, length));
}

ff_str *ff_str_integer(ff_txn *t, int64_t value) {
    char digits[FF_NUMBER_MAX];
    size_t length = ff_integer_format(value, digits);
    return ff_str_make(t, ff_text_make(digits, length));
}

ff_str *ff_str_now(ff_txn *t) {
    if (t->now_text == NULL) t->now_text = ff_str_number(t, t->now);
    return t->now_text;
}

ff_str *ff_str_concat(ff_txn *t, const ff_text *texts, size_t count) {
    return ff_str_make(t, ff_arena_join(&t->arena, texts, count));
}

ff_text ff_str_text(const ff_str *str) {
    ff_text text = FF_TEXT_ABSENT;
    if (str) text.ptr = ValkeyModule_StringPtrLen(str, &text.len);
    return text;
}

bool ff_str_is(const ff_str *str, const ff_word *word) {
    return str == word->str || ff_text_equal(ff_str_text(str), word->text);
}

bool ff_str_equal(const ff_str *a, const ff_str *b) {
    if (a == NULL || b == NULL) return false;
    return a == b || ff_text_equal(ff_str_text(a), ff_str_text(b));
}

bool ff_str_is_set(const ff_str *str) { return ff_str_text(str).len > 0; }

ff_str *ff_str_or_empty(ff_str *str) { return str ? str : W(empty)->str; }

ff_str *ff_str_or(ff_str *str, const ff_word *word) { return str ? str : word->str; }

bool ff_str_to_number(const ff_str *str, double *out) {
    return ff_number_parse(ff_str_text(str), out);
}
