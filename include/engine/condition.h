/* Resume conditions: which signals end a suspension.
 *
 * A condition comes as a JSON text and is one of two kinds. A flat one is a list of matchers, each of
 * which takes one signal, by name or any; it is met when all of them have one, or as many as a minimum
 * asks for. A composite one is a tree of nodes over the waitpoints of the suspension (engine/tree.h).
 *
 * Beside each waitpoint stands a condition record with the progress so far. Of a flat condition:
 *
 *     condition_type, match_mode, minimum_signal_count   as read; the minimum is `nil` if it was no number
 *     total_matchers, satisfied_count
 *     matcher:<i>:name, :satisfied, :signal_id           from 0; the empty name takes any signal
 *
 * Of a composite one: composite = 1, condition_type and match_mode = composite, minimum_signal_count 1,
 * total_matchers and satisfied_count 0 for ever, and tree_json. Both have closed and updated_at, and once
 * closed also closed_at and closed_reason. */
#ifndef FF_ENGINE_CONDITION_H
#define FF_ENGINE_CONDITION_H

#include "base/json.h"
#include "base/table.h"
#include "store/txn.h"

typedef struct ff_matcher {
    ff_str *name;
    bool numeric;            /* from a number: equals no name before it is recorded */
    ff_str *signal_id;       /* NULL: still free */
    struct ff_matcher *next; /* the next of that name */
} ff_matcher;

typedef struct ff_condition {
    bool composite;
    ff_str *type;
    ff_str *mode;
    bool has_minimum;
    double minimum;
    ff_matcher *matchers;
    size_t matcher_count;
    size_t satisfied_count;
    ff_table free; /* by name, the first matcher that is free; filled in by the first offer */
    bool indexed;
    bool version_known;  /* of a composite one; otherwise no signal will ever match */
    const ff_json *tree; /* NULL: there is none */
    ff_str *tree_json;
} ff_condition;

/* Rule CONDITION: reads the text, which may be NULL. Returns NULL on success, else a sentence that says what
 * is wrong with it. */
const char *ff_condition_read(ff_txn *t, const ff_str *text, ff_condition *condition);

/* Writes the record over whatever is there. */
void ff_condition_write(ff_key *record, const ff_condition *condition);

/* The field matcher:<index>:<property> of a flat record. */
const ff_word *ff_condition_matcher_field(ff_txn *t, size_t index, const ff_word *property);

/* Offers a signal to the free matchers in order; the first that takes it is satisfied. Name and id may be
 * NULL. */
void ff_condition_offer(ff_txn *t, ff_condition *condition, const ff_str *name, ff_str *signal_id);

/* Whether the matchers of a flat condition have what they need. */
typedef enum { FF_CONDITION_OPEN, FF_CONDITION_MET, FF_CONDITION_BAD_MINIMUM } ff_condition_state;
ff_condition_state ff_condition_evaluate(const ff_condition *condition);

#endif
