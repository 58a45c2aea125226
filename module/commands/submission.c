/* FF.FLOW SUBMIT: a whole flow from one document, all of it or none.
 *
 * The document is read completely before anything is staged, and everything is staged in one transaction:
 * nobody can claim a member before its edges are there. */

#include "base/json.h"
#include "base/jsonslice.h"
#include "base/number.h"
#include "commands/command.h"
#include "commands/creation.h"
#include "commands/graph.h"
#include "commands/place.h"
#include "engine/flow.h"
#include "engine/mint.h"

/* What one call may ask of the server; written down in docs/commands.md. */
enum {
    DOCUMENT_BYTES_MOST = 16 * 1024 * 1024,
    MEMBERS_MOST = 10000,
    EDGES_MOST = 20000,
    VALUES_MOST = 500000,
    NAME_BYTES_MOST = 128,
};

typedef struct member {
    ff_text name;
    ff_text source; /* its piece of the document */
    ff_creation creation;
    ff_text capabilities;
    ff_text_list budgets;
    ff_text quota;
    const ff_json *after_names;
    const struct member **after;
    size_t after_count;
    ff_join join;
    ff_subject subject;
    size_t waits_for; /* while the order is looked for */
} member;

typedef struct submission {
    ff_request *r;
    ff_text source;
    ff_json *document;
    ff_str *kind, *namespace;
    ff_strs tags;
    const ff_json *member_list;
    member *members;
    size_t count;
    size_t edge_count;
    ff_table by_name;
} submission;

/* ---- Refusals ---- */

/* "member 3 ('charge')"; the name only once it is known. */
static ff_text member_text(submission *s, const member *m) {
    ff_arena *arena = &s->r->txn.arena;
    ff_text text = ff_arena_printf(arena, "member %zu", (size_t)(m - s->members));
    if (!ff_text_is_set(m->name)) return text;
    return ff_arena_concat(arena, text, FF_TEXT(" ('"), ff_arena_printable(arena, m->name),
                           FF_TEXT("')"));
}

/* `m` is NULL for the document itself. */
static bool refuse(submission *s, const member *m, ff_text what, const char *why) {
    ff_arena *arena = &s->r->txn.arena;
    ff_text where = m ? ff_arena_concat(arena, member_text(s, m), FF_TEXT(": ")) : FF_TEXT("");
    ff_request_refuse(s->r, ff_arena_concat(arena, where, ff_arena_printable(arena, what),
                                            FF_TEXT(" "), ff_text_of(why)));
    return false;
}

/* Says which member a refusal of somebody else's is about. */
static bool refused_for(submission *s, const member *m) {
    ff_request *r = s->r;
    ff_text where = member_text(s, m);
    if (ff_text_is_absent(r->error)) {
        ff_result_add(&r->result, ff_str_make(&r->txn, where));
        return false;
    }
    const ff_text word = FF_TEXT("ERR ");
    ff_text sentence = ff_text_slice(r->error, word.len, r->error.len);
    ff_request_refuse(r, ff_arena_concat(&r->txn.arena, where, FF_TEXT(": "), sentence));
    return false;
}

/* ---- Values ---- */

static bool read_text(submission *s, const member *m, ff_text name, const ff_json *value,
                      ff_str **out) {
    ff_text text = ff_json_string(value);
    if (ff_text_is_absent(text)) return refuse(s, m, name, "must be a string");
    *out = ff_str_make(&s->r->txn, text);
    return true;
}

static bool read_nonempty(submission *s, const member *m, ff_text name, const ff_json *value,
                          ff_str **out) {
    if (!read_text(s, m, name, value, out)) return false;
    return ff_str_is_set(*out) || refuse(s, m, name, "must not be empty");
}

static bool read_integer(submission *s, const member *m, ff_text name, const ff_json *value,
                         int64_t most, int64_t *out) {
    bool whole =
        ff_json_kind(value) == FF_JSON_NUMBER && ff_number_to_integer(ff_json_number(value), out);
    if (whole && *out >= 0 && *out <= most) return true;
    ff_text why = ff_arena_printf(&s->r->txn.arena, "must be a whole number between 0 and %lld",
                                  (long long)most);
    return refuse(s, m, name, why.ptr);
}

static bool read_tags(submission *s, const member *m, ff_text name, const ff_json *value,
                      ff_strs *out) {
    ff_txn *t = &s->r->txn;
    if (!ff_json_is_object(value)) return refuse(s, m, name, "must be an object of strings");
    size_t count = ff_json_object_length(value);
    *out = (ff_strs){ff_arena_array(&t->arena, count * 2, sizeof(ff_str *)), 0};
    ff_json_walk walk = ff_json_members(value);
    while (ff_json_next(&walk, &t->arena)) {
        ff_text text = ff_json_string(walk.value);
        if (ff_text_is_absent(text)) return refuse(s, m, name, "must be an object of strings");
        out->items[out->count++] = ff_str_make(t, walk.name);
        out->items[out->count++] = ff_str_make(t, text);
    }
    return true;
}

static bool read_list(submission *s, const member *m, ff_text name, const ff_json *value,
                      ff_text_list *out) {
    size_t count = ff_json_array_length(value);
    if (!ff_json_is_array(value)) return refuse(s, m, name, "must be an array of strings");
    ff_text *items = ff_arena_array(&s->r->txn.arena, count, sizeof *items);
    for (size_t i = 0; i < count; i++) {
        items[i] = ff_json_string(ff_json_at(value, i));
        if (ff_text_is_absent(items[i])) return refuse(s, m, name, "must be an array of strings");
    }
    *out = (ff_text_list){items, count};
    return true;
}

/* ---- The fields of a member ---- */

static bool read_name(submission *s, member *m, ff_text name, const ff_json *value) {
    ff_text text = ff_json_string(value);
    if (text.len == 0 || text.len > NAME_BYTES_MOST) {
        return refuse(s, m, name, "must be a string of 1 to 128 bytes");
    }
    m->name = text;
    return true;
}

static bool read_lane(submission *s, member *m, ff_text name, const ff_json *value) {
    if (!ff_lane_is_valid(ff_json_string(value))) {
        return refuse(s, m, name, "must be a string of 1 to 64 printable ASCII characters");
    }
    return read_text(s, m, name, value, &m->creation.lane);
}

static bool read_kind(submission *s, member *m, ff_text name, const ff_json *value) {
    return read_nonempty(s, m, name, value, &m->creation.kind);
}

static bool read_payload(submission *s, member *m, ff_text name, const ff_json *value) {
    return read_text(s, m, name, value, &m->creation.payload);
}

static bool read_priority(submission *s, member *m, ff_text name, const ff_json *value) {
    return read_integer(s, m, name, value, FF_CREATION_PRIORITY_MOST, &m->creation.priority);
}

/* Stored as it is spelled: it is the clients' own but for a few members. */
static bool read_policy(submission *s, member *m, ff_text name, const ff_json *value) {
    if (!ff_json_is_object(value)) return refuse(s, m, name, "must be an object");
    ff_text text = ff_json_slice_member(m->source, name);
    if (ff_text_is_absent(text)) text = ff_json_write(&s->r->txn.arena, value);
    if (ff_text_is_absent(text)) return refuse(s, m, name, "holds a number that is not finite");
    m->creation.policy = ff_str_make(&s->r->txn, text);
    return true;
}

static bool read_caps(submission *s, member *m, ff_text name, const ff_json *value) {
    ff_text_list list;
    m->capabilities = ff_json_string(value);
    if (!ff_text_is_absent(m->capabilities)) return true;
    if (!ff_json_is_array(value)) {
        return refuse(s, m, name, "must be a comma-separated string or an array of strings");
    }
    if (!read_list(s, m, name, value, &list)) return false;
    ff_buffer csv;
    ff_buffer_init(&csv, &s->r->txn.arena);
    for (size_t i = 0; i < list.count; i++) {
        if (ff_text_find(list.items[i], ',', 0) < list.items[i].len) {
            return refuse(s, m, name, "must not have a comma inside a capability");
        }
        if (i) ff_buffer_append_byte(&csv, ',');
        ff_buffer_append(&csv, list.items[i]);
    }
    m->capabilities = ff_buffer_text(&csv);
    return true;
}

static bool read_member_tags(submission *s, member *m, ff_text name, const ff_json *value) {
    return read_tags(s, m, name, value, &m->creation.tags);
}

static bool read_delay(submission *s, member *m, ff_text name, const ff_json *value) {
    int64_t delay;
    if (!read_integer(s, m, name, value, FF_MILLISECONDS_MAX, &delay)) return false;
    if (delay > 0) m->creation.due_at = (int64_t)s->r->txn.now + delay;
    return true;
}

static bool read_deadline(submission *s, member *m, ff_text name, const ff_json *value) {
    m->creation.has_deadline = true;
    return read_integer(s, m, name, value, FF_MILLISECONDS_MAX, &m->creation.deadline_at);
}

static bool read_budgets(submission *s, member *m, ff_text name, const ff_json *value) {
    return read_list(s, m, name, value, &m->budgets);
}

static bool read_quota(submission *s, member *m, ff_text name, const ff_json *value) {
    m->quota = ff_json_string(value);
    return !ff_text_is_absent(m->quota) || refuse(s, m, name, "must be a string");
}

static bool read_after(submission *s, member *m, ff_text name, const ff_json *value) {
    ff_text_list names;
    m->after_names = value;
    if (!read_list(s, m, name, value, &names)) return false;
    m->after_count = names.count;
    s->edge_count += names.count;
    if (s->edge_count <= EDGES_MOST) return true;
    return refuse(s, m, name, "makes more than 20000 edges in one document");
}

static bool read_join(submission *s, member *m, ff_text name, const ff_json *value) {
    ff_text word = ff_json_string(value);
    const ff_json *quorum = ff_json_member(value, "quorum");
    if (ff_text_equal(word, W(all_of)->text)) {
        m->join.variant = W(all_of);
    } else if (ff_text_equal(word, W(any_of)->text)) {
        m->join.variant = W(any_of);
    } else if (quorum && ff_json_object_length(value) == 1) {
        m->join.variant = W(quorum);
        return read_integer(s, m, FF_TEXT("join.quorum"), quorum, EDGES_MOST, &m->join.k);
    } else {
        return refuse(s, m, name, "must be \"all_of\", \"any_of\" or {\"quorum\": k}");
    }
    return true;
}

static bool read_on_satisfied(submission *s, member *m, ff_text name, const ff_json *value) {
    ff_text word = ff_json_string(value);
    if (ff_text_equal(word, W(cancel_remaining)->text)) {
        m->join.on_satisfied = W(cancel_remaining);
    } else if (ff_text_equal(word, W(let_run)->text)) {
        m->join.on_satisfied = W(let_run);
    } else {
        return refuse(s, m, name, "must be \"cancel_remaining\" or \"let_run\"");
    }
    return true;
}

/* ---- The fields of the document ---- */

static bool read_flow_kind(submission *s, member *m, ff_text name, const ff_json *value) {
    return read_nonempty(s, m, name, value, &s->kind);
}

static bool read_namespace(submission *s, member *m, ff_text name, const ff_json *value) {
    return read_nonempty(s, m, name, value, &s->namespace);
}

static bool read_flow_tags(submission *s, member *m, ff_text name, const ff_json *value) {
    return read_tags(s, m, name, value, &s->tags);
}

static bool read_members(submission *s, member *m, ff_text name, const ff_json *value) {
    s->member_list = value;
    s->count = ff_json_array_length(value);
    if (s->count > 0 && s->count <= MEMBERS_MOST) return true;
    return refuse(s, m, name, "must be an array of 1 to 10000 objects");
}

typedef struct field {
    const char *name;
    bool (*read)(submission *s, member *m, ff_text name, const ff_json *value);
} field;

static const field document_fields[] = {
    {"kind", read_flow_kind},
    {"namespace", read_namespace},
    {"tags", read_flow_tags},
    {"members", read_members},
    {NULL, NULL},
};

static const field member_fields[] = {
    {"name", read_name},
    {"lane", read_lane},
    {"kind", read_kind},
    {"payload", read_payload},
    {"priority", read_priority},
    {"policy", read_policy},
    {"caps", read_caps},
    {"tags", read_member_tags},
    {"delay_ms", read_delay},
    {"deadline_at", read_deadline},
    {"budgets", read_budgets},
    {"quota", read_quota},
    {"after", read_after},
    {"join", read_join},
    {"on_satisfied", read_on_satisfied},
    {NULL, NULL},
};

static bool read_field(submission *s, member *m, const field *fields, const ff_json_walk *at) {
    for (; fields->name; fields++) {
        if (ff_text_equal_cstr(at->name, fields->name)) {
            return fields->read(s, m, at->name, at->value);
        }
    }
    return refuse(s, m, at->name, "is not a known member");
}

static bool read_object(submission *s, member *m, const field *fields, const ff_json *object) {
    ff_json_walk walk = ff_json_members(object);
    while (ff_json_next(&walk, &s->r->txn.arena)) {
        if (!read_field(s, m, fields, &walk)) return false;
    }
    return true;
}

/* ---- The whole document ---- */

/* Whether the text may hold more values than one call should build: each but the first follows a comma or a
 * bracket. */
static bool holds_too_much(ff_text text) {
    size_t values = 0;
    bool quoted = false;
    for (size_t i = 0; i < text.len && values <= VALUES_MOST; i++) {
        char byte = text.ptr[i];
        if (quoted && byte == '\\') i++;
        if (byte == '"') quoted = !quoted;
        values += !quoted && (byte == ',' || byte == '[' || byte == '{');
    }
    return values > VALUES_MOST;
}

static bool parse(submission *s) {
    ff_txn *t = &s->r->txn;
    if (s->source.len > DOCUMENT_BYTES_MOST) {
        return refuse(s, NULL, FF_TEXT("the document"), "is larger than 16 MiB");
    }
    if (holds_too_much(s->source)) {
        return refuse(s, NULL, FF_TEXT("the document"), "holds more than 500000 values");
    }
    s->document = ff_json_parse(s->source);
    if (s->document == NULL) {
        return refuse(s, NULL, FF_TEXT("the document"),
                      "is no valid JSON, or nested deeper than 1000 levels");
    }
    ff_txn_own(t, s->document, (void (*)(void *))ff_json_free);
    if (!ff_json_is_object(s->document)) {
        return refuse(s, NULL, FF_TEXT("the document"), "must be an object");
    }
    if (!read_object(s, NULL, document_fields, s->document)) return false;
    if (s->kind == NULL) return refuse(s, NULL, FF_TEXT("kind"), "is missing");
    return s->member_list || refuse(s, NULL, FF_TEXT("members"), "is missing");
}

/* What the fields of a member mean together. */
static bool check_member(submission *s, member *m) {
    ff_request *r = s->r;
    const ff_word *variant = m->join.variant;
    if (m->name.len == 0) return refuse(s, m, FF_TEXT("name"), "is missing");
    if (m->creation.kind == NULL) return refuse(s, m, FF_TEXT("kind"), "is missing");
    if (variant && m->after_count == 0) {
        return refuse(s, m, FF_TEXT("join"), "needs \"after\"");
    }
    if (variant == W(quorum) && (m->join.k < 1 || (size_t)m->join.k > m->after_count)) {
        return refuse(s, m, FF_TEXT("join"),
                      "needs a quorum between 1 and the length of \"after\"");
    }
    if (m->join.on_satisfied && variant != W(any_of) && variant != W(quorum)) {
        return refuse(s, m, FF_TEXT("on_satisfied"), "needs \"join\" to be any_of or a quorum");
    }
    if (!ff_request_capabilities(r, m->creation.policy, m->capabilities,
                                 &m->creation.capabilities) ||
        !ff_request_budget_ids(r, m->budgets, &m->creation.budget_ids) ||
        !ff_request_quota_id(r, m->quota, &m->creation.quota_id)) {
        return refused_for(s, m);
    }
    void **slot = ff_table_at(&s->by_name, &r->txn.arena, m->name);
    if (*slot) return refuse(s, m, m->name, "is the name of another member too");
    *slot = m;
    return true;
}

static bool read_all_members(submission *s) {
    ff_arena *arena = &s->r->txn.arena;
    ff_text rest = ff_text_or_empty(ff_json_slice_member(s->source, FF_TEXT("members")));
    ff_str *lane = W(default)->str;
    s->members = ff_arena_zeroed(arena, s->count * sizeof *s->members);
    for (size_t i = 0; i < s->count; i++) {
        member *m = &s->members[i];
        const ff_json *object = ff_json_at(s->member_list, i);
        if (!ff_json_is_object(object)) {
            ff_request_refuse(
                s->r, ff_arena_concat(arena, member_text(s, m), FF_TEXT(" must be an object")));
            return false;
        }
        if (!ff_json_slice_next(&rest, &m->source)) m->source = FF_TEXT("");
        m->creation.lane = lane;
        m->creation.namespace = s->namespace;
        if (!read_object(s, m, member_fields, object) || !check_member(s, m)) return false;
    }
    return true;
}

static bool resolve_names(submission *s, member *m) {
    ff_arena *arena = &s->r->txn.arena;
    ff_table seen = {0};
    m->after = ff_arena_array(arena, m->after_count, sizeof(member *));
    for (size_t i = 0; i < m->after_count; i++) {
        ff_text name = ff_json_string(ff_json_at(m->after_names, i));
        m->after[i] = ff_table_get(&s->by_name, name);
        if (m->after[i] == NULL) return refuse(s, m, name, "in \"after\" is not a member's name");
        if (!ff_table_add(&seen, arena, name)) {
            return refuse(s, m, name, "is in \"after\" more than once");
        }
    }
    return true;
}

/* ---- Cycles ---- */

static bool refuse_cycle(submission *s, const member *m) {
    /* Whoever still waits waits for somebody who still waits: as many steps as there are members end on
     * a cycle. */
    for (size_t steps = 0; steps < s->count; steps++) {
        size_t i = 0;
        while (m->after[i]->waits_for == 0) i++;
        m = m->after[i];
    }
    ff_request_refuse_with(
        s->r, "CYCLE_DETECTED",
        ff_arena_concat(&s->r->txn.arena, member_text(s, m), FF_TEXT(" waits for itself")));
    return false;
}

/* The members that wait for each member, one list behind the other. */
typedef struct followers {
    size_t *start; /* of each member's list; one more than there are members */
    member **list;
} followers;

static followers find_followers(submission *s) {
    ff_arena *arena = &s->r->txn.arena;
    followers f = {ff_arena_zeroed(arena, (s->count + 2) * sizeof(size_t)),
                   ff_arena_array(arena, s->edge_count, sizeof(member *))};
    for (size_t i = 0; i < s->count; i++) {
        const member *m = &s->members[i];
        for (size_t j = 0; j < m->after_count; j++) f.start[m->after[j] - s->members + 2]++;
    }
    for (size_t i = 2; i < s->count + 2; i++) f.start[i] += f.start[i - 1];
    for (size_t i = 0; i < s->count; i++) {
        member *m = &s->members[i];
        for (size_t j = 0; j < m->after_count; j++) {
            f.list[f.start[m->after[j] - s->members + 1]++] = m;
        }
    }
    return f;
}

/* Takes away members that wait for nobody until none is left, or only those on and behind a cycle. */
static bool check_order(submission *s) {
    followers f = find_followers(s);
    member **ready = ff_arena_array(&s->r->txn.arena, s->count, sizeof(member *));
    size_t found = 0;
    for (size_t i = 0; i < s->count; i++) {
        s->members[i].waits_for = s->members[i].after_count;
        if (s->members[i].after_count == 0) ready[found++] = &s->members[i];
    }
    for (size_t i = 0; i < found; i++) {
        size_t at = (size_t)(ready[i] - s->members);
        for (size_t j = f.start[at]; j < f.start[at + 1]; j++) {
            if (--f.list[j]->waits_for == 0) ready[found++] = f.list[j];
        }
    }
    if (found == s->count) return true;
    size_t stuck = 0;
    while (s->members[stuck].waits_for == 0) stuck++;
    return refuse_cycle(s, &s->members[stuck]);
}

static bool read_document(submission *s) {
    s->namespace = W(default)->str;
    if (!parse(s) || !read_all_members(s)) return false;
    for (size_t i = 0; i < s->count; i++) {
        if (!resolve_names(s, &s->members[i])) return false;
    }
    return check_order(s);
}

/* ---- Staging ---- */

static ff_verdict stage_flow(submission *s, ff_graph *g) {
    ff_result *out = &s->r->result;
    ff_graph_create(g, s->kind, s->namespace, out);
    if (out->code != FF_OK || s->tags.count == 0) return FF_COMMIT;
    *out = (ff_result){.txn = g->txn};
    ff_flow_tag_keys keys = {g->core_name, ff_graph_key(g, "tags", FF_TEXT(""))};
    ff_flow_tag_args args = {.pairs = s->tags};
    return ff_flow_tag(g->txn, &keys, &args, out);
}

static bool stage_member(submission *s, ff_graph *g, ff_partition partition, member *m) {
    ff_txn *t = g->txn;
    ff_uuid uuid = ff_mint_uuid();
    ff_str *execution_id = ff_str_make(t, ff_reference_text(&t->arena, partition, &uuid));
    ff_result *out = &s->r->result;
    ff_subject_open(t, g->tag, execution_id, &m->subject);
    *out = (ff_result){.txn = t};
    ff_creation_stage(&m->subject, &m->creation, out);
    if (out->code != FF_OK) return refused_for(s, m);
    *out = (ff_result){.txn = t};
    ff_graph_add(g, &m->subject, out);
    return out->code == FF_OK || refused_for(s, m);
}

static bool stage_edges(submission *s, ff_graph *g, member *m) {
    ff_result *out = &s->r->result;
    *out = (ff_result){.txn = g->txn};
    if (ff_graph_join(g, m->subject.execution_id, &m->join, out) == FF_DISCARD)
        return refused_for(s, m);
    for (size_t i = 0; i < m->after_count; i++) {
        ff_edge edge = {.upstream = m->after[i]->subject.execution_id, .downstream = &m->subject};
        *out = (ff_result){.txn = g->txn};
        if (ff_graph_link(g, &edge, out) == FF_DISCARD) return refused_for(s, m);
    }
    return true;
}

static bool stage(submission *s, ff_graph *g, ff_partition partition) {
    if (stage_flow(s, g) == FF_DISCARD) return false;
    g->is_new = true;
    for (size_t i = 0; i < s->count; i++) {
        if (!stage_member(s, g, partition, &s->members[i])) return false;
    }
    for (size_t i = 0; i < s->count; i++) {
        if (!stage_edges(s, g, &s->members[i])) return false;
    }
    /* Nobody has ended yet: the edges need not be looked at again. */
    g->txn->ended = NULL;
    return true;
}

/* where|ref json */
static ff_verdict submit(ff_request *r) {
    submission s = {.r = r, .source = r->args[1]};
    ff_reference reference;
    ff_graph g;
    if (!ff_request_place(r, r->args[0], FF_FAMILY_FLOW, &reference) || !read_document(&s)) {
        return FF_DISCARD;
    }
    ff_graph_open(&r->txn, reference.tag, ff_reference_id(&r->txn, &reference), &g);
    ff_str *flow = ff_reference_str(&r->txn, &reference);
    if (ff_key_exists(g.core)) {
        return ff_request_refuse_with(
            r, "ALREADY_EXISTS",
            ff_arena_concat(&r->txn.arena, FF_TEXT("there is a flow "), ff_str_text(flow)));
    }
    if (!stage(&s, &g, reference.partition)) return FF_DISCARD;
    ff_answer_become_map(&r->answer);
    ff_answer_text(&r->answer, "flow", flow);
    ff_answer *members = ff_answer_member(&r->answer, FF_TEXT("members"));
    ff_answer_become_map(members);
    for (size_t i = 0; i < s.count; i++) {
        ff_answer_become_text(ff_answer_member(members, s.members[i].name),
                              s.members[i].subject.execution_id);
    }
    return FF_COMMIT;
}

static FF_NATIVE_WRITE(submit_command, 2, submit);

static const ff_command rows[] = {
    {"ff.flow|submit", submit_command, FF_WRITES,
     .info = {FF_DOCUMENTED,
              .summary = "Creates a flow with all its members and edges from one JSON document.",
              .complexity =
                  "O(N) with N the size of the document: at most 16 MiB, 10000 members and "
                  "20000 edges, 500000 values",
              .arity = 4, .key_specs = FF_KEY_WRITE(2),
              .args = FF_ARGS(FF_KEY_ARG("where"), FF_ARG("document", STRING))}},
};

const ff_command_table ff_submission_commands = FF_COMMAND_TABLE(rows);
