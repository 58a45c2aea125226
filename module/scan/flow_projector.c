/* Keeps the summary of each flow: how many of its members are in which state. */
#include "engine/keyname.h"
#include "scan/visitors.h"

enum { MEMBERS_AT_ONCE = 64 };

typedef enum {
    COMPLETED,
    FAILED,
    CANCELLED,
    EXPIRED,
    SKIPPED,
    ACTIVE,
    SUSPENDED,
    WAITING,
    DELAYED,
    RATE_LIMITED,
    WAITING_CHILDREN,
    OTHER,
    SAMPLED,
} count;

static const struct {
    const ff_word *state;
    const char *field;
} counted[] = {
    [COMPLETED] = {W(completed), "members_completed"},
    [FAILED] = {W(failed), "members_failed"},
    [CANCELLED] = {W(cancelled), "members_cancelled"},
    [EXPIRED] = {W(expired), "members_expired"},
    [SKIPPED] = {W(skipped), "members_skipped"},
    [ACTIVE] = {W(active), "members_active"},
    [SUSPENDED] = {W(suspended), "members_suspended"},
    [WAITING] = {W(waiting), "members_waiting"},
    [DELAYED] = {W(delayed), "members_delayed"},
    [RATE_LIMITED] = {W(rate_limited), "members_rate_limited"},
    [WAITING_CHILDREN] = {W(waiting_children), "members_waiting_children"},
};

static void count_member(ff_visit *v, ff_txn *t, ff_text member) {
    ff_reference id;
    uint64_t *counts = v->progress->counts;
    if (!ff_execution_id_parse(member, &id) || !ff_text_equal(id.tag, v->tag)) return;
    ff_str *core = ff_keyname_execution(t, v->tag, member, "core");
    const ff_str *state = ff_hash_peek(t, ff_str_text(core), W(public_state));
    count at = COMPLETED;
    while (at < OTHER && !ff_str_is(state, counted[at].state)) at++;
    counts[at]++;
    counts[SAMPLED]++;
}

static bool all_ended(const uint64_t *counts) {
    return counts[SAMPLED] > 0 && counts[COMPLETED] + counts[SKIPPED] + counts[FAILED] +
                                          counts[CANCELLED] + counts[EXPIRED] ==
                                      counts[SAMPLED];
}

static const ff_word *flow_state(const uint64_t *counts) {
    if (all_ended(counts)) {
        bool badly = counts[FAILED] + counts[CANCELLED] + counts[EXPIRED] > 0;
        return badly ? W(failed) : W(completed);
    }
    if (counts[ACTIVE]) return W(running);
    if (counts[SUSPENDED] + counts[DELAYED] + counts[RATE_LIMITED] + counts[WAITING_CHILDREN]) {
        return W(blocked);
    }
    return W(open);
}

static void set_count(ff_key *summary, const char *field, uint64_t value) {
    ff_txn *t = ff_key_txn(summary);
    ff_hash_set(summary, ff_field(t, ff_text_of(field)), ff_str_integer(t, (int64_t)value));
}

static void write_summary(ff_key *summary, const uint64_t *counts, uint64_t total) {
    set_count(summary, "total_members", total);
    set_count(summary, "sampled_members", counts[SAMPLED]);
    for (count at = COMPLETED; at < OTHER; at++) set_count(summary, counted[at].field, counts[at]);
    ff_hash_set_word(summary, W(public_flow_state), flow_state(counts));
    ff_hash_set_now(summary, W(last_summary_update_at));
}

static ff_visit_outcome finish(ff_visit *v, uint64_t total) {
    ff_txn t;
    ff_result unused;
    const uint64_t *counts = v->progress->counts;
    ff_unit_begin(v, &t, &unused);
    ff_str *name = ff_keyname_flow(&t, v->tag, ff_str_text(v->member), "summary", FF_TEXT_ABSENT);
    write_summary(ff_hash_open(&t, name), counts, total);
    if (all_ended(counts) && counts[SAMPLED] == total) {
        ff_set_remove(ff_set_open(&t, v->index_name), v->member);
    }
    if (ff_unit_end(v, &t, FF_COMMIT)) return FF_VISIT_PROCESSED;
    return ff_visit_complain(v, "is a flow whose summary cannot be written");
}

/* Counts some members; true when all are counted. False, too, with the state of the walk at an error. */
static bool count_some(ff_visit *v, ff_str *members, bool *failed) {
    ff_txn t;
    ff_walk *walk = &v->progress->walk;
    ff_walk_state state;
    ff_txn_begin(&t, v->ctx, true);
    size_t taken = 0;
    while ((state = ff_walk_set(walk, v->ctx, members, MEMBERS_AT_ONCE)) == FF_WALK_TAKEN) {
        if (taken++ == MEMBERS_AT_ONCE) break;
        count_member(v, &t, ff_str_text(ff_walk_entry(walk)->member));
        ff_walk_next(walk);
    }
    *failed = ff_txn_error(&t) != NULL || state == FF_WALK_WRONG_TYPE;
    ff_txn_discard(&t);
    ff_txn_end(&t);
    return state != FF_WALK_TAKEN;
}

ff_visit_outcome ff_visit_flow(ff_visit *v) {
    ff_uuid id;
    bool failed = false;
    ff_text flow = ff_str_text(v->member);
    if (!ff_uuid_parse(flow, &id)) return ff_visit_complain(v, "is no flow id");
    ff_str *core = ff_keyname_flow(v->txn, v->tag, flow, "core", FF_TEXT_ABSENT);
    ff_str *members = ff_keyname_flow(v->txn, v->tag, flow, "members", FF_TEXT_ABSENT);
    if (!ff_key_exists(ff_any_open(v->txn, core))) return ff_visit_drop(v);
    size_t total = ff_set_size(ff_set_open(v->txn, members));
    if (ff_txn_error(v->txn)) return FF_VISIT_ERROR;
    if (total == 0) return FF_VISIT_SKIPPED;
    ff_visit_let_go(v);
    while (!count_some(v, members, &failed)) {
        if (failed) break;
        if (ff_visit_is_late(v)) return FF_VISIT_AGAIN;
    }
    return failed ? ff_visit_complain(v, "is a flow with a member that cannot be read")
                  : finish(v, total);
}
