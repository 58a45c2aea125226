/* FF.FLOW GET and LIST: looking at flows. */

#include "base/number.h"
#include "commands/command.h"
#include "commands/graph.h"
#include "commands/place.h"
#include "engine/keyname.h"
#include "engine/tag.h"
#include "permission.h"
#include "presence.h"
#include "watch.h"

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
        members = ff_set_members(ff_set_open(&r->txn, ff_graph_key(&g, "members", FF_TEXT(""))));
    }
    if (o.members) answer_members(&g, &r->answer, members);
    if (o.edges) answer_edges(&g, &r->answer, members);
    return FF_DISCARD;
}

/* ---- LIST ---- */

enum { LIST_USUAL = 100, LIST_MOST = 10000, PARTITIONS_AT_ONCE = 4096 };

typedef struct list_options {
    ff_text namespace, partition, cursor;
    int64_t count;
} list_options;

static const ff_option list_rows[] = {
    FF_OPTION("PARTITION", FF_OPTION_NONEMPTY, list_options, partition),
    FF_OPTION("NAMESPACE", FF_OPTION_NONEMPTY, list_options, namespace),
    FF_OPTION("CURSOR", FF_OPTION_NONEMPTY, list_options, cursor),
    FF_OPTION("COUNT", FF_OPTION_INTEGER, list_options, count, .min = 1, .max = LIST_MOST),
};

/* A place in the walk over all partitions: the partition, and how far its index was scanned. */
typedef struct place {
    uint32_t partition;
    uint64_t within;
} place;

/* "0", or partition-cursor. */
static bool read_cursor(ff_request *r, ff_text text, place *p) {
    ff_text rest = text;
    ff_text number;
    uint64_t partition;
    *p = (place){0, 0};
    if (ff_text_is_absent(text) || ff_text_equal(text, FF_TEXT("0"))) return true;
    if (ff_text_split(&rest, '-', &number) && ff_unsigned_parse(number, &partition) &&
        partition < ff_partition_count(FF_FAMILY_FLOW) && ff_unsigned_parse(rest, &p->within)) {
        p->partition = (uint32_t)partition;
        return true;
    }
    ff_request_refuse(r, FF_TEXT("CURSOR must be 0, or what the last call answered"));
    return false;
}

static ff_str *cursor_text(ff_txn *t, const place *p, uint32_t end) {
    if (p->partition >= end) return W(zero)->str;
    return ff_str_make(
        t, ff_arena_printf(&t->arena, "%u-%llu", p->partition, (unsigned long long)p->within));
}

static void answer_flow(ff_request *r, ff_answer *list, ff_partition partition, ff_str *flow_id,
                        ff_text namespace) {
    ff_txn *t = &r->txn;
    ff_text tag = ff_tag_text(&t->arena, partition);
    ff_text core = ff_str_text(ff_keyname_flow(t, tag, ff_str_text(flow_id), "core", FF_TEXT("")));
    ff_str *own = ff_hash_peek(t, core, W(namespace));
    if (!ff_text_is_absent(namespace) && !ff_text_equal(ff_str_text(own), namespace)) return;
    ff_answer *entry = ff_answer_add(list);
    ff_answer_become_map(entry);
    ff_answer_text(entry, "flow", FF_CONCAT(t, tag, FF_TEXT(":"), ff_str_text(flow_id)));
    ff_answer_text(entry, "kind", ff_hash_peek(t, core, W(flow_kind)));
    ff_answer_text(entry, "namespace", own);
    ff_answer_text(entry, "state", ff_hash_peek(t, core, W(public_flow_state)));
    ff_answer_number(entry, "created_at", ff_hash_peek(t, core, W(created_at)));
}

/* Skips partitions that certainly hold no flow, once that is known. */
static void skip_empty(place *p, uint32_t end) {
    if (p->within || !ff_watch_is_complete()) return;
    int32_t next = ff_presence_next(FF_INDEX_FLOW_INDEX, NULL, p->partition);
    p->partition = next < 0 || (uint32_t)next > end ? end : (uint32_t)next;
}

static void scan_partition(ff_request *r, const list_options *o, place *p, ff_answer *list) {
    ff_partition partition = {FF_FAMILY_FLOW, (uint16_t)p->partition};
    if (ff_partition_is_served(r->ctx, partition)) {
        ff_str *index = ff_index_key(&r->txn, FF_INDEX_FLOW_INDEX, NULL, partition.number);
        ff_strs flows =
            ff_set_scan(&r->txn, ff_str_text(index), &p->within, o->count - (int64_t)list->count);
        for (size_t i = 0; i < flows.count; i++) {
            answer_flow(r, list, partition, flows.items[i], o->namespace);
        }
    }
    if (p->within == 0) p->partition++;
}

/* [PARTITION {fp:N}] [NAMESPACE ns] [CURSOR c] [COUNT n] */
static ff_verdict list(ff_request *r) {
    list_options o = {.count = LIST_USUAL};
    place p;
    ff_partition only;
    uint32_t end = ff_partition_count(FF_FAMILY_FLOW);
    if (!ff_request_options(r, 0, FF_OPTION_TABLE(list_rows), &o, NULL) ||
        !read_cursor(r, o.cursor, &p)) {
        return FF_DISCARD;
    }
    if (ff_text_is_absent(o.partition) && !ff_request_reaches_all_slots(r)) return FF_DISCARD;
    if (!ff_text_is_absent(o.partition)) {
        if (!ff_request_partition(r, o.partition, FF_FAMILY_FLOW, &only)) return FF_DISCARD;
        if (p.partition != only.number) p = (place){only.number, 0};
        end = only.number + 1u;
    }
    ff_answer_become_map(&r->answer);
    ff_answer *cursor = ff_answer_member(&r->answer, FF_TEXT("cursor"));
    ff_answer *flows = ff_answer_member(&r->answer, FF_TEXT("flows"));
    ff_answer_become_list(flows);
    for (int i = 0; i < PARTITIONS_AT_ONCE && flows->count < (size_t)o.count; i++) {
        skip_empty(&p, end);
        if (p.partition >= end) break;
        scan_partition(r, &o, &p, flows);
    }
    ff_answer_become_text(cursor, cursor_text(&r->txn, &p, end));
    return FF_DISCARD;
}

/* The partition routes the command. */
static int list_command(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    if (!ValkeyModule_IsKeysPositionRequest(ctx)) {
        return ff_request_serve(ctx, argv, argc, 2, list, true);
    }
    for (int i = 2; i + 1 < argc; i += 2) {
        if (!ff_text_equal_ignoring_case(ff_str_text(argv[i]), FF_TEXT("PARTITION"))) continue;
        ff_request_report_key(ctx, argv, argc, i + 1,
                              VALKEYMODULE_CMD_KEY_RO | VALKEYMODULE_CMD_KEY_ACCESS);
    }
    return VALKEYMODULE_OK;
}

static FF_NATIVE_READ(get_command, 2, get);

#define PARTITION_KEY \
    (ValkeyModuleCommandKeySpec[]) { \
        {.flags = VALKEYMODULE_CMD_KEY_RO | VALKEYMODULE_CMD_KEY_ACCESS | \
                  VALKEYMODULE_CMD_KEY_VARIABLE_FLAGS, \
         .begin_search_type = VALKEYMODULE_KSPEC_BS_KEYWORD, \
         .bs.keyword = {.keyword = "PARTITION", .startfrom = 2}, \
         .find_keys_type = VALKEYMODULE_KSPEC_FK_RANGE, \
         .fk.range = {.keystep = 1}}, \
        { \
            0 \
        } \
    }

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
              .key_specs = PARTITION_KEY,
              .args = FF_ARGS(FF_ARG("partition", KEY, .key_spec_index = 0, .token = "PARTITION",
                                     .flags = VALKEYMODULE_CMD_ARG_OPTIONAL),
                              FF_OPTION_ARG("namespace", "NAMESPACE", STRING),
                              FF_OPTION_ARG("cursor", "CURSOR", STRING),
                              FF_OPTION_ARG("count", "COUNT", INTEGER))}},
};

const ff_command_table ff_flowview_commands = FF_COMMAND_TABLE(rows);
