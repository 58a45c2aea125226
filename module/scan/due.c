#include "scan/due.h"

#include <math.h>
#include <string.h>

#include "scan/scanner.h"

enum { POSTPONED_MS = 250, LOOK_EVERY = 16 };

/* One index of one partition. */
typedef struct place_state {
    double next;    /* when it is due */
    double first;   /* the lowest score that is to be visited then */
    double handled; /* visited up to here */
    double head;    /* the lowest score that the last visit left; infinity: nothing */
} place_state;

/* An index of a lane, or one that is not per lane, in all partitions. */
typedef struct timetable {
    struct timetable *next;
    ff_index index;
    ff_lane *lane;
    double earliest;
    bool any_marked;
    uint64_t *marks;
    place_state *places;
} timetable;

static timetable *tables[FF_INDEX_COUNT]; /* those of one index, found by lane */
static bool any_marked;

bool ff_due_watches(ff_index index) {
    static bool known;
    static bool watched[FF_INDEX_COUNT];
    if (!known) {
        for (size_t i = 0; i < FF_SCANNER_COUNT; i++) {
            const ff_scanner *s = &ff_scanners[i];
            if (s->kind == FF_SCAN_DUE && s->prompt) watched[s->indexes[0]] = true;
        }
        known = true;
    }
    return watched[index];
}

static size_t partitions_of(ff_index index) { return ff_partition_count(ff_index_family(index)); }

static timetable *make_table(ff_index index, ff_lane *lane) {
    size_t count = partitions_of(index);
    timetable *table = ValkeyModule_Calloc(1, sizeof *table);
    table->index = index;
    table->lane = lane;
    table->earliest = INFINITY;
    table->marks = ValkeyModule_Calloc(count / 64 + 1, sizeof(uint64_t));
    table->places = ValkeyModule_Alloc(count * sizeof *table->places);
    for (size_t i = 0; i < count; i++) {
        table->places[i] = (place_state){INFINITY, INFINITY, -INFINITY, INFINITY};
    }
    table->next = tables[index];
    tables[index] = table;
    return table;
}

static timetable *table_of(ff_index index, ff_lane *lane) {
    timetable *found = tables[index];
    timetable *before = NULL;
    for (; found && found->lane != lane; found = found->next) before = found;
    if (found == NULL) return make_table(index, lane);
    if (before) { /* to the front: the lanes that are used are found at once */
        before->next = found->next;
        found->next = tables[index];
        tables[index] = found;
    }
    return found;
}

void ff_due_mark(ff_index index, ff_lane *lane, uint16_t partition) {
    timetable *table = table_of(index, lane);
    table->marks[partition / 64] |= UINT64_C(1) << (partition % 64);
    table->any_marked = true;
    any_marked = true;
}

bool ff_due_is_marked(void) { return any_marked; }

static void mark_present(ff_index index, ff_lane *lane) {
    int32_t partition = -1;
    while ((partition = ff_presence_next(index, lane, (uint32_t)(partition + 1))) >= 0) {
        ff_due_mark(index, lane, (uint16_t)partition);
    }
}

void ff_due_start(void) {
    ff_due_stop();
    for (ff_index i = 0; i < FF_INDEX_COUNT; i++) {
        if (!ff_due_watches(i)) continue;
        if (!ff_index_is_per_lane(i)) mark_present(i, NULL);
        for (ff_lane *lane = ff_lanes(); lane && ff_index_is_per_lane(i); lane = lane->next) {
            mark_present(i, lane);
        }
    }
}

void ff_due_stop(void) {
    for (ff_index i = 0; i < FF_INDEX_COUNT; i++) {
        while (tables[i]) {
            timetable *table = tables[i];
            tables[i] = table->next;
            ValkeyModule_Free(table->marks);
            ValkeyModule_Free(table->places);
            ValkeyModule_Free(table);
        }
    }
    any_marked = false;
}

static ff_zset_head look(ValkeyModuleCtx *ctx, const timetable *table, uint16_t partition,
                         double bound) {
    ff_txn t;
    ff_txn_begin(&t, ctx, true);
    ff_zset_head head =
        ff_zset_look(ctx, ff_index_key(&t, table->index, table->lane, partition), bound);
    ff_txn_discard(&t);
    ff_txn_end(&t);
    return head;
}

static void set_next(timetable *table, place_state *place, double next) {
    bool was_first = place->next <= table->earliest && place->next < next;
    place->next = next;
    if (next < table->earliest) {
        table->earliest = next;
    } else if (was_first) {
        table->earliest = NAN; /* to be found again */
    }
}

static void reread(ValkeyModuleCtx *ctx, timetable *table, uint16_t partition) {
    place_state *place = &table->places[partition];
    ff_zset_head head = look(ctx, table, partition, place->handled);
    bool appeared = head.lowest <= place->handled && head.lowest < place->head;
    place->first = appeared ? head.lowest : head.next;
    set_next(table, place, place->first);
}

static bool refresh_table(ValkeyModuleCtx *ctx, timetable *table, uint64_t deadline) {
    size_t words = partitions_of(table->index) / 64 + 1;
    unsigned looked_at = 0;
    for (size_t word = 0; word < words; word++) {
        while (table->marks[word]) {
            unsigned bit = (unsigned)__builtin_ctzll(table->marks[word]);
            table->marks[word] &= table->marks[word] - 1;
            reread(ctx, table, (uint16_t)(word * 64 + bit));
            if (++looked_at % LOOK_EVERY == 0 && ValkeyModule_MonotonicMicroseconds() >= deadline) {
                return false;
            }
        }
    }
    table->any_marked = false;
    return true;
}

void ff_due_refresh(ValkeyModuleCtx *ctx, uint64_t deadline) {
    if (!any_marked) return;
    for (ff_index i = 0; i < FF_INDEX_COUNT; i++) {
        for (timetable *table = tables[i]; table; table = table->next) {
            if (table->any_marked && !refresh_table(ctx, table, deadline)) return;
        }
    }
    any_marked = false;
}

static double earliest_of(timetable *table) {
    if (!isnan(table->earliest)) return table->earliest;
    size_t count = partitions_of(table->index);
    table->earliest = INFINITY;
    for (size_t i = 0; i < count; i++) {
        if (table->places[i].next < table->earliest) table->earliest = table->places[i].next;
    }
    return table->earliest;
}

double ff_due_earliest(ff_index index) {
    double earliest = INFINITY;
    for (timetable *table = tables[index]; table; table = table->next) {
        earliest = fmin(earliest, earliest_of(table));
    }
    return earliest;
}

bool ff_due_next(ff_index index, double now, ff_due_place *place) {
    for (timetable *table = tables[index]; table; table = table->next) {
        if (earliest_of(table) > now) continue;
        size_t count = partitions_of(index);
        for (size_t i = 0; i < count; i++) {
            const place_state *found = &table->places[i];
            if (found->next > now) continue;
            double from = found->first <= now ? found->first : -INFINITY;
            *place = (ff_due_place){index, table->lane, (uint16_t)i, from};
            return true;
        }
    }
    return false;
}

void ff_due_handled(ValkeyModuleCtx *ctx, ff_index index, ff_lane *lane, uint16_t partition,
                    double now) {
    if (!ff_due_watches(index) || tables[index] == NULL) return;
    timetable *table = table_of(index, lane);
    place_state *place = &table->places[partition];
    ff_zset_head head = look(ctx, table, partition, now);
    place->handled = now;
    place->head = head.lowest <= now ? head.lowest : INFINITY;
    place->first = head.next;
    set_next(table, place, head.next);
}

void ff_due_postpone(ff_index index, ff_lane *lane, uint16_t partition) {
    if (!ff_due_watches(index) || tables[index] == NULL) return;
    timetable *table = table_of(index, lane);
    double now = (double)ValkeyModule_Milliseconds();
    set_next(table, &table->places[partition], now + POSTPONED_MS);
}
