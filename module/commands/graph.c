#include "commands/graph.h"

#include "engine/dependency.h"
#include "engine/edge.h"
#include "engine/edgegroup.h"
#include "engine/flow.h"
#include "engine/keyname.h"
#include "engine/mint.h"
#include "scan/member.h"

void ff_graph_open(ff_txn *t, ff_text tag, ff_str *flow_id, ff_graph *g) {
    ff_str *core = ff_keyname_flow(t, tag, ff_str_text(flow_id), "core", FF_TEXT(""));
    *g = (ff_graph){.txn = t, .tag = tag, .flow_id = flow_id, .core_name = core};
    g->core = ff_hash_open(t, core);
    g->members_name = ff_graph_key(g, "members", FF_TEXT(""));
    g->index_name = ff_keyname_index(t, tag, "flow_index");
}

ff_str *ff_graph_key(ff_graph *g, const char *kind, ff_text id) {
    return ff_keyname_flow(g->txn, g->tag, ff_str_text(g->flow_id), kind, id);
}

ff_verdict ff_graph_create(ff_graph *g, ff_str *kind, ff_str *namespace, ff_result *out) {
    ff_flow_create_keys k = {g->core_name, g->members_name, g->index_name};
    ff_flow_create_args a = {g->flow_id, kind, namespace, NULL};
    return ff_flow_create(g->txn, &k, &a, out);
}

ff_verdict ff_graph_add(ff_graph *g, ff_subject *member, ff_result *out) {
    ff_flow_add_keys k = {g->core_name, g->members_name, g->index_name, member->core_name};
    ff_flow_add_args a = {g->flow_id, member->execution_id, NULL};
    return ff_flow_add(g->txn, &k, &a, out);
}

static bool is_same_join(ff_key *group, const ff_join *join) {
    double k;
    if (!ff_str_is(ff_hash_get(group, W(policy_variant)), join->variant)) return false;
    if (join->variant == W(all_of)) return true;
    if (!ff_str_is(ff_hash_get(group, W(on_satisfied)), join->on_satisfied)) return false;
    return join->variant == W(any_of) ||
           (ff_hash_number(group, W(k), &k) == FF_NUMBER_GOOD && k == (double)join->k);
}

ff_verdict ff_graph_join(ff_graph *g, ff_str *downstream, const ff_join *join, ff_result *out) {
    ff_join wanted = *join;
    if (wanted.variant == NULL) return ff_ok(out);
    if (wanted.on_satisfied == NULL) wanted.on_satisfied = W(let_run);
    ff_edgegroup_set_policy_keys k = {g->core_name,
                                      ff_graph_key(g, "edgegroup:", ff_str_text(downstream))};
    ff_key *group = ff_hash_open(g->txn, k.group);
    if (ff_hash_get(group, W(policy_variant))) {
        if (is_same_join(group, &wanted)) return ff_ok(out);
        return ff_bad_input(out, "the edges of that execution combine in another way already");
    }
    ff_edgegroup_set_policy_args a = {
        wanted.variant->str, wanted.variant == W(all_of) ? W(empty)->str : wanted.on_satisfied->str,
        ff_str_integer(g->txn, wanted.variant == W(quorum) ? wanted.k : 0), ff_str_now(g->txn)};
    return ff_edgegroup_set_policy(g->txn, &k, &a, out);
}

static ff_str *kind_of(const ff_edge *edge) {
    return edge->kind ? edge->kind : W(success_only)->str;
}

static ff_verdict stage(ff_graph *g, const ff_edge *edge, ff_str *edge_id, ff_result *out) {
    ff_edge_stage_keys k = {
        .core = g->core_name,
        .members = g->members_name,
        .edge = ff_graph_key(g, "edge:", ff_str_text(edge_id)),
        .outgoing = ff_graph_key(g, "out:", ff_str_text(edge->upstream)),
        .incoming = ff_graph_key(g, "in:", ff_str_text(edge->downstream->execution_id)),
    };
    ff_edge_stage_args a = {
        .flow_id = g->flow_id,
        .edge_id = edge_id,
        .upstream_id = edge->upstream,
        .downstream_id = edge->downstream->execution_id,
        .dependency_kind = kind_of(edge),
        .data_passing_ref = ff_str_or_empty(edge->data),
        .expected_revision = ff_str_or(ff_hash_get(g->core, W(graph_revision)), W(zero)),
        .at = ff_str_now(g->txn),
    };
    return g->is_new ? ff_edge_add(g->txn, &k, &a, out) : ff_edge_stage(g->txn, &k, &a, out);
}

static ff_verdict apply(ff_graph *g, const ff_edge *edge, ff_str *edge_id, ff_result *out) {
    ff_subject *child = edge->downstream;
    ff_txn *t = g->txn;
    ff_text dependency = ff_arena_concat(&t->arena, FF_TEXT("dep:"), ff_str_text(edge_id));
    ff_dependency_apply_keys k = {
        .core = child->core_name,
        .meta = ff_subject_key(child, "deps:meta"),
        .unresolved = ff_subject_key(child, "deps:unresolved"),
        .dependency = ff_subject_key(child, dependency.ptr),
        .eligible = ff_subject_lane_index(child, "eligible"),
        .blocked = ff_subject_lane_index(child, "blocked:dependencies"),
        .all_edges = ff_subject_key(child, "deps:all_edges"),
        .group = ff_graph_key(g, "edgegroup:", ff_str_text(child->execution_id)),
    };
    ff_dependency_apply_args a = {
        .flow_id = g->flow_id,
        .edge_id = edge_id,
        .upstream_id = edge->upstream,
        .graph_revision = ff_hash_get(g->core, W(graph_revision)),
        .dependency_kind = kind_of(edge),
        .data_passing_ref = ff_str_or_empty(edge->data),
        .at = ff_str_now(t),
    };
    return ff_dependency_apply(t, &k, &a, out);
}

ff_verdict ff_graph_link(ff_graph *g, const ff_edge *edge, ff_result *out) {
    ff_str *edge_id = ff_mint_id(g->txn);
    if (stage(g, edge, edge_id, out) == FF_DISCARD) return FF_DISCARD;
    ff_result applied = {.txn = g->txn};
    if (apply(g, edge, edge_id, &applied) == FF_COMMIT) return FF_COMMIT;
    *out = applied;
    return FF_DISCARD;
}

ff_verdict ff_graph_settle(ff_graph *g, const ff_edge *edge, ff_str *edge_id, ff_result *out) {
    ff_str *outcome = ff_member_outcome(g->txn, g->tag, ff_str_text(edge->upstream));
    if (outcome == NULL) return ff_ok(out);
    ff_member_edge resolved = {
        g->tag, g->flow_id, edge_id, edge->upstream, edge->downstream->execution_id, outcome};
    return ff_member_resolve(g->txn, &resolved, out);
}
