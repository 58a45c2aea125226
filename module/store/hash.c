#include <string.h>

#include "base/number.h"
#include "store/audience.h"
#include "store/key.h"
#include "store/packed.h"

enum { FEW_CELLS = 12, MANY_CELLS = 64 };

/* Position of a word in the list of words, or -1 for a name that was made at run time. */
static ptrdiff_t word_index(const ff_word *field) {
    return field >= ff_words && field < ff_words + FF_WORD_COUNT ? field - ff_words : -1;
}

/* The index holds positions, since cells move when their array grows; 0 is "not there". */
static void index_cell(ff_key *key, size_t position) {
    ff_cells *cells = &key->u.cells;
    *ff_table_at(&cells->index, &key->txn->arena, cells->items[position].field->text) =
        (void *)(uintptr_t)(position + 1);
}

static ff_cell *find_by_text(const ff_cells *cells, ff_text name) {
    if (cells->indexed) {
        uintptr_t position = (uintptr_t)ff_table_get(&cells->index, name);
        return position ? &cells->items[position - 1] : NULL;
    }
    for (size_t i = 0; i < cells->count; i++) {
        if (ff_text_equal(cells->items[i].field->text, name)) return &cells->items[i];
    }
    return NULL;
}

/* Words are the same wherever they are spelled. */
static ff_cell *find_word(const ff_cells *cells, const ff_word *field, ptrdiff_t word) {
    if (cells->of_word) {
        uint32_t position = cells->of_word[word];
        return position ? &cells->items[position - 1] : NULL;
    }
    for (size_t i = 0; i < cells->count && i < FEW_CELLS; i++) {
        if (cells->items[i].field == field) return &cells->items[i];
    }
    return NULL;
}

static ff_cell *find_cell(const ff_cells *cells, const ff_word *field) {
    ptrdiff_t word = word_index(field);
    if (word < 0) return find_by_text(cells, field->text);
    ff_cell *cell = find_word(cells, field, word);
    return cell || !cells->indexed ? cell : find_by_text(cells, field->text);
}

static void place_word(ff_cells *cells, size_t position) {
    ptrdiff_t word = word_index(cells->items[position].field);
    if (word >= 0) cells->of_word[word] = (uint32_t)position + 1;
}

/* Once there are many cells, words are found by their place in the list of words; once there are other names,
 * everything is also found by its text. */
static void remember_cell(ff_key *key, size_t position) {
    ff_cells *cells = &key->u.cells;
    bool is_word = word_index(cells->items[position].field) >= 0;
    if (cells->of_word) {
        place_word(cells, position);
    } else if (is_word && position >= FEW_CELLS) {
        cells->of_word = ff_arena_zeroed(&key->txn->arena, FF_WORD_COUNT * sizeof *cells->of_word);
        for (size_t i = 0; i <= position; i++) place_word(cells, i);
    }
    if (!is_word && !cells->indexed) {
        cells->indexed = true;
        for (size_t i = 0; i < position; i++) index_cell(key, i);
    }
    if (cells->indexed) index_cell(key, position);
}

/* Most hashes have a dozen fields, or about as many as an execution. */
static void grow_cells(ff_key *key) {
    ff_cells *cells = &key->u.cells;
    size_t capacity = cells->capacity == 0 ? FEW_CELLS : cells->capacity * 2;
    if (cells->capacity > 0 && capacity < MANY_CELLS) capacity = MANY_CELLS;
    ff_cell *grown = ff_arena_array(&key->txn->arena, capacity, sizeof *grown);
    if (cells->count) memcpy(grown, cells->items, cells->count * sizeof *grown);
    cells->items = grown;
    cells->capacity = capacity;
}

static ff_cell *add_cell(ff_key *key, const ff_word *field) {
    ff_cells *cells = &key->u.cells;
    if (cells->count == cells->capacity) grow_cells(key);
    ff_cell *cell = &cells->items[cells->count++];
    *cell = (ff_cell){.field = field, .known = !ff_key_readable(key) || cells->loaded};
    remember_cell(key, cells->count - 1);
    return cell;
}

static ff_cell *cell_of(ff_key *key, const ff_word *field) {
    ff_cell *cell = find_cell(&key->u.cells, field);
    return cell ? cell : add_cell(key, field);
}

static ff_str *current(const ff_cell *cell) {
    switch (cell->change) {
    case FF_CELL_SET: return cell->staged;
    case FF_CELL_REMOVED: return NULL;
    case FF_CELL_CLEAN: break;
    }
    return cell->old;
}

ff_str *ff_hash_get(ff_key *key, const ff_word *field) {
    if (key->type != FF_HASH) return NULL;
    ff_cell *cell = cell_of(key, field);
    if (!cell->known && cell->change == FF_CELL_CLEAN) {
        ff_str *value = NULL;
        ValkeyModule_HashGet(key->handle, VALKEYMODULE_HASH_NONE, field->str, &value, NULL);
        cell->old = value ? ff_txn_keep(key->txn, value) : NULL;
        cell->known = true;
    }
    return current(cell);
}

void ff_hash_set(ff_key *key, const ff_word *field, ff_str *value) {
    if (!ff_key_touch(key, FF_HASH)) return;
    ff_cell *cell = cell_of(key, field);
    cell->change = FF_CELL_SET;
    cell->staged = value;
}

void ff_hash_remove(ff_key *key, const ff_word *field) {
    if (key->type != FF_HASH || key->txn->readonly) return;
    ff_cell *cell = cell_of(key, field);
    cell->change = FF_CELL_REMOVED;
    cell->staged = NULL;
}

static void load_field(ValkeyModuleKey *handle, ValkeyModuleString *name, ValkeyModuleString *value,
                       void *data) {
    (void)handle;
    ff_key *key = data;
    ff_txn *t = key->txn;
    ValkeyModule_RetainString(NULL, name);
    ff_word field = {ff_txn_keep(t, name), ff_str_text(name)};
    ff_cell *cell = find_cell(&key->u.cells, &field);
    if (cell == NULL) {
        ff_word *kept = ff_arena_alloc(&t->arena, sizeof *kept);
        *kept = field;
        cell = add_cell(key, kept);
    }
    if (value && !cell->old) {
        ValkeyModule_RetainString(NULL, value);
        cell->old = ff_txn_keep(t, value);
    }
    cell->known = true;
}

void ff_hash_load(ff_key *key) {
    if (key->type != FF_HASH || key->u.cells.loaded) return;
    if (ff_key_readable(key)) {
        ValkeyModuleScanCursor *cursor = ValkeyModule_ScanCursorCreate();
        while (ValkeyModule_ScanKey(key->handle, cursor, load_field, key)) {
        }
        ValkeyModule_ScanCursorDestroy(cursor);
        for (size_t i = 0; i < key->u.cells.count; i++) key->u.cells.items[i].known = true;
    }
    key->u.cells.loaded = true;
}

bool ff_hash_next(ff_key *key, size_t *cursor, const ff_word **field, ff_str **value) {
    if (key->type != FF_HASH) return false;
    ff_hash_load(key);
    const ff_cells *cells = &key->u.cells;
    while (*cursor < cells->count) {
        const ff_cell *cell = &cells->items[(*cursor)++];
        ff_str *now = current(cell);
        if (now == NULL) continue;
        *field = cell->field;
        *value = now;
        return true;
    }
    return false;
}

void ff_hash_set_word(ff_key *key, const ff_word *field, const ff_word *value) {
    ff_hash_set(key, field, value->str);
}

void ff_hash_set_number(ff_key *key, const ff_word *field, double value) {
    ff_hash_set(key, field, ff_str_number(key->txn, value));
}

void ff_hash_set_now(ff_key *key, const ff_word *field) {
    ff_hash_set(key, field, ff_str_now(key->txn));
}

void ff_hash_set_empty(ff_key *key, const ff_word *field) {
    ff_hash_set(key, field, W(empty)->str);
}

bool ff_hash_increment(ff_key *key, const ff_word *field, int64_t by, int64_t *after) {
    ff_str *stored = ff_hash_get(key, field);
    int64_t value = 0;
    if (stored && !ff_integer_parse(ff_str_text(stored), &value)) return false;
    if (__builtin_add_overflow(value, by, &value)) return false;
    ff_hash_set(key, field, ff_str_integer(key->txn, value));
    if (after) *after = value;
    return true;
}

ff_number_state ff_hash_number(ff_key *key, const ff_word *field, double *out) {
    ff_str *stored = ff_hash_get(key, field);
    *out = 0;
    if (stored == NULL) return FF_NUMBER_ABSENT;
    return ff_str_to_number(stored, out) ? FF_NUMBER_GOOD : FF_NUMBER_BAD;
}

ff_str *ff_hash_peek(ff_txn *t, ff_text name, const ff_word *field) {
    ff_str *name_str = ValkeyModule_CreateString(NULL, name.ptr, name.len);
    ValkeyModuleKey *handle = ValkeyModule_OpenKey(t->ctx, name_str, VALKEYMODULE_READ);
    ff_str *value = NULL;
    if (handle && ValkeyModule_KeyType(handle) == VALKEYMODULE_KEYTYPE_HASH) {
        ValkeyModule_HashGet(handle, VALKEYMODULE_HASH_NONE, field->str, &value, NULL);
    } else if (handle) {
        t->state = FF_TXN_WRONG_TYPE;
    }
    ValkeyModule_CloseKey(handle);
    ValkeyModule_FreeString(NULL, name_str);
    return value ? ff_txn_keep(t, value) : NULL;
}

const ff_word *ff_field_str(ff_txn *t, ff_str *name) {
    ff_word *field = ff_arena_alloc(&t->arena, sizeof *field);
    *field = (ff_word){name, ff_str_text(name)};
    return field;
}

const ff_word *ff_field(ff_txn *t, ff_text name) { return ff_field_str(t, ff_str_make(t, name)); }

static bool unchanged(const ff_cell *cell) {
    if (!cell->known) return false;
    if (cell->change == FF_CELL_REMOVED) return cell->old == NULL;
    return cell->old && ff_str_equal(cell->old, cell->staged);
}

typedef struct effect {
    bool sets;
    bool removes;
} effect;

enum { BATCH = 8 };

/* What is handed to the server next: fields, each followed by its value. */
typedef struct batch {
    ff_str *items[2 * BATCH];
    size_t count;
} batch;

/* Each call has a price of its own, so several fields share one; it ends at the first NULL. */
static void write_batch(ff_key *key, batch *next) {
    ff_str **at = next->items;
    if (next->count == 0) return;
    if (next->count < 2 * BATCH) at[next->count] = NULL;
    ValkeyModule_HashSet(key->handle, VALKEYMODULE_HASH_NONE, at[0], at[1], at[2], at[3], at[4],
                         at[5], at[6], at[7], at[8], at[9], at[10], at[11], at[12], at[13], at[14],
                         at[15], NULL);
    next->count = 0;
}

static effect write_cells(ff_key *key) {
    const ff_cells *cells = &key->u.cells;
    effect done = {false, false};
    batch next = {.count = 0};
    for (size_t i = 0; i < cells->count; i++) {
        const ff_cell *cell = &cells->items[i];
        if (cell->change == FF_CELL_CLEAN || unchanged(cell)) continue;
        bool is_set = cell->change == FF_CELL_SET;
        if (next.count == 2 * BATCH) write_batch(key, &next);
        next.items[next.count++] = cell->field->str;
        next.items[next.count++] = is_set ? cell->staged : VALKEYMODULE_HASH_DELETE;
        *(is_set ? &done.sets : &done.removes) = true;
    }
    write_batch(key, &next);
    return done;
}

static size_t collect_sets(const ff_cells *cells, ff_str **sent) {
    size_t count = 0;
    for (size_t i = 0; i < cells->count; i++) {
        const ff_cell *cell = &cells->items[i];
        if (cell->change != FF_CELL_SET || unchanged(cell)) continue;
        sent[count++] = cell->field->str;
        sent[count++] = cell->staged;
    }
    return count;
}

static size_t collect_removals(const ff_cells *cells, ff_str **sent) {
    size_t count = 0;
    for (size_t i = 0; i < cells->count; i++) {
        const ff_cell *cell = &cells->items[i];
        if (cell->change != FF_CELL_REMOVED || unchanged(cell)) continue;
        sent[count++] = cell->field->str;
    }
    return count;
}

static void replicate(ff_key *key, const char *command,
                      size_t collect(const ff_cells *, ff_str **)) {
    ff_txn *t = key->txn;
    ff_str **sent = NULL;
    size_t count = 0;
    if (t->heard) {
        sent = ff_arena_array(&t->scratch, key->u.cells.count * 2, sizeof *sent);
        count = collect(&key->u.cells, sent);
    }
    FF_REPLICATE(t, command, "sv", key->name, sent, count);
}

void ff_hash_apply(ff_key *key) {
    if (key->u.cells.count == 0) return;
    if (ff_packed_write(key)) {
        ff_key_notify(key, VALKEYMODULE_NOTIFY_HASH, "hset");
        return;
    }
    effect done = write_cells(key);
    if (done.sets) {
        replicate(key, "HSET", collect_sets);
        ff_key_notify(key, VALKEYMODULE_NOTIFY_HASH, "hset");
    }
    if (done.removes) {
        replicate(key, "HDEL", collect_removals);
        ff_key_notify(key, VALKEYMODULE_NOTIFY_HASH, "hdel");
        ff_key_notify_if_gone(key);
    }
}
