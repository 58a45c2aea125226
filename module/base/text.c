#include "base/text.h"

static char lower(char byte) {
    return byte >= 'A' && byte <= 'Z' ? (char)(byte - 'A' + 'a') : byte;
}

static bool is_white(char byte) { return byte == ' ' || (byte >= '\t' && byte <= '\r'); }

bool ff_text_equal_ignoring_case(ff_text a, ff_text b) {
    if (!a.ptr || !b.ptr || a.len != b.len) return false;
    for (size_t i = 0; i < a.len; i++) {
        if (lower(a.ptr[i]) != lower(b.ptr[i])) return false;
    }
    return true;
}

int ff_text_compare(ff_text a, ff_text b) {
    size_t shared = a.len < b.len ? a.len : b.len;
    int order = shared ? memcmp(a.ptr, b.ptr, shared) : 0;
    if (order != 0) return order;
    return (a.len > b.len) - (a.len < b.len);
}

size_t ff_text_find(ff_text text, char byte, size_t start) {
    if (start >= text.len) return text.len;
    const char *found = memchr(text.ptr + start, byte, text.len - start);
    return found ? (size_t)(found - text.ptr) : text.len;
}

bool ff_text_contains(ff_text text, ff_text needle) {
    if (needle.len == 0) return true;
    return text.len >= needle.len && memmem(text.ptr, text.len, needle.ptr, needle.len) != NULL;
}

bool ff_text_split(ff_text *rest, char separator, ff_text *piece) {
    if (!rest->ptr) return false;
    size_t end = ff_text_find(*rest, separator, 0);
    *piece = ff_text_slice(*rest, 0, end);
    *rest = end < rest->len ? ff_text_slice(*rest, end + 1, rest->len) : FF_TEXT_ABSENT;
    return true;
}

ff_text ff_text_trim(ff_text text) {
    while (text.len > 0 && is_white(text.ptr[0])) {
        text.ptr++;
        text.len--;
    }
    while (text.len > 0 && is_white(text.ptr[text.len - 1])) text.len--;
    return text;
}

/* Where the group that opens at `start` closes. It must be balanced. */
static size_t group_end(ff_text text, size_t start) {
    size_t depth = 0;
    for (size_t i = start;; i++) {
        if (text.ptr[i] == '{') depth++;
        if (text.ptr[i] == '}' && --depth == 0) return i + 1;
    }
}

/* From the right, each '{' takes one '}' that is still free; the last to find one is the first
 * group. Trying one '{' after the other from the left would be quadratic in a text full of them. */
ff_text ff_text_tag(ff_text key) {
    size_t closers = 0;
    size_t first = key.len;
    for (size_t i = key.len; i-- > 0;) {
        if (key.ptr[i] == '}') closers++;
        if (key.ptr[i] == '{' && closers > 0) {
            closers--;
            first = i;
        }
    }
    return first < key.len ? ff_text_slice(key, first, group_end(key, first)) : FF_TEXT_ABSENT;
}
