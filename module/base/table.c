#include "base/table.h"

enum { FIRST_SIZE = 64 };

static uint64_t mix(uint64_t hash, uint64_t word) {
    hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ hash >> 32;
}

/* Keys are long and differ near their end: eight bytes at a time. */
static uint64_t hash_of(ff_text key) {
    uint64_t hash = key.len;
    uint64_t word;
    const char *bytes = key.ptr;
    size_t left = key.len;
    for (; left > sizeof word; bytes += sizeof word, left -= sizeof word) {
        memcpy(&word, bytes, sizeof word);
        hash = mix(hash, word);
    }
    word = 0;
    for (size_t i = 0; i < left; i++) word = word << 8 | (unsigned char)bytes[i];
    return mix(mix(hash, word), 0);
}

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
    uint64_t hash = hash_of(key);
    ff_table_entry *entry = find(table, key, hash);
    if (ff_text_is_absent(entry->key)) {
        *entry = (ff_table_entry){.key = key, .hash = hash};
        table->count++;
    }
    return &entry->value;
}

void *ff_table_get(const ff_table *table, ff_text key) {
    return table->size ? find(table, key, hash_of(key))->value : NULL;
}

bool ff_table_has(const ff_table *table, ff_text key) {
    return table->size && !ff_text_is_absent(find(table, key, hash_of(key))->key);
}

bool ff_table_add(ff_table *table, ff_arena *arena, ff_text key) {
    size_t before = table->count;
    ff_table_at(table, arena, key);
    return table->count > before;
}
