/* Budgets and quotas: markers and counters that drift are set right. */
#include "base/number.h"
#include "engine/keyname.h"
#include "permission.h"
#include "scan/visitors.h"

enum { GUARDS_AT_ONCE = 64 };

/* ff:budget:<tag>:<id><suffix>, and the same for quotas */
static ff_str *key_of(ff_visit *v, ff_txn *t, const char *suffix) {
    ff_text kind =
        v->partition.family == FF_FAMILY_BUDGET ? FF_TEXT("ff:budget:") : FF_TEXT("ff:quota:");
    return FF_CONCAT(t, kind, v->tag, FF_TEXT(":"), ff_str_text(v->member), ff_text_of(suffix));
}

/* ---- Budgets ---- */

/* Greater than the limit: reaching it is no breach here. */
static bool is_exceeded(ff_key *limits, ff_key *usage) {
    const ff_text hard = FF_TEXT("hard:");
    const ff_word *field;
    ff_str *text;
    size_t cursor = 0;
    while (ff_hash_next(limits, &cursor, &field, &text)) {
        int64_t limit;
        int64_t used;
        if (!ff_text_starts_with(field->text, hard)) continue;
        if (!ff_integer_parse(ff_str_text(text), &limit) || limit <= 0) continue;
        ff_text dimension = ff_text_slice(field->text, hard.len, field->text.len);
        ff_str *value = ff_hash_get(usage, ff_field(ff_key_txn(usage), dimension));
        if (!ff_integer_parse(ff_str_text(value), &used)) used = 0;
        if (used > limit) return true;
    }
    return false;
}

/* Keeps the marker of lifetime budgets; periodic ones are not judged. */
ff_visit_outcome ff_visit_budget(ff_visit *v) {
    ff_txn *t = v->txn;
    ff_key *definition = ff_hash_open(t, key_of(v, t, ""));
    if (ff_txn_error(t)) return FF_VISIT_ERROR;
    if (!ff_key_exists(definition)) return ff_visit_drop(v);
    ff_text interval = ff_str_text(ff_hash_get(definition, W(reset_interval_ms)));
    if (ff_text_is_set(interval) && !ff_text_equal(interval, FF_TEXT("0"))) return FF_VISIT_SKIPPED;
    ff_key *usage = ff_hash_open(t, key_of(v, t, ":usage"));
    ff_key *limits = ff_hash_open(t, key_of(v, t, ":limits"));
    if (ff_txn_error(t)) return FF_VISIT_ERROR;
    if (!ff_key_exists(limits)) return FF_VISIT_SKIPPED;
    bool marked = ff_hash_get(usage, W(breached_at)) != NULL;
    bool breached = is_exceeded(limits, usage);
    if (breached == marked) return FF_VISIT_SKIPPED;
    if (breached) {
        ff_hash_set_now(usage, W(breached_at));
    } else {
        ff_hash_remove(usage, W(breached_at));
    }
    return ff_visit_done(v);
}

/* ---- Quotas ---- */

enum { WORKED }; /* of the progress */

static bool trim_window(ff_visit *v, ff_key *definition) {
    uint64_t seconds;
    ff_txn *t = v->txn;
    ff_str *text = ff_hash_get(definition, W(requests_per_window_seconds));
    if (!ff_unsigned_parse(ff_str_text(text), &seconds) || seconds == 0) return false;
    ff_key *window = ff_zset_open(t, key_of(v, t, ":window:requests_per_window"));
    return ff_zset_prune(window, t->now - (double)seconds * 1000) > 0;
}

static bool guard_exists(ff_visit *v, ff_txn *t, const ff_str *execution_id) {
    ff_str *prefix = key_of(v, t, ":admitted:");
    ff_str *guard = FF_CONCAT(t, ff_str_text(prefix), ff_str_text(execution_id));
    return ff_key_exists(ff_any_open(t, guard));
}

/* The phase of an execution, if this node can know it. */
static ff_str *phase_of(ff_visit *v, ff_txn *t, const ff_str *execution_id) {
    ff_reference id;
    ff_text text = ff_str_text(execution_id);
    if (!ff_execution_id_parse(text, &id) || !id.shortest) return NULL;
    if (!ff_partition_is_served(v->ctx, id.partition)) return NULL;
    ff_txn_state before = t->state;
    ff_str *core = ff_keyname_execution(t, id.tag, text, "core");
    ff_str *phase = ff_hash_peek(t, ff_str_text(core), W(lifecycle_phase));
    t->state = before;
    return phase;
}

/* The guard tells of an admission, for as long as the window is wide. One that ended has given its place back
 * whatever the guard says, and one that runs still has it. */
static bool holds_a_place(ff_visit *v, ff_txn *t, const ff_str *execution_id) {
    const ff_str *phase = phase_of(v, t, execution_id);
    return guard_exists(v, t, execution_id) ? !ff_str_is(phase, W(terminal))
                                            : ff_str_is(phase, W(active));
}

/* Takes out some of the admitted that hold no place any more; true when all were looked at. */
static bool prune_some(ff_visit *v, ff_str *set_name) {
    ff_txn t;
    ff_result unused;
    ff_walk *walk = &v->progress->walk;
    ff_walk_state state;
    size_t taken = 0;
    ff_unit_begin(v, &t, &unused);
    ff_key *set = ff_set_open(&t, set_name);
    while ((state = ff_walk_set(walk, v->ctx, set_name, GUARDS_AT_ONCE)) == FF_WALK_TAKEN) {
        if (taken++ == GUARDS_AT_ONCE) break;
        ff_str *member = ff_walk_entry(walk)->member;
        if (!holds_a_place(v, &t, member)) {
            ff_set_remove(set, ff_str_make(&t, ff_str_text(member)));
        }
        ff_walk_next(walk);
    }
    ff_unit_end(v, &t, FF_COMMIT);
    return state != FF_WALK_TAKEN;
}

/* In the step that ends the walk: what was admitted meanwhile is in the set, and so in the count. */
static ff_visit_outcome set_counter(ff_visit *v, ff_str *set_name) {
    ff_txn t;
    ff_result unused;
    int64_t counted;
    ff_unit_begin(v, &t, &unused);
    int64_t live = (int64_t)ff_set_size(ff_set_open(&t, set_name));
    ff_key *counter = ff_string_open(&t, key_of(v, &t, ":concurrency"));
    if (!ff_integer_parse(ff_str_text(ff_string_get(counter)), &counted)) counted = 0;
    bool differs = counted != live;
    if (differs) ff_string_set(counter, ff_str_integer(&t, live), 0);
    if (!ff_unit_end(v, &t, FF_COMMIT)) {
        return ff_visit_complain(v, "is a quota whose counter cannot be written");
    }
    return differs || v->progress->counts[WORKED] ? FF_VISIT_PROCESSED : FF_VISIT_SKIPPED;
}

static ff_visit_outcome count_running(ff_visit *v, ff_str *set_name) {
    while (!prune_some(v, set_name)) {
        if (ff_visit_is_late(v)) return FF_VISIT_AGAIN;
    }
    return set_counter(v, set_name);
}

ff_visit_outcome ff_visit_quota(ff_visit *v) {
    uint64_t cap;
    ff_txn *t = v->txn;
    ff_key *definition = ff_hash_open(t, key_of(v, t, ""));
    if (ff_txn_error(t)) return FF_VISIT_ERROR;
    ff_str *cap_text = ff_hash_get(definition, W(active_concurrency_cap));
    if (!v->progress->begun) v->progress->counts[WORKED] = trim_window(v, definition);
    /* A window that cannot be trimmed is no reason not to count. */
    if (ff_txn_error(t)) t->state = FF_TXN_SOUND;
    bool worked = v->progress->counts[WORKED] && !v->progress->begun;
    if (!ff_unsigned_parse(ff_str_text(cap_text), &cap) || cap == 0) {
        return worked ? ff_visit_done(v) : FF_VISIT_SKIPPED;
    }
    if (worked) {
        ff_txn_commit(t);
        v->let_go = true;
    } else {
        ff_visit_let_go(v);
    }
    return count_running(v, key_of(v, t, ":admitted_set"));
}
