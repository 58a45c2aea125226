#include "engine/outcome.h"

#include "base/number.h"

enum {
    FIELDS_BEFORE_COUNT = 5,
    FIELDS_PER_EXTRA = 3,
    REPLAYED_EXTRAS_MAX = 65536, /* a shifted count must not fill the memory */
};

ff_verdict ff_outcome_answer(const ff_outcome *outcome, ff_result *out) {
    ff_result_add(out, outcome->suspension_id);
    ff_result_add(out, outcome->waitpoint.id);
    ff_result_add(out, outcome->waitpoint.key);
    ff_result_add(out, outcome->waitpoint.token);
    ff_result_add_number(out, (double)outcome->extra_count);
    for (size_t i = 0; i < outcome->extra_count; i++) {
        ff_result_add(out, outcome->extras[i].id);
        ff_result_add(out, outcome->extras[i].key);
        ff_result_add(out, outcome->extras[i].token);
    }
    return ff_succeed(out, outcome->status);
}

static void append(ff_buffer *text, const ff_str *field) {
    ff_buffer_append_byte(text, '\t');
    ff_buffer_append(text, ff_text_or_empty(ff_str_text(field)));
}

static void append_waitpoint(ff_buffer *text, const ff_waitpoint *waitpoint) {
    append(text, waitpoint->id);
    append(text, waitpoint->key);
    append(text, waitpoint->token);
}

ff_str *ff_outcome_text(ff_txn *t, const ff_outcome *outcome) {
    ff_buffer text;
    ff_buffer_init(&text, &t->arena);
    ff_buffer_append(&text, ff_text_of(ff_code_word(outcome->status)));
    append(&text, outcome->suspension_id);
    append_waitpoint(&text, &outcome->waitpoint);
    append(&text, ff_str_integer(t, (int64_t)outcome->extra_count));
    for (size_t i = 0; i < outcome->extra_count; i++) append_waitpoint(&text, &outcome->extras[i]);
    return ff_str_make(t, ff_buffer_text(&text));
}

/* The next field as a value; an absent one is empty. */
static ff_str *take(ff_txn *t, ff_text *rest) {
    ff_text field = FF_TEXT("");
    ff_text_split(rest, '\t', &field);
    return ff_str_make(t, field);
}

static bool is_long_enough(ff_text text) {
    size_t fields = 1;
    for (size_t i = 0; i < text.len; i++) fields += text.ptr[i] == '\t';
    return fields >= FIELDS_BEFORE_COUNT;
}

bool ff_outcome_replay(const ff_str *text, ff_result *out, ff_verdict *verdict) {
    ff_txn *t = out->txn;
    ff_text rest = ff_str_text(text);
    ff_text status;
    double extras;
    if (ff_text_is_absent(rest) || !is_long_enough(rest)) return false;
    ff_text_split(&rest, '\t', &status);
    for (int i = 1; i < FIELDS_BEFORE_COUNT; i++) ff_result_add(out, take(t, &rest));
    if (!ff_str_to_number(take(t, &rest), &extras) || !(extras >= 1)) extras = 0;
    if (extras > REPLAYED_EXTRAS_MAX) {
        *verdict = ff_bad_input(out, "the remembered outcome counts too many extra waitpoints");
        return true;
    }
    size_t count = (size_t)extras;
    ff_result_add_number(out, (double)count);
    for (size_t i = 0; i < count * FIELDS_PER_EXTRA; i++) ff_result_add(out, take(t, &rest));
    bool satisfied = ff_text_equal_cstr(status, ff_code_word(FF_ALREADY_SATISFIED));
    *verdict = ff_succeed(out, satisfied ? FF_ALREADY_SATISFIED : FF_OK);
    return true;
}
