#include "engine/resume.h"

#include <math.h>

#include "base/number.h"
#include "engine/score.h"
#include "engine/vector.h"

static void resume_delayed(ff_key *core, const ff_resume *resume) {
    ff_txn *t = ff_key_txn(core);
    ff_text delay = ff_number_text(&t->arena, resume->delay);
    ff_text cause = resume->signal_name ? FF_TEXT(" after signal ") : FF_TEXT("");
    ff_vector_set(
        core, &(ff_vector){.eligibility = W(not_eligible_until_time),
                           .blocking = W(waiting_for_resume_delay),
                           .detail = FF_CONCAT(t, FF_TEXT("resume delay "), delay, FF_TEXT("ms"),
                                               cause, ff_str_text(resume->signal_name)),
                           .public_state = W(delayed)});
    if (t->strict) ff_hash_set_number(core, W(delay_until), t->now + resume->delay);
    ff_zset_add(ff_zset_open(t, resume->delayed), resume->execution_id, t->now + resume->delay);
}

static void resume_eligible(ff_key *core, const ff_resume *resume, double score) {
    ff_vector_set(core, &(ff_vector){.eligibility = W(eligible_now),
                                     .blocking = W(waiting_for_worker),
                                     .detail = W(empty)->str,
                                     .public_state = W(waiting)});
    ff_zset_add(ff_zset_open(ff_key_txn(core), resume->eligible), resume->execution_id, score);
}

const ff_word *ff_resume_core(ff_key *core, const ff_resume *resume) {
    bool delayed = resume->delay > 0;
    double score = 0;
    if (!delayed) {
        const ff_word *bad = ff_score_of(core, &score);
        if (bad) return bad;
        if (isnan(score)) return W(priority);
    }
    ff_vector_set(core, &(ff_vector){.phase = W(runnable),
                                     .ownership = W(unowned),
                                     .outcome = W(none),
                                     .attempt = W(attempt_interrupted)});
    FF_CLEAR(core, W(current_suspension_id), W(current_waitpoint_id));
    ff_vector_set_times(core, ff_str_now(ff_key_txn(core)));
    ff_zset_remove(ff_zset_open(ff_key_txn(core), resume->suspended), resume->execution_id);
    if (delayed) {
        resume_delayed(core, resume);
    } else {
        resume_eligible(core, resume, score);
    }
    return NULL;
}
