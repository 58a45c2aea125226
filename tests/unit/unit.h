#ifndef FF_TESTS_UNIT_H
#define FF_TESTS_UNIT_H

/* What the unit tests share: arenas, comparisons that print, a repeatable random source. */

#include "base/arena.h"
#include "base/text.h"

#include <criterion/criterion.h>
#include <stdint.h>
#include <stdlib.h>

/* Expects an ff_text to be exactly these bytes (a literal, which may hold NULs). */
#define expect_text(actual, literal) \
    do { \
        ff_text expect_got = (actual); \
        cr_expect(ff_text_equal(expect_got, FF_TEXT(literal)), \
                  "%s: expected \"%s\", got \"%.*s\"", #actual, literal, (int)expect_got.len, \
                  expect_got.ptr ? expect_got.ptr : ""); \
    } while (0)

/* An arena that starts on a small block, so that tests cross from block to block. */
typedef struct unit_arena {
    ff_arena arena;
    _Alignas(16) char first[256];
} unit_arena;

static inline ff_arena *unit_arena_open(unit_arena *unit) {
    ff_arena_init(&unit->arena, unit->first, sizeof(unit->first));
    return &unit->arena;
}

/* A copy that ends where its memory ends, so that the sanitizer sees a read beyond it. */
static inline ff_text unit_exact(ff_text text) {
    char *copy = malloc(text.len ? text.len : 1);
    cr_assert(copy != NULL);
    if (text.len > 0) memcpy(copy, text.ptr, text.len);
    return (ff_text){copy, text.len};
}

static inline void unit_exact_free(ff_text text) { free((char *)text.ptr); }

/* splitmix64: the same numbers in every run. */
static inline uint64_t unit_random(uint64_t *state) {
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

#endif
