#include "store/key.h"

enum { INDEX_FROM = 16 }; /* up to this many changes a walk is faster than hashing */

void ff_change_stage(ff_key *key, ff_str *member, double score, bool removed) {
    ff_changes *changes = &key->u.changes;
    ff_change *change = ff_arena_alloc(&key->txn->arena, sizeof *change);
    *change = (ff_change){.member = member, .score = score, .removed = removed};
    if (changes->last) {
        changes->last->next = change;
    } else {
        changes->first = change;
    }
    changes->last = change;
    changes->count++;
}

static const ff_change *walk(const ff_changes *changes, const ff_str *member) {
    const ff_change *found = NULL;
    for (const ff_change *c = changes->first; c != NULL; c = c->next) {
        if (ff_str_equal(c->member, member)) found = c;
    }
    return found;
}

/* Brings the index up to what is staged by now: staging alone never pays for it. */
static void update_index(ff_changes *changes, ff_arena *arena) {
    ff_change *c = changes->indexed ? changes->indexed->next : changes->first;
    for (; c != NULL; c = c->next) {
        *ff_table_at(&changes->index, arena, ff_str_text(c->member)) = c;
        changes->indexed = c;
    }
}

const ff_change *ff_change_find(ff_key *key, const ff_str *member) {
    ff_changes *changes = &key->u.changes;
    if (changes->count <= INDEX_FROM) return walk(changes, member);
    update_index(changes, &key->txn->arena);
    return ff_table_get(&changes->index, ff_str_text(member));
}
