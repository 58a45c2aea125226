/* FF.FLOW GET and LIST: looking at flows. */

#include "commands/command.h"
#include "commands/graph.h"
#include "commands/listing.h"
#include "commands/place.h"
#include "engine/keyname.h"
#include "engine/tag.h"

/* ---- GET ---- */

static void answer_tags(ff_graph *g, ff_answer *map) {
    ff_answer *tags = ff_answer_member(map, FF_TEXT("tags"));
    ff_key *hash = ff_hash_open(g->txn, ff_graph_key(g, "tags", FF_TEXT("")));
    const ff_word *field;
    ff_str *value;
    size_t cursor = 0;
    ff_answer_become_map(tags);
    while (ff_hash_next(hash, &cursor, &field, &value)) {
        ff_answer_become_text(ff_answer_member(tags, field->text), value);
    }
    /* Those of an older layout are fields of the core until tags are set the next time. */
    cursor = 0;
    while (ff_hash_next(g->core, &cursor, &field, &value)) {
        if (!ff_tag_name_is_valid(field->text) || ff_hash_get(hash, field)) continue;
        ff_answer_become_text(ff_answer_member(tags, field->text), value);
    }
}

/* What the flow projector has counted; null before it was there. */
static void answer_summary(ff_graph *g, ff_answer *map) {
    ff_answer *summary = ff_answer_member(map, FF_TEXT("summary"));
    ff_key *hash = ff_hash_open(g->txn, ff_graph_key(g, "summary", FF_TEXT("")));
    const ff_word *field;
    ff_str *value;
    size_t cursor = 0;
    if (!ff_key_exists(hash)) return;
    ff_answer_become_map(summary);
    while (ff_hash_next(hash, &cursor, &field, &value)) {
        ff_answer_number(summary, ff_arena_dup(&g->txn->arena, field->text).ptr, value);
    }
}

static ff_str *peek_member(ff_graph *g, ff_str *execution_id, const ff_word *field) {
    ff_str *core = ff_keyname_execution(g->txn, g->tag, ff_str_text(execution_id), "core");
    return ff_hash_peek(g->txn, ff_str_text(core), field);
}

static void answer_members(ff_graph *g, ff_answer *map, ff_strs members) {
    ff_answer *items = ff_answer_member(map, FF_TEXT("members"));
    ff_answer_become_list(items);
    for (size_t i = 0; i < members.count; i++) {
        ff_answer *entry = ff_answer_add(items);
        ff_answer_become_map(entry);
        ff_answer_text(entry, "execution_id", members.items[i]);
        ff_answer_text(entry, "state", peek_member(g, members.items[i], W(public_state)));
        ff_answer_text(entry, "kind", peek_member(g, members.items[i], W(execution_kind)));
        ff_answer_text(entry, "lane", peek_member(g, members.items[i], W(lane_id)));
    }
}

static ff_str *peek_flow(ff_graph *g, const char *kind, ff_str *id, const ff_word *field) {
    return ff_hash_peek(g->txn, ff_str_text(ff_graph_key(g, kind, ff_str_text(id))), field);
}

/* The state that the downstream has for it: unsatisfied, satisfied, impossible. */
static ff_str *edge_state(ff_graph *g, ff_str *downstream, ff_str *edge_id) {
    ff_text suffix = ff_arena_concat(&g->txn->arena, FF_TEXT("dep:"), ff_str_text(edge_id));
    ff_str *record = ff_keyname_execution(g->txn, g->tag, ff_str_text(downstream), suffix.ptr);
    return ff_hash_peek(g->txn, ff_str_text(record), W(state));
}

static void answer_edges_into(ff_graph *g, ff_answer *list, ff_str *downstream) {
    ff_text incoming = ff_str_text(ff_graph_key(g, "in:", ff_str_text(downstream)));
    ff_strs edges = ff_set_peek(g->txn, incoming);
    if (edges.count == 0) return;
    ff_str *policy = peek_flow(g, "edgegroup:", downstream, W(policy_variant));
    ff_str *quorum = peek_flow(g, "edgegroup:", downstream, W(k));
    for (size_t i = 0; i < edges.count; i++) {
        ff_answer *entry = ff_answer_add(list);
        ff_answer_become_map(entry);
        ff_answer_text(entry, "edge_id", edges.items[i]);
        ff_answer_text(entry, "upstream",
                       peek_flow(g, "edge:", edges.items[i], W(upstream_execution_id)));
        ff_answer_text(entry, "downstream", downstream);
        ff_answer_text(entry, "state", edge_state(g, downstream, edges.items[i]));
        ff_answer_text(entry, "policy", policy);
        ff_answer_number(entry, "quorum", ff_str_is(policy, W(quorum)) ? quorum : NULL);
    }
}

static void answer_edges(ff_graph *g, ff_answer *map, ff_strs members) {
    ff_answer *items = ff_answer_member(map, FF_TEXT("edges"));
    ff_answer_become_list(items);
    for (size_t i = 0; i < members.count; i++) answer_edges_into(g, items, members.items[i]);
}

static void answer_core(ff_graph *g, ff_answer *map) {
    ff_answer_text(map, "kind", ff_hash_get(g->core, W(flow_kind)));
    ff_answer_text(map, "namespace", ff_hash_get(g->core, W(namespace)));
    ff_answer_text(map, "state", ff_hash_get(g->core, W(public_flow_state)));
    ff_answer_number(map, "graph_revision", ff_hash_get(g->core, W(graph_revision)));
    ff_answer_number(map, "node_count", ff_hash_get(g->core, W(node_count)));
    ff_answer_number(map, "edge_count", ff_hash_get(g->core, W(edge_count)));
    ff_answer_number(map, "created_at", ff_hash_get(g->core, W(created_at)));
    ff_answer_number(map, "last_mutation_at", ff_hash_get(g->core, W(last_mutation_at)));
    ff_answer_number(map, "cancelled_at", ff_hash_get(g->core, W(cancelled_at)));
    ff_answer_text(map, "cancel_reason", ff_hash_get(g->core, W(cancel_reason)));
}

typedef struct get_options {
    bool members, edges;
} get_options;

static const ff_option get_rows[] = {
    FF_OPTION("MEMBERS", FF_OPTION_FLAG, get_options, members),
    FF_OPTION("EDGES", FF_OPTION_FLAG, get_options, edges),
};

/* ref [MEMBERS] [EDGES] */
static ff_verdict get(ff_request *r) {
    get_options o = {0};
    ff_reference reference;
    ff_graph g;
    if (!ff_request_reference(r, r->args[0], FF_FAMILY_FLOW, &reference) ||
        !ff_request_options(r, 1, FF_OPTION_TABLE(get_rows), &o, NULL)) {
        return FF_DISCARD;
    }
    ff_graph_open(&r->txn, reference.tag, ff_reference_id(&r->txn, &reference), &g);
    if (!ff_key_exists(g.core)) return ff_refuse(&r->result, FF_FLOW_NOT_FOUND);
    ff_answer_become_map(&r->answer);
    ff_answer_text(&r->answer, "flow", ff_reference_str(&r->txn, &reference));
    answer_core(&g, &r->answer);
    answer_tags(&g, &r->answer);
    answer_summary(&g, &r->answer);
    ff_strs members = {NULL, 0};
    if (o.members || o.edges) {
        members = ff_set_members(ff_set_open(&r->txn, g.members_name));
    }
    if (o.members) answer_members(&g, &r->answer, members);
    if (o.edges) answer_edges(&g, &r->answer, members);
    return FF_DISCARD;
}

/* ---- LIST ---- */

typedef struct list_options {
    ff_listing_options common;
    ff_text namespace;
} list_options;

static const ff_option list_rows[] = {
    FF_LISTING_ROWS(list_options, common),
    FF_OPTION("NAMESPACE", FF_OPTION_NONEMPTY, list_options, namespace),
};

static void list_one(ff_txn *t, ff_answer *list, ff_text tag, ff_str *flow_id, void *data) {
    const list_options *o = data;
    ff_text core = ff_str_text(ff_keyname_flow(t, tag, ff_str_text(flow_id), "core", FF_TEXT("")));
    ff_str *namespace = ff_hash_peek(t, core, W(namespace));
    if (!ff_text_is_absent(o->namespace) && !ff_text_equal(ff_str_text(namespace), o->namespace)) {
        return;
    }
    ff_answer *map = ff_answer_add(list);
    ff_answer_become_map(map);
    ff_answer_text(map, "flow", FF_CONCAT(t, tag, FF_TEXT(":"), ff_str_text(flow_id)));
    ff_answer_text(map, "kind", ff_hash_peek(t, core, W(flow_kind)));
    ff_answer_text(map, "namespace", namespace);
    ff_answer_text(map, "state", ff_hash_peek(t, core, W(public_flow_state)));
    ff_answer_number(map, "created_at", ff_hash_peek(t, core, W(created_at)));
}

/* [PARTITION {fp:N}] [NAMESPACE ns] [CURSOR c] [COUNT n] */
static ff_verdict list(ff_request *r) {
    list_options o = {.common.count = FF_LISTING_COUNT};
    if (!ff_request_options(r, 0, FF_OPTION_TABLE(list_rows), &o, NULL)) return FF_DISCARD;
    return ff_listing_answer(r, FF_INDEX_FLOW_INDEX, &o.common, "flows", list_one, &o);
}

static FF_NATIVE_READ(get_command, 2, get);
static FF_NATIVE_LISTING(list_command, 2, list);

static const ff_command rows[] = {
    {"ff.flow|get", get_command, FF_READS,
     .info = {FF_DOCUMENTED, .summary = "Returns a flow, and its members and edges if asked for.",
              .complexity = "O(1), and O(N) with N the number of members and edges asked for",
              .arity = -3, .key_specs = FF_KEY_READ(2),
              .args = FF_ARGS(FF_KEY_ARG("flow"), FF_FLAG_ARG("members", "MEMBERS"),
                              FF_FLAG_ARG("edges", "EDGES"))}},
    {"ff.flow|list", list_command, FF_READS,
     .info = {FF_DOCUMENTED, .summary = "Pages through the flows of this node.",
              .complexity = "O(N) with N the count asked for", .arity = -2,
              .key_specs = FF_PARTITION_READ(2),
              .args = FF_ARGS(FF_OPTION_ARG("namespace", "NAMESPACE", STRING), FF_LISTING_ARGS)}},
};

const ff_command_table ff_flowview_commands = FF_COMMAND_TABLE(rows);
