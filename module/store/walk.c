#include "store/walk.h"

#include <math.h>

/* Up to this many members of one score are stepped over one by one; beyond, their number gives the place. */
enum { STEP_OVER_MOST = 256 };

static void put(ff_walk *walk, ff_str *member, double score) {
    if (walk->count == walk->capacity) {
        walk->capacity = walk->capacity ? walk->capacity * 2 : 64;
        walk->entries = ValkeyModule_Realloc(walk->entries, walk->capacity * sizeof *walk->entries);
    }
    walk->entries[walk->count++] = (ff_zset_entry){member, score};
}

static void drop_taken(ff_walk *walk) {
    for (size_t i = 0; i < walk->count; i++) {
        ValkeyModule_FreeString(NULL, walk->entries[i].member);
    }
    walk->count = 0;
    walk->at = 0;
}

static ff_walk_state state_of(const ff_walk *walk) {
    return walk->at < walk->count ? FF_WALK_TAKEN : FF_WALK_OVER;
}

/* Steps over what was left behind, then takes. */
static void take_by_score(ff_walk *walk, ValkeyModuleKey *key, double max, size_t most) {
    size_t behind = walk->started ? walk->kept : 0;
    double from = walk->started ? walk->score : -INFINITY;
    if (ValkeyModule_ZsetFirstInScoreRange(key, from, max, 0, 0) != VALKEYMODULE_OK) return;
    while (walk->count < most && !ValkeyModule_ZsetRangeEndReached(key)) {
        double score;
        ff_str *member = ValkeyModule_ZsetRangeCurrentElement(key, &score);
        if (behind && score == from) {
            behind--;
            ValkeyModule_FreeString(NULL, member);
        } else {
            put(walk, member, score);
        }
        ValkeyModule_ZsetRangeNext(key);
    }
    walk->over = ValkeyModule_ZsetRangeEndReached(key);
    ValkeyModule_ZsetRangeStop(key);
}

static long long count_up_to(ValkeyModuleCtx *ctx, ff_str *name, double score, bool exclusive) {
    const char *mark = exclusive ? "(" : "";
    ff_str *bound = ValkeyModule_CreateStringPrintf(NULL, "%s%.17g", mark, score);
    ValkeyModuleCallReply *reply = ValkeyModule_Call(ctx, "ZCOUNT", "scs", name, "-inf", bound);
    long long count = reply ? ValkeyModule_CallReplyInteger(reply) : 0;
    if (reply) ValkeyModule_FreeCallReply(reply);
    ValkeyModule_FreeString(NULL, bound);
    return count;
}

static void put_pair(ff_walk *walk, ValkeyModuleCallReply *reply, size_t i, double max) {
    ff_str *score = ValkeyModule_CreateStringFromCallReply(
        ValkeyModule_CallReplyArrayElement(reply, 2 * i + 1));
    double value = INFINITY;
    ff_str_to_number(score, &value);
    ValkeyModule_FreeString(NULL, score);
    if (value > max) {
        walk->over = true;
        return;
    }
    put(walk,
        ValkeyModule_CreateStringFromCallReply(ValkeyModule_CallReplyArrayElement(reply, 2 * i)),
        value);
}

static void take_by_rank(ff_walk *walk, ValkeyModuleCtx *ctx, ff_str *name, double max,
                         size_t most) {
    long long first = count_up_to(ctx, name, walk->score, true) + (long long)walk->kept;
    ValkeyModuleCallReply *reply = ValkeyModule_Call(ctx, "ZRANGE", "sllc", name, first,
                                                     first + (long long)most - 1, "WITHSCORES");
    size_t pairs = reply ? ValkeyModule_CallReplyLength(reply) / 2 : 0;
    for (size_t i = 0; i < pairs && !walk->over; i++) put_pair(walk, reply, i, max);
    if (pairs < most) walk->over = true;
    if (reply) ValkeyModule_FreeCallReply(reply);
}

ff_walk_state ff_walk_zset(ff_walk *walk, ValkeyModuleCtx *ctx, ff_str *name, double max,
                           size_t most) {
    if (walk->at < walk->count) return FF_WALK_TAKEN;
    drop_taken(walk);
    if (walk->over) return FF_WALK_OVER;
    ValkeyModuleKey *key = ValkeyModule_OpenKey(ctx, name, VALKEYMODULE_READ);
    int type = ValkeyModule_KeyType(key);
    if (type == VALKEYMODULE_KEYTYPE_ZSET && walk->kept <= STEP_OVER_MOST) {
        take_by_score(walk, key, max, most);
    }
    ValkeyModule_CloseKey(key);
    if (type == VALKEYMODULE_KEYTYPE_EMPTY) return FF_WALK_EMPTY;
    if (type != VALKEYMODULE_KEYTYPE_ZSET) return FF_WALK_WRONG_TYPE;
    if (walk->kept > STEP_OVER_MOST) take_by_rank(walk, ctx, name, max, most);
    return state_of(walk);
}

/* Whether the member at a rank comes after the text, as members of one score are ordered. */
static bool is_after(ValkeyModuleCtx *ctx, ff_str *name, long long rank, ff_text text) {
    ValkeyModuleCallReply *reply = ValkeyModule_Call(ctx, "ZRANGE", "sll", name, rank, rank);
    ValkeyModuleCallReply *first = reply ? ValkeyModule_CallReplyArrayElement(reply, 0) : NULL;
    ff_text member = FF_TEXT_ABSENT;
    if (first) member.ptr = ValkeyModule_CallReplyStringPtr(first, &member.len);
    bool after = first == NULL || ff_text_compare(member, text) > 0;
    if (reply) ValkeyModule_FreeCallReply(reply);
    return after;
}

void ff_walk_seek(ff_walk *walk, ValkeyModuleCtx *ctx, ff_str *name, ff_zset_entry behind) {
    ff_walk_reset(walk);
    long long first = count_up_to(ctx, name, behind.score, true);
    long long from = first;
    long long to = count_up_to(ctx, name, behind.score, false);
    while (from < to) {
        long long middle = from + (to - from) / 2;
        if (is_after(ctx, name, middle, ff_str_text(behind.member))) {
            to = middle;
        } else {
            from = middle + 1;
        }
    }
    walk->started = true;
    walk->score = behind.score;
    walk->kept = (size_t)(from - first);
}

static void take_member(ValkeyModuleKey *key, ValkeyModuleString *field, ValkeyModuleString *value,
                        void *walk) {
    (void)key;
    (void)value;
    put(walk, ValkeyModule_HoldString(NULL, field), 0);
}

ff_walk_state ff_walk_set(ff_walk *walk, ValkeyModuleCtx *ctx, ff_str *name, size_t most) {
    if (walk->at < walk->count) return FF_WALK_TAKEN;
    drop_taken(walk);
    if (walk->over) return FF_WALK_OVER;
    ValkeyModuleKey *key = ValkeyModule_OpenKey(ctx, name, VALKEYMODULE_READ);
    int type = ValkeyModule_KeyType(key);
    if (type == VALKEYMODULE_KEYTYPE_SET) {
        if (walk->cursor == NULL) walk->cursor = ValkeyModule_ScanCursorCreate();
        while (walk->count < most && !walk->over) {
            walk->over = !ValkeyModule_ScanKey(key, walk->cursor, take_member, walk);
        }
    }
    ValkeyModule_CloseKey(key);
    if (type == VALKEYMODULE_KEYTYPE_EMPTY) return FF_WALK_EMPTY;
    return type == VALKEYMODULE_KEYTYPE_SET ? state_of(walk) : FF_WALK_WRONG_TYPE;
}

void ff_walk_next(ff_walk *walk, bool stays) {
    double score = walk->entries[walk->at++].score;
    if (!walk->started || score != walk->score) {
        walk->started = true;
        walk->score = score;
        walk->kept = 0;
    }
    if (stays) walk->kept++;
}

void ff_walk_reset(ff_walk *walk) {
    drop_taken(walk);
    if (walk->cursor) ValkeyModule_ScanCursorDestroy(walk->cursor);
    *walk = (ff_walk){.entries = walk->entries, .capacity = walk->capacity};
}

void ff_walk_free(ff_walk *walk) {
    ff_walk_reset(walk);
    ValkeyModule_Free(walk->entries);
    *walk = (ff_walk){0};
}

static double first_score(ValkeyModuleKey *key, double from, bool exclusive) {
    double score = INFINITY;
    if (ValkeyModule_ZsetFirstInScoreRange(key, from, INFINITY, exclusive, 0) != VALKEYMODULE_OK) {
        return score;
    }
    if (!ValkeyModule_ZsetRangeEndReached(key)) {
        ValkeyModule_FreeString(NULL, ValkeyModule_ZsetRangeCurrentElement(key, &score));
    }
    ValkeyModule_ZsetRangeStop(key);
    return score;
}

ff_zset_head ff_zset_look(ValkeyModuleCtx *ctx, ff_str *name, double bound) {
    ff_zset_head head = {INFINITY, INFINITY, 0};
    ValkeyModuleKey *key = ValkeyModule_OpenKey(ctx, name, VALKEYMODULE_READ);
    if (ValkeyModule_KeyType(key) == VALKEYMODULE_KEYTYPE_ZSET) {
        head.size = ValkeyModule_ValueLength(key);
        head.lowest = first_score(key, -INFINITY, false);
        head.next = head.lowest > bound ? head.lowest : first_score(key, bound, true);
    }
    ValkeyModule_CloseKey(key);
    return head;
}

void ff_keys_unlink(ValkeyModuleCtx *ctx, ff_str **names, size_t count) {
    if (count == 0) return;
    ValkeyModuleCallReply *reply = ValkeyModule_Call(ctx, "UNLINK", "!v", names, count);
    if (reply) ValkeyModule_FreeCallReply(reply);
}
