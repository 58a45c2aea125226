#include "engine/satisfied.h"

static ff_tokens_kind kind_of(ff_text token) {
    if (ff_text_starts_with(token, FF_TEXT("wp:"))) return FF_TOKENS_OF_WAITPOINTS;
    if (ff_text_starts_with(token, FF_TEXT("sig:"))) return FF_TOKENS_OF_SIGNALS;
    if (ff_text_starts_with(token, FF_TEXT("src:"))) return FF_TOKENS_OF_SOURCES;
    return FF_TOKENS_OTHER;
}

static bool learn(ff_satisfied *satisfied, ff_text token) {
    void **known = ff_table_at(&satisfied->tokens, &satisfied->txn->arena, token);
    if (*known) return false;
    *known = satisfied;
    satisfied->counts[kind_of(token)]++;
    return true;
}

void ff_satisfied_open(ff_txn *t, ff_str *name, ff_satisfied *satisfied) {
    *satisfied = (ff_satisfied){.txn = t, .set = ff_set_open(t, name)};
    ff_strs members = ff_set_members(satisfied->set);
    for (size_t i = 0; i < members.count; i++) learn(satisfied, ff_str_text(members.items[i]));
}

bool ff_satisfied_add(ff_satisfied *satisfied, ff_text token) {
    if (!learn(satisfied, token)) return false;
    ff_set_add(satisfied->set, ff_str_make(satisfied->txn, token));
    return true;
}

bool ff_satisfied_has(const ff_satisfied *satisfied, ff_text token) {
    return ff_table_get(&satisfied->tokens, token) != NULL;
}
