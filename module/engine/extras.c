#include "engine/extras.h"

#include "engine/document.h"
#include "engine/keyname.h"

void ff_closing_write_suspension(ff_key *suspension, const ff_closing *closing) {
    if (closing->satisfied) ff_hash_set_now(suspension, W(satisfied_at));
    ff_hash_set_now(suspension, W(closed_at));
    ff_hash_set_word(suspension, W(close_reason), closing->reason);
}

void ff_closing_write_waitpoint(ff_key *waitpoint, const ff_closing *closing) {
    ff_hash_set_word(waitpoint, W(state), W(closed));
    if (closing->satisfied) ff_hash_set_now(waitpoint, W(satisfied_at));
    ff_hash_set_now(waitpoint, W(closed_at));
    ff_hash_set_word(waitpoint, W(close_reason), closing->reason);
}

void ff_closing_write_condition(ff_key *condition, const ff_closing *closing) {
    const ff_word *reason = closing->condition_reason ? closing->condition_reason : closing->reason;
    ff_hash_set_word(condition, W(closed), W(one));
    ff_hash_set_now(condition, W(closed_at));
    ff_hash_set_word(condition, W(closed_reason), reason);
}

bool ff_extras_parse(ff_txn *t, const ff_str *suspension, const ff_str *list, ff_extras *extras,
                     ff_result *out) {
    *extras = (ff_extras){.tag = ff_tag_of(suspension)};
    if (ff_text_is_absent(extras->tag) || !ff_str_is_set(list)) return true;
    const ff_json *entries = ff_document_read(t, list);
    size_t count = ff_json_array_length(entries);
    extras->waitpoint_ids = ff_arena_array(&t->arena, count, sizeof *extras->waitpoint_ids);
    for (size_t i = 0; i < count; i++) {
        const ff_json *entry = ff_json_at(entries, i);
        if (!ff_json_is_container(entry) && ff_json_kind(entry) != FF_JSON_STRING) {
            ff_bad_input(out, "additional_waitpoints_json has an entry that is no object");
            return false;
        }
        ff_text id = ff_json_string(ff_json_member(entry, "waitpoint_id"));
        if (ff_text_is_set(id)) extras->waitpoint_ids[extras->count++] = id;
    }
    return true;
}

void ff_extras_close(ff_txn *t, const ff_extras *extras, const ff_closing *closing) {
    for (size_t i = 0; i < extras->count; i++) {
        ff_text id = extras->waitpoint_ids[i];
        ff_key *waitpoint = ff_hash_open(t, ff_keyname_waitpoint(t, extras->tag, id, ""));
        if (ff_key_exists(waitpoint)) ff_closing_write_waitpoint(waitpoint, closing);
        ff_key *condition = ff_hash_open(t, ff_keyname_waitpoint(t, extras->tag, id, ":condition"));
        if (ff_key_exists(condition)) ff_closing_write_condition(condition, closing);
    }
}

void ff_waits_close_condition(ff_txn *t, const ff_str *waitpoint, const ff_closing *closing) {
    ff_key *condition =
        ff_hash_open(t, FF_CONCAT(t, ff_str_text(waitpoint), FF_TEXT(":condition")));
    if (!ff_key_exists(condition)) return;
    if (ff_str_is(ff_hash_get(condition, W(closed)), W(one))) return;
    ff_closing_write_condition(condition, closing);
}

static void close_open(ff_txn *t, ff_text tag, ff_text id, const ff_closing *closing) {
    ff_key *waitpoint = ff_hash_open(t, ff_keyname_waitpoint(t, tag, id, ""));
    if (ff_key_exists(waitpoint) && !ff_str_is(ff_hash_get(waitpoint, W(state)), W(closed))) {
        ff_closing_write_waitpoint(waitpoint, closing);
    }
    ff_waits_close_condition(t, ff_key_name(waitpoint), closing);
}

void ff_waits_close(ff_key *suspension, const ff_extras *extras, const ff_closing *closing) {
    ff_txn *t = ff_key_txn(suspension);
    ff_text first = ff_str_text(ff_hash_get(suspension, W(waitpoint_id)));
    if (ff_text_is_absent(extras->tag)) return;
    if (ff_text_is_set(first)) close_open(t, extras->tag, first, closing);
    for (size_t i = 0; i < extras->count; i++) {
        close_open(t, extras->tag, extras->waitpoint_ids[i], closing);
    }
}

static void clear(ff_txn *t, const ff_str *suspension, ff_text suffix) {
    ff_key_delete(ff_any_open(t, FF_CONCAT(t, ff_str_text(suspension), suffix)));
}

void ff_tree_clear(ff_txn *t, const ff_str *suspension) {
    clear(t, suspension, FF_TEXT(":satisfied_set"));
    clear(t, suspension, FF_TEXT(":satisfied_set:signals"));
    clear(t, suspension, FF_TEXT(":member_map"));
}
