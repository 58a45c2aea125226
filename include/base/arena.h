#ifndef FF_BASE_ARENA_H
#define FF_BASE_ARENA_H

#include "base/text.h"

#include <stdarg.h>
#include <stdint.h>

/* A bump allocator that lives as long as one transaction. The caller gives it a first block (on
 * its stack, or static); only what does not fit there is taken from the allocator. Nothing is
 * freed one by one: ff_arena_release gives everything back at once. Allocation never fails: when
 * the allocator returns NULL the process is aborted, as the server itself does. */
typedef struct ff_arena_block ff_arena_block;

typedef struct ff_arena {
    char *next;
    char *end;
    ff_arena_block *blocks;
    char *first;
    size_t first_size;
} ff_arena;

enum { FF_ARENA_ALIGNMENT = 16 };

/* Replaces malloc and free for the blocks of all arenas; call before the first arena is used. */
void ff_arena_set_allocator(void *(*allocate)(size_t), void (*release)(void *));

/* `first` may be NULL with size 0. It must outlive the arena. */
void ff_arena_init(ff_arena *arena, void *first, size_t size);

/* Frees every block and makes the arena ready for use again, with its first block. */
void ff_arena_release(ff_arena *arena);

/* The slow path of ff_arena_alloc: a new block. */
void *ff_arena_alloc_block(ff_arena *arena, size_t size, size_t alignment);

static inline void *ff_arena_alloc_aligned(ff_arena *arena, size_t size, size_t alignment) {
    size_t padding = (size_t)(-(uintptr_t)arena->next) & (alignment - 1);
    size_t left = (size_t)(arena->end - arena->next);
    if (left < padding || left - padding < size) {
        return ff_arena_alloc_block(arena, size, alignment);
    }
    char *result = arena->next + padding;
    arena->next = result + size;
    return result;
}

/* Uninitialised memory, aligned for any type. */
static inline void *ff_arena_alloc(ff_arena *arena, size_t size) {
    return ff_arena_alloc_aligned(arena, size, FF_ARENA_ALIGNMENT);
}

/* Uninitialised memory for bytes, without alignment. */
static inline char *ff_arena_bytes(ff_arena *arena, size_t size) {
    return ff_arena_alloc_aligned(arena, size, 1);
}

void *ff_arena_zeroed(ff_arena *arena, size_t size);

/* An array of `count` elements; aborts when the size overflows. */
void *ff_arena_array(ff_arena *arena, size_t count, size_t element_size);

/* A copy that is also NUL-terminated (the NUL is not counted). Absent stays absent. */
ff_text ff_arena_dup(ff_arena *arena, ff_text text);

/* All pieces in one text, NUL-terminated. Absent pieces count as empty. */
ff_text ff_arena_join(ff_arena *arena, const ff_text *pieces, size_t count);

/* ff_arena_concat(arena, a, b, c): ff_arena_join over its arguments, each an ff_text. */
#define ff_arena_concat(arena, ...) \
    ff_arena_join((arena), (const ff_text[]){__VA_ARGS__}, \
                  sizeof((const ff_text[]){__VA_ARGS__}) / sizeof(ff_text))

/* printf into the arena, NUL-terminated. Texts go through "%.*s" with FF_TEXT_ARGS; note that
 * such a text is cut at a NUL byte: use ff_arena_join where bytes must survive. */
ff_text ff_arena_printf(ff_arena *arena, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
ff_text ff_arena_vprintf(ff_arena *arena, const char *format, va_list arguments);

#define FF_TEXT_ARGS(text) (int)((text).len > INT32_MAX ? INT32_MAX : (text).len), (text).ptr

/* The text as it may stand in a one-line error message: control bytes become '?', and what is
 * longer than 128 bytes is cut and marked with "...". Absent gives "nil". */
ff_text ff_arena_printable(ff_arena *arena, ff_text text);

/* A text that grows. Zero `data` and sizes with ff_buffer_init; memory that it outgrows stays in
 * the arena until release, at most as much again as the final text. */
typedef struct ff_buffer {
    ff_arena *arena;
    char *data;
    size_t len;
    size_t capacity;
} ff_buffer;

static inline void ff_buffer_init(ff_buffer *buffer, ff_arena *arena) {
    *buffer = (ff_buffer){arena, NULL, 0, 0};
}

/* Room for `extra` bytes more; returns where they go. The caller advances `len`. */
char *ff_buffer_reserve(ff_buffer *buffer, size_t extra);

void ff_buffer_append(ff_buffer *buffer, ff_text text);
void ff_buffer_append_byte(ff_buffer *buffer, char byte);

/* What was appended so far; empty, not absent, when nothing was. */
ff_text ff_buffer_text(const ff_buffer *buffer);

#endif
