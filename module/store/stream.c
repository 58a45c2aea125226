#include <errno.h>
#include <string.h>

#include "base/number.h"
#include "store/audience.h"
#include "store/key.h"
#include "store/packed.h"

ff_str *ff_stream_add(ff_key *key, int64_t maxlen, const ff_pair *pairs, size_t count) {
    ff_txn *t = key->txn;
    ff_str *id = ff_txn_keep(t, ValkeyModule_CreateString(NULL, "", 0));
    if (!ff_key_touch(key, FF_STREAM)) return id;
    ff_entry *entry = ff_arena_alloc(&t->arena, sizeof *entry);
    *entry = (ff_entry){.maxlen = maxlen, .pair_count = count, .id = id};
    entry->pairs = ff_arena_alloc(&t->arena, 2 * count * sizeof *entry->pairs);
    for (size_t i = 0; i < count; i++) {
        entry->pairs[2 * i] = pairs[i].field->str;
        entry->pairs[2 * i + 1] = ff_str_or_empty(pairs[i].value);
    }
    ff_stream_writes *writes = &key->u.stream;
    if (writes->last) {
        writes->last->next = entry;
    } else {
        writes->first = entry;
    }
    writes->last = entry;
    return id;
}

void ff_stream_trim(ff_key *key, bool approximate, int64_t maxlen) {
    if (key->type != FF_STREAM || key->txn->readonly) return;
    key->u.stream.trim = true;
    key->u.stream.trim_approximate = approximate;
    key->u.stream.trim_maxlen = maxlen;
}

static ff_strs strings_of(ff_txn *t, ValkeyModuleCallReply *array) {
    size_t length = ValkeyModule_CallReplyLength(array);
    ff_strs strs = {ff_arena_alloc(&t->arena, length * sizeof(ff_str *)), length};
    for (size_t i = 0; i < length; i++) {
        strs.items[i] = ff_txn_keep(t, ValkeyModule_CreateStringFromCallReply(
                                           ValkeyModule_CallReplyArrayElement(array, i)));
    }
    return strs;
}

bool ff_stream_range(ff_key *key, ff_str *from, ff_str *to, int64_t count,
                     ff_stream_entry **entries, size_t *found) {
    ff_txn *t = key->txn;
    *entries = NULL;
    *found = 0;
    /* Asked even of a missing key, since the ids are to be judged all the same. */
    ff_str *name = key->name ? key->name : W(empty)->str;
    ValkeyModuleCallReply *reply =
        ValkeyModule_Call(t->ctx, "XRANGE", "Essscl", name, from, to, "COUNT", (long long)count);
    if (reply == NULL) return false;
    if (ValkeyModule_CallReplyType(reply) != VALKEYMODULE_REPLY_ARRAY) {
        ValkeyModule_FreeCallReply(reply);
        return false;
    }
    size_t length = ff_key_readable(key) ? ValkeyModule_CallReplyLength(reply) : 0;
    *entries = ff_arena_alloc(&t->arena, length * sizeof **entries);
    for (size_t i = 0; i < length; i++) {
        ValkeyModuleCallReply *entry = ValkeyModule_CallReplyArrayElement(reply, i);
        (*entries)[i].id = ff_txn_keep(t, ValkeyModule_CreateStringFromCallReply(
                                              ValkeyModule_CallReplyArrayElement(entry, 0)));
        (*entries)[i].fields = strings_of(t, ValkeyModule_CallReplyArrayElement(entry, 1));
    }
    *found = length;
    ValkeyModule_FreeCallReply(reply);
    return true;
}

static void spell_id(const ff_entry *entry) {
    char id[2 * FF_DIGITS_MAX];
    size_t length = ff_unsigned_format(entry->stream_id.ms, id);
    id[length++] = '-';
    length += ff_unsigned_format(entry->stream_id.seq, id + length);
    ValkeyModule_StringAppendBuffer(NULL, entry->id, id, length);
}

bool ff_stream_apply(ff_key *key) {
    if (ff_packed_begin_stream(key)) {
        key->u.stream.first->added = true;
        spell_id(key->u.stream.first);
        return true;
    }
    for (ff_entry *e = key->u.stream.first; e != NULL; e = e->next) {
        if (ValkeyModule_StreamAdd(key->handle, VALKEYMODULE_STREAM_ADD_AUTOID, &e->stream_id,
                                   e->pairs, (long)e->pair_count) != VALKEYMODULE_OK)
            return false;
        e->added = true;
        spell_id(e);
    }
    return true;
}

static void call_and_forget(ff_key *key, const char *command, const char *format,
                            ff_str *argument) {
    ValkeyModuleCallReply *reply =
        ValkeyModule_Call(key->txn->ctx, command, format, key->name, argument);
    if (reply) ValkeyModule_FreeCallReply(reply);
}

void ff_stream_undo(ff_key *key) {
    const ff_entry *first = key->u.stream.first;
    if (key->on_server) {
        for (const ff_entry *e = first; e != NULL && e->added; e = e->next) {
            call_and_forget(key, "XDEL", "ss", e->id);
        }
    } else if (first && first->added) {
        /* The command frees the value that the handle points to. */
        if (key->handle) ValkeyModule_CloseKey(key->handle);
        key->handle = NULL;
        call_and_forget(key, "DEL", "s", NULL);
    }
}

/* Approximate trimming depends on how the nodes filled up, so replicas are told the length that was
 * reached, as the server itself does. */
static void replicate_entry(ff_key *key, const ff_entry *entry) {
    size_t args = entry->pair_count * 2;
    long long trimmed = 0;
    if (entry->begun_with.len) {
        ff_packed_replicate_stream(key);
        ff_key_notify(key, VALKEYMODULE_NOTIFY_STREAM, "xadd");
        return;
    }
    if (entry->maxlen != FF_STREAM_KEEP_ALL) {
        trimmed = ValkeyModule_StreamTrimByLength(key->handle, VALKEYMODULE_STREAM_TRIM_APPROX,
                                                  entry->maxlen);
    }
    if (trimmed > 0) {
        long long length = (long long)ValkeyModule_ValueLength(key->handle);
        FF_REPLICATE(key->txn, "XADD", "scclsv", key->name, "MAXLEN", "=", length, entry->id,
                     entry->pairs, args);
    } else {
        FF_REPLICATE(key->txn, "XADD", "ssv", key->name, entry->id, entry->pairs, args);
    }
    ff_key_notify(key, VALKEYMODULE_NOTIFY_STREAM, "xadd");
    if (trimmed > 0) ff_key_notify(key, VALKEYMODULE_NOTIFY_STREAM, "xtrim");
}

static void trim(ff_key *key) {
    const ff_stream_writes *writes = &key->u.stream;
    if ((int64_t)ValkeyModule_ValueLength(key->handle) <= writes->trim_maxlen) return;
    int flags = writes->trim_approximate ? VALKEYMODULE_STREAM_TRIM_APPROX : 0;
    if (ValkeyModule_StreamTrimByLength(key->handle, flags, writes->trim_maxlen) <= 0) return;
    long long length = (long long)ValkeyModule_ValueLength(key->handle);
    FF_REPLICATE(key->txn, "XTRIM", "sccl", key->name, "MAXLEN", "=", length);
    ff_key_notify(key, VALKEYMODULE_NOTIFY_STREAM, "xtrim");
}

void ff_stream_replicate(ff_key *key) {
    for (const ff_entry *e = key->u.stream.first; e != NULL; e = e->next) replicate_entry(key, e);
    if (key->u.stream.trim && ff_key_exists(key)) trim(key);
}
