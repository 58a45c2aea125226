#include "store/walk.h"

#include <math.h>

/* So many members of one score are stepped over one by one; beyond, the place among them is searched for. */
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

static void set_behind(ff_walk *walk, ff_zset_entry entry) {
    if (entry.member == NULL) return;
    ValkeyModule_RetainString(NULL, entry.member);
    if (walk->behind.member) ValkeyModule_FreeString(NULL, walk->behind.member);
    if (entry.score != walk->behind.score) walk->deep = false;
    walk->behind = entry;
    walk->placed = true;
}

static ff_walk_state state_of(const ff_walk *walk) {
    return walk->at < walk->count ? FF_WALK_TAKEN : FF_WALK_OVER;
}

/* Members of one score are ordered by their bytes. */
static bool is_passed(const ff_walk *walk, ff_text member, double score) {
    if (walk->behind.member == NULL || score != walk->behind.score) return false;
    return ff_text_compare(member, ff_str_text(walk->behind.member)) <= 0;
}

/* Steps over what was passed, then takes; false, with nothing taken, when too many were passed. */
static bool take_by_score(ff_walk *walk, ValkeyModuleKey *key, double max, size_t most) {
    size_t stepped_over = 0;
    double from = walk->placed ? walk->behind.score : -INFINITY;
    if (ValkeyModule_ZsetFirstInScoreRange(key, from, max, 0, 0) != VALKEYMODULE_OK) return true;
    while (walk->count < most && stepped_over <= STEP_OVER_MOST &&
           !ValkeyModule_ZsetRangeEndReached(key)) {
        double score;
        ff_str *member = ValkeyModule_ZsetRangeCurrentElement(key, &score);
        if (walk->count == 0 && is_passed(walk, ff_str_text(member), score)) {
            stepped_over++;
            ValkeyModule_FreeString(NULL, member);
        } else {
            put(walk, member, score);
        }
        ValkeyModule_ZsetRangeNext(key);
    }
    walk->over = ValkeyModule_ZsetRangeEndReached(key);
    ValkeyModule_ZsetRangeStop(key);
    return walk->over || walk->count > 0;
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

static bool is_passed_rank(const ff_walk *walk, ValkeyModuleCtx *ctx, ff_str *name,
                           long long rank) {
    ValkeyModuleCallReply *reply = ValkeyModule_Call(ctx, "ZRANGE", "sll", name, rank, rank);
    ValkeyModuleCallReply *first = reply ? ValkeyModule_CallReplyArrayElement(reply, 0) : NULL;
    ff_text member = FF_TEXT_ABSENT;
    if (first) member.ptr = ValkeyModule_CallReplyStringPtr(first, &member.len);
    bool passed = first && is_passed(walk, member, walk->behind.score);
    if (reply) ValkeyModule_FreeCallReply(reply);
    return passed;
}

/* How many members are before the walk's place. */
static long long find_rank(const ff_walk *walk, ValkeyModuleCtx *ctx, ff_str *name) {
    long long from = count_up_to(ctx, name, walk->behind.score, true);
    long long to = count_up_to(ctx, name, walk->behind.score, false);
    while (from < to) {
        long long middle = from + (to - from) / 2;
        if (is_passed_rank(walk, ctx, name, middle)) {
            from = middle + 1;
        } else {
            to = middle;
        }
    }
    return from;
}

static void take_by_rank(ff_walk *walk, ValkeyModuleCtx *ctx, ff_str *name, double max,
                         size_t most) {
    long long first = find_rank(walk, ctx, name);
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
    set_behind(walk, ff_walk_behind(walk));
    drop_taken(walk);
    if (walk->over) return FF_WALK_OVER;
    ValkeyModuleKey *key = ValkeyModule_OpenKey(ctx, name, VALKEYMODULE_READ);
    int type = ValkeyModule_KeyType(key);
    if (type == VALKEYMODULE_KEYTYPE_ZSET && !walk->deep) {
        walk->deep = !take_by_score(walk, key, max, most);
    }
    ValkeyModule_CloseKey(key);
    if (type == VALKEYMODULE_KEYTYPE_EMPTY) return FF_WALK_EMPTY;
    if (type != VALKEYMODULE_KEYTYPE_ZSET) return FF_WALK_WRONG_TYPE;
    if (walk->deep) take_by_rank(walk, ctx, name, max, most);
    return state_of(walk);
}

void ff_walk_begin_behind(ff_walk *walk, ff_zset_entry entry) {
    ff_walk_reset(walk);
    set_behind(walk, entry);
}

void ff_walk_begin_at(ff_walk *walk, double score) {
    ff_walk_reset(walk);
    walk->placed = true;
    walk->behind.score = score;
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

void ff_walk_reset(ff_walk *walk) {
    drop_taken(walk);
    if (walk->behind.member) ValkeyModule_FreeString(NULL, walk->behind.member);
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
