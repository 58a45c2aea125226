#include "scan/runner.h"

#include <math.h>

#include "config.h"
#include "permission.h"
#include "scan/change.h"
#include "scan/dispatch.h"
#include "scan/due.h"
#include "store/server_event.h"
#include "worker_registry.h"

enum {
    SPREAD_MS = 20,       /* between the first rounds of two scanners */
    INTERVAL_LEAST = 100, /* shorter intervals count as this */
    GRID_MS = 250,      /* rounds start at multiples of this, so that an idle server seldom wakes */
    FORBIDDEN_MS = 250, /* until the next look whether writing is allowed */
    NUDGE_MS = 1,       /* from a nudge to the round: more nudges may come */
    BURST = 8,          /* ticks that follow each other as closely as can be */
};

/* One scanner at work. */
typedef struct job {
    ff_scan round;
    ff_scan prompt; /* over one index that is due */
    bool in_round;
    bool in_prompt;
    bool paused;
    bool nudged;
    double next_at; /* start of the next round */
    ff_backoff backoff;
    uint64_t round_us; /* of the round so far */
    ff_scanner_status status;
} job;

static job jobs[FF_SCANNER_COUNT];
static ff_runner_totals totals;
static ValkeyModuleCtx *background; /* to set timers from anywhere */
static ValkeyModuleTimerID timer;
static bool timer_is_set;
static double timer_at;
static bool is_on;       /* what the jobs were last started or stopped for */
static size_t first_job; /* whose turn is the first of the next tick */
static bool ticking;
static uint64_t workers_seen; /* generation of the registry at the last tick */
static unsigned burst;        /* ticks in a row that have left work */
static bool hurried;          /* the next is to come at once */
static bool hears_sleep;

static double wall_clock(void) { return (double)ValkeyModule_Milliseconds(); }

/* The time that transactions of the same tick have: what is due by another clock would be visited in vain. */
static double tick_clock(void) { return (double)(ValkeyModule_CachedMicroseconds() / 1000); }

/* ---- The timer ---- */

static void tick(ValkeyModuleCtx *ctx, void *data);

static void set_timer(double at) {
    if (background == NULL || (timer_is_set && timer_at <= at)) return;
    if (timer_is_set) ValkeyModule_StopTimer(background, timer, NULL);
    double wait = ceil(at - wall_clock());
    timer = ValkeyModule_CreateTimer(background, wait > 0 ? (mstime_t)wait : 0, tick, NULL);
    timer_at = at;
    timer_is_set = true;
}

/* A module with a timer cannot be unloaded. */
static void stop_timer(void) {
    if (timer_is_set) ValkeyModule_StopTimer(background, timer, NULL);
    timer_is_set = false;
}

/* A timer that is set by a timer comes a millisecond later, whatever it was set to. When there is much to do it is set
 * once more before the server sleeps: clients have their turn, and then the next tick comes at once. But not always, so
 * that a client who waits for one answer before the next question gets on, too. In a burst a request may have to wait
 * for one tick and its answer for the next, so that each takes half of the time that a client can be held up. */
static void on_before_sleep(ValkeyModuleCtx *ctx, ValkeyModuleEvent event, uint64_t sub,
                            void *data) {
    (void)ctx;
    (void)event;
    (void)data;
    if (sub != VALKEYMODULE_SUBEVENT_EVENTLOOP_BEFORE_SLEEP || !hurried) return;
    hurried = false;
    if (!timer_is_set || timer_at > 0) return;
    stop_timer();
    set_timer(0);
}

static void hurry(void) {
    hurried = burst++ % BURST < BURST - 1;
    if (hears_sleep) return;
    hears_sleep = true;
    ValkeyModule_SubscribeToServerEvent(background, ValkeyModuleEvent_EventLoop, on_before_sleep);
}

/* Every turn of the server's loop costs something while it is heard of. Not to be called when it is told: the server
 * would not survive that. */
static void calm_down(void) {
    burst = 0;
    hurried = false;
    if (!hears_sleep) return;
    hears_sleep = false;
    ValkeyModule_SubscribeToServerEvent(background, ValkeyModuleEvent_EventLoop, NULL);
}

void ff_runner_wake(double at) {
    if (!ticking) set_timer(at);
}

/* ---- Rounds ---- */

static bool is_enabled(ff_scanner_id id) {
    return is_on && !jobs[id].paused && ff_config.scanner_interval_ms[id] > 0;
}

static double interval_of(ff_scanner_id id) {
    return fmax((double)ff_config.scanner_interval_ms[id], INTERVAL_LEAST);
}

/* A clock that was set back must not stop the schedule. */
static double next_round_at(ff_scanner_id id, double now) {
    double latest = now + interval_of(id);
    if (jobs[id].next_at > latest) jobs[id].next_at = latest;
    return jobs[id].next_at;
}

static void start_round(ff_scanner_id id, double now) {
    job *j = &jobs[id];
    ff_scope scope = FF_SCOPE_ALL;
    scope.changed_only = ff_scanners[id].by_change;
    ff_scan_begin(&j->round, &ff_scanners[id], &j->backoff, &scope);
    j->in_round = true;
    j->nudged = false;
    j->round_us = 0;
    j->status.last_started_at = now;
    j->next_at = fmax(j->next_at + interval_of(id), now + 1);
}

static void note_end(job *j, const ff_scan *scan, uint64_t us, double now) {
    ff_backoff_next_round(&j->backoff);
    j->status.cycles++;
    j->status.last_us = us;
    if (us > j->status.longest_us) j->status.longest_us = us;
    j->status.backlog = scan->left;
    j->status.entries = scan->entries;
    j->status.oldest_age_ms = scan->left && scan->oldest < now ? now - scan->oldest : 0;
}

static uint64_t clock_us(void) { return ValkeyModule_MonotonicMicroseconds(); }

/* Takes over what a scan has counted since the last time. */
static void collect(job *j, ff_scan *scan) {
    ff_tally_add(&j->status.totals, &scan->tally);
    scan->tally = (ff_tally){0};
}

static bool step_round(ff_scanner_id id, ValkeyModuleCtx *ctx, uint64_t deadline) {
    job *j = &jobs[id];
    uint64_t began = clock_us();
    ff_scan_state state = ff_scan_step(&j->round, ctx, (uint64_t)ff_config.scan_batch, deadline);
    j->round_us += clock_us() - began;
    collect(j, &j->round);
    if (state == FF_SCAN_ENDED) {
        j->in_round = false;
        note_end(j, &j->round, j->round_us, wall_clock());
    } else if (clock_us() >= deadline) {
        j->status.slices_cut++;
    }
    return state == FF_SCAN_MORE;
}

/* Works on indexes that are due, one after the other. */
static bool step_prompt(ff_scanner_id id, ValkeyModuleCtx *ctx, double now, uint64_t deadline) {
    job *j = &jobs[id];
    ff_due_place place;
    if (!j->in_prompt) {
        ff_index index = ff_scanners[id].indexes[0];
        if (!ff_due_next(index, now, &place)) return false;
        if (!ff_presence_maybe(index, place.lane, place.partition)) {
            ff_due_handled(ctx, index, place.lane, place.partition, now);
            return true;
        }
        ff_scope scope = {.partition = place.partition, .lane = place.lane};
        ff_scan_begin(&j->prompt, &ff_scanners[id], &j->backoff, &scope);
        ff_scan_start_at(&j->prompt, place.from);
        j->in_prompt = true;
    }
    ff_scan_state state = ff_scan_step(&j->prompt, ctx, (uint64_t)ff_config.scan_batch, deadline);
    collect(j, &j->prompt);
    if (state == FF_SCAN_ENDED) j->in_prompt = false;
    if (state == FF_SCAN_MORE && clock_us() >= deadline) j->status.slices_cut++;
    return state != FF_SCAN_STUCK;
}

/* One scanner's turn; true when it may have more to do at once. */
static bool take_turn(ff_scanner_id id, ValkeyModuleCtx *ctx, double now, uint64_t deadline) {
    job *j = &jobs[id];
    const ff_scanner *s = &ff_scanners[id];
    if (!is_enabled(id)) return false;
    if (s->kind == FF_SCAN_DUE && s->prompt && step_prompt(id, ctx, now, deadline)) return true;
    if (!j->in_round && next_round_at(id, now) <= now) start_round(id, now);
    return j->in_round && step_round(id, ctx, deadline);
}

/* Everybody's turn, until nobody has anything to do or the time is up; true when work is left. */
static bool take_turns(ValkeyModuleCtx *ctx, double now, uint64_t deadline) {
    size_t idle = 0; /* how many in a row had nothing to do */
    ff_due_refresh(ctx, deadline);
    while (idle < FF_SCANNER_COUNT || ff_dispatch_is_waiting()) {
        ff_scanner_id id = (ff_scanner_id)(first_job++ % FF_SCANNER_COUNT);
        if (ff_dispatch_is_waiting()) ff_dispatch_work(ctx, deadline);
        idle = take_turn(id, ctx, now, deadline) ? 0 : idle + 1;
        if (clock_us() >= deadline) return true;
    }
    return false;
}

/* ---- Ticks ---- */

static double on_grid(double at) {
    double grid = GRID_MS;
    for (ff_scanner_id id = 0; id < FF_SCANNER_COUNT; id++) {
        if (is_enabled(id)) grid = fmin(grid, interval_of(id));
    }
    return ceil(at / grid) * grid;
}

static double next_work_at(ff_scanner_id id, double now) {
    const ff_scanner *s = &ff_scanners[id];
    double round = next_round_at(id, now);
    if (!jobs[id].nudged) round = on_grid(round);
    /* A round that is under way and not stuck would have left work. */
    if (jobs[id].in_round) round = now + FORBIDDEN_MS;
    if (s->kind != FF_SCAN_DUE || !s->prompt) return round;
    return fmin(round, fmax(ff_due_earliest(s->indexes[0]), now + 1));
}

static double next_tick_at(double now) {
    double at = INFINITY;
    for (ff_scanner_id id = 0; id < FF_SCANNER_COUNT; id++) {
        if (!is_enabled(id)) continue;
        at = fmin(at, next_work_at(id, now));
    }
    return is_on && ff_due_is_marked() ? fmin(at, now + FF_DUE_DELAY_MS) : at;
}

static void count_tick(uint64_t began) {
    uint64_t us = clock_us() - began;
    totals.ticks++;
    totals.busy_us += us;
    if (us > totals.longest_tick_us) totals.longest_tick_us = us;
    if (us >= 1000) ValkeyModule_LatencyAddSample("ff-tick", (mstime_t)(us / 1000));
}

/* A worker that was not here before may be the one that some execution waits for. */
static void look_at_workers(double now) {
    uint64_t generation = ff_workers_generation();
    if (generation == workers_seen) return;
    workers_seen = generation;
    jobs[FF_SCANNER_UNBLOCK].next_at = fmin(jobs[FF_SCANNER_UNBLOCK].next_at, now);
}

static void tick(ValkeyModuleCtx *ctx, void *data) {
    (void)data;
    uint64_t began = clock_us();
    double now = tick_clock();
    timer_is_set = false;
    if (ff_permission_of_node(ctx) == FF_MAY_NOT) {
        if (is_on || ff_dispatch_is_waiting()) set_timer(now + FORBIDDEN_MS);
        calm_down();
        return;
    }
    look_at_workers(now);
    ticking = true;
    bool work_left = take_turns(ctx, now, began + (uint64_t)ff_config.scanner_slice_us / 2);
    ticking = false;
    count_tick(began);
    double at = work_left ? 0 : next_tick_at(wall_clock());
    if (at < INFINITY) set_timer(at);
    if (work_left) {
        hurry();
    } else {
        calm_down();
    }
}

/* ---- Starting and stopping ---- */

static void forget(void) {
    for (ff_scanner_id id = 0; id < FF_SCANNER_COUNT; id++) {
        jobs[id].in_round = false;
        jobs[id].in_prompt = false;
        ff_backoff_reset(&jobs[id].backoff);
    }
    ff_due_stop();
    ff_dispatch_forget();
}

static void start(void) {
    double now = wall_clock();
    forget();
    ff_change_everywhere();
    for (ff_scanner_id id = 0; id < FF_SCANNER_COUNT; id++) {
        jobs[id].next_at = now + (double)id * SPREAD_MS;
    }
    ff_due_start();
    set_timer(now);
}

static void make_lanes(void) {
    ff_text rest = ff_config.lanes;
    ff_text lane;
    if (rest.len == 0) return;
    while (ff_text_split(&rest, ',', &lane)) ff_lane_make(ff_text_trim(lane));
}

bool ff_runner_lanes_are_valid(ff_text text) {
    ff_text lane;
    if (text.len == 0) return true;
    while (ff_text_split(&text, ',', &lane)) {
        if (!ff_lane_is_valid(ff_text_trim(lane))) return false;
    }
    return true;
}

void ff_runner_apply(ValkeyModuleCtx *ctx) {
    (void)ctx;
    if (background == NULL) return;
    make_lanes();
    if (is_on != (ff_config.scanners != 0)) {
        is_on = ff_config.scanners;
        if (is_on) {
            start();
        } else {
            forget();
            stop_timer();
            calm_down();
        }
    }
    if (is_on) set_timer(wall_clock());
}

static void on_index_write(ff_index index, ff_lane *lane, uint16_t partition) {
    if (!is_on) return;
    if (ff_due_watches(index)) {
        bool first = !ff_due_is_marked();
        ff_due_mark(index, lane, partition);
        if (first && !ticking) set_timer(wall_clock() + FF_DUE_DELAY_MS);
    } else if (index == FF_INDEX_PENDING_CANCEL_GROUPS) {
        ff_runner_nudge(FF_SCANNER_EDGE_CANCEL_DISPATCHER);
    }
}

void ff_runner_nudge(ff_scanner_id id) {
    if (!is_enabled(id)) return;
    double at = wall_clock() + NUDGE_MS;
    if (jobs[id].next_at <= at) return;
    jobs[id].next_at = at;
    jobs[id].nudged = true;
    ff_runner_wake(at);
}

static void on_role_change(ValkeyModuleCtx *ctx, uint64_t sub, void *data) {
    (void)ctx;
    (void)sub;
    (void)data;
    if (is_on) {
        start();
    } else {
        ff_dispatch_forget();
    }
}

int ff_runner_load(ValkeyModuleCtx *ctx) {
    background = ValkeyModule_GetDetachedThreadSafeContext(ctx);
    ff_change_load();
    ff_presence_listen(on_index_write);
    ff_server_event_hear(ctx, ValkeyModuleEvent_ReplicationRoleChanged, on_role_change);
    ff_runner_apply(ctx);
    return VALKEYMODULE_OK;
}

void ff_runner_unload(void) {
    forget();
    for (ff_scanner_id id = 0; id < FF_SCANNER_COUNT; id++) {
        ff_scan_free(&jobs[id].round);
        ff_scan_free(&jobs[id].prompt);
    }
    ff_change_unload();
    if (background) ValkeyModule_FreeThreadSafeContext(background);
    background = NULL;
}

/* ---- For commands ---- */

void ff_runner_pause(ff_scanner_id id, bool paused) {
    double now = wall_clock();
    jobs[id].paused = paused;
    if (paused || !is_on) return;
    jobs[id].next_at = fmin(jobs[id].next_at, now);
    set_timer(now);
}

void ff_runner_run(ValkeyModuleCtx *ctx, ff_scanner_id id, const ff_scope *scope, ff_tally *sum) {
    job *j = &jobs[id];
    ff_scan scan = {0};
    uint64_t began = clock_us();
    ff_scan_begin(&scan, &ff_scanners[id], &j->backoff, scope);
    ff_scan_state state = ff_scan_step(&scan, ctx, UINT64_MAX, 0);
    ff_tally_add(sum, &scan.tally);
    ff_tally_add(&j->status.totals, &scan.tally);
    bool whole = scope->partition < 0 && !scope->lane && !scope->indexes;
    if (state == FF_SCAN_ENDED && whole) {
        j->status.last_started_at = wall_clock();
        note_end(j, &scan, clock_us() - began, wall_clock());
    }
    ff_scan_free(&scan);
}

static const char *state_of(ff_scanner_id id) {
    if (jobs[id].paused) return "paused";
    if (!is_enabled(id)) return "off";
    return jobs[id].in_round ? "running" : "waiting";
}

ff_scanner_status ff_runner_status(ff_scanner_id id) {
    ff_scanner_status status = jobs[id].status;
    status.name = ff_scanner_name(id);
    status.state = state_of(id);
    status.interval_ms = ff_config.scanner_interval_ms[id];
    status.failing = ff_backoff_count(&jobs[id].backoff);
    return status;
}

ff_runner_totals ff_runner_sum(void) { return totals; }
