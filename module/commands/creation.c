#include "commands/creation.h"

#include "base/capability.h"
#include "commands/place.h"
#include "engine/keyname.h"
#include "engine/policy.h"

static ff_str *partition_number(ff_subject *s) {
    ff_partition partition;
    ff_tag_parse(s->tag, &partition);
    return ff_str_integer(s->txn, partition.number);
}

static ff_verdict create(ff_subject *s, const ff_creation *c, ff_result *out) {
    ff_txn *t = s->txn;
    ff_str *empty = W(empty)->str;
    bool delayed = (double)c->due_at > t->now;
    ff_execution_create_keys keys = {
        .core = s->core_name,
        .payload = c->payload ? ff_subject_key(s, "payload") : NULL,
        .policy = c->policy ? ff_subject_key(s, "policy") : NULL,
        .schedule =
            ff_keyname_lane(t, s->tag, ff_str_text(c->lane), delayed ? "delayed" : "eligible"),
        .idempotency = c->idempotency,
        .deadlines = c->has_deadline ? ff_subject_index(s, "execution_deadline") : NULL,
        .all_executions = ff_subject_index(s, "all_executions"),
    };
    ff_execution_create_args args = {
        .execution_id = s->execution_id,
        .namespace = c->namespace,
        .lane_id = c->lane,
        .execution_kind = c->kind,
        .priority = ff_str_integer(t, c->priority),
        .creator_identity = ff_str_or_empty(c->creator),
        .policy_json = ff_str_or_empty(c->policy),
        .input_payload = ff_str_or_empty(c->payload),
        .delay_until = delayed ? ff_str_integer(t, c->due_at) : empty,
        .dedup_ttl_ms = ff_str_integer(t, c->remember_ms),
        .tags_json = empty,
        .execution_deadline_at = c->has_deadline ? ff_str_integer(t, c->deadline_at) : empty,
        .partition_id = partition_number(s),
    };
    return ff_execution_create(t, &keys, &args, out);
}

ff_verdict ff_creation_stage(ff_subject *s, const ff_creation *c, ff_result *out) {
    ff_txn *t = s->txn;
    ff_verdict verdict = create(s, c, out);
    if (out->code != FF_OK) return verdict;
    if (c->capabilities) ff_hash_set(s->core, W(required_capabilities), c->capabilities);
    if (c->budget_ids) ff_hash_set(s->core, W(budget_ids), c->budget_ids);
    if (c->quota_id) ff_hash_set(s->core, W(quota_policy_id), c->quota_id);
    if (c->tags.count == 0) return verdict;
    ff_key *tags = ff_hash_open(t, ff_subject_key(s, "tags"));
    for (size_t i = 0; i < c->tags.count; i += 2) {
        ff_hash_set(tags, ff_field_str(t, c->tags.items[i]), c->tags.items[i + 1]);
    }
    return verdict;
}

static bool refuse_capabilities(ff_request *r, ff_capability_problem problem) {
    ff_text word = ff_text_of(ff_capability_problem_word(problem));
    ff_refuse_with(&r->result, FF_INVALID_CAPABILITIES,
                   FF_CONCAT(&r->txn, FF_TEXT("required:"), word));
    return false;
}

bool ff_request_capabilities(ff_request *r, ff_str *policy, ff_text csv, ff_str **capabilities) {
    ff_txn *t = &r->txn;
    ff_text in_policy;
    ff_text sorted;
    *capabilities = NULL;
    if (!ff_policy_required_capabilities(t, policy, &in_policy, &r->result)) return false;
    if (!ff_text_is_set(csv)) return true;
    if (in_policy.len) {
        ff_request_refuse(r, FF_TEXT("CAPS excludes a POLICY that names required_capabilities"));
        return false;
    }
    size_t count = 0;
    ff_text tokens[FF_CAPABILITY_TOKENS_MAX + 1];
    while (count <= FF_CAPABILITY_TOKENS_MAX && ff_text_split(&csv, ',', &tokens[count])) count++;
    ff_capability_problem problem = ff_capability_required_csv(&t->arena, tokens, count, &sorted);
    if (problem) return refuse_capabilities(r, problem);
    *capabilities = ff_str_make(t, sorted);
    return true;
}

bool ff_request_budget_ids(ff_request *r, ff_text_list references, ff_str **ids) {
    ff_buffer line;
    ff_reference budget;
    *ids = NULL;
    ff_buffer_init(&line, &r->txn.arena);
    for (size_t i = 0; i < references.count; i++) {
        if (!ff_request_reference(r, references.items[i], FF_FAMILY_BUDGET, &budget)) return false;
        if (i) ff_buffer_append_byte(&line, ',');
        ff_buffer_append(&line, ff_str_text(ff_reference_id(&r->txn, &budget)));
    }
    if (line.len) *ids = ff_str_make(&r->txn, ff_buffer_text(&line));
    return true;
}

bool ff_request_quota_id(ff_request *r, ff_text reference, ff_str **id) {
    ff_reference quota;
    *id = NULL;
    if (ff_text_is_absent(reference)) return true;
    if (!ff_request_reference(r, reference, FF_FAMILY_QUOTA, &quota)) return false;
    *id = ff_reference_id(&r->txn, &quota);
    return true;
}
