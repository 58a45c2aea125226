#include "base/table.h"

#include "base/number.h"
#include "unit.h"

enum { MANY = 5000 };

Test(table, an_empty_table_holds_nothing) {
    ff_table table = {0};
    cr_expect_null(ff_table_get(&table, FF_TEXT("a")));
    cr_expect_null(ff_table_get(&table, FF_TEXT("")));
}

Test(table, values_stay_under_their_keys_while_it_grows) {
    unit_arena unit;
    ff_arena *arena = unit_arena_open(&unit);
    ff_table table = {0};
    static int values[MANY];
    for (int i = 0; i < MANY; i++) {
        void **place = ff_table_at(&table, arena, ff_integer_text(arena, i));
        cr_assert_null(*place);
        *place = &values[i];
    }
    cr_expect(table.count == MANY);
    for (int i = 0; i < MANY; i++) {
        cr_assert(ff_table_get(&table, ff_integer_text(arena, i)) == &values[i]);
    }
    cr_expect_null(ff_table_get(&table, FF_TEXT("-1")));
    ff_arena_release(arena);
}

Test(table, a_key_is_found_again_by_its_bytes) {
    unit_arena unit;
    ff_arena *arena = unit_arena_open(&unit);
    ff_table table = {0};
    int first, second;
    *ff_table_at(&table, arena, FF_TEXT("a\0b")) = &first;
    *ff_table_at(&table, arena, FF_TEXT("a\0c")) = &second;
    ff_text copy = unit_exact(FF_TEXT("a\0b"));
    cr_expect(*ff_table_at(&table, arena, copy) == &first);
    cr_expect(ff_table_get(&table, FF_TEXT("a\0c")) == &second);
    cr_expect_null(ff_table_get(&table, FF_TEXT("a")));
    unit_exact_free(copy);
    ff_arena_release(arena);
}

Test(table, as_a_set_it_tells_what_is_new) {
    unit_arena unit;
    ff_arena *arena = unit_arena_open(&unit);
    ff_table table = {0};
    cr_expect(ff_table_add(&table, arena, FF_TEXT("")));
    cr_expect(ff_table_add(&table, arena, FF_TEXT("a")));
    cr_expect_not(ff_table_add(&table, arena, FF_TEXT("a")));
    cr_expect_not(ff_table_add(&table, arena, FF_TEXT("")));
    cr_expect(table.count == 2);
    ff_arena_release(arena);
}
