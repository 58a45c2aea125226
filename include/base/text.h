#ifndef FF_BASE_TEXT_H
#define FF_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* Borrowed bytes with a length: not NUL-terminated, any byte may occur. A NULL pointer means that
 * the text is absent, which is not the same as empty. */
typedef struct ff_text {
    const char *ptr;
    size_t len;
} ff_text;

#define FF_TEXT_ABSENT ((ff_text){NULL, 0})

/* A text from a string literal, without strlen at run time. */
#define FF_TEXT(literal) ((ff_text){"" literal, sizeof(literal) - 1})

static inline ff_text ff_text_make(const char *ptr, size_t len) { return (ff_text){ptr, len}; }

/* A text over a C string; NULL gives the absent text. */
static inline ff_text ff_text_of(const char *string) {
    return (ff_text){string, string ? strlen(string) : 0};
}

static inline bool ff_text_is_absent(ff_text text) { return text.ptr == NULL; }

/* Rule IS-SET: there, and not empty. */
static inline bool ff_text_is_set(ff_text text) { return text.ptr != NULL && text.len > 0; }

/* The text itself, or the empty text when it is absent. */
static inline ff_text ff_text_or_empty(ff_text text) { return text.ptr ? text : (ff_text){"", 0}; }

/* Same bytes. An absent text equals nothing, not even another absent one. */
static inline bool ff_text_equal(ff_text a, ff_text b) {
    return a.ptr && b.ptr && a.len == b.len && (a.len == 0 || memcmp(a.ptr, b.ptr, a.len) == 0);
}

static inline bool ff_text_equal_cstr(ff_text text, const char *string) {
    return ff_text_equal(text, ff_text_of(string));
}

static inline bool ff_text_starts_with(ff_text text, ff_text prefix) {
    return text.ptr && prefix.ptr && text.len >= prefix.len &&
           (prefix.len == 0 || memcmp(text.ptr, prefix.ptr, prefix.len) == 0);
}

/* The bytes from `start` up to but not including `end`; both are clamped to the text. */
static inline ff_text ff_text_slice(ff_text text, size_t start, size_t end) {
    if (end > text.len) end = text.len;
    if (start > end) start = end;
    return (ff_text){text.ptr ? text.ptr + start : NULL, end - start};
}

/* The value of a hex digit, either case, or -1. */
static inline int ff_hex_value(char digit) {
    if (digit >= '0' && digit <= '9') return digit - '0';
    if (digit >= 'a' && digit <= 'f') return digit - 'a' + 10;
    if (digit >= 'A' && digit <= 'F') return digit - 'A' + 10;
    return -1;
}

/* Equal without regard to the case of ASCII letters; for keywords. */
bool ff_text_equal_ignoring_case(ff_text a, ff_text b);

/* Order by unsigned byte value, a proper prefix first: negative, zero or positive. Absent sorts
 * as empty. */
int ff_text_compare(ff_text a, ff_text b);

/* Position of the first `byte` at or after `start`, or text.len. */
size_t ff_text_find(ff_text text, char byte, size_t start);

/* Whether `needle` occurs anywhere; an empty needle always does. */
bool ff_text_contains(ff_text text, ff_text needle);

/* Takes the piece before the next `separator` off the front of `rest`. Returns false when `rest` is
 * exhausted (absent), so that splitting "a,,b" gives "a", "", "b" and splitting "" gives one "". */
bool ff_text_split(ff_text *rest, char separator, ff_text *piece);

/* Without the white space (space, \t \n \v \f \r) around it. */
ff_text ff_text_trim(ff_text text);

/* The first balanced {...} group, braces included; absent when there is none. */
ff_text ff_text_tag(ff_text key);

#endif
