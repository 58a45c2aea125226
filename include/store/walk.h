/* Walking a zset or set bit by bit, outside any transaction.
 *
 * A walk is done by whoever works through an index in slices: it takes a handful of members at a time and
 * keeps its place while others change the index. What it hands out may be stale by the time it is looked
 * at. Members that stay in the index for the whole walk are handed out at least once. */
#ifndef FF_STORE_WALK_H
#define FF_STORE_WALK_H

#include "store/txn.h"

typedef struct ff_walk {
    ff_zset_entry *entries; /* taken, from `at` on not handed out yet; a set's have score 0 */
    size_t count;
    size_t at;
    size_t capacity;
    bool over;                      /* nothing is left behind what was taken */
    bool placed;                    /* of a zset: the walk is behind this entry, */
    ff_zset_entry behind;           /* or, while it has no member, at the beginning of its score */
    bool deep;                      /* many members of that score are before it */
    ValkeyModuleScanCursor *cursor; /* of a set */
} ff_walk;

typedef enum {
    FF_WALK_TAKEN,      /* there is something to hand out */
    FF_WALK_OVER,       /* nothing more */
    FF_WALK_EMPTY,      /* nothing more, and the key does not exist */
    FF_WALK_WRONG_TYPE, /* nothing more: the key holds something else */
} ff_walk_state;

/* Takes members of a zset with a score up to `max`, lowest first, at most `most` at a time, when all that was
 * taken has been handed out. */
ff_walk_state ff_walk_zset(ff_walk *walk, ValkeyModuleCtx *ctx, ff_str *name, double max,
                           size_t most);

/* The same for a set, in the server's order. A small set is taken whole, whatever `most` says. */
ff_walk_state ff_walk_set(ff_walk *walk, ValkeyModuleCtx *ctx, ff_str *name, size_t most);

/* The entry at hand, and the step to the next. */
static inline const ff_zset_entry *ff_walk_entry(const ff_walk *walk) {
    return &walk->entries[walk->at];
}
static inline void ff_walk_next(ff_walk *walk) { walk->at++; }

/* The entry of a zset that was stepped over last; member NULL when there was none. And a walk that begins right
 * behind an entry, which may be gone by now. */
static inline ff_zset_entry ff_walk_behind(const ff_walk *walk) {
    return walk->at ? walk->entries[walk->at - 1] : walk->behind;
}
void ff_walk_begin_behind(ff_walk *walk, ff_zset_entry entry);

/* A walk that begins at a score. */
void ff_walk_begin_at(ff_walk *walk, double score);

/* Makes it ready for another walk. All zero is ready too. */
void ff_walk_reset(ff_walk *walk);
void ff_walk_free(ff_walk *walk);

/* The lowest score of a zset, and the lowest above `bound`; infinity when there is none. What is no zset reads as
 * empty. */
typedef struct ff_zset_head {
    double lowest;
    double next;
    size_t size;
} ff_zset_head;

ff_zset_head ff_zset_look(ValkeyModuleCtx *ctx, ff_str *name, double bound);

/* Deletes the keys now, leaving the memory to be freed in the background. */
void ff_keys_unlink(ValkeyModuleCtx *ctx, ff_str **names, size_t count);

#endif
