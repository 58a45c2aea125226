#include "base/number.h"
#include "store/key.h"

static void stage(ff_key *key, ff_str *member, double score, bool removed) {
    ff_changes *changes = &key->u.changes;
    ff_change *change = ff_arena_alloc(&key->txn->arena, sizeof *change);
    *change = (ff_change){.member = member, .score = score, .removed = removed};
    if (changes->last) {
        changes->last->next = change;
    } else {
        changes->first = change;
    }
    changes->last = change;
}

void ff_zset_add(ff_key *key, ff_str *member, double score) {
    if (ff_key_touch(key)) stage(key, member, score, false);
}

void ff_zset_remove(ff_key *key, ff_str *member) {
    if (key->inert || key->txn->readonly || !ff_key_exists(key)) return;
    stage(key, member, 0, true);
}

static const ff_change *last_change_of(const ff_key *key, const ff_str *member) {
    const ff_change *found = NULL;
    for (const ff_change *c = key->u.changes.first; c != NULL; c = c->next) {
        if (ff_str_equal(c->member, member)) found = c;
    }
    return found;
}

bool ff_zset_score(ff_key *key, ff_str *member, double *score) {
    const ff_change *change = key->inert ? NULL : last_change_of(key, member);
    if (change) {
        *score = change->score;
        return !change->removed;
    }
    if (!ff_key_readable(key)) return false;
    return ValkeyModule_ZsetScore(key->handle, member, score) == VALKEYMODULE_OK;
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

static void apply_add(ff_key *key, const ff_change *change) {
    int outcome = 0;
    ValkeyModule_ZsetAdd(key->handle, change->score, change->member, &outcome);
    if (outcome & VALKEYMODULE_ZADD_NOP) return;
    char score[FF_NUMBER_MAX];
    size_t length = ff_number_format_server(change->score, score);
    ValkeyModule_Replicate(key->txn->ctx, "ZADD", "sbs", key->name, score, length, change->member);
    ff_key_notify(key, VALKEYMODULE_NOTIFY_ZSET, "zadd");
}

static void apply_removal(ff_key *key, const ff_change *change) {
    int removed = 0;
    ValkeyModule_ZsetRem(key->handle, change->member, &removed);
    if (!removed) return;
    ValkeyModule_Replicate(key->txn->ctx, "ZREM", "ss", key->name, change->member);
    ff_key_notify(key, VALKEYMODULE_NOTIFY_ZSET, "zrem");
    ff_key_notify_if_gone(key);
}

void ff_zset_apply(ff_key *key) {
    for (const ff_change *c = key->u.changes.first; c != NULL; c = c->next) {
        if (c->removed) {
            apply_removal(key, c);
        } else {
            apply_add(key, c);
        }
    }
}
