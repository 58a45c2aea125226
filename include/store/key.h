/* The inside of a transaction's keys. For store/ only: engine code uses store/txn.h. */
#ifndef FF_STORE_KEY_H
#define FF_STORE_KEY_H

#include "base/table.h"
#include "store/txn.h"

typedef enum { FF_ANY, FF_HASH, FF_ZSET, FF_SET, FF_STRING, FF_STREAM } ff_type;

/* One field of a hash: what the server holds, if that is known, and what is staged over it. */
typedef struct ff_cell {
    const ff_word *field;
    ff_str *old;
    ff_str *staged;
    bool known;
    enum { FF_CELL_CLEAN, FF_CELL_SET, FF_CELL_REMOVED } change;
} ff_cell;

typedef struct ff_cells {
    ff_cell *items;
    size_t count;
    size_t capacity;
    uint32_t *of_word; /* position + 1 of each word's cell, once there are many */
    ff_table index;    /* positions by text, once names other than words are there */
    bool indexed;
    bool loaded; /* every field of the server is in the table */
} ff_cells;

/* One staged addition to or removal from a zset or set. */
typedef struct ff_change {
    struct ff_change *next;
    ff_str *member;
    double score;
    bool removed;
} ff_change;

typedef struct ff_changes {
    ff_change *first;
    ff_change *last;
    size_t count;
    ff_table index;     /* the last change of each member, once there are many */
    ff_change *indexed; /* up to here */
    bool pruned;        /* zsets: what has a score up to pruned_to goes first */
    double pruned_to;
} ff_changes;

typedef struct ff_entry {
    struct ff_entry *next;
    int64_t maxlen;
    ff_str **pairs;
    size_t pair_count;
    ff_str *id;
    ValkeyModuleStreamID stream_id;
    bool added;
    ff_text begun_with; /* the stream, if it was made with this entry in one go */
} ff_entry;

typedef struct ff_stream_writes {
    ff_entry *first;
    ff_entry *last;
    bool trim;
    bool trim_approximate;
    int64_t trim_maxlen;
} ff_stream_writes;

struct ff_key {
    ff_txn *txn;
    ff_str *name;
    ff_text text;
    ff_key *next;
    ValkeyModuleKey *handle;
    ff_type type;
    bool inert;     /* reads as missing, swallows writes */
    bool on_server; /* when it was opened */
    bool deleted;   /* a DEL is staged before everything else */
    bool written;   /* something is staged that makes it exist */
    enum { FF_EXPIRY_KEEP, FF_EXPIRY_SET, FF_EXPIRY_PERSIST } expiry;
    int64_t expire_at;
    ff_str *copy_from; /* a COPY … REPLACE is staged */
    ff_str *value;     /* strings: staged SET */
    bool value_keeps_ttl;
    union {
        ff_cells cells;
        ff_changes changes;
        ff_stream_writes stream;
    } u;
};

/* Whether the server's value is still to be seen through the staged writes. */
static inline bool ff_key_readable(const ff_key *key) {
    return key->on_server && !key->deleted && !key->inert;
}

/* Whether writes to the key must be swallowed. */
static inline bool ff_key_is_idle(const ff_key *key) { return key->inert || key->txn->readonly; }

/* Makes a key, which may be open as another type, one of that type. Only what does not exist can
 * change: callers may pass one name for several keys, of which at most one is written. False after the
 * transaction was failed. */
bool ff_key_become(ff_key *key, ff_type type);

/* Forgets what is there and what is staged, and makes the key a string. */
void ff_key_replace_by_string(ff_key *key);

/* Takes note that a staged write will make the key exist, as that type; false when it must be
 * swallowed. */
static inline bool ff_key_touch(ff_key *key, ff_type type) {
    if (ff_key_is_idle(key)) return false;
    if (key->type != type && !ff_key_become(key, type)) return false;
    key->written = true;
    return true;
}

ff_key *ff_key_open(ff_txn *t, ff_str *name, ff_type type);

/* Stages an addition to or removal from a zset or set. */
void ff_change_stage(ff_key *key, ff_str *member, double score, bool removed);

/* What is staged last for a member, NULL when nothing is. */
const ff_change *ff_change_find(ff_key *key, const ff_str *member);

/* Tells watchers, keyspace listeners and trackers about a write. */
void ff_key_notify(ff_key *key, int type, const char *event);
void ff_key_notify_if_gone(ff_key *key);

/* One per type: applies and replicates what is staged. Streams go first, since theirs is the one write
 * that may fail; ff_stream_undo takes back what was added before the failure. */
void ff_hash_apply(ff_key *key);
void ff_zset_apply(ff_key *key);
void ff_set_apply(ff_key *key);
void ff_string_apply(ff_key *key);
void ff_key_apply_copy(ff_key *key);
bool ff_stream_apply(ff_key *key);
void ff_stream_undo(ff_key *key);
void ff_stream_replicate(ff_key *key);

/* Keeps a string until the transaction ends. */
ff_str *ff_txn_keep(ff_txn *t, ff_str *str);

#endif
