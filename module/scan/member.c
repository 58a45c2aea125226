#include "scan/member.h"

#include "base/id.h"
#include "engine/dependency.h"
#include "engine/keyname.h"
#include "engine/subject.h"

ff_verdict ff_member_resolve(ff_txn *t, const ff_member_edge *edge, ff_result *out) {
    ff_subject child;
    ff_text id = ff_str_text(edge->child_id);
    ff_text flow_id = ff_str_text(edge->flow_id);
    ff_text upstream = ff_str_text(edge->upstream_id);
    ff_subject_open(t, edge->tag, edge->child_id, &child);
    ff_dependency_resolve_keys k = {
        .core = child.core_name,
        .meta = ff_subject_key(&child, "deps:meta"),
        .unresolved = ff_subject_key(&child, "deps:unresolved"),
        .dependency = FF_CONCAT(t, ff_str_text(ff_subject_key(&child, "dep:")),
                                ff_str_text(edge->edge_id)),
        .eligible = ff_subject_lane_index(&child, "eligible"),
        .terminal = ff_subject_lane_index(&child, "terminal"),
        .blocked = ff_subject_lane_index(&child, "blocked:dependencies"),
        .attempt = ff_subject_attempt(&child, ""),
        .stream_meta = ff_subject_stream_meta(&child),
        .payload = ff_subject_key(&child, "payload"),
        .upstream_result = ff_keyname_execution(t, edge->tag, upstream, "result"),
        .group = ff_keyname_flow(t, edge->tag, flow_id, "edgegroup:", id),
        .incoming = ff_keyname_flow(t, edge->tag, flow_id, "in:", id),
        .pending_groups = ff_keyname_index(t, edge->tag, "pending_cancel_groups"),
    };
    ff_dependency_resolve_args a = {edge->edge_id, edge->outcome, ff_str_now(t), edge->flow_id,
                                    edge->child_id};
    return ff_dependency_resolve(t, &k, &a, out);
}

ff_member_fate ff_member_cancel(ff_txn *t, ff_text tag, ff_str *execution_id, ff_str *reason) {
    ff_subject s;
    ff_result result = {.txn = t};
    ff_subject_open(t, tag, execution_id, &s);
    ff_execution_cancel_keys k = ff_subject_cancel_keys(&s);
    ff_execution_cancel_args a = {execution_id, reason, W(operator_override)->str, W(empty)->str,
                                  W(empty)->str};
    ff_verdict verdict = ff_execution_cancel(t, &k, &a, &result);
    if (ff_txn_error(t)) return FF_MEMBER_TRY_AGAIN;
    if (result.code == FF_EXECUTION_NOT_ACTIVE) return FF_MEMBER_ENDED;
    if (result.code == FF_EXECUTION_NOT_FOUND) return FF_MEMBER_GONE;
    return verdict == FF_COMMIT && result.code < FF_FIRST_REFUSAL ? FF_MEMBER_CANCELLED
                                                                  : FF_MEMBER_TRY_AGAIN;
}

ff_str *ff_member_outcome(ff_txn *t, ff_text tag, ff_text execution_id) {
    ff_text core = ff_str_text(ff_keyname_execution(t, tag, execution_id, "core"));
    ff_txn_state before = t->state;
    const ff_str *phase = ff_hash_peek(t, core, W(lifecycle_phase));
    ff_str *outcome =
        ff_str_is(phase, W(terminal)) ? ff_hash_peek(t, core, W(terminal_outcome)) : NULL;
    t->state = before;
    return ff_str_is_set(outcome) && !ff_str_is(outcome, W(none)) ? outcome : NULL;
}

bool ff_member_is_local(ff_text execution_id, ff_text tag) {
    ff_reference id;
    return ff_execution_id_parse(execution_id, &id) && ff_text_equal(id.tag, tag);
}
