#include "store/key.h"

/* Sets have no low-level API: they are read and written by plain commands. */

static void stage(ff_key *key, ff_str *member, bool removed) {
    ff_changes *changes = &key->u.changes;
    ff_change *change = ff_arena_alloc(&key->txn->arena, sizeof *change);
    *change = (ff_change){.member = member, .removed = removed};
    if (changes->last) {
        changes->last->next = change;
    } else {
        changes->first = change;
    }
    changes->last = change;
}

void ff_set_add(ff_key *key, ff_str *member) {
    if (ff_key_touch(key)) stage(key, member, false);
}

void ff_set_remove(ff_key *key, ff_str *member) {
    if (key->inert || key->txn->readonly || !ff_key_exists(key)) return;
    stage(key, member, true);
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
    const ff_change *found = NULL;
    if (key->inert) return false;
    for (const ff_change *c = key->u.changes.first; c != NULL; c = c->next) {
        if (ff_str_equal(c->member, member)) found = c;
    }
    return found ? !found->removed : on_server(key, member);
}

static ff_strs server_members(ff_key *key) {
    ff_strs members = {NULL, 0};
    if (!ff_key_readable(key)) return members;
    ValkeyModuleCallReply *reply = ValkeyModule_Call(key->txn->ctx, "SMEMBERS", "s", key->name);
    if (reply == NULL) return members;
    size_t length = ValkeyModule_CallReplyLength(reply);
    members.items = ff_arena_alloc(&key->txn->arena, length * sizeof *members.items);
    for (size_t i = 0; i < length; i++) {
        members.items[i] = ff_txn_keep(
            key->txn, ValkeyModule_CreateStringFromCallReply(
                          ValkeyModule_CallReplyArrayElement(reply, i)));
    }
    members.count = length;
    ValkeyModule_FreeCallReply(reply);
    return members;
}

static bool holds(const ff_strs *members, size_t count, const ff_str *member) {
    for (size_t i = 0; i < count; i++) {
        if (ff_str_equal(members->items[i], member)) return true;
    }
    return false;
}

ff_strs ff_set_members(ff_key *key) {
    ff_strs members = server_members(key);
    if (key->inert || key->u.changes.first == NULL) return members;
    size_t staged = 0;
    for (const ff_change *c = key->u.changes.first; c != NULL; c = c->next) staged++;
    ff_strs merged = {ff_arena_alloc(&key->txn->arena, (members.count + staged) * sizeof(ff_str *)),
                      0};
    for (size_t i = 0; i < members.count; i++) {
        if (ff_set_has(key, members.items[i])) merged.items[merged.count++] = members.items[i];
    }
    for (const ff_change *c = key->u.changes.first; c != NULL; c = c->next) {
        if (!ff_set_has(key, c->member) || holds(&merged, merged.count, c->member)) continue;
        merged.items[merged.count++] = c->member;
    }
    return merged;
}

size_t ff_set_size(ff_key *key) {
    if (key->inert) return 0;
    if (key->u.changes.first) return ff_set_members(key).count;
    if (!ff_key_readable(key)) return 0;
    ValkeyModuleCallReply *reply = ValkeyModule_Call(key->txn->ctx, "SCARD", "s", key->name);
    size_t size = reply ? (size_t)ValkeyModule_CallReplyInteger(reply) : 0;
    if (reply) ValkeyModule_FreeCallReply(reply);
    return size;
}

void ff_set_apply(ff_key *key) {
    for (const ff_change *c = key->u.changes.first; c != NULL; c = c->next) {
        ValkeyModuleCallReply *reply = ValkeyModule_Call(
            key->txn->ctx, c->removed ? "SREM" : "SADD", "!ss", key->name, c->member);
        if (reply) ValkeyModule_FreeCallReply(reply);
    }
}
