#include "presence.h"

#include <string.h>

#include "config.h"
#include "watch.h"

enum { LISTENERS_MAX = 4 };

typedef struct index_kind {
    ff_family family;
    bool per_lane;
    ff_text ending;
} index_kind;

#define FF_INDEX_KIND(name, family, per_lane, ending) \
    {FF_FAMILY_##family, per_lane, {ending, sizeof(ending) - 1}},
static const index_kind kinds[FF_INDEX_COUNT] = {FF_INDEXES(FF_INDEX_KIND)};

static uint64_t *partition_bits[FF_INDEX_COUNT]; /* of the indexes that are not per lane */
static ff_lane *first_lane;
static ff_lane *last_lane;
static ValkeyModuleDict *lanes_by_name;
static ff_presence_listener *listeners[LISTENERS_MAX];
static size_t listener_count;

ff_family ff_index_family(ff_index index) { return kinds[index].family; }

bool ff_index_is_per_lane(ff_index index) { return kinds[index].per_lane; }

uint16_t ff_partition_count(ff_family family) {
    switch (family) {
    case FF_FAMILY_FLOW: return (uint16_t)ff_config.flow_partitions;
    case FF_FAMILY_BUDGET: return (uint16_t)ff_config.budget_partitions;
    case FF_FAMILY_QUOTA: return (uint16_t)ff_config.quota_partitions;
    }
    return 0;
}

static size_t words_for(ff_index index) {
    return ff_partition_count(kinds[index].family) / 64u + 1;
}

static uint64_t *new_bits(ff_index index) {
    return ValkeyModule_Calloc(words_for(index), sizeof(uint64_t));
}

static uint64_t *bits_of(ff_index index, const ff_lane *lane) {
    return kinds[index].per_lane ? lane->maybe[index] : partition_bits[index];
}

ff_lane *ff_lanes(void) { return first_lane; }

ff_lane *ff_lane_find(ff_text name) {
    int missing;
    return ValkeyModule_DictGetC(lanes_by_name, (void *)(uintptr_t)name.ptr, name.len, &missing);
}

ff_lane *ff_lane_make(ff_text name) {
    ff_lane *lane = ff_lane_find(name);
    if (lane) return lane;
    lane = ValkeyModule_Calloc(1, sizeof *lane);
    char *copy = ValkeyModule_Alloc(name.len + 1);
    memcpy(copy, name.ptr, name.len);
    copy[name.len] = '\0';
    lane->name = ff_text_make(copy, name.len);
    for (ff_index i = 0; i < FF_LANE_INDEX_COUNT; i++) lane->maybe[i] = new_bits(i);
    ValkeyModule_DictSetC(lanes_by_name, copy, name.len, lane);
    if (last_lane) {
        last_lane->next = lane;
    } else {
        first_lane = lane;
    }
    last_lane = lane;
    return lane;
}

ff_str *ff_index_key(ff_txn *t, ff_index index, const ff_lane *lane, uint16_t partition) {
    char tag[FF_TAG_MAX];
    size_t length = ff_tag_format((ff_partition){kinds[index].family, partition}, tag);
    ff_text tag_text = ff_text_make(tag, length);
    if (!kinds[index].per_lane) {
        return FF_CONCAT(t, FF_TEXT("ff:idx:"), tag_text, FF_TEXT(":"), kinds[index].ending);
    }
    return FF_CONCAT(t, FF_TEXT("ff:idx:"), tag_text, FF_TEXT(":lane:"), lane->name, FF_TEXT(":"),
                     kinds[index].ending);
}

bool ff_presence_maybe(ff_index index, const ff_lane *lane, uint16_t partition) {
    return bits_of(index, lane)[partition / 64] >> (partition % 64) & 1;
}

void ff_presence_mark(ff_index index, ff_lane *lane, uint16_t partition) {
    bits_of(index, lane)[partition / 64] |= UINT64_C(1) << (partition % 64);
}

void ff_presence_clear(ff_index index, ff_lane *lane, uint16_t partition) {
    bits_of(index, lane)[partition / 64] &= ~(UINT64_C(1) << (partition % 64));
}

int32_t ff_presence_next(ff_index index, const ff_lane *lane, uint32_t from) {
    const uint64_t *bits = bits_of(index, lane);
    size_t words = words_for(index);
    for (size_t word = from / 64; word < words; word++) {
        uint64_t rest = bits[word];
        if (word == from / 64) rest &= ~UINT64_C(0) << (from % 64);
        if (rest) return (int32_t)(word * 64 + (size_t)__builtin_ctzll(rest));
    }
    return -1;
}

void ff_presence_listen(ff_presence_listener *listener) {
    if (listener_count < LISTENERS_MAX) listeners[listener_count++] = listener;
}

/* What an index key names. */
typedef struct named_index {
    ff_index index;
    ff_text lane;
    uint16_t partition;
} named_index;

/* The last byte tells most endings apart. */
static bool ends_with(ff_text text, ff_text ending) {
    return text.len >= ending.len && text.ptr[text.len - 1] == ending.ptr[ending.len - 1] &&
           memcmp(text.ptr + text.len - ending.len, ending.ptr, ending.len) == 0;
}

static bool parse_ending(ff_text rest, named_index *named) {
    const ff_text lane_prefix = FF_TEXT("lane:");
    bool per_lane = ff_text_starts_with(rest, lane_prefix);
    if (per_lane) rest = ff_text_slice(rest, lane_prefix.len, rest.len);
    for (ff_index i = 0; i < FF_INDEX_COUNT; i++) {
        if (kinds[i].per_lane != per_lane || !ends_with(rest, kinds[i].ending)) continue;
        size_t start = rest.len - kinds[i].ending.len;
        if (per_lane ? start == 0 || rest.ptr[start - 1] != ':' : start != 0) continue;
        named->index = i;
        named->lane = ff_text_slice(rest, 0, per_lane ? start - 1 : 0);
        return true;
    }
    return false;
}

static bool parse_index_key(ff_text key, named_index *named) {
    const ff_text prefix = FF_TEXT("ff:idx:{");
    if (!ff_text_starts_with(key, prefix)) return false;
    size_t close = ff_text_find(key, '}', prefix.len);
    if (close + 1 >= key.len || key.ptr[close + 1] != ':') return false;
    ff_partition partition;
    if (!ff_tag_parse(ff_text_slice(key, prefix.len - 1, close + 1), &partition)) return false;
    if (!parse_ending(ff_text_slice(key, close + 2, key.len), named)) return false;
    named->partition = partition.number;
    return kinds[named->index].family == partition.family &&
           partition.number < ff_partition_count(partition.family);
}

static void see_key(ValkeyModuleCtx *ctx, ValkeyModuleString *key) {
    (void)ctx;
    named_index named;
    if (!parse_index_key(ff_str_text(key), &named)) return;
    ff_lane *lane = kinds[named.index].per_lane ? ff_lane_make(named.lane) : NULL;
    ff_presence_mark(named.index, lane, named.partition);
    for (size_t i = 0; i < listener_count; i++) {
        listeners[i](named.index, lane, named.partition);
    }
}

static void forget_all(void) {
    for (ff_lane *lane = first_lane; lane != NULL; lane = lane->next) {
        for (ff_index i = 0; i < FF_LANE_INDEX_COUNT; i++) {
            memset(lane->maybe[i], 0, words_for(i) * sizeof(uint64_t));
        }
    }
    for (ff_index i = FF_LANE_INDEX_COUNT; i < FF_INDEX_COUNT; i++) {
        memset(partition_bits[i], 0, words_for(i) * sizeof(uint64_t));
    }
}

void ff_presence_load(void) {
    lanes_by_name = ValkeyModule_CreateDict(NULL);
    for (ff_index i = FF_LANE_INDEX_COUNT; i < FF_INDEX_COUNT; i++) partition_bits[i] = new_bits(i);
    ff_watch_keys(see_key);
    ff_watch_flush(forget_all);
}

void ff_presence_unload(void) {
    while (first_lane) {
        ff_lane *lane = first_lane;
        first_lane = lane->next;
        for (ff_index i = 0; i < FF_LANE_INDEX_COUNT; i++) ValkeyModule_Free(lane->maybe[i]);
        ValkeyModule_Free((void *)(uintptr_t)lane->name.ptr);
        ValkeyModule_Free(lane);
    }
    for (ff_index i = 0; i < FF_INDEX_COUNT; i++) ValkeyModule_Free(partition_bits[i]);
    if (lanes_by_name) ValkeyModule_FreeDict(NULL, lanes_by_name);
}
