#!lua name=flowfabric
-- The wire functions for clients that call them by FCALL: each only forwards to the module, keys and
-- arguments as they came. A call can carry what Lua unpacks at once, some 7900 keys and arguments;
-- FF.CALL itself, and FCALL with ff.intercept-fcall on, have no such limit.

local writing = {
  'ff_ack_cancel_member',
  'ff_add_execution_to_flow',
  'ff_append_frame',
  'ff_apply_dependency_to_child',
  'ff_block_execution_for_admission',
  'ff_buffer_signal_for_pending_waitpoint',
  'ff_cancel_execution',
  'ff_cancel_flow',
  'ff_change_priority',
  'ff_check_admission_and_record',
  'ff_claim_execution',
  'ff_claim_resumed_execution',
  'ff_close_waitpoint',
  'ff_complete_execution',
  'ff_create_budget',
  'ff_create_execution',
  'ff_create_flow',
  'ff_create_pending_waitpoint',
  'ff_create_quota_policy',
  'ff_delay_execution',
  'ff_deliver_signal',
  'ff_drain_sibling_cancel_group',
  'ff_expire_execution',
  'ff_expire_suspension',
  'ff_fail_execution',
  'ff_heartbeat_worker',
  'ff_issue_claim_grant',
  'ff_issue_grant_and_claim',
  'ff_issue_reclaim_grant',
  'ff_mark_lease_expired_if_due',
  'ff_move_to_waiting_children',
  'ff_promote_blocked_to_eligible',
  'ff_promote_delayed',
  'ff_reclaim_execution',
  'ff_reconcile_sibling_cancel_group',
  'ff_record_spend',
  'ff_register_worker',
  'ff_release_admission',
  'ff_release_budget',
  'ff_renew_lease',
  'ff_replay_execution',
  'ff_report_usage_and_check',
  'ff_reset_budget',
  'ff_resolve_dependency',
  'ff_resume_execution',
  'ff_revoke_lease',
  'ff_rotate_waitpoint_hmac_secret',
  'ff_set_edge_group_policy',
  'ff_set_execution_tags',
  'ff_set_flow_tags',
  'ff_stage_dependency_edge',
  'ff_suspend_execution',
  'ff_unblock_execution',
  'ff_update_progress',
}

-- These change nothing on any path, so that FCALL_RO takes them, on replicas too.
local reading = {
  'ff_evaluate_flow_eligibility',
  'ff_list_waitpoint_hmac_kids',
  'ff_read_attempt_stream',
  'ff_read_summary',
  'ff_version',
}

-- pcall hands an error of the module on as it is, without the name of the script added.
local function forward(command, name)
  return function(keys, args)
    local call = {command, name, #keys}
    for _, key in ipairs(keys) do call[#call + 1] = key end
    for _, arg in ipairs(args) do call[#call + 1] = arg end
    return server.pcall(unpack(call))
  end
end

-- While a library loads there is no ipairs yet.
for i = 1, #writing do
  server.register_function(writing[i], forward('FF.CALL', writing[i]))
end

for i = 1, #reading do
  server.register_function{
    function_name = reading[i],
    callback = forward('FF.CALL_RO', reading[i]),
    flags = {'no-writes'},
  }
end
