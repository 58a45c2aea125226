#include <math.h>
#include <string.h>

#include "base/fnv.h"
#include "claim/candidate.h"
#include "claim/claim.h"
#include "claim/lapse.h"
#include "claim/slot.h"
#include "claim/trail.h"
#include "claim/waiter.h"
#include "config.h"
#include "counters.h"
#include "permission.h"
#include "presence.h"
#include "store/walk.h"
#include "watch.h"

enum {
    TAKE_MOST = 64,       /* entries read from an index at once */
    MOVING_MS = 100,      /* until a slot that is on its way is looked at again */
    LAPSED_STRANGERS = 4, /* times as many as in a queue */
    TAKEN_MOST = 64,      /* from a partition before a thorough search moves on */
};

/* ---- Lanes ---- */

static ff_claim_lane *first_lane;
static ValkeyModuleDict *lanes_by_name;

const ff_claim_lane *ff_claim_lanes(void) { return first_lane; }

/* Only lanes that have data are remembered: names come from clients. */
static ff_claim_lane *lane_named(ff_text name, const ff_lane *known, ff_claim_lane *fleeting) {
    ff_claim_lane *lane =
        ValkeyModule_DictGetC(lanes_by_name, (void *)(uintptr_t)name.ptr, name.len, NULL);
    if (lane) return lane;
    *fleeting = (ff_claim_lane){.name = name};
    if (known == NULL) return fleeting;
    lane = ValkeyModule_Alloc(sizeof *lane);
    *lane = (ff_claim_lane){.name = known->name, .next = first_lane};
    ValkeyModule_DictSetC(lanes_by_name, (void *)(uintptr_t)name.ptr, name.len, lane);
    first_lane = lane;
    return lane;
}

static void on_index_write(ff_index index, ff_lane *lane, uint16_t partition) {
    if (index == FF_INDEX_LEASE_EXPIRY) {
        ff_lapse_mark(partition);
        ff_waiters_reconsider();
    } else if (index == FF_INDEX_ELIGIBLE) {
        ff_waiters_stir(lane->name);
    }
}

int ff_claim_load(ValkeyModuleCtx *ctx) {
    lanes_by_name = ValkeyModule_CreateDict(NULL);
    ff_lapse_load();
    ff_slot_load(ctx);
    ff_trails_load();
    ff_waiters_load(ctx);
    ff_presence_listen(on_index_write);
    return VALKEYMODULE_OK;
}

void ff_claim_unload(void) {
    if (lanes_by_name) ValkeyModule_FreeDict(NULL, lanes_by_name);
    while (first_lane) {
        ff_claim_lane *lane = first_lane;
        first_lane = lane->next;
        ValkeyModule_Free(lane);
    }
    ff_lapse_unload();
    ff_slot_unload();
    ff_trails_unload();
    ff_waiters_unload();
}

/* ---- Where a search begins ---- */

/* All workers share a cursor, which moves on once in each rotation window. */
static uint32_t cursor_at(double now, uint32_t count) {
    static int64_t window = -1;
    static uint32_t cursor;
    int64_t epoch = (int64_t)now / ff_config.claim_rotation_ms;
    if (window >= 0 && epoch != window) {
        cursor = (uint32_t)((cursor + (uint64_t)ff_config.claim_partitions_per_scan) % count);
    }
    window = epoch;
    return cursor % count;
}

static double clock_now(void) { return (double)(ValkeyModule_CachedMicroseconds() / 1000); }

static void forget(ff_claim_stop *stop) {
    if (stop->behind.member) ValkeyModule_FreeString(NULL, stop->behind.member);
    *stop = (ff_claim_stop){0};
}

void ff_claim_search_end(ff_claim_search *search) {
    for (size_t i = 0; i < search->place_count; i++) {
        forget(&search->places[i].queued);
        forget(&search->places[i].lapsed);
    }
}

void ff_claim_search_make(ff_claim_search *search, const ff_claim_order *order, ff_arena *arena) {
    size_t size = order->lane_count * sizeof *search->places;
    *search =
        (ff_claim_search){.places = ff_arena_zeroed(arena, size), .place_count = order->lane_count};
}

void ff_claim_search_begin(ff_claim_search *search, const ff_claim_order *order) {
    uint16_t count = ff_partition_count(FF_FAMILY_FLOW);
    ff_claim_search_end(search);
    search->start = order->partition;
    if (ff_text_is_absent(order->partition_tag)) {
        search->start = (ff_fnv1a_mod(order->instance, count) + cursor_at(clock_now(), count)) %
                        (uint32_t)count;
    }
    search->exhausted = search->cut = search->skipped = false;
    search->retry_at = INFINITY;
}

ff_claim_bounds ff_claim_bounds_configured(void) {
    return (ff_claim_bounds){.partitions = ff_config.claim_partitions_per_scan,
                             .passed = ff_config.claim_block_limit,
                             .strangers = ff_config.claim_lookahead};
}

/* ---- The cycle ---- */

/* One of the two places where executions come from, as one call walks through it. */
typedef struct source {
    ff_index index;
    ff_claim_outcome (*try)(ff_claim_call *call, const ff_claim_spot *spot, ff_str *execution_id);
    ff_claim_stop *stop; /* of the search: where it goes on after this call */
    uint32_t offset;     /* in the ring */
    ff_walk walk;        /* through the index of one partition */
    bool inside;         /* the walk has begun */
    bool counted;        /* the partition holds something */
    bool over;           /* nothing more to be had in this call */
    bool cut;            /* a partition was left before its end: the stop is there */
    size_t take;         /* how many entries to read next */
    long long strangers; /* that may be stepped over in this partition */
    long long allowance; /* in all of them */
    long long taken;     /* from this partition */
    long long visited;
    char tag[FF_TAG_MAX];
    ff_claim_spot spot;
} source;

typedef struct cycle {
    ff_claim_call call;
    ff_claim_search *search;
    const ff_claim_bounds *bounds;
    const ff_lane *known; /* NULL: no data of this lane */
    uint32_t span;        /* partitions in the ring */
    uint32_t count;
    bool in_cluster;
    size_t wanted;    /* length of the list when all was handed out that was asked for */
    long long passed; /* blocked or stepped over */
    bool stopped;     /* by the bound of that */
} cycle;

static int32_t next_marked(const cycle *c, const source *s, uint32_t from) {
    if (s->index == FF_INDEX_LEASE_EXPIRY) return ff_lapse_next(from, c->call.now);
    return c->known ? ff_presence_next(FF_INDEX_ELIGIBLE, c->known, from) : -1;
}

/* Moves on in the ring to a partition that may hold something, or to its end. */
static void seek(const cycle *c, source *s) {
    uint32_t start = c->search->start;
    if (s->offset >= c->span) return;
    uint32_t from = (start + s->offset) % c->count;
    int32_t found = next_marked(c, s, from);
    if (found >= 0 && from >= start) {
        s->offset = (uint32_t)found - start;
    } else {
        if (from >= start) found = next_marked(c, s, 0);
        bool ahead = found >= 0 && (uint32_t)found < start;
        s->offset = ahead ? c->count - start + (uint32_t)found : c->span;
    }
    if (s->offset > c->span) s->offset = c->span;
}

static void leave_partition(source *s) {
    ff_walk_reset(&s->walk);
    s->inside = false;
}

/* The partition is not served here. If it holds something its slot is on its way, and no event will tell that it
 * has settled: whoever waits has to look again. */
static void look_again_later(cycle *c, const source *s) {
    if (ValkeyModule_KeyExists(c->call.ctx, s->spot.index)) {
        c->call.retry_at = fmin(c->call.retry_at, c->call.now + MOVING_MS);
    } else if (s->index == FF_INDEX_ELIGIBLE) {
        ff_presence_clear(FF_INDEX_ELIGIBLE, (ff_lane *)(uintptr_t)c->known,
                          s->spot.partition.number);
    }
}

/* Lanes share an index of leases, so that more strangers are to be expected there. */
static long long strangers_in(const cycle *c, const source *s) {
    long long most = c->bounds->strangers;
    if (s->index == FF_INDEX_LEASE_EXPIRY) most *= LAPSED_STRANGERS;
    return most < s->allowance ? most : s->allowance;
}

static bool enter_partition(cycle *c, source *s) {
    uint16_t number = (uint16_t)((c->search->start + s->offset) % c->count);
    s->spot.partition = (ff_partition){FF_FAMILY_FLOW, number};
    s->spot.index = ff_index_key(c->call.list->txn, s->index, c->known, number);
    if (c->in_cluster &&
        ff_permission_of_partition(c->call.ctx, s->spot.partition) != FF_MAY_WRITE) {
        look_again_later(c, s);
        return false;
    }
    s->spot.tag = ff_text_make(s->tag, ff_tag_format(s->spot.partition, s->tag));
    s->inside = true;
    s->counted = false;
    s->strangers = strangers_in(c, s);
    int64_t wanted = c->call.order->count;
    s->take = wanted < TAKE_MOST ? (size_t)wanted : TAKE_MOST;
    s->taken = 0;
    const ff_claim_stop *stop = s->stop;
    if (stop->behind.member && stop->offset == s->offset && !s->cut) {
        ff_walk_begin_behind(&s->walk, stop->behind);
        s->taken = stop->taken;
    }
    return true;
}

/* Enters the next partition; false when there is none to be visited in this call. */
static bool enter_next(cycle *c, source *s) {
    for (;; s->offset++) {
        seek(c, s);
        if (s->offset >= c->span || s->visited >= c->bounds->partitions) return false;
        if (enter_partition(c, s)) return true;
    }
}

/* The entry to be tried next; NULL when the partition has no more. */
static ff_str *next_entry(cycle *c, source *s) {
    double max = s->index == FF_INDEX_LEASE_EXPIRY ? c->call.now : INFINITY;
    ff_walk_state state = ff_walk_zset(&s->walk, c->call.ctx, s->spot.index, max, s->take);
    if (state == FF_WALK_EMPTY && s->index == FF_INDEX_ELIGIBLE) {
        ff_presence_clear(FF_INDEX_ELIGIBLE, (ff_lane *)(uintptr_t)c->known,
                          s->spot.partition.number);
    }
    if (state != FF_WALK_TAKEN) return NULL;
    if (!s->counted) {
        s->counted = true;
        s->visited++;
        ff_count(FF_COUNT_CLAIM_VISITED);
    }
    s->take = s->take * 4 < TAKE_MOST ? s->take * 4 : TAKE_MOST;
    return ff_walk_entry(&s->walk)->member;
}

/* The search goes on behind the entry that was tried last. */
static void stop_here(source *s) {
    forget(s->stop);
    s->stop->offset = s->offset;
    ff_zset_entry behind = ff_walk_behind(&s->walk);
    if (!s->inside || behind.member == NULL) return;
    s->stop->taken = s->taken;
    s->stop->behind = behind;
    ValkeyModule_RetainString(NULL, behind.member);
}

/* The partition has to be left before its end. */
static void cut(const cycle *c, source *s) {
    if (!s->cut) stop_here(s);
    s->cut = true;
    s->over = c->bounds->thorough || s->allowance == 0;
}

/* Tries the entries of one partition. True when something was handed out. */
static bool search_partition(cycle *c, source *s) {
    while (c->passed < c->bounds->passed && s->strangers > 0) {
        ff_str *execution_id = next_entry(c, s);
        if (execution_id == NULL) return false;
        ff_claim_outcome outcome = s->try(&c->call, &s->spot, execution_id);
        ff_walk_next(&s->walk);
        switch (outcome) {
        case FF_CLAIM_TAKEN: s->taken++; return true;
        case FF_CLAIM_STRANGE:
            s->strangers--;
            s->allowance--;
            break;
        case FF_CLAIM_PARKED: c->passed++; break;
        case FF_CLAIM_PASSED:
            c->call.lane->stepped_over++;
            c->passed++;
            break;
        }
    }
    c->stopped = c->passed >= c->bounds->passed;
    cut(c, s);
    return false;
}

/* Goes on in the ring until something was handed out; false when nothing more is to be had in
 * this call. */
static bool take_from(cycle *c, source *s) {
    while (!s->over && !c->stopped) {
        if (!s->inside && !enter_next(c, s)) break;
        if (c->bounds->thorough && s->taken >= TAKEN_MOST) {
            c->search->skipped = true;
        } else if (search_partition(c, s)) {
            return true;
        }
        leave_partition(s);
        s->offset++;
    }
    s->over = true;
    return false;
}

static bool take_one(cycle *c, source *queued, source *lapsed) {
    const ff_claim_lane *lane = c->call.lane;
    if (c->call.order->grant_ttl_ms) return take_from(c, queued);
    if (lane->lapsed_first && take_from(c, lapsed)) return true;
    return take_from(c, queued) || take_from(c, lapsed);
}

static void begin_source(const cycle *c, source *s, ff_claim_stop *stop) {
    s->stop = stop;
    s->offset = stop->offset;
    s->allowance = c->bounds->strangers * c->bounds->partitions;
}

static void end_source(cycle *c, source *s) {
    if (!s->cut) stop_here(s);
    if (s->cut) c->search->cut = true;
    if (s->stop->offset < c->span) c->search->exhausted = false;
    ff_walk_free(&s->walk);
}

static void search_lane(cycle *c, size_t i) {
    const ff_claim_order *order = c->call.order;
    source queued = {.index = FF_INDEX_ELIGIBLE, .try = ff_candidate_queued};
    source lapsed = {.index = FF_INDEX_LEASE_EXPIRY, .try = ff_candidate_lapsed};
    ff_claim_place *place = &c->search->places[i];
    ff_claim_lane fleeting;
    c->known = ff_lane_find(order->lanes[i]);
    ff_claim_lane *lane = lane_named(order->lanes[i], c->known, &fleeting);
    uint64_t began = ValkeyModule_MonotonicMicroseconds();
    size_t before = c->call.list->count;
    c->call.lane = lane;
    c->call.lane_name = NULL;
    begin_source(c, &queued, &place->queued);
    begin_source(c, &lapsed, &place->lapsed);
    while (c->call.list->count < c->wanted && take_one(c, &queued, &lapsed)) {
        lane->lapsed_first = !lane->lapsed_first;
    }
    if (c->call.list->count == before) {
        if (!c->bounds->thorough) lane->empty_calls++;
        if (c->stopped) lane->lapsed_first = !lane->lapsed_first;
    }
    end_source(c, &queued);
    if (order->grant_ttl_ms) lapsed.offset = c->span;
    end_source(c, &lapsed);
    lane->microseconds += ValkeyModule_MonotonicMicroseconds() - began;
}

/* Before all older data has been seen, everything may be there. */
static void expect_anything(const ff_claim_order *order) {
    for (uint32_t p = 0; p < ff_partition_count(FF_FAMILY_FLOW); p++) {
        ff_presence_mark(FF_INDEX_LEASE_EXPIRY, NULL, (uint16_t)p);
        ff_lapse_mark((uint16_t)p);
        for (size_t i = 0; i < order->lane_count; i++) {
            ff_presence_mark(FF_INDEX_ELIGIBLE, ff_lane_make(order->lanes[i]), (uint16_t)p);
        }
    }
}

static void begin_cycle(cycle *c, ValkeyModuleCtx *ctx, const ff_claim_order *order,
                        ff_answer *list) {
    *c = (cycle){.call = {.ctx = ctx,
                          .order = order,
                          .list = list,
                          .limits = {.arena = &list->txn->arena},
                          .now = clock_now(),
                          .retry_at = INFINITY},
                 .count = ff_partition_count(FF_FAMILY_FLOW)};
    c->wanted = (size_t)order->count;
    c->span = ff_text_is_absent(order->partition_tag) ? c->count : 1;
    c->in_cluster = ValkeyModule_GetContextFlags(ctx) & VALKEYMODULE_CTX_FLAGS_CLUSTER;
    if (!ff_watch_is_complete()) expect_anything(order);
    if (!order->grant_ttl_ms) ff_lapse_refresh(ctx, c->call.now);
}

static void count_found(const ff_claim_order *order, size_t found, uint64_t microseconds) {
    ff_counters[order->grant_ttl_ms ? FF_COUNT_CLAIM_GRANTED : FF_COUNT_CLAIM_CLAIMED] += found;
    ValkeyModule_LatencyAddSample("ff-claim", (mstime_t)(microseconds / 1000));
}

size_t ff_claim_run(ValkeyModuleCtx *ctx, const ff_claim_order *order, ff_claim_search *search,
                    const ff_claim_bounds *bounds, ff_answer *list) {
    cycle c;
    uint64_t began = ValkeyModule_MonotonicMicroseconds();
    size_t before = list->count;
    begin_cycle(&c, ctx, order, list);
    c.search = search;
    c.bounds = bounds;
    search->exhausted = true;
    search->cut = false;
    for (size_t i = 0; i < order->lane_count; i++) {
        search_lane(&c, i);
        if (list->count >= c.wanted || c.stopped) {
            search->exhausted = false;
            break;
        }
    }
    search->retry_at = fmin(search->retry_at, c.call.retry_at);
    count_found(order, list->count - before, ValkeyModule_MonotonicMicroseconds() - began);
    return list->count - before;
}
