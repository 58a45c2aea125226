#include "engine/condition.h"

#include "base/number.h"
#include "engine/document.h"

/* A name, type or mode: a string as it is, a number in its server form. NULL for anything else. */
static ff_str *read_text(ff_txn *t, const ff_json *value) {
    switch (ff_json_kind(value)) {
    case FF_JSON_STRING: return ff_str_make(t, ff_json_string(value));
    case FF_JSON_NUMBER: return ff_str_server_number(t, ff_json_number(value));
    default: return NULL;
    }
}

static ff_str *read_text_or(ff_txn *t, const ff_json *value, const ff_word *absent) {
    return ff_json_is_on(value) ? read_text(t, value) : absent->str;
}

static void read_minimum(const ff_json *value, ff_condition *condition) {
    condition->minimum = 1;
    condition->has_minimum = !ff_json_is_on(value) || ff_json_to_number(value, &condition->minimum);
}

static bool is_wildcard(const ff_json *names) {
    if (!ff_json_is_on(names) || ff_json_is_object(names)) return true;
    if (ff_json_is_array(names)) return ff_json_array_length(names) == 0;
    ff_text text = ff_json_string(names);
    return !ff_text_is_absent(text) && text.len == 0;
}

static const char *read_names(ff_txn *t, const ff_json *names, ff_condition *condition) {
    bool wildcard = is_wildcard(names);
    if (!wildcard && !ff_json_is_array(names)) return "required_signal_names must be an array";
    size_t count = wildcard ? 1 : ff_json_array_length(names);
    condition->matchers = ff_arena_array(&t->arena, count, sizeof *condition->matchers);
    condition->matcher_count = count;
    condition->matchers[0] = (ff_matcher){.name = W(empty)->str};
    for (size_t i = 0; !wildcard && i < count; i++) {
        const ff_json *name = ff_json_at(names, i);
        ff_matcher matcher = {.name = read_text(t, name),
                              .numeric = ff_json_kind(name) == FF_JSON_NUMBER};
        if (matcher.name == NULL) return "required_signal_names must hold strings";
        condition->matchers[i] = matcher;
    }
    return NULL;
}

static const char *read_flat(ff_txn *t, const ff_json *document, ff_condition *condition) {
    const char *fault = read_names(t, ff_json_member(document, "required_signal_names"), condition);
    if (fault) return fault;
    condition->type = read_text_or(t, ff_json_member(document, "condition_type"), W(signal_set));
    if (condition->type == NULL) return "condition_type must be a string";
    condition->mode = read_text_or(t, ff_json_member(document, "signal_match_mode"), W(any));
    if (condition->mode == NULL) return "signal_match_mode must be a string";
    read_minimum(ff_json_member(document, "minimum_signal_count"), condition);
    return NULL;
}

static bool is_known_version(const ff_json *version) {
    double number;
    if (!ff_json_is_on(version)) return true;
    return ff_json_to_number(version, &number) && number == 1;
}

static const char *read_composite(ff_txn *t, const ff_json *document, ff_condition *condition) {
    const ff_json *tree = ff_json_member(document, "tree");
    if (tree && !ff_json_is_container(tree) && ff_json_kind(tree) != FF_JSON_STRING) {
        return "tree must be an object";
    }
    condition->composite = true;
    condition->version_known = is_known_version(ff_json_member(document, "v"));
    condition->tree = tree;
    condition->tree_json = W(empty)->str;
    if (tree && condition->version_known) {
        ff_text text = ff_json_write(&t->arena, tree);
        if (ff_text_is_absent(text)) return "tree holds a number that cannot be written";
        condition->tree_json = ff_str_make(t, text);
    }
    return NULL;
}

const char *ff_condition_read(ff_txn *t, const ff_str *text, ff_condition *condition) {
    *condition = (ff_condition){0};
    const ff_json *document = ff_document_read(t, text);
    if (!ff_json_is_container(document) && ff_json_kind(document) != FF_JSON_STRING) {
        return "resume_condition_json must be a JSON object";
    }
    if (ff_json_is_on(ff_json_member(document, "composite"))) {
        return read_composite(t, document, condition);
    }
    return read_flat(t, document, condition);
}

const ff_word *ff_condition_matcher_field(ff_txn *t, size_t index, const ff_word *property) {
    ff_text position = ff_integer_text(&t->arena, (int64_t)index);
    return ff_field(
        t, ff_arena_concat(&t->arena, FF_TEXT("matcher:"), position, FF_TEXT(":"), property->text));
}

static void write_matchers(ff_key *record, const ff_condition *condition) {
    ff_txn *t = ff_key_txn(record);
    for (size_t i = 0; i < condition->matcher_count; i++) {
        const ff_matcher *matcher = &condition->matchers[i];
        ff_hash_set(record, ff_condition_matcher_field(t, i, W(name)), matcher->name);
        ff_hash_set_word(record, ff_condition_matcher_field(t, i, W(satisfied)),
                         matcher->signal_id ? W(one) : W(zero));
        ff_hash_set(record, ff_condition_matcher_field(t, i, W(signal_id)),
                    ff_str_or_empty(matcher->signal_id));
    }
}

static void write_flat(ff_key *record, const ff_condition *condition) {
    ff_hash_set(record, W(condition_type), condition->type);
    ff_hash_set(record, W(match_mode), condition->mode);
    if (condition->has_minimum) {
        ff_hash_set_number(record, W(minimum_signal_count), condition->minimum);
    } else {
        ff_hash_set_word(record, W(minimum_signal_count), W(nil));
    }
    ff_hash_set_number(record, W(total_matchers), (double)condition->matcher_count);
    ff_hash_set_number(record, W(satisfied_count), (double)condition->satisfied_count);
    write_matchers(record, condition);
}

static void write_composite(ff_key *record, const ff_condition *condition) {
    ff_hash_set_word(record, W(composite), W(one));
    ff_hash_set_word(record, W(condition_type), W(composite));
    ff_hash_set_word(record, W(match_mode), W(composite));
    ff_hash_set_word(record, W(minimum_signal_count), W(one));
    ff_hash_set_word(record, W(total_matchers), W(zero));
    ff_hash_set_word(record, W(satisfied_count), W(zero));
    ff_hash_set(record, W(tree_json), condition->tree_json);
}

void ff_condition_write(ff_key *record, const ff_condition *condition) {
    ff_hash_set_word(record, W(closed), W(zero));
    ff_hash_set_now(record, W(updated_at));
    if (condition->composite) {
        write_composite(record, condition);
    } else {
        write_flat(record, condition);
    }
}

/* From the last to the first, so that each list of a name begins with its first matcher. */
static void index_matchers(ff_txn *t, ff_condition *condition) {
    condition->indexed = true;
    for (size_t i = condition->matcher_count; i-- > 0;) {
        ff_matcher *matcher = &condition->matchers[i];
        if (matcher->numeric) continue;
        void **first = ff_table_at(&condition->free, &t->arena, ff_str_text(matcher->name));
        matcher->next = *first;
        *first = matcher;
    }
}

static ff_matcher *first_free(const ff_condition *condition, ff_text name) {
    return ff_text_is_absent(name) ? NULL : ff_table_get(&condition->free, name);
}

void ff_condition_offer(ff_txn *t, ff_condition *condition, const ff_str *name, ff_str *signal_id) {
    if (!condition->indexed) index_matchers(t, condition);
    ff_matcher *taker = first_free(condition, ff_str_text(name));
    ff_matcher *any = first_free(condition, W(empty)->text);
    if (taker == NULL || (any && any < taker)) taker = any;
    if (taker == NULL) return;
    *ff_table_at(&condition->free, &t->arena, ff_str_text(taker->name)) = taker->next;
    taker->signal_id = ff_str_or_empty(signal_id);
    condition->satisfied_count++;
}

ff_condition_state ff_condition_evaluate(const ff_condition *condition) {
    double count = (double)condition->satisfied_count;
    if (ff_str_is(condition->mode, W(all))) {
        return condition->satisfied_count >= condition->matcher_count ? FF_CONDITION_MET
                                                                      : FF_CONDITION_OPEN;
    }
    if (!condition->has_minimum) return FF_CONDITION_BAD_MINIMUM;
    return count >= condition->minimum ? FF_CONDITION_MET : FF_CONDITION_OPEN;
}
