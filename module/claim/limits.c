#include "claim/limits.h"

#include "base/id.h"
#include "base/number.h"
#include "claim/slot.h"
#include "engine/quota.h"
#include "permission.h"
#include "presence.h"

/* ---- Budgets ---- */

/* What a budget said; kept for the rest of the call. */
typedef struct verdict {
    ff_limit limit;
    ff_text detail;
} verdict;

static const verdict within = {FF_LIMIT_FREE, {NULL, 0}};

static uint64_t usage_of(ff_key *usage, ff_text dimension) {
    uint64_t value = 0;
    ff_str *text = ff_hash_get(usage, ff_field(ff_key_txn(usage), dimension));
    if (text == NULL || !ff_unsigned_parse(ff_str_text(text), &value)) return 0;
    return value;
}

/* The first hard limit that is reached. */
static bool is_breached(ff_limits *l, ff_key *limits, ff_key *usage, ff_text *detail) {
    const ff_text hard = FF_TEXT("hard:");
    const ff_word *field;
    ff_str *value;
    size_t cursor = 0;
    while (ff_hash_next(limits, &cursor, &field, &value)) {
        uint64_t limit;
        if (!ff_text_starts_with(field->text, hard)) continue;
        if (!ff_unsigned_parse(ff_str_text(value), &limit) || limit == 0) continue;
        ff_text dimension = ff_text_slice(field->text, hard.len, field->text.len);
        uint64_t used = usage_of(usage, dimension);
        if (used < limit) continue;
        ff_text numbers = ff_arena_printf(l->arena, " %llu/%llu", (unsigned long long)used,
                                          (unsigned long long)limit);
        *detail = ff_arena_concat(l->arena, FF_TEXT("budget "), ff_str_text(ff_key_name(usage)),
                                  FF_TEXT(": "), dimension, numbers);
        return true;
    }
    return false;
}

static verdict read_budget(ff_limits *l, ValkeyModuleCtx *ctx, ff_text id) {
    uint16_t count = ff_partition_count(FF_FAMILY_BUDGET);
    ff_partition home = {FF_FAMILY_BUDGET, ff_partition_of_id(id, count)};
    if (!ff_partition_is_served(ctx, home)) return (verdict){.limit = FF_LIMIT_FOREIGN};
    ff_txn t;
    ff_txn_begin(&t, ctx, true);
    ff_text tag = ff_tag_text(&t.arena, home);
    ff_text stem = ff_arena_concat(&t.arena, FF_TEXT("ff:budget:"), tag, FF_TEXT(":"), id);
    ff_key *limits = ff_hash_open(&t, FF_CONCAT(&t, stem, FF_TEXT(":limits")));
    ff_key *usage = ff_hash_open(&t, FF_CONCAT(&t, stem, FF_TEXT(":usage")));
    verdict v = within;
    if (is_breached(l, limits, usage, &v.detail)) v.limit = FF_LIMIT_BUDGET;
    if (ff_txn_error(&t)) v = (verdict){.limit = FF_LIMIT_DOUBT};
    ff_txn_discard(&t);
    ff_txn_end(&t);
    return v;
}

static verdict look_at(ff_limits *l, ValkeyModuleCtx *ctx, ff_text id) {
    const verdict *known = ff_table_get(&l->budgets, id);
    if (known) return *known;
    verdict v = read_budget(l, ctx, id);
    if (v.limit == FF_LIMIT_DOUBT) return v;
    verdict *kept = ff_arena_alloc(l->arena, sizeof *kept);
    *kept = v;
    *ff_table_at(&l->budgets, l->arena, ff_arena_dup(l->arena, id)) = kept;
    return v;
}

ff_limit ff_limits_budgets(ff_limits *limits, ff_txn *t, ff_key *core, ff_str **detail) {
    ff_str *ids = ff_hash_get(core, W(budget_ids));
    if (!ff_str_is_set(ids)) return FF_LIMIT_FREE;
    ff_text rest = ff_str_text(ids);
    for (ff_text id; ff_text_split(&rest, ',', &id);) {
        id = ff_text_trim(id);
        if (id.len == 0) continue;
        verdict v = look_at(limits, t->ctx, id);
        if (v.limit == FF_LIMIT_FREE) continue;
        if (v.limit == FF_LIMIT_BUDGET) *detail = ff_str_make(t, v.detail);
        return v.limit;
    }
    return FF_LIMIT_FREE;
}

/* ---- Quotas ---- */

enum { WINDOW_DEFAULT_SECONDS = 60 };

typedef struct policy {
    uint64_t rate, seconds, cap, jitter;
} policy;

static bool read_number(ff_key *definition, const ff_word *field, uint64_t absent,
                        uint64_t *value) {
    ff_str *text = ff_hash_get(definition, field);
    *value = absent;
    return text == NULL || ff_unsigned_parse(ff_str_text(text), value);
}

static bool read_policy(ff_key *definition, policy *p) {
    if (!read_number(definition, W(max_requests_per_window), 0, &p->rate) ||
        !read_number(definition, W(requests_per_window_seconds), WINDOW_DEFAULT_SECONDS,
                     &p->seconds) ||
        !read_number(definition, W(active_concurrency_cap), 0, &p->cap) ||
        !read_number(definition, W(jitter_ms), 0, &p->jitter)) {
        return false;
    }
    if (p->seconds == 0) p->seconds = WINDOW_DEFAULT_SECONDS;
    return true;
}

static ff_str *unsigned_text(ff_txn *t, uint64_t value) {
    return ff_str_make(t, ff_arena_printf(&t->arena, "%llu", (unsigned long long)value));
}

/* A slot that an earlier run left behind is given back before another is taken, or it would
 * count twice. */
static void give_back_leftover(ff_txn *t, const ff_quota_admit_keys *k, ff_str *execution_id) {
    if (ff_key_exists(ff_any_open(t, k->guard))) return;
    if (!ff_set_has(ff_set_open(t, k->admitted_set), execution_id)) return;
    ff_result ignored = {.txn = t};
    ff_quota_release(t, &(ff_quota_release_keys){k->guard, k->admitted_set, k->concurrency},
                     &(ff_quota_release_args){execution_id}, &ignored);
}

static ff_limit admit(ff_txn *t, const ff_quota_admit_keys *k, const policy *p,
                      ff_str *execution_id, ff_result *result) {
    if (p->cap > 0) give_back_leftover(t, k, execution_id);
    ff_quota_admit_args args = {ff_str_now(t),
                                unsigned_text(t, p->seconds),
                                unsigned_text(t, p->rate),
                                unsigned_text(t, p->cap),
                                execution_id,
                                unsigned_text(t, p->jitter)};
    if (ff_quota_admit(t, k, &args, result) != FF_COMMIT || ff_txn_error(t)) return FF_LIMIT_DOUBT;
    switch (result->code) {
    case FF_ADMITTED:
    case FF_ALREADY_ADMITTED: return FF_LIMIT_FREE;
    case FF_RATE_EXCEEDED: return FF_LIMIT_RATE;
    case FF_CONCURRENCY_EXCEEDED: return FF_LIMIT_CONCURRENCY;
    default: return FF_LIMIT_DOUBT;
    }
}

static ff_str *describe(ff_txn *t, ff_text id, const policy *p, ff_limit limit) {
    ff_text what = FF_TEXT_ABSENT;
    if (limit == FF_LIMIT_RATE) {
        what = ff_arena_printf(&t->arena, ": rate limit %llu/%llu per %llus window",
                               (unsigned long long)p->rate, (unsigned long long)p->rate,
                               (unsigned long long)p->seconds);
    } else if (limit == FF_LIMIT_CONCURRENCY) {
        what = ff_arena_printf(&t->arena, ": concurrency cap %llu", (unsigned long long)p->cap);
    } else {
        return NULL;
    }
    return FF_CONCAT(t, FF_TEXT("quota "), id, what);
}

ff_limit ff_limits_quota(ff_txn *t, ff_key *core, ff_str *execution_id, ff_str **detail) {
    ff_str *id_str = ff_hash_get(core, W(quota_policy_id));
    if (!ff_str_is_set(id_str)) return FF_LIMIT_FREE;
    ff_text id = ff_str_text(id_str);
    ff_partition home;
    ff_text tag = ff_quota_tag(t, id, &home);
    if (!ff_partition_is_served(t->ctx, home)) return FF_LIMIT_FOREIGN;
    const ff_text none = FF_TEXT_ABSENT;
    ff_quota_admit_keys keys = {
        .window = ff_quota_key(t, tag, id, ":window:requests_per_window", none),
        .concurrency = ff_quota_key(t, tag, id, ":concurrency", none),
        .definition = ff_quota_key(t, tag, id, "", none),
        .guard = ff_quota_key(t, tag, id, ":admitted:", ff_str_text(execution_id)),
        .admitted_set = ff_quota_key(t, tag, id, ":admitted_set", none),
    };
    policy p;
    if (!read_policy(ff_hash_open(t, keys.definition), &p) || ff_txn_error(t)) {
        return FF_LIMIT_DOUBT;
    }
    if (p.rate == 0 && p.cap == 0) return FF_LIMIT_FREE;
    ff_result result = {.txn = t};
    ff_limit limit = admit(t, &keys, &p, execution_id, &result);
    *detail = describe(t, id, &p, limit);
    return limit;
}
