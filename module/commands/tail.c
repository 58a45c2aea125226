#include "commands/tail.h"

#include "base/number.h"
#include "engine/frame.h"
#include "engine/keyname.h"
#include "watch.h"

/* Everything about one reading. */
typedef struct reading {
    ff_txn *t;
    const ff_tail *tail;
    ff_subject s;
    ff_str *stream, *meta, *attempt;
    ff_answer *answer;
} reading;

static reading start(ff_txn *t, const ff_tail *tail) {
    reading g = {.t = t, .tail = tail};
    ff_text tag = ff_text_tag(ff_str_text(tail->execution_id));
    ff_text id = ff_str_text(tail->execution_id);
    ff_text index = ff_str_text(tail->index);
    ff_subject_open(t, tag, tail->execution_id, &g.s);
    g.attempt = ff_keyname_attempt(t, tag, id, index, "");
    g.meta = ff_keyname_stream_meta(t, tag, id, index);
    ff_text name = ff_str_text(g.meta);
    g.stream = ff_str_make(t, ff_text_slice(name, 0, name.len - FF_TEXT(":meta").len));
    return g;
}

static bool is_best_effort(const ff_value *fields) {
    for (size_t i = 0; i + 1 < fields->count; i += 2) {
        if (ff_str_is(fields->items[i].str, W(mode))) {
            return ff_str_is(fields->items[i + 1].str, W(best_effort));
        }
    }
    return false;
}

static void answer_frame(ff_answer *list, const ff_value *entry) {
    const ff_value *fields = &entry->items[1];
    ff_answer *map = ff_answer_add(list);
    ff_answer_become_map(map);
    ff_answer_text(map, "id", entry->items[0].str);
    ff_answer *named = ff_answer_member(map, FF_TEXT("fields"));
    ff_answer_become_map(named);
    for (size_t i = 0; i + 1 < fields->count; i += 2) {
        ff_answer *value = ff_answer_member(named, ff_str_text(fields->items[i].str));
        ff_answer_become_text(value, fields->items[i + 1].str);
    }
}

static void answer_frames(reading *g, const ff_value *entries) {
    ff_answer *list = ff_answer_member(g->answer, FF_TEXT("entries"));
    ff_answer_become_list(list);
    for (size_t i = 0; i < entries->count; i++) {
        const ff_value *entry = &entries->items[i];
        if (g->tail->without_best_effort && is_best_effort(&entry->items[1])) continue;
        answer_frame(list, entry);
    }
}

/* Where the next reading goes on. */
static ff_str *next_from(reading *g, const ff_value *entries) {
    if (entries->count == 0) return g->tail->from;
    ff_str *last = entries->items[entries->count - 1].items[0].str;
    return FF_CONCAT(g->t, FF_TEXT("("), ff_str_text(last));
}

typedef struct closing {
    ff_str *at, *reason;
} closing;

/* A stream that was never begun ends with its attempt, or with the execution. */
static closing find_closing(reading *g) {
    ff_key *meta = ff_hash_open(g->t, g->meta);
    ff_str *at = ff_hash_get(meta, W(closed_at));
    if (ff_str_is_set(at)) return (closing){at, ff_hash_get(meta, W(closed_reason))};
    ff_key *attempt = ff_hash_open(g->t, g->attempt);
    at = ff_hash_get(attempt, W(ended_at));
    if (ff_str_is_set(at)) return (closing){at, ff_hash_get(attempt, W(attempt_state))};
    if (!ff_str_is(ff_hash_get(g->s.core, W(lifecycle_phase)), W(terminal))) return (closing){0};
    return (closing){ff_hash_get(g->s.core, W(completed_at)),
                     ff_hash_get(g->s.core, W(terminal_outcome))};
}

bool ff_tail_read(ff_txn *t, const ff_tail *tail, ff_answer *answer, ff_result *result) {
    reading g = start(t, tail);
    g.answer = answer;
    if (!ff_key_exists(g.s.core)) {
        ff_refuse(result, FF_EXECUTION_NOT_FOUND);
        return true;
    }
    ff_frame_read_args args = {tail->from, ff_str_make(t, FF_TEXT("+")),
                               ff_str_integer(t, tail->count), NULL};
    ff_frame_read(t, &(ff_frame_read_keys){g.stream, g.meta}, &args, result);
    if (result->code != FF_OK) return true;
    const ff_value *entries = &result->values[0];
    closing end = find_closing(&g);
    ff_answer_become_map(answer);
    answer_frames(&g, entries);
    ff_answer_text(answer, "next", next_from(&g, entries));
    ff_answer_number(answer, "closed_at", end.at);
    ff_answer_text(answer, "closed_reason", ff_str_is_set(end.reason) ? end.reason : NULL);
    return entries->count > 0 || end.at != NULL;
}

/* ---- Waiting ---- */

typedef struct waiter {
    ff_tail tail;
    ff_str *core;
    bool had_stream;
    struct waiter *next;
    struct waiter **link; /* the pointer that points here */
} waiter;

static waiter *waiters;

static waiter *new_waiter(const reading *g) {
    const ff_tail *from = g->tail;
    waiter *w = ValkeyModule_Alloc(sizeof *w);
    *w = (waiter){.tail = *from, .next = waiters, .link = &waiters};
    w->tail.execution_id = ValkeyModule_CreateStringFromString(NULL, from->execution_id);
    w->tail.index = ValkeyModule_CreateStringFromString(NULL, from->index);
    w->tail.from = ValkeyModule_CreateStringFromString(NULL, from->from);
    w->core = ValkeyModule_CreateStringFromString(NULL, g->s.core_name);
    w->had_stream = ff_key_exists(ff_any_open(g->t, g->stream));
    if (waiters) waiters->link = &w->next;
    waiters = w;
    return w;
}

static void forget(ValkeyModuleCtx *ctx, void *data) {
    (void)ctx;
    waiter *w = data;
    *w->link = w->next;
    if (w->next) w->next->link = w->link;
    ValkeyModule_FreeString(NULL, w->tail.execution_id);
    ValkeyModule_FreeString(NULL, w->tail.index);
    ValkeyModule_FreeString(NULL, w->tail.from);
    ValkeyModule_FreeString(NULL, w->core);
    ValkeyModule_Free(w);
}

/* Whoever tails a stream that somebody deletes is told, and may ask again. */
static bool has_lost_stream(ff_txn *t, const waiter *w) {
    if (!w->had_stream) return false;
    reading g = start(t, &w->tail);
    return !ff_key_exists(ff_any_open(t, g.stream));
}

/* Replies if the reader need not wait any longer, or must not. */
static int answer_waiting(ValkeyModuleCtx *ctx, bool time_is_up) {
    const waiter *w = ValkeyModule_GetBlockedClientPrivateData(ctx);
    ff_request r;
    ff_request_begin(&r, ctx, NULL, 0, 0, true);
    bool over = ff_tail_read(&r.txn, &w->tail, &r.answer, &r.result) || has_lost_stream(&r.txn, w);
    ff_txn_discard(&r.txn);
    bool replied = over || time_is_up || ff_txn_error(&r.txn);
    if (replied) ff_request_reply(&r);
    ff_txn_end(&r.txn);
    return replied ? VALKEYMODULE_OK : VALKEYMODULE_ERR;
}

static int on_ready(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    (void)argv;
    (void)argc;
    return answer_waiting(ctx, false);
}

static int on_timeout(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    (void)argv;
    (void)argc;
    return answer_waiting(ctx, true);
}

void ff_tail_wait(ValkeyModuleCtx *ctx, const ff_tail *tail, int64_t timeout_ms) {
    ff_txn t;
    ff_txn_begin(&t, ctx, true);
    reading g = start(&t, tail);
    ValkeyModuleString *keys[] = {g.stream, g.meta, g.attempt, g.s.core_name};
    ValkeyModule_BlockClientOnKeysWithFlags(ctx, on_ready, on_timeout, forget, timeout_ms, keys,
                                            sizeof keys / sizeof *keys, new_waiter(&g),
                                            VALKEYMODULE_BLOCK_UNBLOCK_DELETED);
    ff_txn_discard(&t);
    ff_txn_end(&t);
}

/* The server itself wakes those who wait for a stream or list only. */
static void on_write(ValkeyModuleCtx *ctx, ValkeyModuleString *key) {
    if (waiters) ValkeyModule_SignalKeyAsReady(ctx, key);
}

static void on_vanishing(ValkeyModuleCtx *ctx) {
    for (const waiter *w = waiters; w != NULL; w = w->next) {
        ValkeyModule_SignalKeyAsReady(ctx, w->core);
    }
}

void ff_tail_load(void) {
    ff_watch_writes(on_write);
    ff_watch_vanishing(on_vanishing);
}
