#include "store/key.h"

#include <string.h>

#include "store/event.h"

static const int key_types[] = {
    [FF_HASH] = VALKEYMODULE_KEYTYPE_HASH,     [FF_ZSET] = VALKEYMODULE_KEYTYPE_ZSET,
    [FF_SET] = VALKEYMODULE_KEYTYPE_SET,       [FF_STRING] = VALKEYMODULE_KEYTYPE_STRING,
    [FF_STREAM] = VALKEYMODULE_KEYTYPE_STREAM,
};

static bool type_matches(const ff_key *key, ff_type type) {
    if (type == FF_ANY || !ff_key_readable(key)) return true;
    return ValkeyModule_KeyType(key->handle) == key_types[type];
}

static ValkeyModuleKey *open_handle(ff_txn *t, ff_str *name) {
    int mode = t->readonly ? VALKEYMODULE_READ : VALKEYMODULE_READ | VALKEYMODULE_WRITE;
    return ValkeyModule_OpenKey(t->ctx, name, mode);
}

/* Sets are written by plain commands, which may free the value that a handle points to: their handle
 * does not outlive the look at it. */
static void set_type(ff_key *key, ff_type type) {
    ff_txn *t = key->txn;
    key->type = type;
    if (type != FF_SET) {
        if (key->handle == NULL && !t->readonly) key->handle = open_handle(t, key->name);
    } else if (key->handle) {
        ValkeyModule_CloseKey(key->handle);
        key->handle = NULL;
    }
}

enum { INDEX_FROM = 32 }; /* up to this many open keys a walk is faster than hashing */

static ff_key *find_indexed(ff_txn *t, ff_text text) {
    ff_key *key = t->indexed_key ? t->indexed_key->next : t->keys;
    for (; key != NULL; key = key->next) {
        *ff_table_at(&t->key_index, &t->arena, key->text) = key;
        t->indexed_key = key;
    }
    return ff_table_get(&t->key_index, text);
}

static ff_key *find_open(ff_txn *t, const ff_str *name, ff_text text) {
    if (t->key_count > INDEX_FROM) return find_indexed(t, text);
    for (ff_key *key = t->keys; key != NULL; key = key->next) {
        if (key->name == name) return key;
        if (key->text.len == text.len && memcmp(key->text.ptr, text.ptr, text.len) == 0) return key;
    }
    return NULL;
}

static ff_key *new_inert(ff_txn *t) {
    ff_key *key = ff_arena_alloc(&t->arena, sizeof *key);
    *key = (ff_key){.txn = t, .inert = true};
    return key;
}

/* A key of its own, so that what the operation stages on it reaches no other. */
static ff_key *fail_wrong_type(ff_txn *t) {
    t->state = FF_TXN_WRONG_TYPE;
    return new_inert(t);
}

bool ff_key_become(ff_key *key, ff_type type) {
    if (key->type == type) return true;
    if (key->type == FF_ANY ? !type_matches(key, type) : ff_key_exists(key)) {
        key->txn->state = FF_TXN_WRONG_TYPE;
        return false;
    }
    memset(&key->u, 0, sizeof key->u);
    set_type(key, type);
    return true;
}

void ff_key_replace_by_string(ff_key *key) {
    memset(&key->u, 0, sizeof key->u);
    set_type(key, FF_STRING);
    key->written = true;
}

static ff_key *reopen(ff_txn *t, ff_key *key, ff_type type) {
    return type == FF_ANY || ff_key_become(key, type) ? key : fail_wrong_type(t);
}

static void append_key(ff_txn *t, ff_key *key) {
    if (t->last_key) {
        t->last_key->next = key;
    } else {
        t->keys = key;
    }
    t->last_key = key;
    t->key_count++;
}

ff_key *ff_key_open(ff_txn *t, ff_str *name, ff_type type) {
    if (name == NULL) return new_inert(t);
    ff_text text = ff_str_text(name);
    ff_key *key = find_open(t, name, text);
    if (key) return reopen(t, key, type);

    ValkeyModuleKey *handle = open_handle(t, name);
    key = ff_arena_alloc(&t->arena, sizeof *key);
    *key = (ff_key){.txn = t, .name = name, .text = text, .handle = handle, .type = type};
    key->on_server = handle && ValkeyModule_KeyType(handle) != VALKEYMODULE_KEYTYPE_EMPTY;
    bool matches = type_matches(key, type);
    if (!matches) key->type = FF_ANY;
    append_key(t, key);
    if (!matches) return fail_wrong_type(t);
    set_type(key, type);
    return key;
}

ff_key *ff_hash_open(ff_txn *t, ff_str *name) { return ff_key_open(t, name, FF_HASH); }
ff_key *ff_zset_open(ff_txn *t, ff_str *name) { return ff_key_open(t, name, FF_ZSET); }
ff_key *ff_set_open(ff_txn *t, ff_str *name) { return ff_key_open(t, name, FF_SET); }
ff_key *ff_string_open(ff_txn *t, ff_str *name) { return ff_key_open(t, name, FF_STRING); }
ff_key *ff_stream_open(ff_txn *t, ff_str *name) { return ff_key_open(t, name, FF_STREAM); }
ff_key *ff_any_open(ff_txn *t, ff_str *name) { return ff_key_open(t, name, FF_ANY); }

bool ff_key_exists(const ff_key *key) { return key->written || ff_key_readable(key); }

ff_str *ff_key_name(const ff_key *key) { return key->name; }

ff_txn *ff_key_txn(const ff_key *key) { return key->txn; }

static void forget_staged_fields(ff_cells *cells) {
    for (size_t i = 0; i < cells->count; i++) {
        cells->items[i].known = true;
        cells->items[i].old = NULL;
        cells->items[i].change = FF_CELL_CLEAN;
    }
}

void ff_key_delete(ff_key *key) {
    if (ff_key_is_idle(key)) return;
    key->deleted = true;
    key->written = false;
    key->expiry = FF_EXPIRY_KEEP;
    key->value = NULL;
    if (key->type == FF_HASH) {
        forget_staged_fields(&key->u.cells);
    } else {
        memset(&key->u, 0, sizeof key->u);
    }
}

void ff_key_expire_at(ff_key *key, int64_t at_ms) {
    if (ff_key_is_idle(key)) return;
    key->expiry = FF_EXPIRY_SET;
    key->expire_at = at_ms;
}

void ff_key_persist(ff_key *key) {
    if (ff_key_is_idle(key)) return;
    key->expiry = FF_EXPIRY_PERSIST;
}

bool ff_key_copy(ff_txn *t, ff_str *source, ff_str *destination) {
    ff_key *from = ff_any_open(t, source);
    ff_key *to = ff_any_open(t, destination);
    if (from == to || !ff_key_exists(from) || ff_key_is_idle(to)) return false;
    to->written = true;
    to->copy_from = source;
    return true;
}

void ff_key_apply_copy(ff_key *key) {
    /* The command frees the value that the handle points to. */
    ValkeyModule_CloseKey(key->handle);
    key->handle = NULL;
    ValkeyModuleCallReply *reply =
        ValkeyModule_Call(key->txn->ctx, "COPY", "!ssc", key->copy_from, key->name, "REPLACE");
    if (reply) ValkeyModule_FreeCallReply(reply);
}

void ff_key_notify(ff_key *key, int type, const char *event) {
    ValkeyModule_SignalModifiedKey(key->txn->ctx, key->name);
    ff_event_send(key->txn->ctx, type, event, key->name);
}

void ff_key_notify_if_gone(ff_key *key) {
    if (ValkeyModule_KeyType(key->handle) == VALKEYMODULE_KEYTYPE_EMPTY) {
        ff_event_send(key->txn->ctx, VALKEYMODULE_NOTIFY_GENERIC, "del", key->name);
    }
}
