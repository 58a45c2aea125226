/* What the module counts since it was loaded; INFO ff and FF.INFO show it. */
#ifndef FF_COUNTERS_H
#define FF_COUNTERS_H

#include <stdint.h>

/* name of the counter, section of INFO, name of the field there */
#define FF_COUNTERS(X) \
    X(WIRE_SUCCESSES, "engine", "wire_successes") \
    X(WIRE_REFUSALS, "engine", "wire_refusals") \
    X(WIRE_ERRORS, "engine", "wire_errors") \
    X(NATIVE_SUCCESSES, "engine", "native_successes") \
    X(NATIVE_ERRORS, "engine", "native_errors") \
    X(CLAIM_CALLS, "claims", "calls") \
    X(CLAIM_EMPTY, "claims", "empty_calls") \
    X(CLAIM_CLAIMED, "claims", "claimed") \
    X(CLAIM_GRANTED, "claims", "granted") \
    X(CLAIM_ENDED, "claims", "ended_by_reclaim_cap") \
    X(CLAIM_BLOCKED_ROUTE, "claims", "blocked_route") \
    X(CLAIM_BLOCKED_BUDGET, "claims", "blocked_budget") \
    X(CLAIM_BLOCKED_RATE, "claims", "blocked_quota_rate") \
    X(CLAIM_BLOCKED_CONCURRENCY, "claims", "blocked_quota_concurrency") \
    X(CLAIM_STEPPED_OVER, "claims", "stepped_over") \
    X(CLAIM_REFUSED, "claims", "left_not_claimable") \
    X(CLAIM_FOREIGN, "claims", "left_foreign_limit") \
    X(CLAIM_DOUBT, "claims", "left_in_doubt") \
    X(CLAIM_UNREADABLE, "claims", "left_unreadable") \
    X(CLAIM_VISITED, "claims", "partitions_visited") \
    X(CLAIM_WAKEUPS, "claims", "wakeups") \
    X(CLAIM_SERVED, "claims", "waiters_served") \
    X(CLAIM_TIMEOUTS, "claims", "waiters_timed_out") \
    X(CLAIM_GONE, "claims", "waiters_gone") \
    X(DISPATCH_RESOLVED, "scanners", "dispatch_resolved") \
    X(DISPATCH_MISPLACED, "scanners", "dispatch_misplaced") \
    X(DISPATCH_ERRORS, "scanners", "dispatch_errors") \
    X(DISPATCH_DROPPED, "scanners", "dispatch_dropped") \
    X(INDEX_INCONSISTENT, "scanners", "index_inconsistent") \
    X(INDEX_REPAIRED, "scanners", "index_repaired") \
    X(SIBLING_CANCEL_SATISFIED, "scanners", "sibling_cancel_dispatched_sibling_quorum_satisfied") \
    X(SIBLING_CANCEL_IMPOSSIBLE, "scanners", \
      "sibling_cancel_dispatched_sibling_quorum_impossible") \
    X(SIBLING_CANCELLED, "scanners", "sibling_cancel_disposition_cancelled") \
    X(SIBLING_ALREADY_TERMINAL, "scanners", "sibling_cancel_disposition_already_terminal") \
    X(SIBLING_NOT_FOUND, "scanners", "sibling_cancel_disposition_not_found") \
    X(SIBLING_SREMMED_STALE, "scanners", "sibling_cancel_reconcile_sremmed_stale") \
    X(SIBLING_COMPLETED_DRAIN, "scanners", "sibling_cancel_reconcile_completed_drain") \
    X(SIBLING_NO_OP, "scanners", "sibling_cancel_reconcile_no_op")

#define FF_COUNTER_ENUM(name, section, field) FF_COUNT_##name,
typedef enum ff_counter { FF_COUNTERS(FF_COUNTER_ENUM) FF_COUNTER_COUNT } ff_counter;
#undef FF_COUNTER_ENUM

extern uint64_t ff_counters[FF_COUNTER_COUNT];

static inline void ff_count(ff_counter counter) { ff_counters[counter]++; }

#endif
