#include "engine/mint.h"

#include <sys/random.h>

/* Random bytes are fetched for many ids at a time: asking for them is the costly part. */
ff_uuid ff_mint_uuid(void) {
    static uint8_t random[4096];
    static size_t used = sizeof random;
    if (used == sizeof random) {
        if (getrandom(random, sizeof random, 0) != sizeof random) {
            ValkeyModule_GetRandomBytes(random, sizeof random);
        }
        used = 0;
    }
    used += 16;
    return ff_uuid_v4(random + used - 16);
}

ff_str *ff_mint_id(ff_txn *t) {
    char text[FF_UUID_TEXT];
    ff_uuid uuid = ff_mint_uuid();
    ff_uuid_format(&uuid, text);
    return ff_str_make(t, ff_text_make(text, sizeof text));
}

ff_uuid ff_mint_uuid_in(ff_partition partition, uint16_t count) {
    ff_uuid uuid = ff_mint_uuid();
    ff_partition_place_uuid(&uuid, partition.number, count);
    return uuid;
}
