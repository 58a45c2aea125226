#include "scan/dispatch.h"

#include "base/id.h"
#include "config.h"
#include "counters.h"
#include "engine/completion.h"
#include "engine/keyname.h"
#include "permission.h"
#include "presence.h"
#include "scan/member.h"
#include "scan/runner.h"
#include "store/walk.h"

enum { QUEUE_MOST = 100000, EDGES_AT_ONCE = 64 };

/* A member that ended; the edges that leave it are walked in slices. */
typedef struct item {
    struct item *next;
    ff_str *execution_id;
    ff_str *flow_id;
    ff_walk edges;
    bool looked_at;
    ff_str *outcome;
} item;

typedef struct queue {
    item *first;
    item *last;
    uint64_t length;
} queue;

static queue waiting;

static void append(queue *q, item *added) {
    if (q->last) {
        q->last->next = added;
    } else {
        q->first = added;
    }
    q->last = added;
    q->length++;
}

static item *make_item(const ff_ended *ended) {
    item *made = ValkeyModule_Calloc(1, sizeof *made);
    made->execution_id = ValkeyModule_CreateStringFromString(NULL, ended->execution_id);
    made->flow_id = ValkeyModule_CreateStringFromString(NULL, ended->flow_id);
    return made;
}

static void drop_first(queue *q) {
    item *gone = q->first;
    q->first = gone->next;
    if (q->first == NULL) q->last = NULL;
    q->length--;
    ff_walk_free(&gone->edges);
    ValkeyModule_FreeString(NULL, gone->execution_id);
    ValkeyModule_FreeString(NULL, gone->flow_id);
    if (gone->outcome) ValkeyModule_FreeString(NULL, gone->outcome);
    ValkeyModule_Free(gone);
}

/* The members that a transaction ended, in the order in which they did. The list has the last first. */
static void append_ended(queue *q, const ff_ended *ended) {
    queue reversed = {0};
    for (; ended; ended = ended->next) {
        if (ended->execution_id == NULL) continue;
        item *made = make_item(ended);
        made->next = reversed.first;
        reversed.first = made;
    }
    while (reversed.first) {
        item *moved = reversed.first;
        reversed.first = moved->next;
        moved->next = NULL;
        append(q, moved);
    }
}

/* ---- Working on one member ---- */

typedef struct place {
    char tag[FF_TAG_MAX];
    ff_text tag_text;
    ff_partition partition;
} place;

/* Told once: the data is not going to get better. */
static void note_misplaced(ValkeyModuleCtx *ctx, const item *i) {
    static bool told;
    ff_count(FF_COUNT_DISPATCH_MISPLACED);
    if (told) return;
    told = true;
    char room[256];
    ff_arena arena;
    ff_arena_init(&arena, room, sizeof room);
    ff_text shown = ff_arena_printable(&arena, ff_str_text(i->flow_id));
    ValkeyModule_Log(ctx, "warning",
                     "dispatch: a member of flow %.*s, or what waits for it, is not of the flow's "
                     "partition; further ones are only counted",
                     FF_TEXT_ARGS(shown));
    ff_arena_release(&arena);
}

/* Flow and member must be of one partition: where they are not nothing can be resolved. */
static bool find_place(const item *i, place *p) {
    ff_reference id;
    ff_uuid flow;
    if (!ff_execution_id_parse(ff_str_text(i->execution_id), &id)) return false;
    if (!ff_uuid_parse(ff_str_text(i->flow_id), &flow)) return false;
    uint16_t number = ff_partition_of_uuid(&flow, ff_partition_count(FF_FAMILY_FLOW));
    p->partition = (ff_partition){FF_FAMILY_FLOW, number};
    p->tag_text = ff_text_make(p->tag, ff_tag_format(p->partition, p->tag));
    return ff_text_equal(id.tag, p->tag_text);
}

/* Whether the member is still what it was when it was queued; a replay in between makes it live again. */
static bool look_at(ValkeyModuleCtx *ctx, item *i, const place *p) {
    ff_txn t;
    if (i->looked_at) return i->outcome != NULL;
    ff_txn_begin(&t, ctx, true);
    ff_str *outcome = ff_member_outcome(&t, p->tag_text, ff_str_text(i->execution_id));
    if (outcome) i->outcome = ValkeyModule_CreateStringFromString(NULL, outcome);
    i->looked_at = true;
    ff_txn_discard(&t);
    ff_txn_end(&t);
    return i->outcome != NULL;
}

static ff_walk_state take_edges(ValkeyModuleCtx *ctx, item *i, const place *p) {
    ff_txn t;
    ff_txn_begin(&t, ctx, true);
    ff_str *name = ff_keyname_flow(&t, p->tag_text, ff_str_text(i->flow_id),
                                   "out:", ff_str_text(i->execution_id));
    ff_walk_state state = ff_walk_set(&i->edges, ctx, name, EDGES_AT_ONCE);
    ff_txn_discard(&t);
    ff_txn_end(&t);
    return state;
}

static ff_verdict resolve(ValkeyModuleCtx *ctx, ff_txn *t, const item *i, const place *p,
                          ff_str *edge_id) {
    ff_result result = {.txn = t};
    ff_uuid uuid;
    if (!ff_uuid_parse(ff_str_text(edge_id), &uuid)) return FF_DISCARD;
    ff_str *name =
        ff_keyname_flow(t, p->tag_text, ff_str_text(i->flow_id), "edge:", ff_str_text(edge_id));
    ff_str *child = ff_hash_peek(t, ff_str_text(name), W(downstream_execution_id));
    if (ff_txn_error(t)) return FF_DISCARD;
    if (!ff_member_is_local(ff_str_text(child), p->tag_text)) {
        note_misplaced(ctx, i);
        return FF_DISCARD;
    }
    ff_member_edge edge = {p->tag_text, i->flow_id, edge_id, i->execution_id, child, i->outcome};
    return ff_member_resolve(t, &edge, &result);
}

/* Resolves one edge; what ends with it is queued behind. */
static void resolve_edge(ValkeyModuleCtx *ctx, queue *q, item *i, const place *p) {
    ff_txn t;
    ff_txn_begin(&t, ctx, false);
    ff_verdict verdict = resolve(ctx, &t, i, p, ff_walk_entry(&i->edges)->member);
    if (verdict == FF_COMMIT && ff_txn_commit(&t)) {
        ff_count(FF_COUNT_DISPATCH_RESOLVED);
        append_ended(q, t.ended);
    } else {
        ff_txn_discard(&t);
        if (ff_txn_error(&t)) ff_count(FF_COUNT_DISPATCH_ERRORS);
    }
    ff_txn_end(&t);
    ff_walk_next(&i->edges);
}

/* Works on the first member: one edge, or the finding that none is left. */
static void work_on_first(ValkeyModuleCtx *ctx, queue *q, const place *p) {
    item *i = q->first;
    if (look_at(ctx, i, p) && take_edges(ctx, i, p) == FF_WALK_TAKEN) {
        resolve_edge(ctx, q, i, p);
    } else {
        drop_first(q);
    }
}

/* ---- The queue ---- */

/* Lost when it is full: the reconciler's next round, which is early then, finds it. */
static void bound(void) {
    while (waiting.length > QUEUE_MOST) {
        drop_first(&waiting);
        ff_count(FF_COUNT_DISPATCH_DROPPED);
        ff_runner_nudge(FF_SCANNER_DEPENDENCY_RECONCILER);
    }
}

void ff_dispatch_later(const ff_txn *t) {
    if (t->ended == NULL || !ff_config.scanners || !ff_config.inline_cascade) return;
    append_ended(&waiting, t->ended);
    bound();
    ff_runner_wake(0);
}

void ff_dispatch_now(ValkeyModuleCtx *ctx, const ff_txn *t) {
    queue q = {0};
    place p;
    if (t->ended == NULL || !ff_config.inline_cascade) return;
    append_ended(&q, t->ended);
    for (long long steps = 0; q.first && steps < ff_config.cascade_limit; steps++) {
        if (find_place(q.first, &p)) {
            work_on_first(ctx, &q, &p);
        } else {
            note_misplaced(ctx, q.first);
            drop_first(&q);
        }
    }
    if (q.first == NULL) return;
    while (q.first) {
        item *moved = q.first;
        q.first = moved->next;
        moved->next = NULL;
        append(&waiting, moved);
    }
    bound();
    ff_runner_wake(0);
}

bool ff_dispatch_is_waiting(void) { return waiting.first != NULL; }

uint64_t ff_dispatch_length(void) { return waiting.length; }

void ff_dispatch_work(ValkeyModuleCtx *ctx, uint64_t deadline) {
    place p;
    do {
        if (!find_place(waiting.first, &p)) {
            note_misplaced(ctx, waiting.first);
            drop_first(&waiting);
        } else if (ff_permission_of_partition(ctx, p.partition) != FF_MAY_WRITE) {
            drop_first(&waiting);
        } else {
            work_on_first(ctx, &waiting, &p);
        }
    } while (waiting.first && ValkeyModule_MonotonicMicroseconds() < deadline);
}

void ff_dispatch_forget(void) {
    while (waiting.first) drop_first(&waiting);
}
