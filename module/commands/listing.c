#include "commands/listing.h"

#include "base/number.h"
#include "commands/place.h"
#include "watch.h"

/* A way through the partitions: in which one it goes on, and where in its set. */
typedef struct walk {
    ff_request *r;
    ff_index index;
    int32_t only; /* the one partition that is asked for; -1: all */
    uint32_t partition;
    uint64_t cursor;
} walk;

static bool refuse(walk *w, const char *why, ff_text got) {
    ff_arena *arena = &w->r->txn.arena;
    ff_request_refuse(w->r, ff_arena_concat(arena, ff_text_of(why), FF_TEXT(", got: "),
                                            ff_arena_printable(arena, got)));
    return false;
}

static bool read_partition(walk *w, ff_text text) {
    ff_partition partition;
    if (ff_text_is_absent(text)) return ff_request_reaches_all_slots(w->r);
    if (!ff_tag_parse(text, &partition) || partition.family != FF_FAMILY_FLOW ||
        partition.number >= ff_partition_count(FF_FAMILY_FLOW)) {
        return refuse(w, "PARTITION must be {fp:N} with N below ff.flow-partitions", text);
    }
    w->only = partition.number;
    w->partition = partition.number;
    return true;
}

/* "0", or "<partition>-<cursor of its set>" as an earlier reply had it. */
static bool read_cursor(walk *w, ff_text text) {
    uint64_t partition;
    ff_text first;
    ff_text rest = text;
    if (ff_text_is_absent(text) || ff_text_equal(text, FF_TEXT("0"))) return true;
    ff_text_split(&rest, '-', &first);
    if (!ff_unsigned_parse(first, &partition) || ff_text_is_absent(rest) ||
        !ff_unsigned_parse(rest, &w->cursor) || partition >= ff_partition_count(FF_FAMILY_FLOW) ||
        (w->only >= 0 && partition != (uint64_t)w->only)) {
        return refuse(w, "CURSOR must be 0 or what an earlier reply had", text);
    }
    w->partition = (uint32_t)partition;
    return true;
}

/* The partition to look at from `from` on; -1 when there is none. */
static int32_t next_partition(const walk *w, uint32_t from) {
    if (w->only >= 0) return (int32_t)from == w->only ? w->only : -1;
    if (from >= ff_partition_count(FF_FAMILY_FLOW)) return -1;
    if (!ff_watch_is_complete()) return (int32_t)from;
    return ff_presence_next(w->index, NULL, from);
}

static ff_str *cursor_text(const walk *w, bool more) {
    ff_txn *t = &w->r->txn;
    if (!more) return W(zero)->str;
    return ff_str_make(
        t, ff_arena_printf(&t->arena, "%u-%llu", w->partition, (unsigned long long)w->cursor));
}

ff_verdict ff_listing_answer(ff_request *r, ff_index index, const ff_listing_options *o,
                             const char *name, ff_listing_entry *entry, void *data) {
    ff_txn *t = &r->txn;
    walk w = {.r = r, .index = index, .only = -1};
    if (!read_partition(&w, o->partition) || !read_cursor(&w, o->cursor)) return FF_DISCARD;
    ff_answer_become_map(&r->answer);
    ff_answer *cursor = ff_answer_member(&r->answer, FF_TEXT("cursor"));
    ff_answer *list = ff_answer_member(&r->answer, ff_text_of(name));
    ff_answer_become_list(list);
    int64_t left = o->count;
    int32_t at = next_partition(&w, w.partition);
    while (at >= 0 && left > 0) {
        ff_partition partition = {FF_FAMILY_FLOW, (uint16_t)at};
        if ((uint32_t)at != w.partition) w.cursor = 0;
        w.partition = (uint32_t)at;
        ff_text tag = ff_tag_text(&t->arena, partition);
        ff_str *key = ff_index_key(t, index, NULL, partition.number);
        ff_strs members = ff_set_scan(t, ff_str_text(key), &w.cursor, left);
        for (size_t i = 0; i < members.count; i++) entry(t, list, tag, members.items[i], data);
        left -= members.count ? (int64_t)members.count : 1;
        if (w.cursor == 0) at = next_partition(&w, ++w.partition);
    }
    if (at >= 0) w.partition = (uint32_t)at;
    ff_answer_become_text(cursor, cursor_text(&w, at >= 0));
    return FF_COMMIT;
}

int ff_listing_report_key(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc, int names) {
    for (int i = names; i + 1 < argc; i += 2) {
        if (!ff_text_equal_ignoring_case(ff_str_text(argv[i]), FF_TEXT("PARTITION"))) continue;
        return ff_request_report_key(ctx, argv, argc, i + 1,
                                     VALKEYMODULE_CMD_KEY_RO | VALKEYMODULE_CMD_KEY_ACCESS);
    }
    return VALKEYMODULE_OK;
}
