#include "store/packed.h"

#include <string.h>

#include "base/dump.h"
#include "base/number.h"
#include "store/audience.h"
#include "store/server_event.h"
#include "store/setting.h"

/* Fewer fields are set as fast one by one. But whoever hears of it has to take two words for each of them. */
enum { FIELDS_FROM = 12, HEARD_FIELDS_FROM = 6 };

/* The server's limits; nothing is packed until they are known. */
static size_t max_fields;
static size_t max_text;

static size_t read_limit(ValkeyModuleCtx *ctx, const char *name) {
    char room[FF_SETTING_MAX];
    int64_t value;
    if (!ff_integer_parse(ff_setting_read(ctx, name, room), &value)) return 0;
    return value > 0 ? (size_t)value : 0;
}

static void read_limits(ValkeyModuleCtx *ctx) {
    max_fields = read_limit(ctx, "hash-max-listpack-entries");
    max_text = read_limit(ctx, "hash-max-listpack-value");
    if (max_text > FF_DUMP_TEXT_MAX) max_text = FF_DUMP_TEXT_MAX;
}

static void on_config(ValkeyModuleCtx *ctx, uint64_t sub, void *data) {
    (void)sub;
    (void)data;
    read_limits(ctx);
}

void ff_packed_load(ValkeyModuleCtx *ctx) {
    ff_server_event_hear(ctx, ValkeyModuleEvent_Config, on_config);
    read_limits(ctx);
}

/* Fields and values in turn; false when they had better be set one by one. */
static bool collect(const ff_cells *cells, size_t least, ff_text *texts, size_t *count) {
    *count = 0;
    for (size_t i = 0; i < cells->count; i++) {
        const ff_cell *cell = &cells->items[i];
        if (cell->change == FF_CELL_REMOVED) return false;
        if (cell->change != FF_CELL_SET) continue;
        ff_text field = cell->field->text;
        ff_text value = ff_str_text(cell->staged);
        if (field.len > max_text || value.len > max_text) return false;
        texts[(*count)++] = field;
        texts[(*count)++] = value;
    }
    return *count >= 2 * least && *count <= 2 * max_fields;
}

/* The handle that is open believes that there is no such key: it is closed. */
static bool restore(ff_key *key, ff_text payload) {
    ValkeyModuleCallReply *reply = ValkeyModule_Call(key->txn->ctx, "RESTORE", "scb", key->name,
                                                     "0", payload.ptr, payload.len);
    bool restored = reply && ValkeyModule_CallReplyType(reply) != VALKEYMODULE_REPLY_ERROR;
    if (reply) ValkeyModule_FreeCallReply(reply);
    if (!restored) return false;
    ValkeyModule_CloseKey(key->handle);
    key->handle = NULL;
    return true;
}

static void replicate(ff_key *key, ff_text payload) {
    FF_REPLICATE(key->txn, "RESTORE", "scbc", key->name, "0", payload.ptr, payload.len, "REPLACE");
}

bool ff_packed_write(ff_key *key) {
    size_t least = key->txn->heard ? HEARD_FIELDS_FROM : FIELDS_FROM;
    if (ff_key_readable(key) || key->u.cells.count < least) return false;
    if (key->expiry != FF_EXPIRY_KEEP) return false;
    ff_arena *scratch = &key->txn->scratch;
    size_t count;
    ff_text *texts = ff_arena_array(scratch, key->u.cells.count * 2, sizeof *texts);
    if (!collect(&key->u.cells, least, texts, &count)) return false;
    ff_text payload = ff_dump_hash(scratch, texts, count);
    if (!restore(key, payload)) return false;
    replicate(key, payload);
    return true;
}

static bool collect_pairs(const ff_entry *entry, ff_text *texts) {
    for (size_t i = 0; i < 2 * entry->pair_count; i++) {
        texts[i] = ff_str_text(entry->pairs[i]);
        if (texts[i].len > FF_DUMP_TEXT_MAX) return false;
    }
    return true;
}

/* Nothing else may be staged, since nothing could be done about it without a handle. */
bool ff_packed_begin_stream(ff_key *key) {
    ff_txn *t = key->txn;
    ff_entry *entry = key->u.stream.first;
    if (key->on_server || key->expiry != FF_EXPIRY_KEEP || key->u.stream.trim) return false;
    if (entry == NULL || entry->next || entry->maxlen == 0 || t->now < 1) return false;
    size_t count = 2 * entry->pair_count;
    ff_text *texts = ff_arena_array(&t->arena, count, sizeof *texts);
    if (!collect_pairs(entry, texts)) return false;
    ff_text payload = ff_dump_stream(&t->arena, (uint64_t)t->now, texts, count);
    if (!restore(key, payload)) return false;
    entry->stream_id = (ValkeyModuleStreamID){.ms = (uint64_t)t->now, .seq = 0};
    entry->begun_with = payload;
    return true;
}

void ff_packed_replicate_stream(ff_key *key) { replicate(key, key->u.stream.first->begun_with); }
