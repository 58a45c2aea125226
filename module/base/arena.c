#include "base/arena.h"

#include <stdio.h>
#include <stdlib.h>

enum { BLOCK_MIN = 4096, BUFFER_MIN = 128, PRINTABLE_MAX = 128 };

struct ff_arena_block {
    ff_arena_block *previous;
    size_t size;
    _Alignas(FF_ARENA_ALIGNMENT) char data[];
};

static void *(*allocate_memory)(size_t) = malloc;
static void (*release_memory)(void *) = free;

void ff_arena_set_allocator(void *(*allocate)(size_t), void (*release)(void *)) {
    allocate_memory = allocate;
    release_memory = release;
}

static _Noreturn void out_of_memory(void) {
    fputs("ff: out of memory\n", stderr);
    abort();
}

/* Without a first block an arena starts at the end of this one, so that no pointer is ever NULL. */
static char no_block[1];

void ff_arena_init(ff_arena *arena, void *first, size_t size) {
    if (!first) {
        first = no_block;
        size = 0;
    }
    *arena = (ff_arena){first, (char *)first + size, NULL, first, size};
}

void ff_arena_release(ff_arena *arena) {
    while (arena->blocks) {
        ff_arena_block *block = arena->blocks;
        arena->blocks = block->previous;
        release_memory(block);
    }
    ff_arena_init(arena, arena->first, arena->first_size);
}

static ff_arena_block *add_block(ff_arena *arena, size_t size) {
    if (size > SIZE_MAX - sizeof(ff_arena_block)) out_of_memory();
    ff_arena_block *block = allocate_memory(sizeof(ff_arena_block) + size);
    if (!block) out_of_memory();
    block->previous = arena->blocks;
    block->size = size;
    arena->blocks = block;
    return block;
}

/* Blocks double, so that their number stays small. A large request gets a block of its own, and
 * what is left of the present one stays in use. */
void *ff_arena_alloc_block(ff_arena *arena, size_t size, size_t alignment) {
    size_t usual = arena->blocks ? arena->blocks->size : BLOCK_MIN / 2;
    usual = usual < (1u << 20) ? usual * 2 : usual;
    if (size > usual / 2) return add_block(arena, size)->data;
    ff_arena_block *block = add_block(arena, usual);
    arena->next = block->data;
    arena->end = block->data + usual;
    return ff_arena_alloc_aligned(arena, size, alignment);
}

void *ff_arena_zeroed(ff_arena *arena, size_t size) {
    return memset(ff_arena_alloc(arena, size), 0, size);
}

void *ff_arena_array(ff_arena *arena, size_t count, size_t element_size) {
    if (element_size && count > SIZE_MAX / element_size) out_of_memory();
    return ff_arena_alloc(arena, count * element_size);
}

ff_text ff_arena_dup(ff_arena *arena, ff_text text) {
    return text.ptr ? ff_arena_join(arena, &text, 1) : text;
}

ff_text ff_arena_join(ff_arena *arena, const ff_text *pieces, size_t count) {
    size_t total = 0;
    for (size_t i = 0; i < count; i++) {
        if (pieces[i].len >= SIZE_MAX - total) out_of_memory();
        total += pieces[i].len;
    }
    char *data = ff_arena_bytes(arena, total + 1);
    char *next = data;
    for (size_t i = 0; i < count; i++) {
        if (pieces[i].len == 0) continue;
        memcpy(next, pieces[i].ptr, pieces[i].len);
        next += pieces[i].len;
    }
    *next = '\0';
    return (ff_text){data, total};
}

ff_text ff_arena_vprintf(ff_arena *arena, const char *format, va_list arguments) {
    va_list again;
    va_copy(again, arguments);
    size_t room = (size_t)(arena->end - arena->next);
    int length = vsnprintf(arena->next, room, format, arguments);
    if (length < 0) out_of_memory();
    char *data = ff_arena_bytes(arena, (size_t)length + 1);
    if ((size_t)length >= room) vsnprintf(data, (size_t)length + 1, format, again);
    va_end(again);
    return (ff_text){data, (size_t)length};
}

ff_text ff_arena_printf(ff_arena *arena, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    ff_text text = ff_arena_vprintf(arena, format, arguments);
    va_end(arguments);
    return text;
}

ff_text ff_arena_printable(ff_arena *arena, ff_text text) {
    if (!text.ptr) return FF_TEXT("nil");
    ff_text shown = ff_text_slice(text, 0, PRINTABLE_MAX);
    const char *mark = shown.len < text.len ? "..." : "";
    ff_text copy = ff_arena_concat(arena, shown, ff_text_of(mark));
    char *bytes = (char *)copy.ptr;
    for (size_t i = 0; i < shown.len; i++) {
        unsigned char byte = (unsigned char)bytes[i];
        if (byte < 0x20 || byte == 0x7F) bytes[i] = '?';
    }
    return copy;
}

char *ff_buffer_reserve(ff_buffer *buffer, size_t extra) {
    if (buffer->capacity - buffer->len >= extra) return buffer->data + buffer->len;
    if (extra > SIZE_MAX / 2 - buffer->len) out_of_memory();
    size_t needed = buffer->len + extra;
    size_t capacity = needed > buffer->capacity * 2 ? needed : buffer->capacity * 2;
    if (capacity < BUFFER_MIN) capacity = BUFFER_MIN;
    char *data = ff_arena_bytes(buffer->arena, capacity);
    if (buffer->len > 0) memcpy(data, buffer->data, buffer->len);
    buffer->data = data;
    buffer->capacity = capacity;
    return data + buffer->len;
}

void ff_buffer_append(ff_buffer *buffer, ff_text text) {
    if (text.len == 0) return;
    memcpy(ff_buffer_reserve(buffer, text.len), text.ptr, text.len);
    buffer->len += text.len;
}

void ff_buffer_append_byte(ff_buffer *buffer, char byte) {
    *ff_buffer_reserve(buffer, 1) = byte;
    buffer->len++;
}

ff_text ff_buffer_text(const ff_buffer *buffer) {
    return (ff_text){buffer->data ? buffer->data : "", buffer->len};
}
