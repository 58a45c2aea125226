#include "base/number.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* Up to here every integer is a double, and its digits fit the plain paths below. */
enum { PLAIN_DIGITS = 15, STACK_TEXT = 128 };

static const double server_integer_max = 4611686018427387904.0; /* 2^62 */
static const double plain_format_limit = 1e14;

static bool is_digit(char byte) { return byte >= '0' && byte <= '9'; }

/* Plain decimal integers, which nearly all numbers are. */
static bool parse_plain(ff_text text, double *value) {
    const char *next = text.ptr;
    const char *end = text.ptr + text.len;
    bool negative = text.len > 0 && *next == '-';
    if (negative) next++;
    if (next == end || end - next > PLAIN_DIGITS) return false;
    int64_t magnitude = 0;
    for (; next < end; next++) {
        if (!is_digit(*next)) return false;
        magnitude = magnitude * 10 + (*next - '0');
    }
    *value = negative ? -(double)magnitude : (double)magnitude;
    return true;
}

/* Bytes that may occur in anything strtod takes, "nan(tag)" included. */
static bool may_be_number(ff_text text) {
    for (size_t i = 0; i < text.len; i++) {
        char byte = text.ptr[i];
        bool letter = (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z');
        if (!letter && !is_digit(byte) && !memchr("+-._()", byte, 6)) return false;
    }
    return text.len > 0;
}

/* strtod wants a NUL behind the text, which may belong to somebody else or be missing: a copy has
 * it. */
static bool parse_any(ff_text text, double *value) {
    char first[STACK_TEXT];
    ff_arena arena;
    ff_arena_init(&arena, first, sizeof(first));
    ff_text copy = ff_arena_dup(&arena, text);
    char *end;
    double result = strtod(copy.ptr, &end);
    bool whole = end == copy.ptr + copy.len;
    if (whole) *value = result;
    ff_arena_release(&arena);
    return whole;
}

bool ff_number_parse(ff_text text, double *value) {
    if (!text.ptr) return false;
    if (parse_plain(text, value)) return true;
    text = ff_text_trim(ff_text_slice(text, 0, ff_text_find(text, '\0', 0)));
    return may_be_number(text) && parse_any(text, value);
}

size_t ff_unsigned_format(uint64_t value, char buffer[FF_DIGITS_MAX]) {
    char reversed[FF_DIGITS_MAX];
    size_t count = 0;
    do {
        reversed[count++] = (char)('0' + value % 10);
        value /= 10;
    } while (value);
    for (size_t i = 0; i < count; i++) buffer[i] = reversed[count - 1 - i];
    buffer[count] = '\0';
    return count;
}

size_t ff_integer_format(int64_t value, char buffer[FF_NUMBER_MAX]) {
    if (value >= 0) return ff_unsigned_format((uint64_t)value, buffer);
    buffer[0] = '-';
    return 1 + ff_unsigned_format(-(uint64_t)value, buffer + 1);
}

size_t ff_number_format(double value, char buffer[FF_NUMBER_MAX]) {
    if (fabs(value) < plain_format_limit) {
        int64_t integer = (int64_t)value;
        if ((double)integer == value && !(integer == 0 && signbit(value))) {
            return ff_integer_format(integer, buffer);
        }
    }
    return (size_t)snprintf(buffer, FF_NUMBER_MAX, "%.14g", value);
}

bool ff_number_is_whole(double value) { return isfinite(value) && trunc(value) == value; }

bool ff_number_to_integer(double value, int64_t *integer) {
    if (!(fabs(value) <= server_integer_max) || trunc(value) != value) return false;
    *integer = (int64_t)value;
    return true;
}

/* value = 0.d1d2d3... * 10^point, for a positive finite value; `digits` ends without a zero. */
typedef struct decimal {
    char digits[18];
    int count;
    int point;
} decimal;

static bool take_digits(double value, int precision, decimal *result) {
    char text[FF_NUMBER_MAX];
    snprintf(text, sizeof(text), "%.*e", precision - 1, value);
    if (strtod(text, NULL) != value) return false;
    result->count = 0;
    const char *next = text;
    for (; *next != 'e'; next++) {
        if (*next != '.') result->digits[result->count++] = *next;
    }
    while (result->count > 1 && result->digits[result->count - 1] == '0') result->count--;
    result->point = atoi(next + 1) + 1;
    return true;
}

/* A normal double that has a form of up to 15 digits prints as that form, padded with zeros, at
 * 15. A subnormal one has fewer digits of precision, so each length is tried. */
static decimal shortest_decimal(double value) {
    decimal result = {{0}, 0, 0};
    int precision = isnormal(value) ? PLAIN_DIGITS : 1;
    while (!take_digits(value, precision, &result)) precision++;
    return result;
}

static size_t put_zeros(char *buffer, int count) {
    memset(buffer, '0', (size_t)count);
    return (size_t)count;
}

static size_t put_digits(char *buffer, const char *digits, int count) {
    memcpy(buffer, digits, (size_t)count);
    return (size_t)count;
}

static size_t lay_out_fraction(const decimal *number, char *buffer) {
    size_t len = 0;
    if (number->point > 0) {
        len += put_digits(buffer, number->digits, number->point);
        buffer[len++] = '.';
        return len + put_digits(buffer + len, number->digits + number->point,
                                number->count - number->point);
    }
    buffer[len++] = '0';
    buffer[len++] = '.';
    len += put_zeros(buffer + len, -number->point);
    return len + put_digits(buffer + len, number->digits, number->count);
}

static size_t lay_out_exponent(const decimal *number, char *buffer) {
    size_t len = 0;
    buffer[len++] = number->digits[0];
    if (number->count > 1) {
        buffer[len++] = '.';
        len += put_digits(buffer + len, number->digits + 1, number->count - 1);
    }
    buffer[len++] = 'e';
    if (number->point > 0) buffer[len++] = '+';
    return len + ff_integer_format(number->point - 1, buffer + len);
}

/* The layout rules of the server's own formatter. Like it, they look at the exponent's magnitude:
 * 123456.12345678 becomes 1.2345612345678e+5. */
static size_t lay_out(const decimal *number, char *buffer) {
    int last = number->point - number->count;
    int magnitude = abs(number->point - 1);
    if (last >= 0 && magnitude < number->count + 7) {
        size_t len = put_digits(buffer, number->digits, number->count);
        return len + put_zeros(buffer + len, last);
    }
    if (last < 0 && (last > -7 || magnitude < 4)) return lay_out_fraction(number, buffer);
    return lay_out_exponent(number, buffer);
}

size_t ff_number_format_server(double value, char buffer[FF_NUMBER_MAX]) {
    int64_t integer;
    if (ff_number_to_integer(value, &integer)) return ff_integer_format(integer, buffer);
    if (!isfinite(value)) return (size_t)snprintf(buffer, FF_NUMBER_MAX, "%g", value);
    decimal number = shortest_decimal(fabs(value));
    size_t len = 0;
    if (value < 0) buffer[len++] = '-';
    len += lay_out(&number, buffer + len);
    buffer[len] = '\0';
    return len;
}

ff_text ff_number_text(ff_arena *arena, double value) {
    char *buffer = ff_arena_bytes(arena, FF_NUMBER_MAX);
    size_t len = ff_number_format(value, buffer);
    return (ff_text){buffer, len};
}

ff_text ff_number_server_text(ff_arena *arena, double value) {
    char *buffer = ff_arena_bytes(arena, FF_NUMBER_MAX);
    size_t len = ff_number_format_server(value, buffer);
    return (ff_text){buffer, len};
}

ff_text ff_integer_text(ff_arena *arena, int64_t value) {
    char *buffer = ff_arena_bytes(arena, FF_NUMBER_MAX);
    size_t len = ff_integer_format(value, buffer);
    return (ff_text){buffer, len};
}

bool ff_unsigned_parse(ff_text text, uint64_t *value) {
    size_t start = text.len > 1 && text.ptr[0] == '+' ? 1 : 0;
    if (text.len == 0) return false;
    uint64_t result = 0;
    for (size_t i = start; i < text.len; i++) {
        if (!is_digit(text.ptr[i])) return false;
        if (__builtin_mul_overflow(result, UINT64_C(10), &result)) return false;
        if (__builtin_add_overflow(result, (uint64_t)(text.ptr[i] - '0'), &result)) return false;
    }
    *value = result;
    return true;
}

bool ff_integer_parse(ff_text text, int64_t *value) {
    bool negative = text.len > 0 && text.ptr[0] == '-';
    ff_text digits = ff_text_slice(text, negative ? 1 : 0, text.len);
    if (digits.len == 0 || !is_digit(digits.ptr[0])) return false;
    if (digits.ptr[0] == '0' && (digits.len > 1 || negative)) return false;
    uint64_t magnitude;
    uint64_t limit = (uint64_t)INT64_MAX + (negative ? 1 : 0);
    if (!ff_unsigned_parse(digits, &magnitude) || magnitude > limit) return false;
    *value = negative ? (int64_t)(-magnitude) : (int64_t)magnitude;
    return true;
}
