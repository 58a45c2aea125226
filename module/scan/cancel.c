/* Cancelled flows whose members were not all reached, and groups whose other members are to be stopped. */
#include "counters.h"
#include "engine/edgegroup.h"
#include "engine/flow.h"
#include "engine/keyname.h"
#include "scan/filter.h"
#include "scan/member.h"
#include "scan/visitors.h"

enum { MEMBERS_AT_ONCE = 64 };

/* ---- Flows ---- */

typedef struct backlog {
    ff_str *core, *pending, *reason;
} backlog;

static void drop_member(ff_visit *v, const backlog *b, ff_str *member) {
    ff_txn t;
    ff_result unused;
    ff_unit_begin(v, &t, &unused);
    ff_set_remove(ff_set_open(&t, b->pending), member);
    ff_unit_end(v, &t, FF_COMMIT);
    v->tally->errors++;
}

/* Cancels one member and takes it off the list, in one transaction. */
static void cancel_member(ff_visit *v, const backlog *b, ff_str *member) {
    ff_txn t;
    ff_result result;
    ff_verdict verdict = FF_DISCARD;
    ff_unit_begin(v, &t, &result);
    if (!ff_filter_passes(&t, ff_str_text(member))) {
        v->tally->filtered++;
        ff_unit_end(v, &t, FF_DISCARD);
        return;
    }
    if (ff_member_cancel(&t, v->tag, member, b->reason) != FF_MEMBER_TRY_AGAIN) {
        ff_flow_ack_cancel_keys k = {b->pending, v->index_name};
        ff_flow_ack_cancel_args a = {member, v->member};
        verdict = ff_flow_ack_cancel(&t, &k, &a, &result);
    }
    if (ff_unit_end(v, &t, verdict) && verdict == FF_COMMIT) {
        v->tally->processed++;
    } else {
        ff_visit_complain(v, "has a member that cannot be cancelled");
        v->tally->errors++;
    }
}

static ff_visit_outcome cancel_members(ff_visit *v, const backlog *b) {
    ff_walk *walk = &v->progress->walk;
    ff_walk_state state;
    while ((state = ff_walk_set(walk, v->ctx, b->pending, MEMBERS_AT_ONCE)) == FF_WALK_TAKEN) {
        ff_str *member = ff_walk_entry(walk)->member;
        v->tally->scanned++;
        if (ff_member_is_local(ff_str_text(member), v->tag)) {
            cancel_member(v, b, member);
        } else {
            ff_visit_complain(v, "has a member to cancel that is no execution of its partition");
            drop_member(v, b, member);
        }
        ff_walk_next(walk);
        if (ff_visit_is_late(v)) return FF_VISIT_AGAIN;
    }
    return FF_VISIT_COUNTED;
}

static bool open_backlog(ff_visit *v, backlog *b) {
    ff_text flow = ff_str_text(v->member);
    b->core = ff_keyname_flow(v->txn, v->tag, flow, "core", FF_TEXT_ABSENT);
    b->pending = ff_keyname_flow(v->txn, v->tag, flow, "pending_cancels", FF_TEXT_ABSENT);
    return ff_key_exists(ff_any_open(v->txn, b->core));
}

ff_visit_outcome ff_visit_cancel_backlog(ff_visit *v) {
    ff_uuid id;
    backlog b;
    if (!ff_uuid_parse(ff_str_text(v->member), &id)) {
        ff_visit_complain(v, "is no flow id");
        v->tally->errors++;
        ff_visit_drop(v);
        return FF_VISIT_COUNTED;
    }
    if (!open_backlog(v, &b)) {
        ff_key_delete(ff_any_open(v->txn, b.pending));
        return ff_visit_drop(v);
    }
    if (!ff_key_exists(ff_set_open(v->txn, b.pending)) && !ff_txn_error(v->txn)) {
        return ff_visit_drop(v);
    }
    ff_str *reason = ff_hash_get(ff_hash_open(v->txn, b.core), W(cancel_reason));
    if (ff_txn_error(v->txn)) return FF_VISIT_ERROR;
    b.reason = ff_str_or(reason, W(flow_cancelled));
    ff_visit_let_go(v);
    return cancel_members(v, &b);
}

/* ---- Groups ---- */

/* An entry of pending_cancel_groups: <flow id>|<downstream id> */
typedef struct group_name {
    ff_str *flow_id, *downstream_id, *group;
} group_name;

static bool parse_entry(ff_visit *v, group_name *name) {
    ff_text downstream = ff_str_text(v->member);
    ff_text flow;
    ff_uuid id;
    ff_text_split(&downstream, '|', &flow);
    if (!ff_uuid_parse(flow, &id) || !ff_member_is_local(downstream, v->tag)) return false;
    name->flow_id = ff_str_make(v->txn, flow);
    name->downstream_id = ff_str_make(v->txn, downstream);
    name->group = ff_keyname_flow(v->txn, v->tag, flow, "edgegroup:", downstream);
    return true;
}

static ff_visit_outcome drop_entry(ff_visit *v) {
    ff_visit_complain(v, "names no group");
    v->tally->errors++;
    ff_visit_drop(v);
    return FF_VISIT_COUNTED;
}

static void count_fate(ff_member_fate fate) {
    switch (fate) {
    case FF_MEMBER_CANCELLED: ff_count(FF_COUNT_SIBLING_CANCELLED); break;
    case FF_MEMBER_ENDED: ff_count(FF_COUNT_SIBLING_ALREADY_TERMINAL); break;
    case FF_MEMBER_GONE: ff_count(FF_COUNT_SIBLING_NOT_FOUND); break;
    case FF_MEMBER_TRY_AGAIN: break;
    }
}

/* True when the sibling needs no further try. */
static bool cancel_sibling(ff_visit *v, ff_text sibling, ff_str *reason) {
    ff_txn t;
    ff_result unused;
    if (!ff_member_is_local(sibling, v->tag)) return true;
    ff_count(ff_str_is(reason, W(sibling_quorum_impossible)) ? FF_COUNT_SIBLING_CANCEL_IMPOSSIBLE
                                                             : FF_COUNT_SIBLING_CANCEL_SATISFIED);
    ff_unit_begin(v, &t, &unused);
    ff_member_fate fate = ff_member_cancel(&t, v->tag, ff_str_make(&t, sibling), reason);
    bool cancelled = fate == FF_MEMBER_CANCELLED;
    if (!ff_unit_end(v, &t, cancelled ? FF_COMMIT : FF_DISCARD)) fate = FF_MEMBER_TRY_AGAIN;
    count_fate(fate);
    return fate != FF_MEMBER_TRY_AGAIN;
}

static ff_visit_outcome drain(ff_visit *v, const group_name *name) {
    ff_txn t;
    ff_result result;
    ff_unit_begin(v, &t, &result);
    ff_edgegroup_drain_keys k = {v->index_name, name->group};
    ff_edgegroup_drain_args a = {name->flow_id, name->downstream_id};
    ff_verdict verdict = ff_edgegroup_drain(&t, &k, &a, &result);
    return ff_unit_end(v, &t, verdict) ? FF_VISIT_PROCESSED : FF_VISIT_ERROR;
}

/* How far the list was worked through, and how many siblings need another try. */
enum { FAILED };

static bool cancel_siblings(ff_visit *v, ff_text list, ff_str *reason) {
    ff_text sibling;
    while (v->progress->at < list.len) {
        ff_text rest = ff_text_slice(list, (size_t)v->progress->at, list.len);
        ff_text_split(&rest, '|', &sibling);
        v->progress->at += sibling.len + 1;
        if (sibling.len == 0) continue;
        if (!cancel_sibling(v, sibling, reason)) v->progress->counts[FAILED]++;
        if (ff_visit_is_late(v)) return false;
    }
    return true;
}

ff_visit_outcome ff_visit_cancel_group(ff_visit *v) {
    group_name name;
    if (!parse_entry(v, &name)) return drop_entry(v);
    ff_key *group = ff_hash_open(v->txn, name.group);
    if (ff_txn_error(v->txn)) return FF_VISIT_ERROR;
    ff_str *reason = ff_hash_get(group, W(cancel_siblings_reason));
    ff_text list = ff_str_text(ff_hash_get(group, W(cancel_siblings_pending_members)));
    if (!ff_str_is_set(reason)) reason = W(sibling_quorum_satisfied)->str;
    ff_visit_let_go(v);
    if (!cancel_siblings(v, list, reason)) return FF_VISIT_AGAIN;
    if (v->progress->counts[FAILED])
        return ff_visit_complain(v, "has a sibling that cannot be cancelled");
    return drain(v, &name);
}

static ff_counter counter_of(const ff_str *action) {
    if (ff_str_is(action, W(sremmed_stale))) return FF_COUNT_SIBLING_SREMMED_STALE;
    if (ff_str_is(action, W(completed_drain))) return FF_COUNT_SIBLING_COMPLETED_DRAIN;
    return FF_COUNT_SIBLING_NO_OP;
}

ff_visit_outcome ff_visit_stale_cancel_group(ff_visit *v) {
    group_name name;
    if (!parse_entry(v, &name)) return drop_entry(v);
    ff_edgegroup_reconcile_keys k = {v->index_name, name.group};
    ff_edgegroup_reconcile_args a = {name.flow_id, name.downstream_id};
    ff_verdict verdict = ff_edgegroup_reconcile(v->txn, &k, &a, &v->result);
    ff_visit_outcome outcome = ff_visit_settle_unless(v, verdict, W(no_op));
    bool answered = outcome == FF_VISIT_PROCESSED || outcome == FF_VISIT_SKIPPED;
    if (answered && v->result.count && !ff_txn_error(v->txn)) {
        ff_count(counter_of(v->result.values[0].str));
    }
    return outcome;
}
