#include "base/table.h"

#include "base/fnv.h"

enum { FIRST_SIZE = 64 };

/* The entry of the key, or the free one where it would go: the table is never full. */
static ff_table_entry *find(const ff_table *table, ff_text key, uint64_t hash) {
    size_t mask = table->size - 1;
    for (size_t i = (size_t)hash & mask;; i = (i + 1) & mask) {
        ff_table_entry *entry = &table->entries[i];
        if (ff_text_is_absent(entry->key)) return entry;
        if (entry->hash == hash && ff_text_equal(entry->key, key)) return entry;
    }
}

static void grow(ff_table *table, ff_arena *arena) {
    ff_table bigger = {.size = table->size ? table->size * 2 : FIRST_SIZE, .count = table->count};
    bigger.entries = ff_arena_zeroed(arena, bigger.size * sizeof *bigger.entries);
    for (size_t i = 0; i < table->size; i++) {
        const ff_table_entry *entry = &table->entries[i];
        if (!ff_text_is_absent(entry->key)) *find(&bigger, entry->key, entry->hash) = *entry;
    }
    *table = bigger;
}

void **ff_table_at(ff_table *table, ff_arena *arena, ff_text key) {
    if (table->count >= table->size / 2) grow(table, arena);
    uint64_t hash = ff_fnv1a(key);
    ff_table_entry *entry = find(table, key, hash);
    if (ff_text_is_absent(entry->key)) {
        *entry = (ff_table_entry){.key = key, .hash = hash};
        table->count++;
    }
    return &entry->value;
}

void *ff_table_get(const ff_table *table, ff_text key) {
    return table->size ? find(table, key, ff_fnv1a(key))->value : NULL;
}

bool ff_table_has(const ff_table *table, ff_text key) {
    return table->size && !ff_text_is_absent(find(table, key, ff_fnv1a(key))->key);
}

bool ff_table_add(ff_table *table, ff_arena *arena, ff_text key) {
    size_t before = table->count;
    ff_table_at(table, arena, key);
    return table->count > before;
}
