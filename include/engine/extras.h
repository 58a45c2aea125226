/* Closing what a suspension has open: its waitpoints, their conditions, and the state of a composite
 * condition.
 *
 * A suspension has one waitpoint that the callers name, and may have further ones, the extras, which only
 * its own record lists (additional_waitpoints_json). Whatever ends the suspension closes all of them. */
#ifndef FF_ENGINE_EXTRAS_H
#define FF_ENGINE_EXTRAS_H

#include "engine/result.h"

/* Why and how a wait ends. */
typedef struct ff_closing {
    const ff_word *reason;
    const ff_word *condition_reason; /* NULL: the same reason on conditions */
    bool satisfied;                  /* writes satisfied_at, except on conditions */
} ff_closing;

/* Stage the closing fields, whether or not the record exists. */
void ff_closing_write_suspension(ff_key *suspension, const ff_closing *closing);
void ff_closing_write_waitpoint(ff_key *waitpoint, const ff_closing *closing);
void ff_closing_write_condition(ff_key *condition, const ff_closing *closing);

/* The extra waitpoints of a suspension. */
typedef struct ff_extras {
    ff_text tag;
    ff_text *waitpoint_ids;
    size_t count;
} ff_extras;

/* Rule EXTRAS-CLOSE, what must be found out before anything is refused or written: reads the list text
 * (NULL when there is none) of the suspension with that key. False, with the refusal in `out`, when an
 * entry is a number, a boolean or null. */
bool ff_extras_parse(ff_txn *t, const ff_str *suspension, const ff_str *list, ff_extras *extras,
                     ff_result *out);

/* Rule EXTRAS-CLOSE, the rest: closes those waitpoints and conditions that exist. */
void ff_extras_close(ff_txn *t, const ff_extras *extras, const ff_closing *closing);

/* Closes whatever is still open of a suspension: the waitpoints that its record names, the first
 * one included, and their conditions. What the wire functions leave open lets an old token end
 * the next suspension. */
void ff_waits_close(ff_key *suspension, const ff_extras *extras, const ff_closing *closing);

/* The same for the condition of one waitpoint, given the key of the waitpoint's record. */
void ff_waits_close_condition(ff_txn *t, const ff_str *waitpoint, const ff_closing *closing);

/* Rule TREE-CLEAR: deletes the state of a composite condition. */
void ff_tree_clear(ff_txn *t, const ff_str *suspension);

#endif
