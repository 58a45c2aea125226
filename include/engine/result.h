/* What an operation answers, before it is rendered: a code, and values in the order of the wire reply.
 *
 * The wire layer renders [1, "OK", value, …] or [0, "code", detail, …]; the native layer names the
 * values. An operation ends with one of the functions below, whose verdict tells its caller whether
 * the staged writes are to be kept. */
#ifndef FF_ENGINE_RESULT_H
#define FF_ENGINE_RESULT_H

#include "engine/code.h"
#include "store/txn.h"

typedef struct ff_value {
    ff_str *str; /* NULL: a list */
    struct ff_value *items;
    size_t count;
} ff_value;

typedef enum {
    FF_SHAPE_WRAPPED, /* [1, "OK", …] and [0, "code", …] */
    FF_SHAPE_BARE,    /* the code and the values, without the leading integer */
    FF_SHAPE_SCALAR,  /* the first value alone */
} ff_shape;

typedef struct ff_result {
    ff_txn *txn;
    ff_code code;
    ff_str *word; /* instead of the code's own word, where the two differ */
    ff_shape shape;
    ff_value *values;
    size_t count;
    size_t capacity;
} ff_result;

typedef enum { FF_DISCARD, FF_COMMIT } ff_verdict;

/* Appends a value; NULL counts as the empty string. */
void ff_result_add(ff_result *out, ff_str *value);
void ff_result_add_word(ff_result *out, const ff_word *word);
void ff_result_add_number(ff_result *out, double value);

/* Appends a list of `count` values to be filled in by the caller. */
ff_value *ff_result_add_list(ff_result *out, size_t count);

/* Success: the staged writes are kept. */
ff_verdict ff_succeed(ff_result *out, ff_code code);
static inline ff_verdict ff_ok(ff_result *out) { return ff_succeed(out, FF_OK); }

/* ff_ok after adding one word. */
ff_verdict ff_ok_word(ff_result *out, const ff_word *word);

/* Refusal: nothing is written. Values added before, if any, stay as its details. */
ff_verdict ff_refuse(ff_result *out, ff_code code);

/* One of the few refusals whose staged writes are kept on purpose. */
ff_verdict ff_refuse_keeping(ff_result *out, ff_code code);

/* A refusal with one detail. */
ff_verdict ff_refuse_with(ff_result *out, ff_code code, ff_str *detail);

/* [0, "invalid_input", sentence]. */
ff_verdict ff_bad_input(ff_result *out, const char *sentence);

/* invalid_input "<name> must be a number, got: <text>", an absent text printed as nil. */
ff_verdict ff_not_a_number(ff_result *out, const char *name, const ff_str *text);
ff_verdict ff_not_a_number_field(ff_result *out, const ff_word *field, const ff_str *text);

/* How many of the `named` leading arguments of an argument struct were given. */
size_t ff_given(const void *arguments, size_t named);
#define FF_GIVEN(arguments) ff_given((arguments), sizeof *(arguments) / sizeof(ff_str *))

/* Whether the first `needed` keys or arguments of a struct were given: for those that only some paths
 * need. False after a refusal with invalid_input, "expected <needed> keys, got <n>". */
bool ff_need_keys(ff_result *out, const void *keys, size_t needed);
bool ff_need_arguments(ff_result *out, const void *arguments, size_t needed);

/* invalid_input "expected <what> arguments, got <n>". */
ff_verdict ff_too_few_arguments(ff_result *out, const char *expected, size_t given);

#endif
