/* Members of flows that wait: what the dispatch has missed is resolved. */
#include "engine/dependency.h"

#include "engine/keyname.h"
#include "engine/subject.h"
#include "scan/member.h"
#include "scan/visitors.h"

enum { EDGES_AT_ONCE = 64 };

/* The upstream of an edge, if it has ended: fills in its id and outcome. */
static bool has_ended(ff_visit *v, ff_txn *t, const ff_subject *child, ff_member_edge *edge) {
    ff_str *name = FF_CONCAT(
        t, ff_str_text(ff_keyname_execution(t, v->tag, ff_str_text(child->execution_id), "dep:")),
        ff_str_text(edge->edge_id));
    edge->upstream_id = ff_hash_peek(t, ff_str_text(name), W(upstream_execution_id));
    ff_text upstream = ff_str_text(edge->upstream_id);
    if (!ff_member_is_local(upstream, v->tag)) return false;
    edge->outcome = ff_member_outcome(t, v->tag, upstream);
    return edge->outcome != NULL;
}

/* An edge that had been resolved must not be looked at for ever. */
static void forget_resolved(ff_txn *t, const ff_member_edge *edge, const ff_result *result) {
    if (!result->count || !ff_str_is(result->values[0].str, W(already_resolved))) return;
    ff_str *unresolved =
        ff_keyname_execution(t, edge->tag, ff_str_text(edge->child_id), "deps:unresolved");
    ff_set_remove(ff_set_open(t, unresolved), edge->edge_id);
}

static void resolve_edge(ff_visit *v, const ff_subject *child, ff_str *flow_id, ff_str *edge_id) {
    ff_txn t;
    ff_result result;
    ff_verdict verdict = FF_DISCARD;
    ff_uuid uuid;
    ff_member_edge edge = {
        .tag = v->tag, .flow_id = flow_id, .edge_id = edge_id, .child_id = child->execution_id};
    ff_unit_begin(v, &t, &result);
    if (!ff_uuid_parse(ff_str_text(edge_id), &uuid)) {
        ff_visit_complain(v, "waits for an edge whose id is no UUID");
    } else if (has_ended(v, &t, child, &edge)) {
        verdict = ff_member_resolve(&t, &edge, &result);
        forget_resolved(&t, &edge, &result);
    }
    bool failed = ff_txn_error(&t) != NULL;
    bool resolved = verdict == FF_COMMIT && result.code < FF_FIRST_REFUSAL;
    if (!ff_unit_end(v, &t, verdict) || failed) {
        ff_visit_complain(v, "waits for an edge with a key of the wrong type");
        v->tally->errors++;
    } else if (resolved) {
        v->tally->processed++;
    } else if (verdict == FF_COMMIT || result.code >= FF_FIRST_REFUSAL) {
        v->tally->refused++;
    }
}

/* Nothing is waited for any more, and nobody has noticed. One that was running before it came here waits for
 * children that are still to be named. */
static ff_visit_outcome release(ff_visit *v, ff_subject *s) {
    const ff_str *attempt = ff_hash_get(s->core, W(attempt_state));
    bool never_tried = !ff_str_is_set(attempt) || ff_str_is(attempt, W(none)) ||
                       ff_str_is(attempt, W(pending_first_attempt));
    ff_dependency_promote_keys k = {
        s->core_name, v->index_name, ff_keyname_lane(v->txn, v->tag, v->lane->name, "eligible"),
        ff_subject_key(s, "deps:meta"), ff_subject_key(s, "deps:unresolved")};
    ff_dependency_promote_args a = {v->member, ff_str_now(v->txn)};
    if (!never_tried || !ff_key_exists(ff_any_open(v->txn, k.meta))) return FF_VISIT_SKIPPED;
    return ff_visit_settle(v, ff_dependency_promote(v->txn, &k, &a, &v->result));
}

ff_visit_outcome ff_visit_dependencies(ff_visit *v) {
    ff_subject s;
    ff_uuid uuid;
    ff_walk *edges = &v->progress->walk;
    ff_subject_open(v->txn, v->tag, v->member, &s);
    if (ff_txn_error(v->txn)) return FF_VISIT_ERROR;
    if (!ff_key_exists(s.core)) return FF_VISIT_SKIPPED;
    ff_str *unresolved = ff_subject_key(&s, "deps:unresolved");
    ff_str *flow_id = ff_hash_get(s.core, W(flow_id));
    ff_walk_state state = ff_walk_set(edges, v->ctx, unresolved, EDGES_AT_ONCE);
    if (state == FF_WALK_EMPTY && !v->progress->begun) return release(v, &s);
    if (!ff_uuid_parse(ff_str_text(flow_id), &uuid)) {
        ff_visit_complain(v, "waits for dependencies but is in no flow");
        return FF_VISIT_SKIPPED;
    }
    ff_visit_let_go(v);
    while (state == FF_WALK_TAKEN) {
        resolve_edge(v, &s, flow_id, ff_walk_entry(edges)->member);
        ff_walk_next(edges);
        if (ff_visit_is_late(v)) return FF_VISIT_AGAIN;
        state = ff_walk_set(edges, v->ctx, unresolved, EDGES_AT_ONCE);
    }
    return state == FF_WALK_WRONG_TYPE ? ff_visit_complain(v, "has no set of unresolved edges")
                                       : FF_VISIT_COUNTED;
}
