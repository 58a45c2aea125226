/* Every execution must be in the index that its state calls for: one that is not is put there. */
#include <math.h>

#include "counters.h"
#include "engine/keyname.h"
#include "engine/score.h"
#include "engine/subject.h"
#include "scan/visitors.h"

/* The suspended index has this score for suspensions without a timeout. */
#define NO_TIMEOUT 9999999999999.0

/* Where an execution belongs, and which field of the core gives its score. */
typedef struct home {
    const char *index; /* NULL: nowhere in particular */
    const ff_word *score;
} home;

static home home_of_runnable(const ff_str *eligibility) {
    if (ff_str_is(eligibility, W(eligible_now))) return (home){"eligible", NULL};
    if (ff_str_is(eligibility, W(not_eligible_until_time))) {
        return (home){"delayed", W(delay_until)};
    }
    if (ff_str_is(eligibility, W(blocked_by_dependencies))) {
        return (home){"blocked:dependencies", W(created_at)};
    }
    if (ff_str_is(eligibility, W(blocked_by_budget))) {
        return (home){"blocked:budget", W(last_transition_at)};
    }
    if (ff_str_is(eligibility, W(blocked_by_quota))) {
        return (home){"blocked:quota", W(last_transition_at)};
    }
    if (ff_str_is(eligibility, W(blocked_by_route))) {
        return (home){"blocked:route", W(last_transition_at)};
    }
    if (ff_str_is(eligibility, W(blocked_by_operator))) {
        return (home){"blocked:operator", W(last_transition_at)};
    }
    return (home){NULL, NULL};
}

static home home_of(ff_key *core, const ff_str *phase) {
    if (ff_str_is(phase, W(terminal))) return (home){"terminal", W(completed_at)};
    if (ff_str_is(phase, W(runnable))) {
        return home_of_runnable(ff_hash_get(core, W(eligibility_state)));
    }
    if (ff_str_is(phase, W(suspended))) return (home){"suspended", NULL};
    if (ff_str_is(phase, W(active)) &&
        ff_str_is(ff_hash_get(core, W(ownership_state)), W(leased))) {
        return (home){"active", W(lease_expires_at)};
    }
    return (home){NULL, NULL};
}

static bool score_of_suspension(ff_subject *s, double *score) {
    ff_key *suspension = ff_hash_open(s->txn, ff_subject_key(s, "suspension:current"));
    const ff_str *timeout = ff_hash_get(suspension, W(timeout_at));
    *score = NO_TIMEOUT;
    return !ff_str_is_set(timeout) || ff_str_to_number(timeout, score);
}

static bool read_score(ff_subject *s, const ff_str *phase, const home *h, double *score) {
    if (ff_str_is(phase, W(suspended))) return score_of_suspension(s, score);
    if (h->score == NULL) return ff_score_of(s->core, score) == NULL;
    const ff_str *text = ff_hash_get(s->core, h->score);
    if (h->score == W(delay_until) && !ff_str_is_set(text)) {
        *score = s->txn->now;
        return true;
    }
    return ff_str_to_number(text, score);
}

static ff_visit_outcome put(ff_visit *v, ff_str *index, double score) {
    ff_zset_add(ff_zset_open(v->txn, index), v->member, score);
    ff_count(FF_COUNT_INDEX_REPAIRED);
    ff_visit_complain(v, "was missing from an index, and was put there");
    return ff_visit_done(v);
}

/* A lease that ran out or was revoked can only be found again through the expiry index. */
static ff_visit_outcome check_lost_lease(ff_visit *v, ff_subject *s, const ff_str *phase) {
    const ff_str *ownership = ff_hash_get(s->core, W(ownership_state));
    double score;
    if (!ff_str_is(phase, W(active)) || (!ff_str_is(ownership, W(lease_expired_reclaimable)) &&
                                         !ff_str_is(ownership, W(lease_revoked)))) {
        return FF_VISIT_SKIPPED;
    }
    ff_str *index = ff_subject_index(s, "lease_expiry");
    if (ff_zset_score(ff_zset_open(v->txn, index), v->member, &score)) return FF_VISIT_SKIPPED;
    ff_count(FF_COUNT_INDEX_INCONSISTENT);
    if (!ff_str_to_number(ff_hash_get(s->core, W(lease_expires_at)), &score) || isnan(score)) {
        return ff_visit_complain(v, "has lost its lease, and cannot be found by those who reclaim");
    }
    return put(v, index, score);
}

ff_visit_outcome ff_visit_execution(ff_visit *v) {
    ff_subject s;
    double score;
    ff_subject_open(v->txn, v->tag, v->member, &s);
    if (ff_txn_error(v->txn)) return FF_VISIT_ERROR;
    const ff_str *phase = ff_hash_get(s.core, W(lifecycle_phase));
    if (!ff_key_exists(s.core)) {
        ff_count(FF_COUNT_INDEX_INCONSISTENT);
        ff_count(FF_COUNT_INDEX_REPAIRED);
        return ff_visit_drop(v);
    }
    home h = home_of(s.core, phase);
    if (phase == NULL) {
        ff_count(FF_COUNT_INDEX_INCONSISTENT);
        return ff_visit_complain(v, "has a core without a phase");
    }
    if (h.index == NULL) return check_lost_lease(v, &s, phase);
    ff_str *index = ff_subject_lane_index(&s, h.index);
    if (ff_zset_score(ff_zset_open(v->txn, index), v->member, &score)) return FF_VISIT_SKIPPED;
    if (ff_txn_error(v->txn)) return FF_VISIT_ERROR;
    ff_count(FF_COUNT_INDEX_INCONSISTENT);
    if (!read_score(&s, phase, &h, &score) || isnan(score)) {
        return ff_visit_complain(v, "is missing from an index, and has no score for it");
    }
    return put(v, index, score);
}
