#include "engine/mint.h"

ff_uuid ff_mint_uuid(void) {
    uint8_t random[16];
    ValkeyModule_GetRandomBytes(random, sizeof random);
    return ff_uuid_v4(random);
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
