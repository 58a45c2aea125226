/* The outcome of a suspend, remembered under an idempotency key so that a repeated call gets the same
 * answer.
 *
 * It is one field of texts between tabs: status, suspension id, waitpoint id, key and token, the number
 * of extra waitpoints, and id, key and token of each. Nothing is escaped: a tab inside a key shifts what
 * a repeated call reads. */
#ifndef FF_ENGINE_OUTCOME_H
#define FF_ENGINE_OUTCOME_H

#include "engine/waitpoint.h"

typedef struct ff_outcome {
    ff_code status; /* FF_OK or FF_ALREADY_SATISFIED */
    ff_str *suspension_id;
    ff_waitpoint waitpoint;
    const ff_waitpoint *extras;
    size_t extra_count;
} ff_outcome;

/* Answers it. */
ff_verdict ff_outcome_answer(const ff_outcome *outcome, ff_result *out);

/* The text to remember. */
ff_str *ff_outcome_text(ff_txn *t, const ff_outcome *outcome);

/* Answers what a text remembers. False, with nothing answered, when it is too short to be one. */
bool ff_outcome_replay(const ff_str *text, ff_result *out, ff_verdict *verdict);

#endif
