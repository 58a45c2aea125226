#include "engine/edge.h"

#include "engine/counter.h"
#include "engine/flow.h"

/* A walk along the edges: the executions found so far, those before `next` with their edges followed. */
typedef struct walk {
    ff_txn *t;
    ff_buffer name; /* of the key being read; begins with the stem */
    size_t stem;
    ff_table found;
    ff_str *queue[FF_EDGE_REACH_MAX];
    size_t count;
} walk;

static ff_text key_name(walk *w, ff_text kind, const ff_str *id) {
    w->name.len = w->stem;
    ff_buffer_append(&w->name, kind);
    ff_buffer_append(&w->name, ff_str_text(id));
    return ff_buffer_text(&w->name);
}

/* False when it is one too many. */
static bool find(walk *w, ff_str *execution_id) {
    if (!ff_table_add(&w->found, &w->t->arena, ff_str_text(execution_id))) return true;
    if (w->count == FF_EDGE_REACH_MAX) return false;
    w->queue[w->count++] = execution_id;
    return true;
}

/* False when an edge leads to the target, or to one execution too many. */
static bool follow_edges(walk *w, ff_str *from, const ff_str *target) {
    ff_strs edges = ff_set_peek(w->t, key_name(w, FF_TEXT(":out:"), from));
    for (size_t i = 0; i < edges.count; i++) {
        ff_text edge = key_name(w, FF_TEXT(":edge:"), edges.items[i]);
        ff_str *next = ff_hash_peek(w->t, edge, W(downstream_execution_id));
        if (!ff_str_is_set(next)) continue;
        if (ff_str_equal(next, target) || !find(w, next)) return false;
    }
    return true;
}

/* Rule CYCLE: whether an edge from upstream to downstream would close a cycle, or so much hangs behind
 * downstream that nobody wants to look. The keys are named after the flow's core. */
static bool closes_cycle(ff_txn *t, const ff_str *core, const ff_edge_stage_args *a) {
    ff_text name = ff_str_text(core);
    size_t ending = FF_TEXT(":core").len;
    walk w = {.t = t, .stem = name.len > ending ? name.len - ending : 0};
    ff_buffer_init(&w.name, &t->arena);
    ff_buffer_append(&w.name, ff_text_slice(name, 0, w.stem));
    find(&w, a->downstream_id);
    for (size_t next = 0; next < w.count; next++) {
        if (!follow_edges(&w, w.queue[next], a->upstream_id)) return true;
    }
    return false;
}

static bool is_self_edge(const ff_edge_stage_args *a) {
    if (a->upstream_id == NULL && a->downstream_id == NULL) return true;
    return ff_str_equal(a->upstream_id, a->downstream_id);
}

static bool is_revision(ff_key *core, const ff_str *expected) {
    return ff_str_equal(ff_str_or(ff_hash_get(core, W(graph_revision)), W(zero)), expected);
}

/* Which end is no member of the flow; NULL when both are. */
static ff_str *find_stranger(ff_txn *t, const ff_edge_stage_keys *k, const ff_edge_stage_args *a) {
    ff_key *members = ff_set_open(t, k->members);
    if (!ff_set_has(members, a->upstream_id)) return ff_str_or_empty(a->upstream_id);
    if (!ff_set_has(members, a->downstream_id)) return ff_str_or_empty(a->downstream_id);
    return NULL;
}

/* The wire reply has no place for the name. */
static ff_verdict refuse_stranger(ff_str *stranger, ff_result *out) {
    if (out->txn->strict) ff_result_add(out, stranger);
    return ff_refuse(out, FF_EXECUTION_NOT_IN_FLOW);
}

static void write_edge(ff_key *edge, const ff_edge_stage_args *a) {
    ff_hash_set(edge, W(edge_id), a->edge_id);
    ff_hash_set(edge, W(flow_id), a->flow_id);
    ff_hash_set(edge, W(upstream_execution_id), a->upstream_id);
    ff_hash_set(edge, W(downstream_execution_id), a->downstream_id);
    ff_hash_set(edge, W(dependency_kind), a->dependency_kind);
    ff_hash_set_word(edge, W(satisfaction_condition), W(all_required));
    ff_hash_set(edge, W(data_passing_ref), a->data_passing_ref);
    ff_hash_set_word(edge, W(edge_state), W(pending));
    ff_hash_set(edge, W(created_at), a->at);
    ff_hash_set_word(edge, W(created_by), W(engine));
}

ff_verdict ff_edge_add(ff_txn *t, const ff_edge_stage_keys *k, const ff_edge_stage_args *a,
                       ff_result *out) {
    ff_key *core = ff_hash_open(t, k->core);
    int64_t revision;
    if (!ff_counter_add(core, W(graph_revision), 1, &revision, out) ||
        !ff_counter_add(core, W(edge_count), 1, NULL, out)) {
        return FF_DISCARD;
    }
    ff_hash_set(core, W(last_mutation_at), a->at);
    write_edge(ff_hash_open(t, k->edge), a);
    ff_set_add(ff_set_open(t, k->outgoing), a->edge_id);
    ff_set_add(ff_set_open(t, k->incoming), a->edge_id);
    ff_result_add(out, a->edge_id);
    ff_result_add_number(out, (double)revision);
    return ff_ok(out);
}

ff_verdict ff_edge_stage(ff_txn *t, const ff_edge_stage_keys *k, const ff_edge_stage_args *a,
                         ff_result *out) {
    if (is_self_edge(a)) return ff_refuse(out, FF_SELF_REFERENCING_EDGE);
    if (!ff_need_keys(out, k, 1)) return FF_DISCARD;
    ff_key *core = ff_hash_open(t, k->core);
    ff_code refused = ff_flow_check_open(core);
    if (refused) return ff_refuse(out, refused);
    if (!is_revision(core, a->expected_revision)) return ff_refuse(out, FF_STALE_GRAPH_REVISION);
    if (!ff_need_keys(out, k, 2)) return FF_DISCARD;
    ff_str *stranger = find_stranger(t, k, a);
    if (stranger) return refuse_stranger(stranger, out);
    if (closes_cycle(t, k->core, a)) return ff_refuse(out, FF_CYCLE_DETECTED);
    if (!ff_need_keys(out, k, 3)) return FF_DISCARD;
    if (ff_key_exists(ff_any_open(t, k->edge))) return ff_refuse(out, FF_DEPENDENCY_ALREADY_EXISTS);
    if (!ff_need_keys(out, k, 5) || !ff_need_arguments(out, a, 8)) return FF_DISCARD;
    return ff_edge_add(t, k, a, out);
}
