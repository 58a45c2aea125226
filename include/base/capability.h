#ifndef FF_BASE_CAPABILITY_H
#define FF_BASE_CAPABILITY_H

#include "base/arena.h"
#include "base/text.h"

#include <stdbool.h>
#include <stddef.h>

enum { FF_CAPABILITY_TOKENS_MAX = 256, FF_CAPABILITY_BYTES_MAX = 4096 };

/* Distinct tokens in byte order. They point into the text that was parsed. */
typedef struct ff_capability_set {
    const ff_text *tokens;
    size_t count;
} ff_capability_set;

typedef enum ff_capability_problem {
    FF_CAPABILITY_FINE = 0,
    FF_CAPABILITY_EMPTY_TOKEN,
    FF_CAPABILITY_COMMA_IN_TOKEN,
    FF_CAPABILITY_CONTROL_OR_WHITESPACE,
    FF_CAPABILITY_TOO_MANY_TOKENS,
    FF_CAPABILITY_TOO_MANY_BYTES
} ff_capability_problem;

/* The word for it in refusals: "too_many_bytes", "empty_token", ... */
const char *ff_capability_problem_word(ff_capability_problem problem);

/* Rule CAPS-CSV: splits at commas, drops empty pieces, validates nothing but the two bounds.
 * Absent and empty texts give the empty set. */
ff_capability_problem ff_capability_parse(ff_arena *arena, ff_text csv, ff_capability_set *set);

/* Whether `worker` has every token of `required`. */
bool ff_capability_covers(const ff_capability_set *worker, const ff_capability_set *required);

/* The tokens of `required` that `worker` lacks, in byte order, joined with ','. Empty when none. */
ff_text ff_capability_missing(ff_arena *arena, const ff_capability_set *required,
                              const ff_capability_set *worker);

/* The set as a CSV in byte order. */
ff_text ff_capability_csv(ff_arena *arena, const ff_capability_set *set);

/* One token of a policy's required_capabilities: not empty, no comma, no byte <= 0x20 and no
 * 0x7F. */
ff_capability_problem ff_capability_check_token(ff_text token);

/* One token of a worker: the same, and where it is valid UTF-8 no C1 control and no White_Space. */
ff_capability_problem ff_capability_check_worker_token(ff_text token);

/* The requirement that a policy's list gives: every token checked from left to right, then the
 * bounds; on success `csv` is the tokens in byte order joined with ',', repeats kept, empty for
 * no tokens. */
ff_capability_problem ff_capability_required_csv(ff_arena *arena, const ff_text *tokens,
                                                 size_t count, ff_text *csv);

/* What a worker sends to the claim cycle: every piece between commas is held to
 * ff_capability_check_worker_token (so "a,,b" is refused), repeats count once. An empty or absent
 * text is a worker without capabilities. */
ff_capability_problem ff_capability_parse_worker(ff_arena *arena, ff_text csv,
                                                 ff_capability_set *set);

#endif
