#include "unit.h"

#include <signal.h>

static size_t allocations;
static size_t releases;

static void *counting_malloc(size_t size) {
    allocations++;
    return malloc(size);
}

static void counting_free(void *memory) {
    releases++;
    free(memory);
}

Test(arena, small_use_takes_nothing_from_the_allocator) {
    ff_arena_set_allocator(counting_malloc, counting_free);
    unit_arena unit;
    ff_arena *arena = unit_arena_open(&unit);
    for (int i = 0; i < 4; i++) cr_assert(ff_arena_alloc(arena, 48) != NULL);
    cr_expect(allocations == 0);
    ff_arena_release(arena);
    cr_expect(releases == 0);
}

Test(arena, everything_is_given_back) {
    ff_arena_set_allocator(counting_malloc, counting_free);
    unit_arena unit;
    ff_arena *arena = unit_arena_open(&unit);
    for (size_t i = 0; i < 2000; i++) memset(ff_arena_alloc(arena, i % 300), 1, i % 300);
    memset(ff_arena_alloc(arena, 1u << 20), 2, 1u << 20);
    cr_expect(allocations > 1 && allocations < 40, "%zu blocks", allocations);
    ff_arena_release(arena);
    cr_expect(releases == allocations);

    size_t before = allocations;
    cr_expect((char *)ff_arena_bytes(arena, 8) >= unit.first);
    cr_expect(allocations == before, "after release the first block is used again");
    ff_arena_release(arena);
}

Test(arena, works_without_a_first_block) {
    ff_arena arena;
    ff_arena_init(&arena, NULL, 0);
    expect_text(ff_arena_printf(&arena, "%d", 42), "42");
    expect_text(ff_arena_dup(&arena, FF_TEXT("x")), "x");
    ff_arena_release(&arena);
    cr_expect(ff_arena_alloc(&arena, 0) != NULL);
    ff_arena_release(&arena);
}

Test(arena, pieces_are_aligned_and_do_not_overlap) {
    unit_arena unit;
    ff_arena *arena = unit_arena_open(&unit);
    enum { PIECES = 500 };
    unsigned char *pieces[PIECES];
    size_t sizes[PIECES];
    uint64_t seed = 1;
    for (size_t i = 0; i < PIECES; i++) {
        sizes[i] = 1 + unit_random(&seed) % 200;
        bool bytes = unit_random(&seed) % 2;
        pieces[i] =
            bytes ? (void *)ff_arena_bytes(arena, sizes[i]) : ff_arena_alloc(arena, sizes[i]);
        if (!bytes) cr_expect((uintptr_t)pieces[i] % FF_ARENA_ALIGNMENT == 0);
        memset(pieces[i], (int)(i & 255), sizes[i]);
    }
    for (size_t i = 0; i < PIECES; i++) {
        for (size_t k = 0; k < sizes[i]; k++) cr_assert(pieces[i][k] == (i & 255));
    }
    ff_arena_release(arena);
}

Test(arena, zeroed_and_arrays) {
    unit_arena unit;
    ff_arena *arena = unit_arena_open(&unit);
    memset(unit.first, 0xff, sizeof(unit.first));
    const char *zeros = ff_arena_zeroed(arena, 100);
    for (int i = 0; i < 100; i++) cr_expect(zeros[i] == 0);
    uint64_t *numbers = ff_arena_array(arena, 100, sizeof(uint64_t));
    for (uint64_t i = 0; i < 100; i++) numbers[i] = i;
    cr_expect(numbers[99] == 99);
    ff_arena_release(arena);
}

Test(arena, an_array_too_large_to_count_aborts, .signal = SIGABRT) {
    unit_arena unit;
    ff_arena_array(unit_arena_open(&unit), SIZE_MAX / 4, 8);
}

Test(arena, texts) {
    unit_arena unit;
    ff_arena *arena = unit_arena_open(&unit);
    ff_text copy = ff_arena_dup(arena, FF_TEXT("a\0b"));
    expect_text(copy, "a\0b");
    cr_expect(copy.ptr[3] == '\0');
    cr_expect(ff_text_is_absent(ff_arena_dup(arena, FF_TEXT_ABSENT)));
    expect_text(ff_arena_dup(arena, FF_TEXT("")), "");
    expect_text(
        ff_arena_concat(arena, FF_TEXT("ff:wp:"), FF_TEXT("{fp:7}"), FF_TEXT_ABSENT, FF_TEXT(":x")),
        "ff:wp:{fp:7}:x");
    expect_text(ff_arena_join(arena, NULL, 0), "");
    ff_arena_release(arena);
}

Test(arena, printf_grows_when_it_must) {
    unit_arena unit;
    ff_arena *arena = unit_arena_open(&unit);
    for (int i = 0; i < 300; i++) {
        ff_text text = ff_arena_printf(arena, "%0*d", i + 1, 7);
        cr_assert(text.len == (size_t)i + 1);
        cr_assert(text.ptr[text.len - 1] == '7' && text.ptr[text.len] == '\0');
    }
    ff_text part = FF_TEXT("abcdef");
    part.len = 3;
    expect_text(ff_arena_printf(arena, "<%.*s>", FF_TEXT_ARGS(part)), "<abc>");
    ff_arena_release(arena);
}

Test(arena, printable_texts_stay_on_one_line) {
    unit_arena unit;
    ff_arena *arena = unit_arena_open(&unit);
    expect_text(ff_arena_printable(arena, FF_TEXT("a\r\nb\0c\x7f\xc3\xa9")), "a??b?c?\xc3\xa9");
    expect_text(ff_arena_printable(arena, FF_TEXT_ABSENT), "nil");
    expect_text(ff_arena_printable(arena, FF_TEXT("")), "");
    char many[1000];
    memset(many, 'x', sizeof(many));
    ff_text cut = ff_arena_printable(arena, (ff_text){many, sizeof(many)});
    cr_expect(cut.len == 131 && memcmp(cut.ptr + 128, "...", 3) == 0);
    cr_expect(ff_arena_printable(arena, (ff_text){many, 128}).len == 128);
    ff_arena_release(arena);
}

Test(arena, buffer_grows) {
    unit_arena unit;
    ff_arena *arena = unit_arena_open(&unit);
    ff_buffer buffer;
    ff_buffer_init(&buffer, arena);
    expect_text(ff_buffer_text(&buffer), "");
    ff_buffer_append(&buffer, FF_TEXT_ABSENT);
    ff_buffer_append(&buffer, FF_TEXT("ab"));
    ff_buffer_append_byte(&buffer, 'c');
    expect_text(ff_buffer_text(&buffer), "abc");
    for (size_t i = 0; i < 100000; i++) ff_buffer_append_byte(&buffer, (char)('0' + i % 10));
    ff_text text = ff_buffer_text(&buffer);
    cr_assert(text.len == 100003);
    for (size_t i = 0; i < 100000; i++) cr_assert(text.ptr[i + 3] == (char)('0' + i % 10));
    memset(ff_buffer_reserve(&buffer, 1u << 20), 'z', 1u << 20);
    ff_arena_release(arena);
}
