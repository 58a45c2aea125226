#include "claim/waiter.h"

#include <math.h>
#include <string.h>

#include "claim/lapse.h"
#include "claim/trail.h"
#include "counters.h"
#include "permission.h"

enum {
    SLICE_US = 1000, /* how long waiters are served before clients are */
    REFUSED_MS = 50, /* until the next attempt while the server takes no writes */
    HOME_MS = 1000,  /* between two looks at whether a partition is still served here */
    LONG_US = 10000, /* a pursuit that took longer is followed by a rest of REST times as long */
    REST = 9,
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
    ff_claim_search look; /* what one call sees */
    bool stirred;         /* there may be something for it */
    bool written;         /* to one of its queues, since the look began */
    /* What a look leaves out is searched bit by bit, to the end. */
    ff_claim_search pursuit;
    enum { IDLE, DUE, UNDER_WAY } pursued;
    bool again; /* the pursuit under way may miss something by now */
    double pursue_at;
    uint64_t spent; /* on the pursuit, in microseconds */
    double retry_at;
    double home_at; /* when to ask whether the partition is still served here */
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

static double home_at(const group *g, double now) {
    bool bound = !ff_text_is_absent(g->order.partition_tag) &&
                 ValkeyModule_GetContextFlags(own_ctx) & VALKEYMODULE_CTX_FLAGS_CLUSTER;
    return bound ? now + HOME_MS : INFINITY;
}

static group *make_group(const ff_claim_order *order) {
    group *g = ValkeyModule_Calloc(1, sizeof *g);
    ff_arena_init(&g->arena, NULL, 0);
    ff_claim_order_copy(&g->arena, order, &g->order);
    ff_claim_search_make(&g->look, order, &g->arena);
    ff_claim_search_make(&g->pursuit, order, &g->arena);
    g->retry_at = INFINITY;
    g->home_at = home_at(g, clock_now());
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
    ff_claim_search_end(&g->look);
    ff_claim_search_end(&g->pursuit);
    ff_arena_release(&g->arena);
    ValkeyModule_Free(g);
}

static void stir(group *g) {
    g->written = true;
    if (!g->stirred) stirred_count++;
    g->stirred = true;
    arm();
}

static void calm(group *g) {
    if (g->stirred) stirred_count--;
    g->stirred = false;
}

/* A look was cut short. */
static void pursue_later(group *g) {
    if (g->pursued == UNDER_WAY) {
        g->again = true;
    } else {
        g->pursued = DUE;
    }
}

static group *older(group *a, group *b) { return a && a->first->number < b->first->number ? a : b; }

static group *oldest_stirred(void) {
    group *oldest = NULL;
    for (group *g = stirred_count ? first_group : NULL; g != NULL; g = g->next) {
        if (g->stirred) oldest = older(oldest, g);
    }
    return oldest;
}

static group *oldest_pursued(double now) {
    group *oldest = NULL;
    for (group *g = first_group; g != NULL; g = g->next) {
        if (g->pursued != IDLE && g->pursue_at <= now) oldest = older(oldest, g);
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

/* `seen` is the search that has found nothing for it. */
static void join_group(waiter *w, const ff_claim_search *seen) {
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
    g->retry_at = fmin(g->retry_at, seen->retry_at);
    if (!seen->exhausted) pursue_later(g);
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

/* Searches for the first waiter of a group. True when it was served: the group may be gone. */
static bool serve_first(ValkeyModuleCtx *ctx, group *g, ff_claim_search *search,
                        const ff_claim_bounds *bounds) {
    waiter *w = g->first;
    begin_answer(w, ctx);
    ff_count(FF_COUNT_CLAIM_WAKEUPS);
    if (ff_claim_run(ctx, &w->order, search, bounds, &w->answer)) {
        ff_count(FF_COUNT_CLAIM_SERVED);
        unblock(w);
        return true;
    }
    drop_answer(w);
    return false;
}

/* Those who want one partition wait where it is. No event tells that it was moved to another node of the cluster:
 * they are asked to look for it. */
static bool has_moved(ValkeyModuleCtx *ctx, const group *g) {
    const ff_claim_order *order = &g->order;
    return !ff_text_is_absent(order->partition_tag) &&
           !ff_partition_is_served(ctx, (ff_partition){FF_FAMILY_FLOW, order->partition});
}

static void dismiss(group *g) {
    waiter *next;
    for (waiter *w = g->first; w != NULL; w = next) {
        next = w->next;
        unblock(w);
    }
}

static void look(ValkeyModuleCtx *ctx, group *g) {
    if (has_moved(ctx, g)) {
        dismiss(g);
        return;
    }
    ff_claim_bounds bounds = ff_claim_bounds_configured();
    ff_claim_search_begin(&g->look, &g->first->order);
    g->written = false;
    if (serve_first(ctx, g, &g->look, &bounds)) return;
    g->retry_at = fmin(g->retry_at, g->look.retry_at);
    if (g->look.exhausted) {
        g->pursued = IDLE;
    } else {
        pursue_later(g);
    }
    if (!g->written) calm(g);
}

static void end_pursuit(group *g) {
    g->retry_at = fmin(g->retry_at, g->pursuit.retry_at);
    g->pursued = g->again || g->pursuit.skipped ? DUE : IDLE;
    if (g->spent > LONG_US) g->pursue_at = clock_now() + (double)g->spent * REST / 1000;
}

static void pursue(ValkeyModuleCtx *ctx, group *g) {
    ff_claim_bounds bounds = ff_claim_bounds_configured();
    bounds.thorough = true;
    if (g->pursued == DUE) {
        ff_claim_search_begin(&g->pursuit, &g->first->order);
        g->pursued = UNDER_WAY;
        g->again = false;
        g->spent = 0;
    }
    uint64_t began = ValkeyModule_MonotonicMicroseconds();
    if (serve_first(ctx, g, &g->pursuit, &bounds)) return;
    g->spent += ValkeyModule_MonotonicMicroseconds() - began;
    if (g->pursuit.exhausted) end_pursuit(g);
}

static void stir_by_time(ValkeyModuleCtx *ctx, double now) {
    ff_lapse_refresh(ctx, now);
    bool lapsed = ff_lapse_take_news();
    for (group *g = first_group; g != NULL; g = g->next) {
        if (lapsed || fmin(g->retry_at, g->home_at) <= now) {
            g->retry_at = INFINITY;
            g->home_at = home_at(g, now);
            stir(g);
        }
    }
}

static double next_alarm(void) {
    double at = group_count ? ff_lapse_after_now() : INFINITY;
    for (const group *g = first_group; g != NULL; g = g->next) {
        at = fmin(at, fmin(g->retry_at, g->home_at));
        if (g->pursued != IDLE && g->pursue_at > clock_now()) at = fmin(at, g->pursue_at);
    }
    return at;
}

static void serve_errand(ValkeyModuleCtx *ctx) {
    waiter *w = first_errand;
    ff_claim_search search;
    ff_claim_search_make(&search, &w->order, &w->arena);
    ff_claim_search_begin(&search, &w->order);
    begin_answer(w, ctx);
    if (ff_trail_run(ctx, &w->order, &search, &w->answer) || !w->order.waits) {
        unblock(w);
    } else {
        drop_answer(w);
        leave_errands(w);
        join_group(w, &search);
    }
    ff_claim_search_end(&search);
}

/* Looks for those who are stirred, then pursues: at least one step, so that it comes to an end. */
static void serve_groups(ValkeyModuleCtx *ctx) {
    uint64_t deadline = ValkeyModule_MonotonicMicroseconds() + SLICE_US;
    bool late = false;
    group *g;
    while (!late && (g = oldest_stirred())) {
        look(ctx, g);
        late = ValkeyModule_MonotonicMicroseconds() >= deadline;
    }
    while ((g = oldest_pursued(clock_now()))) {
        pursue(ctx, g);
        if (ValkeyModule_MonotonicMicroseconds() >= deadline) break;
    }
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
    bool armed_before = armed;
    armed = true; /* what is written meanwhile is seen below */
    if (group_count) stir_by_time(ctx, clock_now());
    serve_groups(ctx);
    while (first_errand) serve_errand(ctx);
    armed = armed_before;
    if (group_count) ff_lapse_refresh(ctx, clock_now());
    set_alarm(next_alarm());
    if (stirred_count || oldest_pursued(clock_now())) arm_after_clients();
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
    ff_claim_search_make(&search, order, &list->txn->arena);
    ff_claim_search_begin(&search, order);
    bool done = ff_trail_run(ctx, order, &search, list) || !order->waits || enclosed;
    if (!done) join_group(block(ctx, order, teller), &search);
    ff_claim_search_end(&search);
    return done;
}
