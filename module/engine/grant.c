#include "engine/grant.h"

#include "base/capability.h"
#include "base/number.h"
#include "engine/attempt.h"

static ff_verdict refuse_list(ff_result *out, ff_text kind, ff_capability_problem problem) {
    ff_text word = ff_text_of(ff_capability_problem_word(problem));
    return ff_refuse_with(out, FF_INVALID_CAPABILITIES,
                          FF_CONCAT(out->txn, kind, FF_TEXT(":"), word));
}

/* Rule CAPS-CSV. True when the worker can do what the execution requires; else the refusal is in
 * `out` and its verdict in `verdict`: a mismatch leaves its time on the core. */
static bool match(ff_key *core, const ff_str *worker_csv, ff_result *out, ff_verdict *verdict) {
    ff_arena *arena = &out->txn->arena;
    ff_capability_set required;
    ff_capability_set worker;
    ff_text required_csv = ff_str_text(ff_hash_get(core, W(required_capabilities)));
    ff_capability_problem problem = ff_capability_parse(arena, required_csv, &required);
    if (problem) {
        *verdict = refuse_list(out, FF_TEXT("required"), problem);
        return false;
    }
    problem = ff_capability_parse(arena, ff_str_text(worker_csv), &worker);
    if (problem) {
        *verdict = refuse_list(out, FF_TEXT("worker"), problem);
        return false;
    }
    if (ff_capability_covers(&worker, &required)) return true;
    ff_hash_set_now(core, W(last_capability_mismatch_at));
    ff_result_add(out, ff_str_make(out->txn, ff_capability_missing(arena, &required, &worker)));
    *verdict = ff_refuse_keeping(out, FF_CAPABILITY_MISMATCH);
    return false;
}

/* Rule GRANT. False after a refusal was put into `out`, when no key can have that expiry. */
static bool write_grant(ff_key *grant, const ff_grant_issue_args *a, double expires_at,
                        ff_result *out) {
    int64_t at_ms;
    if (!ff_number_to_integer(expires_at, &at_ms)) {
        ff_bad_input(out, "grant_ttl_ms must give a whole number of milliseconds that a key expiry "
                          "can hold");
        return false;
    }
    ff_hash_set(grant, W(worker_id), a->worker_id);
    ff_hash_set_number(grant, W(grant_expires_at), expires_at);
    ff_hash_set(grant, W(worker_instance_id), a->worker_instance_id);
    ff_hash_set(grant, W(lane_id), a->lane_id);
    ff_hash_set(grant, W(capability_hash), ff_str_or_empty(a->capability_hash));
    ff_hash_set(grant, W(route_snapshot_json), ff_str_or_empty(a->route_snapshot_json));
    ff_hash_set(grant, W(admission_summary), ff_str_or_empty(a->admission_summary));
    ff_hash_set_now(grant, W(created_at));
    ff_key_expire_at(grant, at_ms);
    return true;
}

/* What both kinds do once the core has passed, but for the reply. */
static bool issue(ff_key *core, ff_str *name, const ff_grant_issue_args *a, double expires_at,
                  ff_result *out, ff_verdict *verdict) {
    *verdict = FF_DISCARD;
    return match(core, a->worker_capabilities_csv, out, verdict) &&
           write_grant(ff_hash_open(out->txn, name), a, expires_at, out);
}

static ff_code check_eligible(ff_key *core, const ff_grant_issue_keys *k, ff_str *execution_id) {
    ff_txn *t = ff_key_txn(core);
    double score;
    if (!ff_key_exists(core)) return FF_EXECUTION_NOT_FOUND;
    if (!ff_str_is(ff_hash_get(core, W(lifecycle_phase)), W(runnable)) ||
        !ff_str_is(ff_hash_get(core, W(eligibility_state)), W(eligible_now))) {
        return FF_EXECUTION_NOT_ELIGIBLE;
    }
    if (ff_key_exists(ff_any_open(t, k->grant))) return FF_GRANT_ALREADY_EXISTS;
    if (!ff_zset_score(ff_zset_open(t, k->eligible), execution_id, &score)) {
        return FF_EXECUTION_NOT_IN_ELIGIBLE_SET;
    }
    return FF_OK;
}

ff_verdict ff_grant_issue(ff_txn *t, const ff_grant_issue_keys *k, const ff_grant_issue_args *a,
                          ff_result *out) {
    double ttl;
    if (!ff_str_to_number(a->grant_ttl_ms, &ttl)) {
        return ff_not_a_number(out, "grant_ttl_ms", a->grant_ttl_ms);
    }
    ff_key *core = ff_hash_open(t, k->core);
    ff_code refused = check_eligible(core, k, a->execution_id);
    if (refused) return ff_refuse(out, refused);
    ff_verdict verdict;
    if (!issue(core, k->grant, a, t->now + ttl, out, &verdict)) return verdict;
    ff_result_add(out, a->execution_id);
    return ff_ok(out);
}

ff_verdict ff_grant_issue_reclaim(ff_txn *t, const ff_grant_issue_reclaim_keys *k,
                                  const ff_grant_issue_reclaim_args *a, ff_result *out) {
    double ttl;
    if (!ff_str_to_number(a->grant_ttl_ms, &ttl)) {
        return ff_not_a_number(out, "grant_ttl_ms", a->grant_ttl_ms);
    }
    ff_key *core = ff_hash_open(t, k->core);
    ff_code refused = ff_claim_check_reclaimable(core);
    if (refused) return ff_refuse(out, refused);
    if (ff_key_exists(ff_any_open(t, k->grant))) return ff_refuse(out, FF_GRANT_ALREADY_EXISTS);
    ff_verdict verdict;
    if (!issue(core, k->grant, a, t->now + ttl, out, &verdict)) return verdict;
    ff_result_add(out, a->execution_id);
    ff_result_add_number(out, t->now + ttl);
    return ff_ok(out);
}
