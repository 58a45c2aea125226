#include "engine/policy.h"

#include "base/capability.h"
#include "engine/document.h"

static bool refuse(ff_result *out, ff_code code, ff_text detail) {
    ff_refuse_with(out, code, ff_str_make(out->txn, detail));
    return false;
}

static bool refuse_list(ff_result *out, const char *problem) {
    ff_text detail = ff_arena_concat(&out->txn->arena, FF_TEXT("required:"), ff_text_of(problem));
    return refuse(out, FF_INVALID_CAPABILITIES, detail);
}

/* Each token goes through all checks before the next one is looked at. */
static bool collect(ff_txn *t, const ff_json *list, ff_text **tokens, ff_result *out) {
    size_t count = ff_json_array_length(list);
    *tokens = ff_arena_array(&t->arena, count, sizeof **tokens);
    for (size_t i = 0; i < count; i++) {
        ff_text token = ff_json_string(ff_json_at(list, i));
        if (ff_text_is_absent(token)) return refuse_list(out, "non_string_token");
        ff_capability_problem problem = ff_capability_check_token(token);
        if (problem) return refuse_list(out, ff_capability_problem_word(problem));
        (*tokens)[i] = token;
    }
    return true;
}

static bool read_list(ff_txn *t, const ff_json *list, ff_text *csv, ff_result *out) {
    ff_text *tokens;
    if (!ff_json_is_container(list)) return refuse_list(out, "not_array");
    if (!collect(t, list, &tokens, out)) return false;
    ff_capability_problem problem =
        ff_capability_required_csv(&t->arena, tokens, ff_json_array_length(list), csv);
    return problem ? refuse_list(out, ff_capability_problem_word(problem)) : true;
}

bool ff_policy_required_capabilities(ff_txn *t, const ff_str *policy, ff_text *csv,
                                     ff_result *out) {
    *csv = FF_TEXT("");
    if (!ff_str_is_set(policy) || ff_text_equal(ff_str_text(policy), FF_TEXT("{}"))) return true;
    const ff_json *document = ff_document_read(t, policy);
    if (document == NULL) return refuse(out, FF_INVALID_POLICY_JSON, FF_TEXT("malformed"));
    const ff_json *routing = ff_json_member(document, "routing_requirements");
    if (routing == NULL) return true;
    if (!ff_json_is_container(routing)) {
        return refuse(out, FF_INVALID_POLICY_JSON, FF_TEXT("routing_requirements:not_object"));
    }
    const ff_json *list = ff_json_member(routing, "required_capabilities");
    return list == NULL || read_list(t, list, csv, out);
}
