#include "engine/flow.h"

#include "compat/function.h"
#include "engine/dependency.h"
#include "engine/edge.h"
#include "engine/edgegroup.h"
#include "engine/replay.h"

FF_ADAPT(ff_flow_create)
FF_ADAPT(ff_flow_add)
FF_ADAPT(ff_flow_cancel)
FF_ADAPT(ff_flow_ack_cancel)
FF_ADAPT(ff_flow_tag)
FF_ADAPT(ff_edge_stage)
FF_ADAPT(ff_edgegroup_set_policy)
FF_ADAPT(ff_edgegroup_drain)
FF_ADAPT(ff_edgegroup_reconcile)
FF_ADAPT(ff_dependency_apply)
FF_ADAPT(ff_dependency_resolve)
FF_ADAPT(ff_dependency_promote)
FF_ADAPT(ff_execution_replay)

static ff_verdict evaluate(ff_txn *t, const void *keys, const void *args, ff_result *out) {
    (void)args;
    return ff_dependency_evaluate(t, keys, out);
}

/* The least number of keys is what every path needs: which paths need more, the operations say. */
static const ff_function functions[] = {
    FF_FUNCTION("ff_create_flow", ff_flow_create, 3),
    FF_FUNCTION("ff_add_execution_to_flow", ff_flow_add, 1),
    FF_FUNCTION("ff_cancel_flow", ff_flow_cancel, 0),
    FF_FUNCTION("ff_ack_cancel_member", ff_flow_ack_cancel, 1),
    FF_FUNCTION("ff_set_flow_tags", ff_flow_tag, 1, .more_args = true),
    FF_FUNCTION("ff_stage_dependency_edge", ff_edge_stage, 0),
    FF_FUNCTION("ff_set_edge_group_policy", ff_edgegroup_set_policy, 1),
    FF_FUNCTION("ff_drain_sibling_cancel_group", ff_edgegroup_drain, 0),
    FF_FUNCTION("ff_reconcile_sibling_cancel_group", ff_edgegroup_reconcile, 0),
    FF_FUNCTION("ff_apply_dependency_to_child", ff_dependency_apply, 1),
    FF_FUNCTION("ff_resolve_dependency", ff_dependency_resolve, 4),
    FF_FUNCTION("ff_promote_blocked_to_eligible", ff_dependency_promote, 1),
    FF_FUNCTION("ff_replay_execution", ff_execution_replay, 1, .more_keys = true,
                .more_args = true),
    {.name = "ff_evaluate_flow_eligibility",
     .operation = evaluate,
     .least_keys = 1,
     .key_slots = sizeof(ff_dependency_evaluate_keys) / sizeof(ff_str *),
     .readonly = true},
};

const ff_function_table ff_flow_functions = FF_FUNCTION_TABLE(functions);
