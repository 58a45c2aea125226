#include "engine/pause.h"

#include <math.h>

#include "engine/lease.h"
#include "engine/vector.h"

void ff_attempt_suspend(ff_key *attempt, ff_str *suspension_id) {
    ff_hash_set_word(attempt, W(attempt_state), W(suspended));
    ff_hash_set_now(attempt, W(suspended_at));
    ff_hash_set(attempt, W(suspension_id), suspension_id);
}

/* What the two pauses have in common. */
typedef struct parking {
    ff_str *attempt, *history, *execution_id;
    ff_lease_places places;
    ff_fence fence;
    const ff_word *reason;
    ff_vector vector;
} parking;

/* Rule PAUSE, without the entry in the index where the execution is to wait. */
static void park(ff_key *core, const parking *p) {
    ff_txn *t = ff_key_txn(core);
    ff_str *index = ff_hash_get(core, W(current_attempt_index));
    ff_vector_set(core, &p->vector);
    ff_vector_set_times(core, ff_str_now(t));
    ff_attempt_suspend(ff_hash_open(t, p->attempt), p->reason->str);
    ff_lease_release(core, &p->places, p->execution_id);
    ff_lease_note_release(t, p->history, &p->fence, index, p->reason->str);
}

ff_verdict ff_execution_delay(ff_txn *t, const ff_execution_delay_keys *k,
                              const ff_execution_delay_args *a, ff_result *out) {
    ff_fence fence = {a->lease_id, a->lease_epoch, a->attempt_id};
    ff_str *delay_until = ff_str_or_empty(a->delay_until);
    ff_verdict verdict;
    double due;
    ff_key *core = ff_hash_open(t, k->core);
    if (!ff_lease_gate(core, k->history, &fence, a->source, out, &verdict)) return verdict;
    if (!ff_str_to_number(delay_until, &due) || isnan(due)) {
        return ff_not_a_number(out, "delay_until", delay_until);
    }

    ff_str *detail = FF_CONCAT(t, FF_TEXT("delayed until "), ff_str_text(delay_until));
    park(core,
         &(parking){
             .attempt = k->attempt,
             .history = k->history,
             .execution_id = a->execution_id,
             .places = {k->lease, k->lease_expiry, k->worker_leases, k->active, k->attempt_timeout},
             .fence = fence,
             .reason = W(worker_delay),
             .vector = {W(runnable), W(unowned), W(not_eligible_until_time), W(waiting_for_delay),
                        W(none), W(attempt_interrupted), W(delayed), detail},
         });
    ff_hash_set(core, W(delay_until), delay_until);
    ff_zset_add(ff_zset_open(t, k->delayed), a->execution_id, due);
    ff_result_add(out, delay_until);
    return ff_ok(out);
}

ff_verdict ff_execution_wait_children(ff_txn *t, const ff_execution_wait_children_keys *k,
                                      const ff_execution_wait_children_args *a, ff_result *out) {
    ff_fence fence = {a->lease_id, a->lease_epoch, a->attempt_id};
    ff_verdict verdict;
    double created_at;
    ff_key *core = ff_hash_open(t, k->core);
    if (!ff_lease_gate(core, k->history, &fence, a->source, out, &verdict)) return verdict;
    if (ff_hash_number(core, W(created_at), &created_at) == FF_NUMBER_BAD || isnan(created_at)) {
        return ff_not_a_number(out, "created_at", ff_hash_get(core, W(created_at)));
    }

    park(core,
         &(parking){
             .attempt = k->attempt,
             .history = k->history,
             .execution_id = a->execution_id,
             .places = {k->lease, k->lease_expiry, k->worker_leases, k->active, k->attempt_timeout},
             .fence = fence,
             .reason = W(waiting_children),
             .vector = {W(runnable), W(unowned), W(blocked_by_dependencies),
                        W(waiting_for_children), W(none), W(attempt_interrupted),
                        W(waiting_children), W(waiting_children_detail)->str},
         });
    ff_zset_add(ff_zset_open(t, k->blocked_dependencies), a->execution_id, created_at);
    return ff_ok(out);
}
