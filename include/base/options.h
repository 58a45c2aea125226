#ifndef FF_BASE_OPTIONS_H
#define FF_BASE_OPTIONS_H

#include "base/arena.h"
#include "base/text.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Keyword options of a native command, told by a table: in any order, in any case, each at most
 * once.
 *
 *     typedef struct create_options {
 *         ff_text namespace, key;
 *         int64_t priority, key_ttl;
 *         ff_text_list tags;
 *     } create_options;
 *
 *     static const ff_option rows[] = {
 *         FF_OPTION("NAMESPACE", FF_OPTION_TEXT, create_options, namespace),
 *         FF_OPTION("PRIORITY", FF_OPTION_INTEGER, create_options, priority, .max = 9000),
 *         FF_OPTION("IDEMPOTENT", FF_OPTION_TEXT, create_options, key),
 *         FF_OPTION_THEN(FF_OPTION_DURATION, create_options, key_ttl, .label = "ttl-ms"),
 *         FF_OPTION("TAGS", FF_OPTION_PAIRS, create_options, tags),
 *     };
 *
 * The destination holds the defaults before parsing; options that are not given leave it alone. */
typedef enum ff_option_kind {
    FF_OPTION_FLAG,     /* no value; bool, set to true */
    FF_OPTION_TEXT,     /* any value; ff_text */
    FF_OPTION_NONEMPTY, /* any value but the empty one; ff_text */
    FF_OPTION_INTEGER,  /* min..max; int64_t */
    FF_OPTION_DURATION, /* milliseconds, min (0 by default)..FF_MILLISECONDS_MAX; int64_t */
    FF_OPTION_TIME,     /* Unix time in ms, like a duration; int64_t */
    FF_OPTION_CHOICE,   /* one of `choices`, any case; int, its index */
    FF_OPTION_LIST,     /* n, then n values, n in min..max (max 0: no bound); ff_text_list */
    FF_OPTION_PAIRS,    /* n, then n pairs of values, likewise; ff_text_list of 2n items */
    FF_OPTION_REST      /* everything that follows, possibly nothing; ff_text_list */
} ff_option_kind;

/* Largest time or duration that is taken: the sum of two stays below 2^53, where a double is
 * exact. */
#define FF_MILLISECONDS_MAX INT64_C(0x000fffffffffffff)

typedef struct ff_text_list {
    const ff_text *items;
    size_t count;
} ff_text_list;

typedef struct ff_option {
    const char *keyword; /* upper case; NULL: a further value of the option above */
    ff_option_kind kind;
    size_t offset; /* of the value in the destination */
    int64_t min;   /* for numbers and counts; an integer with both bounds 0 has none */
    int64_t max;
    const char *label;          /* what a further value is called in sentences */
    const char *const *choices; /* for FF_OPTION_CHOICE, ends with NULL */
    unsigned group;             /* not 0: at most one option of the same group */
    bool required;              /* must be given (of a group: one of it) */
} ff_option;

/* A row: the option goes to `member` of `type`. Further fields are designated initializers. */
#define FF_OPTION(keyword_, kind_, type, member, ...) \
    { .keyword = keyword_, .kind = kind_, .offset = offsetof(type, member), __VA_ARGS__ }

/* A row for a further value of the option above. */
#define FF_OPTION_THEN(kind_, type, member, ...) FF_OPTION(NULL, kind_, type, member, __VA_ARGS__)

/* A table has at most 64 rows. */
typedef struct ff_option_table {
    const ff_option *rows;
    size_t count;
} ff_option_table;

#define FF_OPTION_TABLE(array) ((ff_option_table){(array), sizeof(array) / sizeof((array)[0])})

/* Reads all `count` arguments into `destination`. On failure returns false, and `error` is a
 * sentence that names the argument; the destination may then be partly filled. `given`, if not
 * NULL, gets bit i set when the option of row i was given. */
bool ff_options_parse(ff_option_table table, const ff_text *arguments, size_t count,
                      void *destination, uint64_t *given, ff_arena *arena, ff_text *error);

/* The same checks and sentences for a positional argument called `name`. */
bool ff_argument_integer(const char *name, ff_text text, int64_t min, int64_t max, int64_t *value,
                         ff_arena *arena, ff_text *error);

#endif
