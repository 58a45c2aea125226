#include "commands/place.h"

#include "engine/mint.h"
#include "permission.h"
#include "presence.h"

/* The partitions of this node take turns. */
static bool pick(ff_request *r, ff_family family, ff_partition *partition) {
    static uint32_t last[FF_FAMILIES];
    uint16_t count = ff_partition_count(family);
    if (!ff_request_reaches_all_slots(r)) return false;
    for (uint32_t i = 0; i < count; i++) {
        last[family] = (last[family] + 1) % count;
        *partition = (ff_partition){family, (uint16_t)last[family]};
        if (ff_partition_is_served(r->ctx, *partition)) return true;
    }
    ff_request_refuse(r, FF_TEXT("this node serves no partition that could take it"));
    return false;
}

static const char *const expected_partition[FF_FAMILIES] = {
    [FF_FAMILY_FLOW] = "' is not a partition: expected {fp:N} with N below ff.flow-partitions",
    [FF_FAMILY_BUDGET] = "' is not a partition: expected {b:M} with M below ff.budget-partitions",
    [FF_FAMILY_QUOTA] = "' is not a partition: expected {q:K} with K below ff.quota-partitions",
};

bool ff_request_reaches_all_slots(ff_request *r) {
    if (!ff_request_in_cluster(r) || !ff_request_in_transaction(r)) return true;
    ff_request_refuse(r,
                      FF_TEXT("in a cluster a transaction or script cannot do this: it would reach "
                              "one slot only"));
    return false;
}

bool ff_request_partition(ff_request *r, ff_text text, ff_family family, ff_partition *partition) {
    if (ff_text_equal(text, FF_TEXT("*"))) return pick(r, family, partition);
    if (ff_tag_parse(text, partition) && partition->family == family &&
        partition->number < ff_partition_count(family)) {
        return true;
    }
    ff_arena *arena = &r->txn.arena;
    ff_request_refuse(r, ff_arena_concat(arena, FF_TEXT("'"), ff_arena_printable(arena, text),
                                         ff_text_of(expected_partition[family])));
    return false;
}

/* `*`, or what ends where its tag does. */
static bool names_partition(ff_text text) {
    return ff_text_equal(text, FF_TEXT("*")) ||
           (text.len && text.ptr[0] == '{' && text.ptr[text.len - 1] == '}');
}

static const char *const expected_place[FF_FAMILIES] = {
    [FF_FAMILY_FLOW] = "' is not a place: expected {fp:N}:<uuid>, {fp:N} or *",
    [FF_FAMILY_BUDGET] = "' is not a place: expected {b:M}:<uuid>, {b:M} or *",
    [FF_FAMILY_QUOTA] = "' is not a place: expected {q:K}:<uuid>, {q:K} or *",
};

/* A reference, with or without its tag, or something that looks like one. */
static bool may_name_reference(ff_text text) {
    ff_uuid uuid;
    return ff_text_starts_with(text, FF_TEXT("{")) || ff_uuid_parse(text, &uuid);
}

bool ff_request_place(ff_request *r, ff_text text, ff_family family, ff_reference *reference) {
    ff_partition partition;
    ff_arena *arena = &r->txn.arena;
    if (!names_partition(text)) {
        if (may_name_reference(text)) return ff_request_reference(r, text, family, reference);
        ff_request_refuse(r, ff_arena_concat(arena, FF_TEXT("'"), ff_arena_printable(arena, text),
                                             ff_text_of(expected_place[family])));
        return false;
    }
    if (!ff_request_partition(r, text, family, &partition)) return false;
    ff_uuid uuid = ff_mint_uuid_in(partition, ff_partition_count(family));
    ff_text whole = ff_reference_text(arena, partition, &uuid);
    return ff_reference_parse(whole, family, reference);
}

ff_str *ff_reference_id(ff_txn *t, const ff_reference *reference) {
    char text[FF_UUID_TEXT];
    ff_uuid_format(&reference->uuid, text);
    return ff_str_make(t, ff_text_make(text, sizeof text));
}

ff_str *ff_reference_str(ff_txn *t, const ff_reference *reference) {
    return ff_str_make(t, ff_reference_text(&t->arena, reference->partition, &reference->uuid));
}
