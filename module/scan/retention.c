/* Ended executions are deleted when their retention is over: every key of theirs, the core last, so that what was
 * interrupted is found again. Their traces in flows, budgets and quotas stay. */
#include <math.h>

#include "base/json.h"
#include "base/number.h"
#include "config.h"
#include "engine/keyname.h"
#include "engine/subject.h"
#include "scan/visitors.h"

enum {
    KEYS_AT_ONCE = 500,
    SUBJECTS_AT_ONCE = 100, /* attempts, edges, waitpoints or signals, a few keys each */
    ATTEMPTS_UNEXPECTED =
        10000, /* so many more than are listed are looked for, whatever the record says */
};

typedef enum { ATTEMPTS, EDGES, WAITPOINTS, SIGNALS, REST } phase;

/* The keys to delete next; their names belong to the transaction they were made in. */
typedef struct doomed {
    ff_txn t; /* of one part */
    ff_text tag;
    ff_text id;
    ff_str *names[KEYS_AT_ONCE];
    size_t count;
} doomed;

static void doom(doomed *d, ff_str *name) {
    if (d->count < KEYS_AT_ONCE) d->names[d->count++] = name;
}

static void doom_attempt(doomed *d, uint64_t number) {
    ff_text index = ff_integer_text(&d->t.arena, (int64_t)number);
    doom(d, ff_keyname_attempt(&d->t, d->tag, d->id, index, ""));
    doom(d, ff_keyname_attempt(&d->t, d->tag, d->id, index, ":usage"));
    doom(d, ff_keyname_attempt(&d->t, d->tag, d->id, index, ":policy"));
    doom(d, ff_keyname_attempt(&d->t, d->tag, d->id, index, ":summary"));
    doom(d,
         FF_CONCAT(&d->t, FF_TEXT("ff:stream:"), d->tag, FF_TEXT(":"), d->id, FF_TEXT(":"), index));
    doom(d, ff_keyname_stream_meta(&d->t, d->tag, d->id, index));
}

/* The key of a waitpoint leads to its id, unless it was given to another since. */
static void doom_waitpoint_key(doomed *d, ff_text waitpoint, const ff_str *id) {
    ff_txn_state before = d->t.state;
    ff_text key = ff_str_text(ff_hash_peek(&d->t, waitpoint, W(waitpoint_key)));
    if (ff_text_is_set(key)) {
        ff_str *name = FF_CONCAT(&d->t, FF_TEXT("ff:wpkey:"), d->tag, FF_TEXT(":"), key);
        if (ff_str_equal(ff_string_get(ff_string_open(&d->t, name)), id)) doom(d, name);
    }
    d->t.state = before;
}

static void doom_waitpoint(doomed *d, const ff_str *id) {
    ff_str *record = ff_keyname_waitpoint(&d->t, d->tag, ff_str_text(id), "");
    doom_waitpoint_key(d, ff_str_text(record), id);
    doom(d, record);
    doom(d, ff_keyname_waitpoint(&d->t, d->tag, ff_str_text(id), ":signals"));
    doom(d, ff_keyname_waitpoint(&d->t, d->tag, ff_str_text(id), ":condition"));
}

static void doom_signal(doomed *d, const ff_str *id) {
    ff_str *record = FF_CONCAT(&d->t, FF_TEXT("ff:signal:"), d->tag, FF_TEXT(":"), ff_str_text(id));
    doom(d, record);
    doom(d, FF_CONCAT(&d->t, ff_str_text(record), FF_TEXT(":payload")));
}

static void doom_listed(doomed *d, phase p, const ff_str *member) {
    switch (p) {
    case EDGES: {
        ff_str *prefix = ff_keyname_execution(&d->t, d->tag, d->id, "dep:");
        doom(d, FF_CONCAT(&d->t, ff_str_text(prefix), ff_str_text(member)));
        break;
    }
    case WAITPOINTS: doom_waitpoint(d, member); break;
    case SIGNALS: doom_signal(d, member); break;
    case ATTEMPTS:
    case REST: break;
    }
}

static void delete_doomed(ff_visit *v, doomed *d) {
    ff_txn_discard(&d->t);
    ff_keys_unlink(v->ctx, d->names, d->count);
}

/* Each of the following does a part of its phase, and says whether that was the last. */
static bool delete_attempts(ff_visit *v, doomed *d, uint64_t total) {
    uint64_t *next = &v->progress->at;
    size_t listed =
        ff_zset_size(ff_zset_open(&d->t, ff_keyname_execution(&d->t, d->tag, d->id, "attempts")));
    d->t.state = FF_TXN_SOUND; /* a wrong type is as good as none: it will be deleted, too */
    uint64_t most = listed + ATTEMPTS_UNEXPECTED;
    if (total > most) total = most;
    for (size_t i = 0; i < SUBJECTS_AT_ONCE * 4 / 5 && *next < total; i++) {
        doom_attempt(d, (*next)++);
    }
    delete_doomed(v, d);
    return *next >= total;
}

static bool delete_listed(ff_visit *v, doomed *d, phase p) {
    static const char *const lists[] = {
        [EDGES] = "deps:all_edges", [WAITPOINTS] = "waitpoints", [SIGNALS] = "signals"};
    ff_walk *walk = &v->progress->walk;
    ff_str *name = ff_keyname_execution(&d->t, d->tag, d->id, lists[p]);
    size_t taken = 0;
    ff_walk_state state;
    do {
        state = p == SIGNALS ? ff_walk_zset(walk, v->ctx, name, INFINITY, SUBJECTS_AT_ONCE)
                             : ff_walk_set(walk, v->ctx, name, SUBJECTS_AT_ONCE);
        if (state != FF_WALK_TAKEN) break;
        doom_listed(d, p, ff_walk_entry(walk)->member);
        ff_walk_next(walk);
    } while (++taken < SUBJECTS_AT_ONCE);
    delete_doomed(v, d);
    return state != FF_WALK_TAKEN;
}

static void delete_rest(ff_visit *v, doomed *d) {
    static const char *const first[] = {"payload",
                                        "result",
                                        "tags",
                                        "lease:current",
                                        "lease:history",
                                        "claim_grant",
                                        "attempts",
                                        "suspension:current",
                                        "suspension:current:satisfied_set",
                                        "suspension:current:satisfied_set:signals",
                                        "suspension:current:member_map",
                                        "deps:meta",
                                        "deps:unresolved",
                                        "deps:all_edges",
                                        "waitpoints",
                                        "signals",
                                        "core",
                                        "policy"};
    for (size_t i = 0; i < sizeof first / sizeof *first; i++) {
        doom(d, ff_keyname_execution(&d->t, d->tag, d->id, first[i]));
    }
    delete_doomed(v, d);
}

static bool leave_indexes(ff_visit *v) {
    ff_txn t;
    ff_result unused;
    ff_unit_begin(v, &t, &unused);
    ff_zset_remove(ff_zset_open(&t, v->index_name), v->member);
    ff_str *all = ff_keyname_index(&t, v->tag, "all_executions");
    ff_set_remove(ff_set_open(&t, all), v->member);
    return ff_unit_end(v, &t, FF_COMMIT);
}

/* One part of the work; true when its phase is over. */
static bool delete_part(ff_visit *v, doomed *d, phase at, uint64_t attempts) {
    bool over = true;
    ff_txn_begin(&d->t, v->ctx, true);
    d->count = 0;
    switch (at) {
    case ATTEMPTS: over = delete_attempts(v, d, attempts); break;
    case EDGES:
    case WAITPOINTS:
    case SIGNALS: over = delete_listed(v, d, at); break;
    case REST: delete_rest(v, d); break;
    }
    ff_txn_end(&d->t);
    return over;
}

static ff_visit_outcome purge(ff_visit *v, uint64_t attempts) {
    uint64_t *at = &v->progress->counts[0];
    doomed *d = ff_arena_alloc(&v->txn->arena, sizeof *d);
    d->tag = v->tag;
    d->id = ff_str_text(v->member);
    ff_visit_let_go(v);
    for (;;) {
        bool over = delete_part(v, d, (phase)*at, attempts);
        if (*at == REST) return leave_indexes(v) ? FF_VISIT_PROCESSED : FF_VISIT_ERROR;
        if (over) {
            ++*at;
            ff_walk_reset(&v->progress->walk);
        }
        if (ff_visit_is_late(v)) return FF_VISIT_AGAIN;
    }
}

/* What the policy asks for, if it does; a shorter time than the usual one has no effect, since nothing looks
 * earlier. */
static uint64_t retention_of(ff_visit *v) {
    uint64_t retention = (uint64_t)ff_config.retention_ms;
    ff_txn_state before = v->txn->state;
    ff_str *name = ff_keyname_execution(v->txn, v->tag, ff_str_text(v->member), "policy");
    ff_json *policy = ff_json_parse(ff_str_text(ff_string_get(ff_string_open(v->txn, name))));
    v->txn->state = before;
    const ff_json *wanted =
        ff_json_member(ff_json_member(policy, "stream_policy"), "retention_ttl_ms");
    double ms = ff_json_number(wanted);
    if (ff_json_kind(wanted) == FF_JSON_NUMBER && ff_number_is_whole(ms) && ms >= 0 &&
        ms < 9007199254740992.0) {
        retention = (uint64_t)ms;
    }
    ff_json_free(policy);
    return retention;
}

static uint64_t read_unsigned(ff_key *hash, const ff_word *field) {
    uint64_t value;
    return ff_unsigned_parse(ff_str_text(ff_hash_get(hash, field)), &value) ? value : 0;
}

ff_visit_outcome ff_visit_terminal(ff_visit *v) {
    ff_subject s;
    ff_subject_open(v->txn, v->tag, v->member, &s);
    if (!ff_key_exists(s.core)) return ff_visit_drop(v);
    uint64_t completed_at = read_unsigned(s.core, W(completed_at));
    if (completed_at == 0) return ff_visit_complain(v, "is in the terminal index but has no end");
    if (!v->progress->begun && v->txn->now < (double)completed_at + (double)retention_of(v)) {
        return FF_VISIT_SKIPPED;
    }
    return purge(v, read_unsigned(s.core, W(total_attempt_count)));
}
