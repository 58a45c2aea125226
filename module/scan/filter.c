#include "scan/filter.h"

#include "base/id.h"
#include "config.h"
#include "engine/keyname.h"

bool ff_filter_is_set(void) {
    return ff_config.filter_namespace.len > 0 || ff_config.filter_tag.len > 0;
}

bool ff_filter_tag_is_valid(ff_text text) {
    return text.len == 0 || (text.ptr[0] != '=' && ff_text_find(text, '=', 0) < text.len);
}

/* A key of the wrong type counts as missing, and must not spoil the transaction of the visit. */
static bool field_equals(ff_txn *t, const ff_reference *id, ff_text execution_id,
                         const char *suffix, ff_text field, ff_text wanted) {
    ff_str *name = ff_keyname_execution(t, id->tag, execution_id, suffix);
    ff_txn_state before = t->state;
    const ff_str *value = ff_hash_peek(t, ff_str_text(name), ff_field(t, field));
    t->state = before;
    return ff_text_equal(ff_str_text(value), wanted);
}

static bool tag_passes(ff_txn *t, const ff_reference *id, ff_text execution_id) {
    ff_text rest = ff_config.filter_tag;
    ff_text name;
    if (rest.len == 0) return true;
    ff_text_split(&rest, '=', &name);
    return field_equals(t, id, execution_id, "tags", name, rest);
}

bool ff_filter_passes(ff_txn *t, ff_text execution_id) {
    ff_reference id;
    if (!ff_filter_is_set()) return true;
    if (!ff_execution_id_parse(execution_id, &id)) return false;
    ff_text wanted = ff_config.filter_namespace;
    if (wanted.len && !field_equals(t, &id, execution_id, "core", FF_TEXT("namespace"), wanted)) {
        return false;
    }
    return tag_passes(t, &id, execution_id);
}
