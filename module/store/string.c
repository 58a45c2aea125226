#include "store/audience.h"
#include "store/key.h"

ff_str *ff_string_get(ff_key *key) {
    if (key->value) return key->value;
    if (!ff_key_readable(key)) return NULL;
    /* Not the DMA access of the API: that would change how the server keeps short values. */
    ValkeyModuleCallReply *reply = ValkeyModule_Call(key->txn->ctx, "GET", "s", key->name);
    if (reply == NULL) return NULL;
    ff_str *value = ValkeyModule_CreateStringFromCallReply(reply);
    ValkeyModule_FreeCallReply(reply);
    return value ? ff_txn_keep(key->txn, value) : NULL;
}

void ff_string_set(ff_key *key, ff_str *value, int64_t ttl_ms) {
    if (ff_key_is_idle(key)) return;
    ff_key_replace_by_string(key);
    key->value = value;
    key->value_keeps_ttl = false;
    key->expiry = FF_EXPIRY_KEEP;
    if (ttl_ms > 0) ff_key_expire_at(key, (int64_t)key->txn->now + ttl_ms);
}

void ff_string_update(ff_key *key, ff_str *value) {
    if (!ff_key_touch(key, FF_STRING)) return;
    key->value = value;
    key->value_keeps_ttl = true;
}

void ff_string_apply(ff_key *key) {
    if (key->value == NULL) return;
    mstime_t expires_at = VALKEYMODULE_NO_EXPIRE;
    if (key->value_keeps_ttl) expires_at = ValkeyModule_GetAbsExpire(key->handle);
    ValkeyModule_TrimStringAllocation(key->value);
    ValkeyModule_StringSet(key->handle, key->value);
    if (expires_at == VALKEYMODULE_NO_EXPIRE) {
        FF_REPLICATE(key->txn, "SET", "ss", key->name, key->value);
    } else {
        ValkeyModule_SetAbsExpire(key->handle, expires_at);
        FF_REPLICATE(key->txn, "SET", "ssc", key->name, key->value, "KEEPTTL");
    }
    ff_key_notify(key, VALKEYMODULE_NOTIFY_STRING, "set");
}
