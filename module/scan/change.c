#include "scan/change.h"

#include <string.h>

#include "presence.h"
#include "watch.h"

static uint64_t *changed; /* a bit for each flow partition */

static size_t words(void) { return ff_partition_count(FF_FAMILY_FLOW) / 64u + 1; }

void ff_change_everywhere(void) { memset(changed, 0xff, words() * sizeof *changed); }

void ff_change_in(uint16_t partition) {
    changed[partition / 64] |= UINT64_C(1) << (partition % 64);
}

bool ff_change_is_in(uint16_t partition) { return changed[partition / 64] >> (partition % 64) & 1; }

void ff_change_forget(uint16_t partition) {
    changed[partition / 64] &= ~(UINT64_C(1) << (partition % 64));
}

/* The partition of ff:exec:{fp:N}:… and ff:idx:{fp:N}:…; other names of that shape do no harm. This runs in every
 * write to every key. */
static bool find_partition(ff_text key, size_t *number) {
    static const char opening[] = "{fp:";
    const size_t length = sizeof opening - 1;
    if (key.len < sizeof "ff:idx:{fp:0}:" - 1) return false;
    size_t at = key.ptr[sizeof "ff:" - 1] == 'i' ? sizeof "ff:idx:" - 1 : sizeof "ff:exec:" - 1;
    if (memcmp(key.ptr + at, opening, length) != 0) return false;
    *number = 0;
    for (at += length; at < key.len && key.ptr[at] >= '0' && key.ptr[at] <= '9'; at++) {
        *number = *number * 10 + (size_t)(key.ptr[at] - '0');
        if (*number > UINT16_MAX) return false;
    }
    return true;
}

static void see_key(ValkeyModuleCtx *ctx, ValkeyModuleString *key) {
    size_t number;
    (void)ctx;
    if (!find_partition(ff_str_text(key), &number)) return;
    if (number < ff_partition_count(FF_FAMILY_FLOW)) ff_change_in((uint16_t)number);
}

void ff_change_load(void) {
    changed = ValkeyModule_Calloc(words(), sizeof *changed);
    ff_change_everywhere();
    ff_watch_keys(see_key);
}

void ff_change_unload(void) {
    ValkeyModule_Free(changed);
    changed = NULL;
}
