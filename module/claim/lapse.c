#include "claim/lapse.h"

#include <math.h>

#include "presence.h"
#include "store/walk.h"

static double *lowest;   /* expiry of the first lease of each partition */
static double *coming;   /* of the first that had not run out when the head was read */
static uint64_t *unread; /* a bit for each partition whose head is not known */
static bool any_unread;
static bool news;                      /* a head that was read has run out */
static double first_lowest = INFINITY; /* not after the lowest of all */
static double first_coming = INFINITY; /* likewise */

static uint32_t partitions(void) { return ff_partition_count(FF_FAMILY_FLOW); }

static size_t words(void) { return partitions() / 64 + 1; }

void ff_lapse_load(void) {
    lowest = ValkeyModule_Alloc(partitions() * sizeof *lowest);
    coming = ValkeyModule_Alloc(partitions() * sizeof *coming);
    unread = ValkeyModule_Calloc(words(), sizeof *unread);
    for (uint32_t i = 0; i < partitions(); i++) lowest[i] = coming[i] = INFINITY;
}

void ff_lapse_unload(void) {
    ValkeyModule_Free(lowest);
    ValkeyModule_Free(coming);
    ValkeyModule_Free(unread);
}

void ff_lapse_mark(uint16_t partition) {
    unread[partition / 64] |= UINT64_C(1) << (partition % 64);
    any_unread = true;
}

static void read_head(ValkeyModuleCtx *ctx, uint16_t partition, double now) {
    char tag[FF_TAG_MAX];
    ff_tag_format((ff_partition){FF_FAMILY_FLOW, partition}, tag);
    ff_str *name = ValkeyModule_CreateStringPrintf(NULL, "ff:idx:%s:lease_expiry", tag);
    ff_zset_head head = ff_zset_look(ctx, name, now);
    ValkeyModule_FreeString(NULL, name);
    if (head.size == 0) ff_presence_clear(FF_INDEX_LEASE_EXPIRY, NULL, partition);
    lowest[partition] = head.lowest;
    coming[partition] = head.next;
    if (head.lowest <= now) news = true;
    first_lowest = fmin(first_lowest, head.lowest);
    first_coming = fmin(first_coming, head.next);
}

static void read_marked(ValkeyModuleCtx *ctx, double now) {
    for (size_t word = 0; any_unread && word < words(); word++) {
        while (unread[word]) {
            unsigned bit = (unsigned)__builtin_ctzll(unread[word]);
            unread[word] &= unread[word] - 1;
            read_head(ctx, (uint16_t)(word * 64 + bit), now);
        }
    }
    any_unread = false;
}

/* Time has passed what was to come: reads those heads again, and makes both bounds exact. */
static void read_passed(ValkeyModuleCtx *ctx, double now) {
    double exact_lowest = INFINITY;
    double exact_coming = INFINITY;
    for (int32_t p = ff_presence_next(FF_INDEX_LEASE_EXPIRY, NULL, 0); p >= 0;
         p = ff_presence_next(FF_INDEX_LEASE_EXPIRY, NULL, (uint32_t)p + 1)) {
        if (coming[p] <= now) read_head(ctx, (uint16_t)p, now);
        exact_lowest = fmin(exact_lowest, lowest[p]);
        exact_coming = fmin(exact_coming, coming[p]);
    }
    first_lowest = exact_lowest;
    first_coming = exact_coming;
}

void ff_lapse_refresh(ValkeyModuleCtx *ctx, double now) {
    if (any_unread) read_marked(ctx, now);
    if (first_coming <= now || first_lowest <= now) read_passed(ctx, now);
}

int32_t ff_lapse_next(uint32_t from, double now) {
    if (first_lowest > now) return -1;
    int32_t p = ff_presence_next(FF_INDEX_LEASE_EXPIRY, NULL, from);
    while (p >= 0 && lowest[p] > now) {
        p = ff_presence_next(FF_INDEX_LEASE_EXPIRY, NULL, (uint32_t)p + 1);
    }
    return p;
}

double ff_lapse_after_now(void) { return first_coming; }

bool ff_lapse_take_news(void) {
    bool had = news;
    news = false;
    return had;
}
