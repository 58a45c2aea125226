#include "scan/scan.h"

#include <math.h>

#include "config.h"
#include "counters.h"
#include "engine/keyname.h"
#include "permission.h"
#include "scan/change.h"
#include "scan/due.h"
#include "scan/filter.h"

static uint64_t slice;

void ff_tally_add(ff_tally *sum, const ff_tally *more) {
    sum->scanned += more->scanned;
    sum->processed += more->processed;
    sum->refused += more->refused;
    sum->skipped += more->skipped;
    sum->unknown += more->unknown;
    sum->filtered += more->filtered;
    sum->backed_off += more->backed_off;
    sum->errors += more->errors;
}

void ff_scan_begin(ff_scan *scan, const ff_scanner *scanner, ff_backoff *backoff,
                   const ff_scope *scope) {
    ff_walk_reset(&scan->walk);
    ff_walk_reset(&scan->progress.walk);
    *scan = (ff_scan){.scanner = scanner,
                      .scope = *scope,
                      .backoff = backoff,
                      .partition = -1,
                      .oldest = INFINITY,
                      .walk = scan->walk,
                      .progress = {.walk = scan->progress.walk}};
}

void ff_scan_start_at(ff_scan *scan, double score) { ff_walk_begin_at(&scan->walk, score); }

void ff_scan_free(ff_scan *scan) {
    ff_walk_free(&scan->walk);
    ff_walk_free(&scan->progress.walk);
}

/* ---- Finding the next index that may hold something ---- */

static ff_index index_of(const ff_scan *scan) { return scan->scanner->indexes[scan->index_at]; }

static bool is_in_scope(const ff_scan *scan) {
    if (scan->scope.indexes && !(scan->scope.indexes >> scan->index_at & 1)) return false;
    return !scan->scope.lane || scan->lane == scan->scope.lane;
}

/* The next partition of the index and lane at hand. */
static bool find_partition(ff_scan *scan) {
    ff_index index = index_of(scan);
    int32_t only = scan->scope.partition;
    if (!is_in_scope(scan)) return false;
    if (only < 0) {
        scan->partition = ff_presence_next(index, scan->lane, (uint32_t)(scan->partition + 1));
        return scan->partition >= 0;
    }
    if (scan->partition == only || !ff_presence_maybe(index, scan->lane, (uint16_t)only)) {
        return false;
    }
    scan->partition = only;
    return true;
}

/* Index by index, lane by lane, partition by partition: known lanes only grow, at their end. */
static bool find_slot(ff_scan *scan) {
    bool per_lane = ff_index_is_per_lane(scan->scanner->indexes[0]);
    if (!scan->started) {
        scan->started = true;
        scan->lane = per_lane ? ff_lanes() : NULL;
    }
    while (scan->index_at < scan->scanner->index_count) {
        if ((scan->lane || !per_lane) && find_partition(scan)) return true;
        scan->partition = -1;
        scan->lane = scan->lane ? scan->lane->next : NULL;
        if (scan->lane == NULL) {
            scan->index_at++;
            scan->lane = per_lane ? ff_lanes() : NULL;
        }
    }
    return false;
}

/* ---- Visiting ---- */

static ff_partition partition_of(const ff_scan *scan) {
    return (ff_partition){ff_index_family(index_of(scan)), (uint16_t)scan->partition};
}

static double latest_score(const ff_scan *scan) {
    if (scan->scanner->kind != FF_SCAN_DUE) return INFINITY;
    return scan->now - (scan->scanner->age_ms ? (double)*scan->scanner->age_ms : 0);
}

static bool passes_filter(ff_visit *v) {
    ff_text id = ff_str_text(v->member);
    if (!ff_filter_is_set() || v->scanner->subject == FF_SUBJECT_OTHER) return true;
    if (v->scanner->subject == FF_SUBJECT_WAITPOINT) {
        ff_str *name = ff_keyname_waitpoint(v->txn, v->tag, id, "");
        ff_txn_state before = v->txn->state;
        id = ff_str_text(ff_hash_peek(v->txn, ff_str_text(name), W(execution_id)));
        v->txn->state = before;
    }
    return ff_filter_passes(v->txn, id);
}

static ff_visit_outcome visit(ff_visit *v) {
    ff_reference id;
    if (!passes_filter(v)) return FF_VISIT_FILTERED;
    if (v->scanner->subject == FF_SUBJECT_EXECUTION &&
        !ff_execution_id_parse(ff_str_text(v->member), &id)) {
        ff_visit_complain(v, "is no execution id");
        return FF_VISIT_SKIPPED;
    }
    return v->scanner->visit(v);
}

static void count(ff_scan *scan, ff_visit_outcome outcome) {
    ff_tally *tally = &scan->tally;
    scan->unsettled |= outcome == FF_VISIT_ERROR || outcome == FF_VISIT_FILTERED;
    switch (outcome) {
    case FF_VISIT_PROCESSED:
    case FF_VISIT_DROPPED: tally->processed++; break;
    case FF_VISIT_REFUSED: tally->refused++; break;
    case FF_VISIT_SKIPPED: tally->skipped++; break;
    case FF_VISIT_UNKNOWN: tally->unknown++; break;
    case FF_VISIT_FILTERED: tally->filtered++; break;
    case FF_VISIT_ERROR: tally->errors++; break;
    case FF_VISIT_COUNTED:
    case FF_VISIT_AGAIN: break;
    }
}

static void note_for_backoff(ff_scan *scan, ff_visit *v, ff_visit_outcome outcome) {
    ff_text candidate = ff_str_text(v->member);
    if (outcome != FF_VISIT_ERROR) {
        ff_backoff_succeeded(scan->backoff, candidate);
    } else if (ff_backoff_failed(scan->backoff, candidate)) {
        ff_visit_complain(v, "failed three times and is left alone for a while");
    }
}

/* Whether the entry is still there, as it was; also looks whether it is, before the visit. */
static bool is_current(const ff_scan *scan, ff_visit *v, double latest) {
    if (scan->scanner->kind == FF_SCAN_SET) return true;
    double score;
    if (!ff_zset_score(ff_zset_open(v->txn, v->index_name), v->member, &score)) return false;
    v->score = score;
    return score <= latest;
}

static void note_left(ff_scan *scan, double score) {
    scan->left++;
    if (score < scan->oldest) scan->oldest = score;
}

static bool stays(const ff_scan *scan, ff_visit *v, double before) {
    ff_txn t;
    ff_txn *own = v->txn;
    if (scan->scanner->kind == FF_SCAN_SET) return false;
    if (!v->let_go) return is_current(scan, v, INFINITY) && v->score == before;
    ff_txn_begin(&t, v->ctx, true);
    v->txn = &t;
    bool current = is_current(scan, v, INFINITY);
    v->txn = own;
    ff_txn_discard(&t);
    ff_txn_end(&t);
    return current && v->score == before;
}

/* One call of the visitor, in a transaction of its own. */
static ff_visit_outcome visit_current(ff_scan *scan, ff_visit *v, bool *remains) {
    const ff_zset_entry *entry = ff_walk_entry(&scan->walk);
    *remains = false;
    if (!is_current(scan, v, latest_score(scan))) {
        ff_unit_end(v, v->txn, FF_DISCARD);
        return FF_VISIT_SKIPPED;
    }
    ff_visit_outcome outcome = visit(v);
    *remains = stays(scan, v, entry->score);
    ff_verdict verdict = outcome == FF_VISIT_ERROR ? FF_DISCARD : v->verdict;
    if (ff_txn_error(v->txn)) verdict = FF_COMMIT; /* which will not be kept: an error, too */
    if (!ff_unit_end(v, v->txn, verdict)) {
        *remains = true;
        return ff_visit_complain(v, "has a key of the wrong type, or a full stream");
    }
    return outcome;
}

static bool is_confined(const ff_scan *scan, ValkeyModuleCtx *ctx) {
    return scan->scope.by_command && scan->scope.partition >= 0 &&
           ValkeyModule_GetContextFlags(ctx) & VALKEYMODULE_CTX_FLAGS_CLUSTER;
}

static void visit_candidate(ff_scan *scan, ValkeyModuleCtx *ctx, ff_str *index_name, ff_text tag,
                            uint64_t deadline) {
    const ff_zset_entry *entry = ff_walk_entry(&scan->walk);
    bool backs_off = scan->scanner->backs_off;
    bool remains = true;
    ff_txn t;
    if (!scan->progress.begun) scan->tally.scanned++;
    if (backs_off && ff_backoff_holds(scan->backoff, ff_str_text(entry->member))) {
        scan->tally.backed_off++;
        note_left(scan, entry->score);
        ff_walk_next(&scan->walk);
        return;
    }
    ff_visit v = {.ctx = ctx,
                  .scanner = scan->scanner,
                  .txn = &t,
                  .partition = partition_of(scan),
                  .tag = tag,
                  .lane = scan->lane,
                  .index = index_of(scan),
                  .index_name = index_name,
                  .member = entry->member,
                  .score = entry->score,
                  .progress = &scan->progress,
                  .slice = slice,
                  .deadline = deadline,
                  .limit = scan->scope.limit,
                  .one_slot = is_confined(scan, ctx),
                  .tally = &scan->tally};
    ff_unit_begin(&v, &t, &v.result);
    ff_visit_outcome outcome = visit_current(scan, &v, &remains);
    scan->progress.begun = outcome == FF_VISIT_AGAIN;
    if (outcome == FF_VISIT_AGAIN) return;
    count(scan, outcome);
    if (backs_off) note_for_backoff(scan, &v, outcome);
    if (remains) note_left(scan, entry->score);
    ff_walk_next(&scan->walk);
    ff_walk_reset(&scan->progress.walk);
    scan->progress = (ff_progress){.walk = scan->progress.walk};
}

/* ---- Stepping ---- */

static ff_walk_state take(ff_scan *scan, ValkeyModuleCtx *ctx, ff_str *name) {
    size_t most = (size_t)ff_config.scan_batch;
    if (scan->scanner->kind == FF_SCAN_SET) return ff_walk_set(&scan->walk, ctx, name, most);
    return ff_walk_zset(&scan->walk, ctx, name, latest_score(scan), most);
}

static void leave_slot(ff_scan *scan) {
    ff_walk_reset(&scan->walk);
    ff_walk_reset(&scan->progress.walk);
    scan->progress = (ff_progress){.walk = scan->progress.walk};
    scan->in_slot = false;
}

/* What is wrong is counted in each round; and the filter may be another by then. */
static void look_again(const ff_scan *scan) {
    if (scan->scope.changed_only) ff_change_in((uint16_t)scan->partition);
}

static void complain_about_index(ff_scan *scan, ValkeyModuleCtx *ctx, ff_str *name) {
    char tag[FF_TAG_MAX];
    ff_text tag_text = ff_text_make(tag, ff_tag_format(partition_of(scan), tag));
    ff_visit v = {.ctx = ctx, .scanner = scan->scanner, .tag = tag_text, .member = name};
    ff_visit_complain(&v, "is an index of the wrong type");
    count(scan, FF_VISIT_ERROR);
}

static void finish_slot(ff_scan *scan, ValkeyModuleCtx *ctx, ff_str *name, ff_walk_state state) {
    ff_index index = index_of(scan);
    uint16_t partition = (uint16_t)scan->partition;
    if (state == FF_WALK_EMPTY) ff_presence_clear(index, scan->lane, partition);
    if (state == FF_WALK_WRONG_TYPE) complain_about_index(scan, ctx, name);
    if (scan->unsettled) look_again(scan);
    if (scan->scanner->counts_entries) scan->entries += ff_zset_look(ctx, name, INFINITY).size;
    ff_due_handled(ctx, index, scan->lane, partition, scan->now);
    leave_slot(scan);
}

static void enter_slot(ff_scan *scan) {
    if (scan->in_slot) return;
    scan->in_slot = true;
    scan->unsettled = false;
    if (scan->scope.changed_only) ff_change_forget((uint16_t)scan->partition);
}

/* The node does not serve it, or has no memory for it. */
static void pass_slot(ff_scan *scan) {
    look_again(scan);
    ff_due_postpone(index_of(scan), scan->lane, (uint16_t)scan->partition);
    leave_slot(scan);
}

static bool is_unchanged(const ff_scan *scan) {
    return scan->scope.changed_only && !scan->in_slot &&
           !ff_change_is_in((uint16_t)scan->partition);
}

static bool limit_reached(const ff_scan *scan) {
    return scan->scope.limit && scan->tally.scanned >= scan->scope.limit;
}

typedef struct step {
    ValkeyModuleCtx *ctx;
    uint64_t most;
    uint64_t deadline;
    uint64_t visited;
} step;

static bool is_used_up(const step *s) {
    return s->visited >= s->most ||
           (s->deadline && ValkeyModule_MonotonicMicroseconds() >= s->deadline);
}

/* Works on the index at hand. */
static ff_scan_state step_slot(ff_scan *scan, step *s) {
    ff_txn names;
    ff_scan_state result = FF_SCAN_MORE;
    ff_walk_state state;
    char tag[FF_TAG_MAX];
    ff_text tag_text = ff_text_make(tag, ff_tag_format(partition_of(scan), tag));
    ff_txn_begin(&names, s->ctx, true);
    ff_str *name = ValkeyModule_CreateStringFromString(
        NULL, ff_index_key(&names, index_of(scan), scan->lane, (uint16_t)scan->partition));
    scan->now = names.now;
    ff_txn_discard(&names);
    ff_txn_end(&names);
    while ((state = take(scan, s->ctx, name)) == FF_WALK_TAKEN) {
        if (limit_reached(scan)) {
            result = FF_SCAN_ENDED;
            break;
        }
        if (s->visited && is_used_up(s)) break;
        visit_candidate(scan, s->ctx, name, tag_text, s->deadline);
        s->visited++;
    }
    if (state != FF_WALK_TAKEN) finish_slot(scan, s->ctx, name, state);
    ValkeyModule_FreeString(NULL, name);
    return result;
}

ff_scan_state ff_scan_step(ff_scan *scan, ValkeyModuleCtx *ctx, uint64_t most, uint64_t deadline) {
    step s = {ctx, most, deadline, 0};
    slice++;
    do {
        if (!scan->in_slot && !find_slot(scan)) return FF_SCAN_ENDED;
        if (is_unchanged(scan)) continue;
        switch (ff_permission_of_partition(ctx, partition_of(scan))) {
        case FF_MAY_NOT: enter_slot(scan); return FF_SCAN_STUCK;
        case FF_MAY_FREE:
            if (scan->scanner->frees) break;
            /* fall through */
        case FF_NOT_SERVED: pass_slot(scan); continue;
        case FF_MAY_WRITE: break;
        }
        enter_slot(scan);
        if (step_slot(scan, &s) == FF_SCAN_ENDED) return FF_SCAN_ENDED;
    } while (!is_used_up(&s));
    return FF_SCAN_MORE;
}
