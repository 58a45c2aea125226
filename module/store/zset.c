#include <math.h>

#include "base/number.h"
#include "store/audience.h"
#include "store/key.h"

void ff_zset_add(ff_key *key, ff_str *member, double score) {
    if (ff_key_touch(key, FF_ZSET)) ff_change_stage(key, member, score, false);
}

void ff_zset_remove(ff_key *key, ff_str *member) {
    if (key->type != FF_ZSET || key->txn->readonly || !ff_key_exists(key)) return;
    ff_change_stage(key, member, 0, true);
}

bool ff_zset_score(ff_key *key, ff_str *member, double *score) {
    if (key->type != FF_ZSET) return false;
    const ff_change *change = ff_change_find(key, member);
    if (change) {
        *score = change->score;
        return !change->removed;
    }
    if (!ff_key_readable(key)) return false;
    if (ValkeyModule_ZsetScore(key->handle, member, score) != VALKEYMODULE_OK) return false;
    return !key->u.changes.pruned || *score > key->u.changes.pruned_to;
}

size_t ff_zset_size(const ff_key *key) {
    return ff_key_readable(key) ? ValkeyModule_ValueLength(key->handle) : 0;
}

size_t ff_zset_range(ff_key *key, double min, bool exclusive_min, double max, size_t limit,
                     ff_zset_entry **entries) {
    *entries = NULL;
    if (!ff_key_readable(key) || limit == 0) return 0;
    if (ValkeyModule_ZsetFirstInScoreRange(key->handle, min, max, exclusive_min, 0) !=
        VALKEYMODULE_OK)
        return 0;
    size_t count = 0;
    size_t capacity = 0;
    while (count < limit && !ValkeyModule_ZsetRangeEndReached(key->handle)) {
        *entries = ff_txn_grow(key->txn, *entries, count, &capacity, sizeof **entries);
        ff_zset_entry *entry = &(*entries)[count++];
        entry->member =
            ff_txn_keep(key->txn, ValkeyModule_ZsetRangeCurrentElement(key->handle, &entry->score));
        ValkeyModule_ZsetRangeNext(key->handle);
    }
    ValkeyModule_ZsetRangeStop(key->handle);
    return count;
}

size_t ff_zset_count_above(const ff_key *key, double bound) {
    char above[FF_NUMBER_MAX + 1] = "(";
    if (!ff_key_readable(key)) return 0;
    ff_number_format_server(bound, above + 1);
    ValkeyModuleCallReply *reply =
        ValkeyModule_Call(key->txn->ctx, "ZCOUNT", "scc", key->name, above, "+inf");
    size_t count = reply ? (size_t)ValkeyModule_CallReplyInteger(reply) : 0;
    if (reply) ValkeyModule_FreeCallReply(reply);
    return count;
}

size_t ff_zset_prune(ff_key *key, double max) {
    if (!ff_key_readable(key) || key->txn->readonly) return 0;
    if (ValkeyModule_ZsetFirstInScoreRange(key->handle, -INFINITY, max, 0, 0) != VALKEYMODULE_OK)
        return 0;
    size_t count = 0;
    for (; !ValkeyModule_ZsetRangeEndReached(key->handle); count++) {
        ValkeyModule_ZsetRangeNext(key->handle);
    }
    ValkeyModule_ZsetRangeStop(key->handle);
    if (count == 0) return 0;
    key->u.changes.pruned = true;
    key->u.changes.pruned_to = max;
    return count;
}

/* The lowest member with a score up to max; NULL when there is none. A range must be over before the key is
 * written, so each member is looked for anew. */
static ff_str *lowest(ff_key *key, double max) {
    double score;
    if (ValkeyModule_ZsetFirstInScoreRange(key->handle, -INFINITY, max, 0, 0) != VALKEYMODULE_OK)
        return NULL;
    ff_str *member = NULL;
    if (!ValkeyModule_ZsetRangeEndReached(key->handle)) {
        member = ValkeyModule_ZsetRangeCurrentElement(key->handle, &score);
    }
    ValkeyModule_ZsetRangeStop(key->handle);
    return member;
}

static void apply_prune(ff_key *key) {
    double max = key->u.changes.pruned_to;
    for (ff_str *member = lowest(key, max); member != NULL; member = lowest(key, max)) {
        ValkeyModule_ZsetRem(key->handle, member, NULL);
        ValkeyModule_FreeString(NULL, member);
    }
    char score[FF_NUMBER_MAX];
    size_t length = ff_number_format_server(max, score);
    FF_REPLICATE(key->txn, "ZREMRANGEBYSCORE", "scb", key->name, "-inf", score, length);
    ff_key_notify(key, VALKEYMODULE_NOTIFY_ZSET, "zremrangebyscore");
    ff_key_notify_if_gone(key);
}

static void apply_add(ff_key *key, const ff_change *change) {
    int outcome = 0;
    ValkeyModule_ZsetAdd(key->handle, change->score, change->member, &outcome);
    if (outcome & VALKEYMODULE_ZADD_NOP) return;
    char score[FF_NUMBER_MAX];
    size_t length = key->txn->heard ? ff_number_format_server(change->score, score) : 0;
    FF_REPLICATE(key->txn, "ZADD", "sbs", key->name, score, length, change->member);
    ff_key_notify(key, VALKEYMODULE_NOTIFY_ZSET, "zadd");
}

static void apply_removal(ff_key *key, const ff_change *change) {
    int removed = 0;
    ValkeyModule_ZsetRem(key->handle, change->member, &removed);
    if (!removed) return;
    FF_REPLICATE(key->txn, "ZREM", "ss", key->name, change->member);
    ff_key_notify(key, VALKEYMODULE_NOTIFY_ZSET, "zrem");
    ff_key_notify_if_gone(key);
}

/* Of several changes of one member only the last counts. */
void ff_zset_apply(ff_key *key) {
    if (key->u.changes.pruned) apply_prune(key);
    for (const ff_change *c = key->u.changes.first; c != NULL; c = c->next) {
        if (ff_change_find(key, c->member) != c) continue;
        if (c->removed) {
            apply_removal(key, c);
        } else {
            apply_add(key, c);
        }
    }
}
