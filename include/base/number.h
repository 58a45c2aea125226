#ifndef FF_BASE_NUMBER_H
#define FF_BASE_NUMBER_H

#include "base/arena.h"
#include "base/text.h"

#include <stdbool.h>
#include <stdint.h>

/* Room for any number in any of the forms below, NUL included. */
enum { FF_NUMBER_MAX = 40, FF_DIGITS_MAX = 21 };

/* Rule NUM: what strtod takes, white space around it allowed, the text ends at its first NUL. False
 * when it is not a number (absent and blank texts included); `value` is then left alone. */
bool ff_number_parse(ff_text text, double *value);

/* Rule FMT14: "%.14g". Returns the length; the text is NUL-terminated. */
size_t ff_number_format(double value, char buffer[FF_NUMBER_MAX]);

/* Rule SRVNUM: the text that the server makes of a number handed to a command by a script.
 * Integers up to 2^62 in plain decimal, other values as the shortest digits that read back the
 * same. */
size_t ff_number_format_server(double value, char buffer[FF_NUMBER_MAX]);

/* Plain decimal. */
size_t ff_integer_format(int64_t value, char buffer[FF_NUMBER_MAX]);
size_t ff_unsigned_format(uint64_t value, char buffer[FF_DIGITS_MAX]);

/* The same, into an arena. */
ff_text ff_number_text(ff_arena *arena, double value);
ff_text ff_number_server_text(ff_arena *arena, double value);
ff_text ff_integer_text(ff_arena *arena, int64_t value);

/* Finite and without a fraction. */
bool ff_number_is_whole(double value);

/* Whole and of magnitude at most 2^62: what the server takes as an integer argument from a
 * script. */
bool ff_number_to_integer(double value, int64_t *integer);

/* A 64-bit integer as the server's integer commands accept it: an optional '-', no blanks, no
 * '+', no leading zeros, no "-0". */
bool ff_integer_parse(ff_text text, int64_t *value);

/* Digits only (leading zeros allowed, one '+' allowed), at most 2^64-1: an unsigned integer as the
 * reference's clients and scanners read stored values. */
bool ff_unsigned_parse(ff_text text, uint64_t *value);

#endif
