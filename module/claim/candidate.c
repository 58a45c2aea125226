#include "claim/candidate.h"

#include <math.h>

#include "claim/slot.h"
#include "claim/waiter.h"
#include "counters.h"
#include "engine/admission.h"
#include "engine/grant.h"
#include "engine/keyname.h"
#include "engine/mint.h"
#include "engine/subject.h"
#include "scan/dispatch.h"
#include "worker_registry.h"

enum {
    DOUBT_RETRY_MS = 1000,
    LOG_PAUSE_MS = 10000, /* between two complaints about entries that are no ids */
};

typedef struct candidate {
    ff_claim_call *call;
    const ff_claim_spot *spot;
    ff_txn txn;
    ff_subject subject;
    ff_str *execution_id;
} candidate;

/* What a claim answers. */
typedef struct handout {
    ff_str *lease_id, *lease_epoch, *expires_at, *attempt_id, *attempt_index, *attempt_type, *kind,
        *priority, *payload, *flow_id;
    ff_pair *tags;
    size_t tag_count;
} handout;

/* The strings that candidates need are made with the first of them: most calls find none. */
static void prepare(ff_claim_call *call) {
    const ff_claim_order *order = call->order;
    ff_txn *t = call->list->txn;
    if (call->lane_name == NULL) call->lane_name = ff_str_make(t, call->lane->name);
    if (call->worker) return;
    call->worker = ff_str_make(t, order->worker);
    call->instance = ff_str_make(t, order->instance);
    call->capabilities = ff_str_make(t, order->capabilities_csv);
    call->lease = ff_str_integer(t, order->lease_ms);
    call->renewal = ff_str_integer(t, order->lease_ms * 2 / 3);
    call->grant_ttl = order->grant_ttl_ms ? ff_str_integer(t, order->grant_ttl_ms) : call->lease;
    call->timeout = order->timeout_ms ? ff_str_integer(t, order->timeout_ms) : W(empty)->str;
}

/* ---- The answer ---- */

static void free_string(void *str) { ValkeyModule_FreeString(NULL, str); }

/* The string outlives the candidate's transaction. */
static ff_str *carry(ff_txn *to, ff_str *str) {
    if (str == NULL) return NULL;
    ValkeyModule_RetainString(NULL, str);
    ff_txn_own(to, str, free_string);
    return str;
}

static void read_tags(candidate *c, handout *h) {
    ff_key *tags = ff_hash_open(&c->txn, ff_subject_key(&c->subject, "tags"));
    size_t cursor = 0;
    size_t capacity = 0;
    ff_pair pair;
    while (ff_hash_next(tags, &cursor, &pair.field, &pair.value)) {
        h->tags = ff_txn_grow(&c->txn, h->tags, h->tag_count, &capacity, sizeof *h->tags);
        h->tags[h->tag_count++] = pair;
    }
}

/* Reads what the answer says about the execution; the keys are closed by the commit. */
static void read_handout(candidate *c, const ff_result *result, handout *h) {
    ff_key *core = c->subject.core;
    h->lease_id = result->values[0].str;
    h->lease_epoch = result->values[1].str;
    h->expires_at = result->values[2].str;
    h->attempt_id = result->values[3].str;
    h->attempt_index = result->values[4].str;
    h->attempt_type = result->values[5].str;
    h->kind = ff_hash_get(core, W(execution_kind));
    h->priority = ff_hash_get(core, W(priority));
    h->flow_id = ff_hash_get(core, W(flow_id));
    h->payload = ff_string_get(ff_string_open(&c->txn, ff_subject_key(&c->subject, "payload")));
    read_tags(c, h);
}

static void answer_text(ff_answer *map, const char *name, ff_str *value) {
    ff_answer_text(map, name, carry(map->txn, value));
}

static void answer_number(ff_answer *map, const char *name, ff_str *value) {
    ff_answer_number(map, name, carry(map->txn, value));
}

static void answer_claim(const candidate *c, const handout *h) {
    ff_answer *map = ff_answer_add(c->call->list);
    ff_answer_become_map(map);
    answer_text(map, "execution_id", c->execution_id);
    answer_text(map, "lease_id", h->lease_id);
    answer_number(map, "lease_epoch", h->lease_epoch);
    answer_text(map, "attempt_id", h->attempt_id);
    answer_number(map, "attempt_index", h->attempt_index);
    answer_text(map, "attempt_type", h->attempt_type);
    answer_number(map, "expires_at", h->expires_at);
    answer_text(map, "kind", h->kind);
    answer_number(map, "priority", h->priority);
    answer_text(map, "payload", h->payload);
    ff_answer *tags = ff_answer_member(map, FF_TEXT("tags"));
    ff_answer_become_map(tags);
    for (size_t i = 0; i < h->tag_count; i++) {
        ff_answer *value = ff_answer_member(tags, h->tags[i].field->text);
        ff_answer_become_text(value, carry(map->txn, h->tags[i].value));
    }
    answer_text(map, "flow_id", ff_str_is_set(h->flow_id) ? h->flow_id : NULL);
}

static void answer_grant(candidate *c) {
    ff_answer *map = ff_answer_add(c->call->list);
    ff_answer_become_map(map);
    answer_text(map, "execution_id", c->execution_id);
    ff_answer_text(map, "partition_key", ff_str_make(map->txn, c->spot->tag));
    answer_text(map, "grant_key", ff_subject_key(&c->subject, "claim_grant"));
    ff_answer_integer(map, "expires_at_ms", (int64_t)c->call->now + c->call->order->grant_ttl_ms);
}

/* ---- Beginning and end ---- */

static void complain(candidate *c) {
    static double last = -INFINITY;
    if (fabs(c->call->now - last) < LOG_PAUSE_MS) return;
    last = c->call->now;
    ff_arena *arena = &c->call->list->txn->arena;
    ff_text index = ff_arena_printable(arena, ff_str_text(c->spot->index));
    ff_text member = ff_arena_printable(arena, ff_str_text(c->execution_id));
    ValkeyModule_Log(c->call->ctx, "warning",
                     "claim: %.*s holds '%.*s', which is no execution id of that partition",
                     FF_TEXT_ARGS(index), FF_TEXT_ARGS(member));
}

static bool is_at_home(candidate *c) {
    ff_reference id;
    if (ff_execution_id_parse(ff_str_text(c->execution_id), &id) && id.shortest &&
        id.partition.number == c->spot->partition.number) {
        return true;
    }
    complain(c);
    return false;
}

static void begin(candidate *c) {
    prepare(c->call);
    ff_txn_begin(&c->txn, c->call->ctx, false);
    c->txn.strict = true;
    c->txn.now = c->call->now;
    ff_subject_open(&c->txn, c->spot->tag, c->execution_id, &c->subject);
}

/* False when what was to be written was not: a key of the wrong type. */
static bool keep(candidate *c) {
    bool kept = ff_txn_commit(&c->txn);
    if (kept && c->txn.ended) ff_dispatch_now(c->call->ctx, &c->txn);
    if (!kept) ff_count(FF_COUNT_CLAIM_UNREADABLE);
    return kept;
}

static ff_claim_outcome leave(candidate *c, ff_claim_outcome outcome) {
    ff_txn_discard(&c->txn);
    if (ff_txn_error(&c->txn)) ff_count(FF_COUNT_CLAIM_UNREADABLE);
    return outcome;
}

static ff_claim_outcome pass(candidate *c, ff_counter counter) {
    ff_count(counter);
    return leave(c, FF_CLAIM_PASSED);
}

static void retry_at(candidate *c, double at) { c->call->retry_at = fmin(c->call->retry_at, at); }

/* ---- What both kinds of candidate have in common ---- */

static bool is_of_tenant(candidate *c) {
    ff_text namespace = c->call->order->namespace;
    return ff_text_is_absent(namespace) ||
           ff_text_equal(ff_str_text(ff_hash_get(c->subject.core, W(namespace))), namespace);
}

typedef enum { ABLE, UNABLE, UNCLEAR } ability;

static ability ability_of(candidate *c, ff_capability_set *required) {
    ff_text csv = ff_str_text(ff_hash_get(c->subject.core, W(required_capabilities)));
    if (csv.len == 0) return ABLE;
    if (ff_capability_parse(&c->txn.arena, csv, required)) return UNCLEAR;
    return ff_capability_covers(&c->call->order->capabilities, required) ? ABLE : UNABLE;
}

/* A grant that is out for another worker is gone when its time is over. */
static bool is_promised(candidate *c, ff_str *grant_name) {
    double expires_at;
    if (!ff_key_exists(ff_any_open(&c->txn, grant_name))) return false;
    ff_key *grant = ff_hash_open(&c->txn, grant_name);
    if (ff_hash_number(grant, W(grant_expires_at), &expires_at) == FF_NUMBER_GOOD) {
        retry_at(c, expires_at + 1);
    }
    return true;
}

static bool has_worked(ff_verdict verdict, const ff_result *result) {
    return verdict == FF_COMMIT && result->code == FF_OK;
}

/* Issues the grant for the claim to spend, unless it is out already. */
static bool issue_grant(candidate *c, bool lapsed) {
    const ff_claim_call *call = c->call;
    ff_str *empty = W(empty)->str;
    ff_str *core = c->subject.core_name;
    ff_str *grant = ff_subject_key(&c->subject, "claim_grant");
    if (is_promised(c, grant)) return false;
    ff_result granted = {.txn = &c->txn};
    ff_grant_issue_args args = {c->execution_id, call->worker, call->instance,
                                call->lane_name, empty,        call->grant_ttl,
                                empty,           empty,        call->capabilities};
    ff_verdict verdict;
    if (lapsed) {
        ff_grant_issue_reclaim_keys keys = {core, grant, c->spot->index};
        verdict = ff_grant_issue_reclaim(&c->txn, &keys, &args, &granted);
    } else {
        ff_grant_issue_keys keys = {core, grant, c->spot->index};
        verdict = ff_grant_issue(&c->txn, &keys, &args, &granted);
    }
    return has_worked(verdict, &granted);
}

static ff_claim_outcome hand_out(candidate *c, const ff_result *result) {
    handout h = {0};
    read_handout(c, result, &h);
    if (!keep(c)) return FF_CLAIM_PASSED;
    answer_claim(c, &h);
    c->call->lane->claimed++;
    return FF_CLAIM_TAKEN;
}

/* ---- Queued executions ---- */

static ff_claim_outcome park(candidate *c, const ff_word *reason, ff_str *detail, const char *index,
                             ff_counter counter) {
    ff_result result = {.txn = &c->txn};
    ff_admission_block_keys keys = {
        c->subject.core_name, c->spot->index,
        ff_keyname_lane(&c->txn, c->spot->tag, c->call->lane->name, index)};
    ff_admission_block_args args = {c->execution_id, reason->str, detail, ff_str_now(&c->txn)};
    if (ff_admission_block(&c->txn, &keys, &args, &result) != FF_COMMIT) {
        return pass(c, FF_COUNT_CLAIM_REFUSED);
    }
    if (!keep(c)) return FF_CLAIM_PASSED;
    ff_count(counter);
    c->call->lane->blocked++;
    return FF_CLAIM_PARKED;
}

/* Whether somebody else is known who could take it. */
static bool is_covered(candidate *c, const ff_capability_set *required) {
    const ff_claim_call *call = c->call;
    ff_text namespace = ff_str_text(ff_hash_get(c->subject.core, W(namespace)));
    return is_promised(c, ff_subject_key(&c->subject, "claim_grant")) ||
           ff_waiters_cover(call->lane->name, c->spot->partition.number, namespace, required) ||
           ff_workers_registered_cover(namespace, required, call->now);
}

/* A scheduler that asks for a grant parks what its worker cannot do, whoever else could. */
static ff_claim_outcome park_for_route(candidate *c, const ff_capability_set *required) {
    if (!c->call->order->grant_ttl_ms && is_covered(c, required)) {
        return pass(c, FF_COUNT_CLAIM_STEPPED_OVER);
    }
    ff_str *detail =
        ff_str_make(&c->txn, FF_TEXT("no connected worker satisfies required_capabilities"));
    return park(c, W(waiting_for_capable_worker), detail, "blocked:route",
                FF_COUNT_CLAIM_BLOCKED_ROUTE);
}

static ff_claim_outcome limited(candidate *c, ff_limit limit, ff_str *detail) {
    switch (limit) {
    case FF_LIMIT_BUDGET:
        return park(c, W(waiting_for_budget), detail, "blocked:budget",
                    FF_COUNT_CLAIM_BLOCKED_BUDGET);
    case FF_LIMIT_RATE:
        return park(c, W(waiting_for_quota), detail, "blocked:quota", FF_COUNT_CLAIM_BLOCKED_RATE);
    case FF_LIMIT_CONCURRENCY:
        return park(c, W(waiting_for_quota), detail, "blocked:quota",
                    FF_COUNT_CLAIM_BLOCKED_CONCURRENCY);
    case FF_LIMIT_FOREIGN:
        retry_at(c, c->call->now + DOUBT_RETRY_MS);
        return pass(c, FF_COUNT_CLAIM_FOREIGN);
    default: retry_at(c, c->call->now + DOUBT_RETRY_MS); return pass(c, FF_COUNT_CLAIM_DOUBT);
    }
}

static ff_verdict claim_fresh(candidate *c, ff_result *result) {
    const ff_claim_call *call = c->call;
    ff_claim_fresh_keys keys =
        ff_subject_claim_fresh_keys(&c->subject, call->lane->name, call->order->instance);
    ff_claim_fresh_args args = {
        .execution_id = c->execution_id,
        .worker_id = call->worker,
        .worker_instance_id = call->instance,
        .lane = call->lane_name,
        .capability_snapshot_hash = W(empty)->str,
        .lease_id = ff_mint_id(&c->txn),
        .lease_ttl_ms = call->lease,
        .renew_before_ms = call->renewal,
        .attempt_id = ff_mint_id(&c->txn),
        .attempt_policy_json = W(empty)->str,
        .attempt_timeout_ms = call->timeout,
    };
    return ff_claim_fresh(&c->txn, &keys, &args, result);
}

static ff_verdict claim_resumed(candidate *c, ff_result *result) {
    const ff_claim_call *call = c->call;
    ff_claim_resumed_keys keys =
        ff_subject_claim_resumed_keys(&c->subject, call->lane->name, call->order->instance);
    ff_claim_resumed_args args = {
        .execution_id = c->execution_id,
        .worker_id = call->worker,
        .worker_instance_id = call->instance,
        .lane = call->lane_name,
        .capability_snapshot_hash = W(empty)->str,
        .lease_id = ff_mint_id(&c->txn),
        .lease_ttl_ms = call->lease,
        .remaining_attempt_timeout_ms = call->timeout,
    };
    return ff_claim_resumed(&c->txn, &keys, &args, result);
}

static ff_claim_outcome stop_at_grant(candidate *c) {
    if (!keep(c)) return FF_CLAIM_PASSED;
    answer_grant(c);
    c->call->lane->granted++;
    return FF_CLAIM_TAKEN;
}

static ff_claim_outcome take_queued(candidate *c) {
    ff_result claimed = {.txn = &c->txn};
    if (!issue_grant(c, false)) return pass(c, FF_COUNT_CLAIM_REFUSED);
    if (c->call->order->grant_ttl_ms) return stop_at_grant(c);
    bool interrupted =
        ff_str_is(ff_hash_get(c->subject.core, W(attempt_state)), W(attempt_interrupted));
    ff_verdict verdict = interrupted ? claim_resumed(c, &claimed) : claim_fresh(c, &claimed);
    if (!has_worked(verdict, &claimed)) return pass(c, FF_COUNT_CLAIM_REFUSED);
    return hand_out(c, &claimed);
}

static ff_claim_outcome decide_queued(candidate *c) {
    ff_key *core = c->subject.core;
    ff_capability_set required;
    ff_str *detail = NULL;
    if (!ff_str_is(ff_hash_get(core, W(lifecycle_phase)), W(runnable)) ||
        !ff_str_is(ff_hash_get(core, W(eligibility_state)), W(eligible_now))) {
        return pass(c, FF_COUNT_CLAIM_REFUSED);
    }
    if (!is_of_tenant(c)) return leave(c, FF_CLAIM_STRANGE);
    ability able = ability_of(c, &required);
    if (able == UNCLEAR) return pass(c, FF_COUNT_CLAIM_DOUBT);
    if (able == UNABLE) return park_for_route(c, &required);
    ff_limit limit = ff_limits_budgets(&c->call->limits, &c->txn, core, &detail);
    if (limit == FF_LIMIT_FREE) limit = ff_limits_quota(&c->txn, core, c->execution_id, &detail);
    return limit == FF_LIMIT_FREE ? take_queued(c) : limited(c, limit, detail);
}

/* ---- Lapsed and revoked leases ---- */

static bool is_lost(candidate *c) {
    ff_key *core = c->subject.core;
    const ff_str *ownership = ff_hash_get(core, W(ownership_state));
    return ff_str_is(ff_hash_get(core, W(lifecycle_phase)), W(active)) &&
           (ff_str_is(ownership, W(lease_expired_reclaimable)) ||
            ff_str_is(ownership, W(lease_revoked)));
}

/* Marks the lease as expired if nobody did yet. False when there is nothing to take over:
 * `outcome` is then that of the candidate, whose entry goes if it is stale. */
static bool mark(candidate *c, ff_claim_outcome *outcome) {
    if (is_lost(c)) return true;
    ff_result result = {.txn = &c->txn};
    ff_lease_mark_expired_keys keys = ff_subject_mark_expired_keys(&c->subject);
    ff_verdict verdict = ff_lease_mark_expired(
        &c->txn, &keys, &(ff_lease_mark_expired_args){c->execution_id}, &result);
    if (is_lost(c)) return true;
    bool pending = verdict != FF_COMMIT || ff_str_is(result.values[0].str, W(not_yet_expired));
    if (pending) {
        *outcome = pass(c, FF_COUNT_CLAIM_REFUSED);
    } else {
        *outcome = keep(c) ? FF_CLAIM_PARKED : FF_CLAIM_PASSED;
    }
    return false;
}

/* Reclaimed too often: the execution has ended instead. */
static ff_claim_outcome end_over_cap(candidate *c) {
    ff_key_delete(ff_hash_open(&c->txn, ff_subject_key(&c->subject, "claim_grant")));
    ff_slot_free(&c->txn, c->subject.core, c->execution_id);
    if (!keep(c)) return FF_CLAIM_PASSED;
    ff_count(FF_COUNT_CLAIM_ENDED);
    return FF_CLAIM_PARKED;
}

static ff_verdict reclaim(candidate *c, ff_result *result) {
    const ff_claim_call *call = c->call;
    ff_claim_reclaim_keys keys =
        ff_subject_claim_reclaim_keys(&c->subject, call->lane->name, call->order->instance);
    ff_claim_reclaim_args args = {
        .execution_id = c->execution_id,
        .worker_id = call->worker,
        .worker_instance_id = call->instance,
        .lane = call->lane_name,
        .lease_id = ff_mint_id(&c->txn),
        .lease_ttl_ms = call->lease,
        .attempt_id = ff_mint_id(&c->txn),
    };
    return ff_claim_reclaim(&c->txn, &keys, &args, result);
}

/* A reclaim knows no attempt timeout: that of the former attempt goes on, unless the worker gives one. */
static void set_timeout(candidate *c) {
    int64_t timeout = c->call->order->timeout_ms;
    if (timeout == 0) return;
    ff_key *timeouts = ff_zset_open(&c->txn, ff_subject_index(&c->subject, "attempt_timeout"));
    ff_zset_add(timeouts, c->execution_id, c->txn.now + (double)timeout);
}

static ff_claim_outcome take_over(candidate *c) {
    ff_result claimed = {.txn = &c->txn};
    if (!issue_grant(c, true)) return pass(c, FF_COUNT_CLAIM_REFUSED);
    ff_verdict verdict = reclaim(c, &claimed);
    if (claimed.code == FF_MAX_RETRIES_EXHAUSTED) return end_over_cap(c);
    if (!has_worked(verdict, &claimed)) return pass(c, FF_COUNT_CLAIM_REFUSED);
    set_timeout(c);
    return hand_out(c, &claimed);
}

static ff_claim_outcome decide_lapsed(candidate *c) {
    ff_capability_set required;
    ff_claim_outcome outcome;
    if (ff_key_exists(c->subject.core)) {
        if (!ff_text_equal(ff_subject_lane(&c->subject), c->call->lane->name) || !is_of_tenant(c)) {
            return leave(c, FF_CLAIM_STRANGE);
        }
        ability able = ability_of(c, &required);
        if (able == UNCLEAR) return pass(c, FF_COUNT_CLAIM_DOUBT);
        if (able == UNABLE) return pass(c, FF_COUNT_CLAIM_STEPPED_OVER);
    }
    return mark(c, &outcome) ? take_over(c) : outcome;
}

/* ---- Either ---- */

static ff_claim_outcome consider(ff_claim_call *call, const ff_claim_spot *spot,
                                 ff_str *execution_id, ff_claim_outcome decide(candidate *)) {
    candidate c = {.call = call, .spot = spot, .execution_id = execution_id};
    if (!is_at_home(&c)) {
        ff_count(FF_COUNT_CLAIM_UNREADABLE);
        return FF_CLAIM_PASSED;
    }
    begin(&c);
    ff_claim_outcome outcome = decide(&c);
    ff_txn_end(&c.txn);
    return outcome;
}

ff_claim_outcome ff_candidate_queued(ff_claim_call *call, const ff_claim_spot *spot,
                                     ff_str *execution_id) {
    return consider(call, spot, execution_id, decide_queued);
}

ff_claim_outcome ff_candidate_lapsed(ff_claim_call *call, const ff_claim_spot *spot,
                                     ff_str *execution_id) {
    return consider(call, spot, execution_id, decide_lapsed);
}
