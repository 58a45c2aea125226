#include "store/txn.h"

#include <string.h>

#include "store/audience.h"
#include "store/key.h"

struct ff_owned {
    struct ff_owned *next;
    void *object;
    void (*release)(void *);
};

struct ff_message {
    struct ff_message *next;
    ff_text channel;
    ff_text text;
};

/* Most transactions fit into one block that is there for good; only one of several that are open at the
 * same time gets it. */
static char first_block[32 * 1024];
static bool first_block_taken;

/* Likewise for commits; a second one can only begin within the first if another module calls a command when it
 * hears of a write. */
static char scratch_block[16 * 1024];
static bool scratch_block_taken;

void ff_txn_begin(ff_txn *t, ValkeyModuleCtx *ctx, bool readonly) {
    memset(t, 0, sizeof *t);
    t->ctx = ctx;
    t->readonly = readonly;
    t->now = (double)(ValkeyModule_CachedMicroseconds() / 1000);
    if (first_block_taken) {
        ff_arena_init(&t->arena, NULL, 0);
    } else {
        first_block_taken = true;
        ff_arena_init(&t->arena, first_block, sizeof first_block);
    }
}

ff_str *ff_txn_keep(ff_txn *t, ff_str *str) {
    t->strs = ff_txn_grow(t, t->strs, t->str_count, &t->str_capacity, sizeof(ff_str *));
    t->strs[t->str_count++] = str;
    return str;
}

void *ff_txn_grow(ff_txn *t, void *items, size_t count, size_t *capacity, size_t size) {
    if (count < *capacity) return items;
    *capacity = *capacity ? *capacity * 2 : 32;
    void *grown = ff_arena_array(&t->arena, *capacity, size);
    if (count) memcpy(grown, items, count * size);
    return grown;
}

void ff_txn_own(ff_txn *t, void *object, void (*release)(void *object)) {
    struct ff_owned *owned = ff_arena_alloc(&t->arena, sizeof *owned);
    *owned = (struct ff_owned){t->owned, object, release};
    t->owned = owned;
}

void ff_txn_publish(ff_txn *t, ff_text channel, ff_text text) {
    if (t->readonly) return;
    struct ff_message *message = ff_arena_alloc(&t->arena, sizeof *message);
    *message = (struct ff_message){NULL, channel, text};
    if (t->last_message) {
        t->last_message->next = message;
    } else {
        t->messages = message;
    }
    t->last_message = message;
}

/* A stream that is deleted before is new then, takes every entry, and has time. */
static bool add_stream_entries(ff_txn *t) {
    for (ff_key *key = t->keys; key != NULL; key = key->next) {
        if (key->type == FF_STREAM && !key->deleted && !ff_stream_apply(key)) return false;
    }
    return true;
}

static void apply_delete(ff_key *key) {
    if (!key->deleted || !key->on_server) return;
    if (key->handle) {
        ValkeyModule_DeleteKey(key->handle);
        FF_REPLICATE(key->txn, "DEL", "s", key->name);
        ff_key_notify(key, VALKEYMODULE_NOTIFY_GENERIC, "del");
        return;
    }
    ValkeyModuleCallReply *reply = ValkeyModule_Call(key->txn->ctx, "DEL", "!s", key->name);
    if (reply) ValkeyModule_FreeCallReply(reply);
}

static void apply_writes(ff_key *key) {
    if (key->copy_from) {
        ff_key_apply_copy(key);
        return;
    }
    switch (key->type) {
    case FF_HASH: ff_hash_apply(key); break;
    case FF_ZSET: ff_zset_apply(key); break;
    case FF_SET: ff_set_apply(key); break;
    case FF_STREAM:
        if (key->deleted) ff_stream_apply(key);
        ff_stream_replicate(key);
        break;
    case FF_STRING: ff_string_apply(key); break;
    case FF_ANY: break;
    }
}

static void apply_expiry(ff_key *key) {
    if (key->expiry == FF_EXPIRY_KEEP || key->handle == NULL) return;
    if (ValkeyModule_KeyType(key->handle) == VALKEYMODULE_KEYTYPE_EMPTY) return;
    if (key->expiry == FF_EXPIRY_PERSIST) {
        if (ValkeyModule_GetAbsExpire(key->handle) == VALKEYMODULE_NO_EXPIRE) return;
        ValkeyModule_SetAbsExpire(key->handle, VALKEYMODULE_NO_EXPIRE);
        FF_REPLICATE(key->txn, "PERSIST", "s", key->name);
        ff_key_notify(key, VALKEYMODULE_NOTIFY_GENERIC, "persist");
    } else if (key->expire_at <= (int64_t)key->txn->now) {
        /* An expiry in the past would leave the key until somebody looks. */
        ValkeyModule_DeleteKey(key->handle);
        FF_REPLICATE(key->txn, "DEL", "s", key->name);
        ff_key_notify(key, VALKEYMODULE_NOTIFY_GENERIC, "del");
    } else {
        ValkeyModule_SetAbsExpire(key->handle, key->expire_at);
        FF_REPLICATE(key->txn, "PEXPIREAT", "sl", key->name, (long long)key->expire_at);
        ff_key_notify(key, VALKEYMODULE_NOTIFY_GENERIC, "expire");
    }
}

static void apply_keys(ff_txn *t) {
    bool is_first = !scratch_block_taken;
    scratch_block_taken = true;
    ff_arena_init(&t->scratch, is_first ? scratch_block : NULL, sizeof scratch_block);
    for (ff_key *key = t->keys; key != NULL; key = key->next) {
        apply_delete(key);
        apply_writes(key);
        apply_expiry(key);
        ff_arena_release(&t->scratch);
    }
    if (is_first) scratch_block_taken = false;
}

static void close_keys(ff_txn *t) {
    for (ff_key *key = t->keys; key != NULL; key = key->next) {
        if (key->handle) ValkeyModule_CloseKey(key->handle);
        key->handle = NULL;
    }
}

static void publish_messages(ff_txn *t) {
    for (const struct ff_message *m = t->messages; m != NULL; m = m->next) {
        ValkeyModuleCallReply *reply = ValkeyModule_Call(t->ctx, "PUBLISH", "!bb", m->channel.ptr,
                                                         m->channel.len, m->text.ptr, m->text.len);
        if (reply) ValkeyModule_FreeCallReply(reply);
    }
}

bool ff_txn_commit(ff_txn *t) {
    t->heard = ff_audience_is_there(t->ctx);
    if (t->state == FF_TXN_SOUND && !t->readonly && !add_stream_entries(t)) {
        t->state = FF_TXN_STREAM_FULL;
        for (ff_key *key = t->keys; key != NULL; key = key->next) {
            if (key->type == FF_STREAM) ff_stream_undo(key);
        }
    }
    if (t->state != FF_TXN_SOUND) {
        close_keys(t);
        return false;
    }
    if (!t->readonly) apply_keys(t);
    close_keys(t);
    publish_messages(t);
    return true;
}

void ff_txn_discard(ff_txn *t) { close_keys(t); }

void ff_txn_end(ff_txn *t) {
    for (struct ff_owned *o = t->owned; o != NULL; o = o->next) o->release(o->object);
    for (size_t i = 0; i < t->str_count; i++) ValkeyModule_FreeString(NULL, t->strs[i]);
    if (t->arena.first == first_block) first_block_taken = false;
    ff_arena_release(&t->arena);
}

const char *ff_txn_error(const ff_txn *t) {
    switch (t->state) {
    case FF_TXN_SOUND: break;
    case FF_TXN_WRONG_TYPE:
        return "WRONGTYPE Operation against a key holding the wrong kind of value";
    case FF_TXN_STREAM_FULL:
        return "ERR The stream has exhausted the last possible ID, unable to add more items";
    }
    return NULL;
}
