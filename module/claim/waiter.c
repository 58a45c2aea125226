#include "claim/waiter.h"

#include <math.h>
#include <string.h>

#include "claim/lapse.h"
#include "counters.h"
#include "permission.h"

enum {
    SLICE_US = 1000, /* how long waiters are served before clients are */
    REFUSED_MS = 50, /* until the next attempt while the server takes no writes */
    ALARM_MAX_MS = 24 * 60 * 60 * 1000,
};

typedef struct group group;

typedef struct waiter {
    struct waiter *previous;
    struct waiter *next;
    group *group; /* NULL: not waiting (any more) */
    uint64_t number;
    ValkeyModuleBlockedClient *client;
    ff_arena arena;
    ff_claim_order order;
    ff_claim_teller teller;
    bool unblocked;
    bool holds;  /* the transaction below has begun */
    ff_txn hold; /* owns the answer */
    ff_answer answer;
} waiter;

/* Waiters that would be given the same executions. */
struct group {
    group *next; /* all groups */
    group *previous;
    waiter *first;
    waiter *last;
    ff_arena arena;
    ff_claim_order order; /* but for the worker */
    ff_claim_search search;
    bool stirred; /* there may be something for it */
    bool anew;    /* the search has to begin anew */
    double retry_at;
};

/* The groups that wait for a lane. */
typedef struct queue {
    group **groups;
    size_t count;
    size_t capacity;
} queue;

static ValkeyModuleCtx *own_ctx;
static ValkeyModuleDict *queues; /* by lane */
static group *first_group;
static size_t group_count;
static size_t stirred_count;
static size_t waiter_count;
static uint64_t last_number;
static waiter *first_errand; /* clients to be served once, after their command */
static waiter *last_errand;
static bool armed; /* the timer that serves */
static bool alarm_set;
static double alarm_at;
static ValkeyModuleTimerID alarm;

static void serve(ValkeyModuleCtx *ctx);

void ff_waiters_load(ValkeyModuleCtx *ctx) {
    own_ctx = ValkeyModule_GetDetachedThreadSafeContext(ctx);
    queues = ValkeyModule_CreateDict(NULL);
}

static void free_group(group *g);

void ff_waiters_unload(void) {
    while (first_group) free_group(first_group);
    if (queues) ValkeyModule_FreeDict(NULL, queues);
    if (own_ctx) ValkeyModule_FreeThreadSafeContext(own_ctx);
}

size_t ff_waiters_count(void) { return waiter_count; }

static double clock_now(void) { return (double)(ValkeyModule_CachedMicroseconds() / 1000); }

/* ---- Timers ---- */

static void on_timer(ValkeyModuleCtx *ctx, void *data) {
    (void)data;
    armed = false;
    serve(ctx);
}

static void arm(void) {
    if (armed) return;
    armed = true;
    ValkeyModule_CreateTimer(own_ctx, 0, on_timer, NULL);
}

/* A timer of period 0 made by a timer would run before any client does. */
static void on_yield(void *data) {
    (void)data;
    armed = false;
    arm();
}

static void arm_after_clients(void) {
    if (armed) return;
    armed = true;
    ValkeyModule_EventLoopAddOneShot(on_yield, NULL);
}

static void on_alarm(ValkeyModuleCtx *ctx, void *data) {
    (void)data;
    alarm_set = false;
    serve(ctx);
}

static void stop_alarm(void) {
    if (alarm_set) ValkeyModule_StopTimer(own_ctx, alarm, NULL);
    alarm_set = false;
}

static void set_alarm(double at) {
    if (alarm_set && alarm_at == at) return;
    stop_alarm();
    if (at == INFINITY) return;
    double period = fmin(fmax(ceil(at - clock_now()), 1), ALARM_MAX_MS);
    alarm = ValkeyModule_CreateTimer(own_ctx, (mstime_t)period, on_alarm, NULL);
    alarm_set = true;
    alarm_at = at;
}

/* ---- Groups ---- */

static queue *queue_of(ff_text lane) {
    return ValkeyModule_DictGetC(queues, (void *)(uintptr_t)lane.ptr, lane.len, NULL);
}

static void join_queue(ff_text lane, group *g) {
    queue *q = queue_of(lane);
    if (q == NULL) {
        q = ValkeyModule_Calloc(1, sizeof *q);
        ValkeyModule_DictSetC(queues, (void *)(uintptr_t)lane.ptr, lane.len, q);
    }
    if (q->count == q->capacity) {
        q->capacity = q->capacity ? q->capacity * 2 : 4;
        q->groups = ValkeyModule_Realloc(q->groups, q->capacity * sizeof *q->groups);
    }
    q->groups[q->count++] = g;
}

static void leave_queue(ff_text lane, const group *g) {
    queue *q = queue_of(lane);
    for (size_t i = 0; i < q->count; i++) {
        if (q->groups[i] != g) continue;
        q->groups[i] = q->groups[--q->count];
        break;
    }
    if (q->count) return;
    ValkeyModule_DictDelC(queues, (void *)(uintptr_t)lane.ptr, lane.len, NULL);
    ValkeyModule_Free(q->groups);
    ValkeyModule_Free(q);
}

static group *find_group(const ff_claim_order *order) {
    const queue *q = queue_of(order->lanes[0]);
    for (size_t i = 0; q && i < q->count; i++) {
        if (ff_claim_order_alike(&q->groups[i]->order, order)) return q->groups[i];
    }
    return NULL;
}

static group *make_group(const ff_claim_order *order) {
    group *g = ValkeyModule_Calloc(1, sizeof *g);
    ff_arena_init(&g->arena, NULL, 0);
    ff_claim_order_copy(&g->arena, order, &g->order);
    g->search.places = ff_arena_array(&g->arena, order->lane_count, sizeof *g->search.places);
    g->retry_at = INFINITY;
    for (size_t i = 0; i < order->lane_count; i++) join_queue(g->order.lanes[i], g);
    g->next = first_group;
    if (first_group) first_group->previous = g;
    first_group = g;
    group_count++;
    return g;
}

static void free_group(group *g) {
    for (size_t i = 0; i < g->order.lane_count; i++) leave_queue(g->order.lanes[i], g);
    if (g->previous) {
        g->previous->next = g->next;
    } else {
        first_group = g->next;
    }
    if (g->next) g->next->previous = g->previous;
    if (g->stirred) stirred_count--;
    group_count--;
    ff_arena_release(&g->arena);
    ValkeyModule_Free(g);
}

static void stir(group *g) {
    g->anew = true;
    if (!g->stirred) stirred_count++;
    g->stirred = true;
    arm();
}

static void calm(group *g, double retry_at) {
    if (g->stirred) stirred_count--;
    g->stirred = false;
    g->retry_at = retry_at;
}

static group *oldest_stirred(void) {
    group *oldest = NULL;
    for (group *g = stirred_count ? first_group : NULL; g != NULL; g = g->next) {
        if (g->stirred && (!oldest || g->first->number < oldest->first->number)) oldest = g;
    }
    return oldest;
}

void ff_waiters_stir(ff_text lane) {
    if (group_count == 0) return;
    const queue *q = queue_of(lane);
    for (size_t i = 0; q && i < q->count; i++) stir(q->groups[i]);
}

void ff_waiters_reconsider(void) {
    if (group_count) arm();
}

bool ff_waiters_cover(ff_text lane, uint16_t partition, ff_text namespace,
                      const ff_capability_set *required) {
    const queue *q = group_count ? queue_of(lane) : NULL;
    for (size_t i = 0; q && i < q->count; i++) {
        const ff_claim_order *order = &q->groups[i]->order;
        if (ff_claim_order_admits(order, lane, partition, namespace) &&
            ff_capability_covers(&order->capabilities, required)) {
            return true;
        }
    }
    return false;
}

/* ---- Waiters ---- */

static void join_group(waiter *w, bool stirred, double retry_at) {
    group *g = find_group(&w->order);
    if (g == NULL) g = make_group(&w->order);
    w->group = g;
    w->number = ++last_number;
    w->previous = g->last;
    if (g->last) {
        g->last->next = w;
    } else {
        g->first = w;
    }
    g->last = w;
    waiter_count++;
    g->retry_at = fmin(g->retry_at, retry_at);
    if (stirred) stir(g);
    arm();
}

static void leave_group(waiter *w) {
    group *g = w->group;
    if (w->previous) {
        w->previous->next = w->next;
    } else {
        g->first = w->next;
    }
    if (w->next) {
        w->next->previous = w->previous;
    } else {
        g->last = w->previous;
    }
    w->group = NULL;
    w->previous = w->next = NULL;
    waiter_count--;
    if (g->first == NULL) free_group(g);
}

static void leave_errands(waiter *w) {
    waiter **link = &first_errand;
    waiter *previous = NULL;
    while (*link && *link != w) {
        previous = *link;
        link = &(*link)->next;
    }
    if (*link == NULL) return;
    *link = w->next;
    if (last_errand == w) last_errand = previous;
    w->next = NULL;
}

static void begin_answer(waiter *w, ValkeyModuleCtx *ctx) {
    ff_txn_begin(&w->hold, ctx, true);
    w->holds = true;
    w->answer = (ff_answer){.txn = &w->hold};
    ff_answer_become_list(&w->answer);
}

static void drop_answer(waiter *w) {
    if (!w->holds) return;
    ff_txn_discard(&w->hold);
    ff_txn_end(&w->hold);
    w->holds = false;
    w->answer = (ff_answer){.kind = FF_ANSWER_LIST};
}

static void unblock(waiter *w) {
    if (w->unblocked) return;
    w->unblocked = true;
    if (w->group) {
        leave_group(w);
    } else {
        leave_errands(w);
    }
    ValkeyModule_UnblockClient(w->client, w);
}

static int tell(ValkeyModuleCtx *ctx, const waiter *w) {
    ff_count(FF_COUNT_NATIVE_SUCCESSES);
    if (w->teller.send) {
        w->teller.send(ctx, &w->answer, w->teller.data);
    } else {
        ff_answer_send(ctx, &w->answer);
    }
    return VALKEYMODULE_OK;
}

static int on_reply(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    (void)argv;
    (void)argc;
    return tell(ctx, ValkeyModule_GetBlockedClientPrivateData(ctx));
}

/* Also what CLIENT UNBLOCK leads to. */
static int on_timeout(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    (void)argv;
    (void)argc;
    waiter *w = ValkeyModule_GetBlockedClientPrivateData(ctx);
    ff_count(FF_COUNT_CLAIM_TIMEOUTS);
    unblock(w);
    return tell(ctx, w);
}

/* The client is gone, or the server has answered it: this node became a replica. */
static void on_disconnect(ValkeyModuleCtx *ctx, ValkeyModuleBlockedClient *client) {
    (void)ctx;
    ff_count(FF_COUNT_CLAIM_GONE);
    unblock(ValkeyModule_BlockClientGetPrivateData(client));
}

static void on_free(ValkeyModuleCtx *ctx, void *data) {
    (void)ctx;
    waiter *w = data;
    drop_answer(w);
    if (w->teller.release) w->teller.release(w->teller.data);
    ff_arena_release(&w->arena);
    ValkeyModule_Free(w);
}

static waiter *block(ValkeyModuleCtx *ctx, const ff_claim_order *order,
                     const ff_claim_teller *teller) {
    waiter *w = ValkeyModule_Calloc(1, sizeof *w);
    ff_arena_init(&w->arena, NULL, 0);
    ff_claim_order_copy(&w->arena, order, &w->order);
    w->answer.kind = FF_ANSWER_LIST;
    if (teller) w->teller = *teller;
    w->client = ValkeyModule_BlockClient(ctx, on_reply, on_timeout, on_free,
                                         order->waits ? order->wait_ms : 0);
    ValkeyModule_BlockClientSetPrivateData(w->client, w);
    ValkeyModule_SetDisconnectCallback(w->client, on_disconnect);
    return w;
}

/* ---- Serving ---- */

static void serve_first(ValkeyModuleCtx *ctx, group *g) {
    waiter *w = g->first;
    if (g->anew) {
        memset(g->search.places, 0, g->order.lane_count * sizeof *g->search.places);
        ff_claim_search_begin(&g->search, &w->order);
        g->anew = false;
    }
    begin_answer(w, ctx);
    ff_count(FF_COUNT_CLAIM_WAKEUPS);
    if (ff_claim_run(ctx, &w->order, &g->search, &w->answer)) {
        ff_count(FF_COUNT_CLAIM_SERVED);
        unblock(w);
        return;
    }
    drop_answer(w);
    if (g->search.exhausted && !g->anew) calm(g, g->search.retry_at);
}

static void stir_by_time(ValkeyModuleCtx *ctx, double now) {
    ff_lapse_refresh(ctx, now);
    bool lapsed = ff_lapse_take_news();
    for (group *g = first_group; g != NULL; g = g->next) {
        if (lapsed || g->retry_at <= now) {
            g->retry_at = INFINITY;
            stir(g);
        }
    }
}

static double next_alarm(void) {
    double at = group_count ? ff_lapse_after_now() : INFINITY;
    for (const group *g = first_group; g != NULL; g = g->next) at = fmin(at, g->retry_at);
    return at;
}

static void serve_errand(ValkeyModuleCtx *ctx) {
    waiter *w = first_errand;
    ff_claim_search search;
    search.places = ff_arena_zeroed(&w->arena, w->order.lane_count * sizeof *search.places);
    ff_claim_search_begin(&search, &w->order);
    begin_answer(w, ctx);
    if (ff_claim_run(ctx, &w->order, &search, &w->answer) || !w->order.waits) {
        unblock(w);
        return;
    }
    drop_answer(w);
    leave_errands(w);
    join_group(w, !search.exhausted, search.retry_at);
}

static void serve(ValkeyModuleCtx *ctx) {
    if (group_count == 0 && first_errand == NULL) {
        stop_alarm();
        return;
    }
    if (ff_permission_of_node(ctx) != FF_MAY_WRITE) {
        set_alarm(clock_now() + REFUSED_MS);
        return;
    }
    uint64_t deadline = ValkeyModule_MonotonicMicroseconds() + SLICE_US;
    bool armed_before = armed;
    armed = true; /* what is written meanwhile is seen below */
    if (group_count) stir_by_time(ctx, clock_now());
    for (group *g = oldest_stirred(); g != NULL; g = oldest_stirred()) {
        serve_first(ctx, g);
        if (ValkeyModule_MonotonicMicroseconds() >= deadline) break;
    }
    while (first_errand) serve_errand(ctx);
    armed = armed_before;
    if (group_count) ff_lapse_refresh(ctx, clock_now());
    set_alarm(next_alarm());
    if (stirred_count) arm_after_clients();
}

bool ff_claim_is_possible(ValkeyModuleCtx *ctx) {
    int flags = ValkeyModule_GetContextFlags(ctx);
    int enclosed = VALKEYMODULE_CTX_FLAGS_MULTI | VALKEYMODULE_CTX_FLAGS_LUA |
                   VALKEYMODULE_CTX_FLAGS_DENY_BLOCKING;
    return !(flags & VALKEYMODULE_CTX_FLAGS_CLUSTER) || !(flags & enclosed);
}

static void run_errand(ValkeyModuleCtx *ctx, const ff_claim_order *order,
                       const ff_claim_teller *teller) {
    waiter *w = block(ctx, order, teller);
    if (last_errand) {
        last_errand->next = w;
    } else {
        first_errand = w;
    }
    last_errand = w;
    arm();
}

bool ff_claim_serve(ValkeyModuleCtx *ctx, const ff_claim_order *order, bool keyed, ff_answer *list,
                    const ff_claim_teller *teller) {
    int flags = ValkeyModule_GetContextFlags(ctx);
    bool enclosed = flags & (VALKEYMODULE_CTX_FLAGS_MULTI | VALKEYMODULE_CTX_FLAGS_LUA |
                             VALKEYMODULE_CTX_FLAGS_DENY_BLOCKING);
    if (keyed && flags & VALKEYMODULE_CTX_FLAGS_CLUSTER) {
        run_errand(ctx, order, teller);
        return false;
    }
    /* Those who have waited come first. */
    if (stirred_count && !enclosed) serve(ctx);
    ff_claim_search search;
    search.places = ff_arena_zeroed(&list->txn->arena, order->lane_count * sizeof *search.places);
    ff_claim_search_begin(&search, order);
    if (ff_claim_run(ctx, order, &search, list) || !order->waits || enclosed) return true;
    join_group(block(ctx, order, teller), !search.exhausted, search.retry_at);
    return false;
}
