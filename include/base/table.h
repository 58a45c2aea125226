#ifndef FF_BASE_TABLE_H
#define FF_BASE_TABLE_H

#include "base/arena.h"
#include "base/text.h"

#include <stdint.h>

/* A hash table from texts to pointers that grows in an arena. All zero is an empty table. The texts are
 * borrowed and must live as long as the table; nothing is ever taken out. */
typedef struct ff_table_entry {
    ff_text key; /* absent: free */
    uint64_t hash;
    void *value;
} ff_table_entry;

typedef struct ff_table {
    ff_table_entry *entries;
    size_t size;
    size_t count;
} ff_table;

/* Where the value of `key`, which must not be absent, is kept: a key that is new gets NULL. Valid until
 * the next call with the same table. */
void **ff_table_at(ff_table *table, ff_arena *arena, ff_text key);

/* The value, NULL when there is none. */
void *ff_table_get(const ff_table *table, ff_text key);

bool ff_table_has(const ff_table *table, ff_text key);

/* Uses the table as a set: false when the text was already there. */
bool ff_table_add(ff_table *table, ff_arena *arena, ff_text key);

#endif
