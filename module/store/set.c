#include <inttypes.h>
#include <stdlib.h>

#include "base/number.h"
#include "store/key.h"

/* Sets have no low-level API: they are read and written by plain commands. */

void ff_set_add(ff_key *key, ff_str *member) {
    if (ff_key_touch(key, FF_SET)) ff_change_stage(key, member, 0, false);
}

void ff_set_remove(ff_key *key, ff_str *member) {
    if (key->type != FF_SET || key->txn->readonly || !ff_key_exists(key)) return;
    ff_change_stage(key, member, 0, true);
}

static bool on_server(ff_key *key, ff_str *member) {
    if (!ff_key_readable(key)) return false;
    ValkeyModuleCallReply *reply =
        ValkeyModule_Call(key->txn->ctx, "SISMEMBER", "ss", key->name, member);
    bool is = reply && ValkeyModule_CallReplyInteger(reply) == 1;
    if (reply) ValkeyModule_FreeCallReply(reply);
    return is;
}

bool ff_set_has(ff_key *key, ff_str *member) {
    if (key->type != FF_SET) return false;
    const ff_change *change = ff_change_find(key, member);
    return change ? !change->removed : on_server(key, member);
}

/* The elements of an array of texts. An error instead of it means that the key holds another
 * type. */
static ff_strs read_elements(ff_txn *t, ValkeyModuleCallReply *reply) {
    ff_strs members = {NULL, 0};
    if (reply == NULL) return members;
    if (ValkeyModule_CallReplyType(reply) == VALKEYMODULE_REPLY_ERROR) {
        t->state = FF_TXN_WRONG_TYPE;
    } else {
        members.count = ValkeyModule_CallReplyLength(reply);
        members.items = ff_arena_array(&t->arena, members.count, sizeof *members.items);
    }
    for (size_t i = 0; i < members.count; i++) {
        ValkeyModuleCallReply *member = ValkeyModule_CallReplyArrayElement(reply, i);
        members.items[i] = ff_txn_keep(t, ValkeyModule_CreateStringFromCallReply(member));
    }
    return members;
}

/* Takes over the reply to SMEMBERS. */
static ff_strs read_members(ff_txn *t, ValkeyModuleCallReply *reply) {
    ff_strs members = read_elements(t, reply);
    if (reply) ValkeyModule_FreeCallReply(reply);
    return members;
}

ff_strs ff_set_scan(ff_txn *t, ff_text name, uint64_t *cursor, int64_t count) {
    ff_strs members = {NULL, 0};
    ff_text from = ff_arena_printf(&t->arena, "%" PRIu64, *cursor);
    ValkeyModuleCallReply *reply = ValkeyModule_Call(t->ctx, "SSCAN", "bccl", name.ptr, name.len,
                                                     from.ptr, "COUNT", (long long)count);
    *cursor = 0;
    if (reply == NULL) return members;
    if (ValkeyModule_CallReplyType(reply) == VALKEYMODULE_REPLY_ARRAY) {
        size_t length;
        const char *next =
            ValkeyModule_CallReplyStringPtr(ValkeyModule_CallReplyArrayElement(reply, 0), &length);
        ff_unsigned_parse(ff_text_make(next, length), cursor);
        members = read_elements(t, ValkeyModule_CallReplyArrayElement(reply, 1));
    } else {
        t->state = FF_TXN_WRONG_TYPE;
    }
    ValkeyModule_FreeCallReply(reply);
    return members;
}

ff_strs ff_set_peek(ff_txn *t, ff_text name) {
    return read_members(t, ValkeyModule_Call(t->ctx, "SMEMBERS", "b", name.ptr, name.len));
}

static ff_strs server_members(ff_key *key) {
    if (!ff_key_readable(key)) return (ff_strs){NULL, 0};
    return ff_set_peek(key->txn, key->text);
}

enum { NUMBERS_MAX = 512 }; /* set-max-intset-entries, as the server comes */

typedef struct numbered {
    int64_t number;
    ff_str *member;
} numbered;

static int compare_numbers(const void *a, const void *b) {
    int64_t left = ((const numbered *)a)->number;
    int64_t right = ((const numbered *)b)->number;
    return (left > right) - (left < right);
}

/* A small set of nothing but whole numbers is kept in their order. */
static void order_as_server(ff_arena *arena, ff_strs *members) {
    if (members->count > NUMBERS_MAX) return;
    numbered *sorted = ff_arena_array(arena, members->count, sizeof *sorted);
    for (size_t i = 0; i < members->count; i++) {
        sorted[i].member = members->items[i];
        if (!ff_integer_parse(ff_str_text(members->items[i]), &sorted[i].number)) return;
    }
    qsort(sorted, members->count, sizeof *sorted, compare_numbers);
    for (size_t i = 0; i < members->count; i++) members->items[i] = sorted[i].member;
}

ff_strs ff_set_members(ff_key *key) {
    ff_strs members = server_members(key);
    if (key->type != FF_SET || key->u.changes.first == NULL) return members;
    ff_arena *arena = &key->txn->arena;
    size_t most = members.count + key->u.changes.count;
    ff_strs merged = {ff_arena_array(arena, most, sizeof(ff_str *)), 0};
    ff_table seen = {0};
    for (size_t i = 0; i < members.count; i++) {
        ff_table_add(&seen, arena, ff_str_text(members.items[i]));
        const ff_change *change = ff_change_find(key, members.items[i]);
        if (!change || !change->removed) merged.items[merged.count++] = members.items[i];
    }
    for (const ff_change *c = key->u.changes.first; c != NULL; c = c->next) {
        if (ff_change_find(key, c->member)->removed) continue;
        if (ff_table_add(&seen, arena, ff_str_text(c->member))) {
            merged.items[merged.count++] = c->member;
        }
    }
    order_as_server(arena, &merged);
    return merged;
}

static size_t server_size(ff_key *key) {
    if (!ff_key_readable(key)) return 0;
    ValkeyModuleCallReply *reply = ValkeyModule_Call(key->txn->ctx, "SCARD", "s", key->name);
    size_t size = reply ? (size_t)ValkeyModule_CallReplyInteger(reply) : 0;
    if (reply) ValkeyModule_FreeCallReply(reply);
    return size;
}

size_t ff_set_size(ff_key *key) {
    if (key->type != FF_SET) return 0;
    size_t size = server_size(key);
    for (const ff_change *c = key->u.changes.first; c != NULL; c = c->next) {
        if (c != ff_change_find(key, c->member)) continue;
        bool was = on_server(key, c->member);
        if (c->removed && was) size--;
        if (!c->removed && !was) size++;
    }
    return size;
}

/* Sends a run of changes of the same kind as one command, and returns what comes after it. */
static const ff_change *apply_run(ff_key *key, const ff_change *run, ff_str **members) {
    size_t count = 0;
    const ff_change *c = run;
    for (; c != NULL && c->removed == run->removed; c = c->next) members[count++] = c->member;
    ValkeyModuleCallReply *reply = ValkeyModule_Call(key->txn->ctx, run->removed ? "SREM" : "SADD",
                                                     "!sv", key->name, members, count);
    if (reply) ValkeyModule_FreeCallReply(reply);
    return c;
}

void ff_set_apply(ff_key *key) {
    const ff_change *run = key->u.changes.first;
    if (run == NULL) return;
    ff_str **members = ff_arena_array(&key->txn->scratch, key->u.changes.count, sizeof(ff_str *));
    while (run) run = apply_run(key, run, members);
}
