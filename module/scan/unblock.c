/* Blocked executions are let go when what blocked them has cleared. */
#include "base/capability.h"
#include "base/number.h"
#include "engine/admission.h"
#include "engine/keyname.h"
#include "engine/subject.h"
#include "permission.h"
#include "scan/visitors.h"
#include "worker_registry.h"

typedef enum { CLEARED, STANDS, UNKNOWN } verdict;

/* What was found out in this slice: nothing but scanners runs within one. */
static struct {
    uint64_t slice;
    ff_arena arena;
    ff_table budgets; /* id: a verdict + 1 */
} found;

static void forget_older(const ff_visit *v) {
    if (found.slice == v->slice) return;
    ff_arena_release(&found.arena);
    found.slice = v->slice;
    found.budgets = (ff_table){0};
}

static ff_partition home_of(ff_family family, ff_text id) {
    return (ff_partition){family, ff_partition_of_id(id, ff_partition_count(family))};
}

/* ff:budget:<tag>:<id><suffix>, and the same for quotas */
static ff_str *home_key(ff_txn *t, ff_partition home, ff_text id, const char *suffix) {
    ff_text kind = home.family == FF_FAMILY_BUDGET ? FF_TEXT("ff:budget:") : FF_TEXT("ff:quota:");
    return FF_CONCAT(t, kind, ff_tag_text(&t->arena, home), FF_TEXT(":"), id, ff_text_of(suffix));
}

/* ---- Budgets ---- */

static bool is_reached(ff_key *usage, ff_text dimension, const ff_str *limit_text) {
    uint64_t limit;
    uint64_t used;
    if (!ff_unsigned_parse(ff_str_text(limit_text), &limit) || limit == 0) return false;
    ff_str *text = ff_hash_get(usage, ff_field(ff_key_txn(usage), dimension));
    if (!ff_unsigned_parse(ff_str_text(text), &used)) used = 0;
    return used >= limit;
}

static bool is_breached(ff_txn *t, ff_partition home, ff_text id) {
    const ff_text hard = FF_TEXT("hard:");
    ff_key *limits = ff_hash_open(t, home_key(t, home, id, ":limits"));
    ff_key *usage = ff_hash_open(t, home_key(t, home, id, ":usage"));
    const ff_word *field;
    ff_str *limit;
    size_t cursor = 0;
    while (ff_hash_next(limits, &cursor, &field, &limit)) {
        if (!ff_text_starts_with(field->text, hard)) continue;
        if (is_reached(usage, ff_text_slice(field->text, hard.len, field->text.len), limit)) {
            return true;
        }
    }
    return false;
}

/* A budget that could not be read stands, but that is not remembered. */
static verdict ask_budget(ff_visit *v, ff_text id) {
    ff_txn t;
    ff_partition home = home_of(FF_FAMILY_BUDGET, id);
    if (v->one_slot || !ff_partition_is_served(v->ctx, home)) return UNKNOWN;
    ff_txn_begin(&t, v->ctx, true);
    bool breached = is_breached(&t, home, id);
    bool read = ff_txn_error(&t) == NULL;
    ff_txn_discard(&t);
    ff_txn_end(&t);
    if (!read) return STANDS;
    void **known = ff_table_at(&found.budgets, &found.arena, ff_arena_dup(&found.arena, id));
    *known = (void *)(uintptr_t)(1 + (breached ? STANDS : CLEARED));
    return breached ? STANDS : CLEARED;
}

static verdict judge_budget(ff_visit *v, ff_text id) {
    uintptr_t known = (uintptr_t)ff_table_get(&found.budgets, id);
    return known ? (verdict)(known - 1) : ask_budget(v, id);
}

static verdict judge_budgets(ff_visit *v, ff_key *core) {
    ff_text rest = ff_str_text(ff_hash_get(core, W(budget_ids)));
    ff_text id;
    while (ff_text_split(&rest, ',', &id)) {
        id = ff_text_trim(id);
        verdict one = id.len ? judge_budget(v, id) : CLEARED;
        if (one != CLEARED) return one;
    }
    return CLEARED;
}

/* ---- Quotas ---- */

static uint64_t unsigned_or(ff_key *hash, const ff_word *field, uint64_t otherwise) {
    uint64_t value;
    return ff_unsigned_parse(ff_str_text(ff_hash_get(hash, field)), &value) ? value : otherwise;
}

/* Trims the window, as the admission does. */
static bool rate_is_used_up(ff_txn *t, ff_partition home, ff_text id, ff_key *definition) {
    uint64_t rate = unsigned_or(definition, W(max_requests_per_window), 0);
    uint64_t seconds = unsigned_or(definition, W(requests_per_window_seconds), 60);
    if (rate == 0) return false;
    ff_key *window = ff_zset_open(t, home_key(t, home, id, ":window:requests_per_window"));
    size_t members = ff_zset_size(window);
    return members - ff_zset_prune(window, t->now - (double)seconds * 1000) >= rate;
}

static bool all_run(ff_txn *t, ff_partition home, ff_text id, ff_key *definition) {
    uint64_t cap = unsigned_or(definition, W(active_concurrency_cap), 0);
    int64_t running;
    if (cap == 0) return false;
    ff_str *counter = ff_string_get(ff_string_open(t, home_key(t, home, id, ":concurrency")));
    if (!ff_integer_parse(ff_str_text(counter), &running) || running < 0) running = 0;
    return (uint64_t)running >= cap;
}

static verdict judge_quota(ff_visit *v, ff_key *core) {
    ff_text id = ff_str_text(ff_hash_get(core, W(quota_policy_id)));
    ff_txn t;
    ff_result unused;
    if (!ff_text_is_set(id)) return CLEARED;
    ff_partition home = home_of(FF_FAMILY_QUOTA, id);
    if (v->one_slot || !ff_partition_is_served(v->ctx, home)) return UNKNOWN;
    ff_unit_begin(v, &t, &unused);
    ff_key *definition = ff_hash_open(&t, home_key(&t, home, id, ""));
    bool stands = rate_is_used_up(&t, home, id, definition) || all_run(&t, home, id, definition);
    return ff_unit_end(v, &t, FF_COMMIT) && !stands ? CLEARED : STANDS;
}

/* ---- Routes ---- */

/* Cleared when one worker that is known here has all that is required. */
static verdict judge_route(ff_visit *v, ff_key *core) {
    ff_capability_set required;
    ff_text csv = ff_str_text(ff_hash_get(core, W(required_capabilities)));
    if (!ff_text_is_set(csv)) return CLEARED;
    if (ff_capability_parse(&v->txn->arena, csv, &required) != FF_CAPABILITY_FINE) return STANDS;
    ff_text namespace = ff_str_text(ff_hash_get(core, W(namespace)));
    return ff_workers_cover(namespace, &required, v->txn->now) ? CLEARED : STANDS;
}

/* ---- The visit ---- */

typedef struct block {
    const ff_word *reason;
    verdict (*judge)(ff_visit *v, ff_key *core);
} block;

static block block_of(ff_index index) {
    switch (index) {
    case FF_INDEX_BLOCKED_BUDGET: return (block){W(waiting_for_budget), judge_budgets};
    case FF_INDEX_BLOCKED_QUOTA: return (block){W(waiting_for_quota), judge_quota};
    default: return (block){W(waiting_for_capable_worker), judge_route};
    }
}

ff_visit_outcome ff_visit_blocked(ff_visit *v) {
    ff_subject s;
    block b = block_of(v->index);
    forget_older(v);
    ff_subject_open(v->txn, v->tag, v->member, &s);
    if (ff_txn_error(v->txn)) return FF_VISIT_ERROR;
    if (!ff_key_exists(s.core)) return ff_visit_drop(v);
    if (!ff_str_is_set(ff_hash_get(s.core, W(namespace)))) {
        return ff_visit_complain(v, "has no namespace");
    }
    if (!ff_str_is(ff_hash_get(s.core, W(blocking_reason)), b.reason)) return FF_VISIT_SKIPPED;
    switch (b.judge(v, s.core)) {
    case STANDS: return FF_VISIT_SKIPPED;
    case UNKNOWN: return FF_VISIT_UNKNOWN;
    case CLEARED: break;
    }
    ff_admission_unblock_keys k = {s.core_name, v->index_name,
                                   ff_keyname_lane(v->txn, v->tag, v->lane->name, "eligible")};
    ff_admission_unblock_args a = {v->member, ff_str_now(v->txn), b.reason->str};
    return ff_visit_settle(v, ff_admission_unblock(v->txn, &k, &a, &v->result));
}
