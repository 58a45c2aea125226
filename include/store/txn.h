/* A transaction: one operation's view of the keyspace, and everything it wants to change.
 *
 * The life of a transaction: ff_txn_begin takes the clock once; the operation opens keys (each open
 * checks the key's type), reads them, decides, and stages writes; then the caller either commits or
 * discards. Until the commit nothing has been written, so a refusal needs no undoing; the commit
 * itself cannot be refused, because everything that could go wrong was looked at when it was staged.
 * Staged writes are seen by later reads of the same transaction.
 *
 * Commit applies the writes with the low-level API, replicates each as the plain command that has
 * the same effect, sends the keyspace notifications that this command would have sent, and last
 * publishes the staged messages. The server wraps the lot in one MULTI/EXEC.
 *
 * A key of the wrong type makes the transaction fail: the open returns a key that reads as missing and
 * swallows writes, and ff_txn_failed says so at the end. Operations need not look at it. */
#ifndef FF_STORE_TXN_H
#define FF_STORE_TXN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/table.h"
#include "base/text.h"
#include "store/words.h"
#include "valkeymodule.h"

typedef ValkeyModuleString ff_str;
typedef struct ff_key ff_key;

typedef struct ff_strs {
    ff_str **items;
    size_t count;
} ff_strs;

typedef enum {
    FF_TXN_SOUND,
    FF_TXN_WRONG_TYPE,
    FF_TXN_STREAM_FULL,
} ff_txn_state;

typedef struct ff_txn {
    ValkeyModuleCtx *ctx;
    double now;    /* server wall clock, whole milliseconds */
    bool strict;   /* a native command: leaves out the defects kept for the wire functions */
    bool heard;    /* somebody hears what is replicated */
    bool readonly; /* opens keys for reading only, stages nothing */
    ff_txn_state state;
    ff_arena arena;
    ff_arena scratch; /* for the commit: what writing one key needs */
    ff_key *keys;     /* in the order they were opened */
    ff_key *last_key;
    size_t key_count;
    ff_table key_index;  /* by name, once there are many */
    ff_key *indexed_key; /* up to here */
    ff_str **strs;       /* freed at the end */
    size_t str_count;
    size_t str_capacity;
    struct ff_owned *owned; /* released at the end */
    struct ff_message *messages;
    struct ff_message *last_message;
    ff_str *now_text;
    struct ff_ended *ended; /* the engine's note of flow members that end (engine/completion.h) */
} ff_txn;

/* Starts a transaction at the server's clock. Every begin is paired with one commit or discard, then
 * one end: results stay readable in between, so that a reply can be made of them. */
void ff_txn_begin(ff_txn *t, ValkeyModuleCtx *ctx, bool readonly);

/* Applies what was staged. False, with nothing changed, when the transaction has failed. */
bool ff_txn_commit(ff_txn *t);

/* Forgets what was staged. */
void ff_txn_discard(ff_txn *t);

/* Frees everything that the transaction made. */
void ff_txn_end(ff_txn *t);

/* The error to reply when the transaction has failed, else NULL. */
const char *ff_txn_error(const ff_txn *t);

/* ---- Strings, all owned by the transaction ---- */

ff_str *ff_str_make(ff_txn *t, ff_text text);

/* Rule FMT14. */
ff_str *ff_str_number(ff_txn *t, double value);

/* Rule SRVNUM. */
ff_str *ff_str_server_number(ff_txn *t, double value);

/* A whole number in plain decimal. */
ff_str *ff_str_integer(ff_txn *t, int64_t value);

/* The transaction's clock as text. */
ff_str *ff_str_now(ff_txn *t);

/* The texts one after the other; an absent text counts as empty. ff_arena_concat does the same
 * without making a server string. */
ff_str *ff_str_concat(ff_txn *t, const ff_text *texts, size_t count);
#define FF_CONCAT(t, ...) \
    ff_str_concat((t), (const ff_text[]){__VA_ARGS__}, \
                  sizeof((const ff_text[]){__VA_ARGS__}) / sizeof(ff_text))

/* Bytes of a string; absent for NULL. */
ff_text ff_str_text(const ff_str *str);

/* Absent (NULL) equals nothing, not even the empty string. */
bool ff_str_is(const ff_str *str, const ff_word *word);
bool ff_str_equal(const ff_str *a, const ff_str *b);

/* Rule IS-SET: there and not empty. */
bool ff_str_is_set(const ff_str *str);

/* The string, or the empty one when it is absent. */
ff_str *ff_str_or_empty(ff_str *str);
ff_str *ff_str_or(ff_str *str, const ff_word *word);

/* Rule NUM; false for NULL too. */
bool ff_str_to_number(const ff_str *str, double *out);

/* Hands `release(object)` to the transaction, to be called when it ends. */
void ff_txn_own(ff_txn *t, void *object, void (*release)(void *object));

/* An array in the arena that doubles when it is full. */
void *ff_txn_grow(ff_txn *t, void *items, size_t count, size_t *capacity, size_t size);

/* ---- Keys: opening ---- */

/* Open a key for the use its name says. The same name always gives the same key, and one that does
 * not exist takes the type of its latest use; opening it as another type than it has fails the
 * transaction. A NULL name gives a key that reads as missing and must not be written. */
ff_key *ff_hash_open(ff_txn *t, ff_str *name);
ff_key *ff_zset_open(ff_txn *t, ff_str *name);
ff_key *ff_set_open(ff_txn *t, ff_str *name);
ff_key *ff_string_open(ff_txn *t, ff_str *name);
ff_key *ff_stream_open(ff_txn *t, ff_str *name);

/* Of any type: for asking whether it is there, and deleting it. Opening the same name by type later is
 * fine, and then checks the type. */
ff_key *ff_any_open(ff_txn *t, ff_str *name);

/* Whether it exists, staged writes counted. A hash, zset or set that staged removals would empty is
 * reported as existing until the commit. */
bool ff_key_exists(const ff_key *key);
ff_str *ff_key_name(const ff_key *key);
ff_txn *ff_key_txn(const ff_key *key);

/* DEL, before whatever is staged on the key afterwards. */
void ff_key_delete(ff_key *key);

/* PEXPIREAT once the key is written; not after the clock means that the key goes. */
void ff_key_expire_at(ff_key *key, int64_t at_ms);
void ff_key_persist(ff_key *key);

/* COPY source destination REPLACE, whatever the type. Returns whether there is something to copy. */
bool ff_key_copy(ff_txn *t, ff_str *source, ff_str *destination);

/* ---- Hashes ---- */

/* The value of a field, NULL when there is none. Stays valid until the transaction ends. */
ff_str *ff_hash_get(ff_key *key, const ff_word *field);
void ff_hash_set(ff_key *key, const ff_word *field, ff_str *value);
void ff_hash_remove(ff_key *key, const ff_word *field);

/* Reads many fields at once; faster than single gets when there are more than a few. */
void ff_hash_load(ff_key *key);

/* Values in the forms that fields usually take. */
void ff_hash_set_word(ff_key *key, const ff_word *field, const ff_word *value);
void ff_hash_set_number(ff_key *key, const ff_word *field, double value);
void ff_hash_set_now(ff_key *key, const ff_word *field);
void ff_hash_set_empty(ff_key *key, const ff_word *field);

/* HINCRBY. False, and nothing staged, when the field holds no plain 64-bit integer or would overflow;
 * a missing field counts as 0. */
bool ff_hash_increment(ff_key *key, const ff_word *field, int64_t by, int64_t *after);

/* One field in passing, for walks over many keys: what the server holds, staged writes not counted, and
 * the key is not kept open. A key of the wrong type fails the transaction. */
ff_str *ff_hash_peek(ff_txn *t, ff_text name, const ff_word *field);

/* A field whose name is made at run time. */
const ff_word *ff_field(ff_txn *t, ff_text name);
const ff_word *ff_field_str(ff_txn *t, ff_str *name);

/* Iterates over all fields as they are after the staged writes; setting or removing fields already
 * there is allowed meanwhile. Start with *cursor = 0. */
bool ff_hash_next(ff_key *key, size_t *cursor, const ff_word **field, ff_str **value);

/* Whether a number is stored: FF_NUMBER_ABSENT without the field, FF_NUMBER_BAD with other text. */
typedef enum { FF_NUMBER_ABSENT, FF_NUMBER_BAD, FF_NUMBER_GOOD } ff_number_state;
ff_number_state ff_hash_number(ff_key *key, const ff_word *field, double *out);

/* ---- Sorted sets ---- */

bool ff_zset_score(ff_key *key, ff_str *member, double *score);
void ff_zset_add(ff_key *key, ff_str *member, double score);
void ff_zset_remove(ff_key *key, ff_str *member);

/* Members on the server now, staged writes not counted. */
size_t ff_zset_size(const ff_key *key);

typedef struct ff_zset_entry {
    ff_str *member;
    double score;
} ff_zset_entry;

/* Entries with min <= score <= max (exclusive_min: min < score) as they are on the server, staged
 * writes not counted, lowest first, at most limit. Returns how many. */
size_t ff_zset_range(ff_key *key, double min, bool exclusive_min, double max, size_t limit,
                     ff_zset_entry **entries);

/* How many have a score above `bound`, staged writes not counted. */
size_t ff_zset_count_above(const ff_key *key, double bound);

/* ZREMRANGEBYSCORE key -inf max, before whatever else is staged on the key. Returns how many go. */
size_t ff_zset_prune(ff_key *key, double max);

/* ---- Sets ---- */

bool ff_set_has(ff_key *key, ff_str *member);
void ff_set_add(ff_key *key, ff_str *member);
void ff_set_remove(ff_key *key, ff_str *member);

/* Both count staged writes. Members come in the server's order: added ones last, except among whole
 * numbers. */
size_t ff_set_size(ff_key *key);
ff_strs ff_set_members(ff_key *key);

/* The members in passing, as ff_hash_peek reads a field. */
ff_strs ff_set_peek(ff_txn *t, ff_text name);

/* About `count` members, SSCAN from *cursor on; 0 is the first cursor, and the one after the last members. */
ff_strs ff_set_scan(ff_txn *t, ff_text name, uint64_t *cursor, int64_t count);

/* ---- Strings ---- */

ff_str *ff_string_get(ff_key *key);

/* SET: drops a TTL. With ttl_ms > 0: SET … PX, from the clock of the transaction. */
void ff_string_set(ff_key *key, ff_str *value, int64_t ttl_ms);

/* Replaces the value, keeping the TTL, as INCR and DECR do. */
void ff_string_update(ff_key *key, ff_str *value);

/* ---- Streams ---- */

enum { FF_STREAM_KEEP_ALL = -1 };

typedef struct ff_pair {
    const ff_word *field;
    ff_str *value;
} ff_pair;

/* XADD key [MAXLEN ~ maxlen] * …. The returned string is empty until the commit, which writes the
 * entry's id into it: it can be staged as a field's value and put into a reply. */
ff_str *ff_stream_add(ff_key *key, int64_t maxlen, const ff_pair *pairs, size_t count);

/* XTRIM after the add staged on the same stream. */
void ff_stream_trim(ff_key *key, bool approximate, int64_t maxlen);

typedef struct ff_stream_entry {
    ff_str *id;
    ff_strs fields; /* field, value, field, value, … */
} ff_stream_entry;

/* XRANGE as the server has it, staged writes not counted. False when the server refuses an id. */
bool ff_stream_range(ff_key *key, ff_str *from, ff_str *to, int64_t count,
                     ff_stream_entry **entries, size_t *found);

/* ---- Messages ---- */

/* PUBLISH after the commit, replicas' subscribers included. */
void ff_txn_publish(ff_txn *t, ff_text channel, ff_text message);

#endif
