#include "engine/matcher.h"

#include "base/number.h"
#include "engine/condition.h"

enum { NO_MATCHER = -1 };

/* The i of a field matcher:<i>:satisfied. */
static bool read_position(ff_text field, int64_t *position) {
    const ff_text before = FF_TEXT("matcher:");
    const ff_text after = FF_TEXT(":satisfied");
    if (field.len <= before.len + after.len || !ff_text_starts_with(field, before)) return false;
    size_t end = field.len - after.len;
    return ff_text_equal(ff_text_slice(field, end, field.len), after) &&
           ff_integer_parse(ff_text_slice(field, before.len, end), position) && *position >= 0;
}

static bool accepts(ff_key *condition, int64_t position, const ff_str *name) {
    const ff_str *wanted = ff_hash_get(
        condition, ff_condition_matcher_field(ff_key_txn(condition), (size_t)position, W(name)));
    return !ff_str_is_set(wanted) || ff_str_equal(wanted, name);
}

/* The first matcher that is free and takes the name. Looks at the fields that are there instead of
 * counting up to `total`, which is only a number that somebody stored. */
static int64_t find_taker(ff_key *condition, double total, const ff_str *name) {
    int64_t found = NO_MATCHER;
    int64_t position;
    size_t cursor = 0;
    const ff_word *field;
    ff_str *value;
    while (ff_hash_next(condition, &cursor, &field, &value)) {
        if (!ff_str_is(value, W(zero)) || !read_position(field->text, &position)) continue;
        if (found != NO_MATCHER && position > found) continue;
        if ((double)position <= total - 1 && accepts(condition, position, name)) found = position;
    }
    return found;
}

static const ff_word *refuse_field(ff_key *condition, const ff_word *field, ff_result *out) {
    ff_not_a_number_field(out, field, ff_hash_get(condition, field));
    return NULL;
}

static const ff_word *effect_of(bool met) {
    return met ? W(resume_condition_satisfied) : W(appended_to_waitpoint);
}

const ff_word *ff_matcher_deliver(ff_key *condition, const ff_str *name, ff_str *signal_id,
                                  ff_result *out) {
    ff_txn *t = ff_key_txn(condition);
    double total;
    double count;
    double minimum;
    if (ff_hash_number(condition, W(total_matchers), &total) == FF_NUMBER_BAD) {
        return refuse_field(condition, W(total_matchers), out);
    }
    int64_t taker = find_taker(condition, total, name);
    if (taker == NO_MATCHER) return W(no_op);
    if (ff_hash_number(condition, W(satisfied_count), &count) == FF_NUMBER_BAD) {
        return refuse_field(condition, W(satisfied_count), out);
    }
    count += 1;
    ff_hash_set_word(condition, ff_condition_matcher_field(t, (size_t)taker, W(satisfied)), W(one));
    ff_hash_set(condition, ff_condition_matcher_field(t, (size_t)taker, W(signal_id)), signal_id);
    ff_hash_set_number(condition, W(satisfied_count), count);

    if (ff_str_is(ff_hash_get(condition, W(match_mode)), W(all))) return effect_of(count >= total);
    switch (ff_hash_number(condition, W(minimum_signal_count), &minimum)) {
    case FF_NUMBER_ABSENT: minimum = 1; break;
    case FF_NUMBER_BAD: return refuse_field(condition, W(minimum_signal_count), out);
    case FF_NUMBER_GOOD: break;
    }
    return effect_of(count >= minimum);
}
