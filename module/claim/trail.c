#include "claim/trail.h"

#include "counters.h"

/* What names a trail comes from clients, so there is a bound: beyond, all are given up, and begin
 * again. */
enum { TRAILS_MAX = 1024 };

typedef struct trail {
    ff_arena arena;
    ff_claim_search search;
    bool second; /* whether it comes second in the next call */
} trail;

static ValkeyModuleDict *trails; /* by what the workers ask for */

void ff_trails_load(void) { trails = ValkeyModule_CreateDict(NULL); }

static void free_trail(trail *t) {
    ff_claim_search_end(&t->search);
    ff_arena_release(&t->arena);
    ValkeyModule_Free(t);
}

void ff_trails_unload(void) {
    if (trails == NULL) return;
    ValkeyModuleDictIter *iterator = ValkeyModule_DictIteratorStartC(trails, "^", NULL, 0);
    void *t;
    while (ValkeyModule_DictNextC(iterator, NULL, &t)) free_trail(t);
    ValkeyModule_DictIteratorStop(iterator);
    ValkeyModule_FreeDict(NULL, trails);
    trails = NULL;
}

/* The same for orders that are alike, and for no others. Lanes and capabilities hold no line ends. */
static ff_text name_of(ff_arena *arena, const ff_claim_order *order) {
    ff_buffer name;
    ff_buffer_init(&name, arena);
    ff_buffer_append(&name, order->grant_ttl_ms ? FF_TEXT("grant\n") : FF_TEXT("lease\n"));
    ff_buffer_append(&name, order->partition_tag);
    for (size_t i = 0; i < order->lane_count; i++) {
        ff_buffer_append(&name, FF_TEXT("\n"));
        ff_buffer_append(&name, order->lanes[i]);
    }
    ff_buffer_append(&name, FF_TEXT("\n\n"));
    ff_buffer_append(&name, order->capabilities_csv);
    ff_buffer_append(&name, FF_TEXT("\n"));
    ff_buffer_append(&name, order->namespace);
    return ff_buffer_text(&name);
}

static trail *find(ff_text name) {
    return ValkeyModule_DictGetC(trails, (void *)(uintptr_t)name.ptr, name.len, NULL);
}

static void give_up(ff_text name) {
    void *t = NULL;
    ValkeyModule_DictDelC(trails, (void *)(uintptr_t)name.ptr, name.len, &t);
    if (t) free_trail(t);
}

/* Keeps the places of a search that was cut short. */
static void lay(ff_text name, const ff_claim_order *order, ff_claim_search *search) {
    if (ValkeyModule_DictSize(trails) >= TRAILS_MAX) {
        ff_trails_unload();
        ff_trails_load();
    }
    trail *t = ValkeyModule_Calloc(1, sizeof *t);
    ff_arena_init(&t->arena, NULL, 0);
    ff_claim_search_make(&t->search, order, &t->arena);
    t->search.start = search->start;
    for (size_t i = 0; i < search->place_count; i++) {
        t->search.places[i] = search->places[i];
        search->places[i] = (ff_claim_place){0};
    }
    ValkeyModule_DictSetC(trails, (void *)(uintptr_t)name.ptr, name.len, t);
}

/* Of two parts of a bound the first is the larger. */
static ff_claim_bounds half(bool first) {
    ff_claim_bounds bounds = ff_claim_bounds_configured();
    bounds.passed = (bounds.passed + first) / 2;
    bounds.strangers = (bounds.strangers + 1) / 2;
    return bounds;
}

static void share(ValkeyModuleCtx *ctx, const ff_claim_order *order, ff_claim_search *search,
                  trail *t, ff_answer *list) {
    bool on_trail = !t->second;
    t->second = on_trail;
    for (int part = 0; part < 2 && list->count < (size_t)order->count; part++) {
        ff_claim_bounds bounds = half(part == 0);
        bounds.thorough = on_trail;
        if (bounds.passed) {
            ff_claim_run(ctx, order, on_trail ? &t->search : search, &bounds, list);
        }
        on_trail = !on_trail;
    }
}

size_t ff_trail_run(ValkeyModuleCtx *ctx, const ff_claim_order *order, ff_claim_search *search,
                    ff_answer *list) {
    ff_arena *arena = &list->txn->arena;
    trail *t = NULL;
    ff_text name = FF_TEXT_ABSENT;
    if (ValkeyModule_DictSize(trails)) {
        name = name_of(arena, order);
        t = find(name);
    }
    if (t) {
        share(ctx, order, search, t, list);
        if (t->search.exhausted) give_up(name);
    } else {
        ff_claim_bounds bounds = ff_claim_bounds_configured();
        ff_claim_run(ctx, order, search, &bounds, list);
        if (search->cut && list->count < (size_t)order->count) {
            lay(name_of(arena, order), order, search);
        }
    }
    ff_count(FF_COUNT_CLAIM_CALLS);
    if (list->count == 0) ff_count(FF_COUNT_CLAIM_EMPTY);
    return list->count;
}
