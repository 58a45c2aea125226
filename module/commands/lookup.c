/* FF.GET, FF.LIST: looking at executions. */

#include <stdlib.h>

#include "base/number.h"
#include "commands/command.h"
#include "commands/listing.h"
#include "engine/keyname.h"

enum { ATTEMPTS_MOST = 100, HISTORY_MOST = 2000 };

/* ---- Records as maps ---- */

/* Fields that hold numbers are known by how they are named. */
static bool names_number(ff_text name) {
    static const char *const endings[] = {"_at",    "_count", "_epoch",    "_index",
                                          "_until", "_ms",    "_deadline", "_pct"};
    static const char *const names[] = {"priority", "partition_id", "ts"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (ff_text_equal_cstr(name, names[i])) return true;
    }
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        ff_text ending = ff_text_of(endings[i]);
        if (name.len > ending.len &&
            ff_text_equal(ff_text_slice(name, name.len - ending.len, name.len), ending)) {
            return true;
        }
    }
    return false;
}

/* Nothing is null, be it absent or empty. */
static void answer_field(ff_answer *map, ff_text name, ff_str *value) {
    ff_text terminated = ff_arena_dup(&map->txn->arena, name);
    if (names_number(name)) {
        ff_answer_number(map, terminated.ptr, value);
    } else {
        ff_answer_become_text(ff_answer_member(map, name), ff_str_is_set(value) ? value : NULL);
    }
}

static int compare_pairs(const void *a, const void *b) {
    return ff_text_compare(((const ff_pair *)a)->field->text, ((const ff_pair *)b)->field->text);
}

/* All fields by name, since a hash has no order of its own. */
static size_t read_sorted(ff_key *hash, ff_pair **pairs) {
    ff_txn *t = ff_key_txn(hash);
    ff_pair pair;
    size_t cursor = 0;
    size_t count = 0;
    size_t capacity = 0;
    *pairs = NULL;
    while (ff_hash_next(hash, &cursor, &pair.field, &pair.value)) {
        *pairs = ff_txn_grow(t, *pairs, count, &capacity, sizeof pair);
        (*pairs)[count++] = pair;
    }
    if (count) qsort(*pairs, count, sizeof pair, compare_pairs);
    return count;
}

static void answer_hash(ff_answer *map, ff_key *hash) {
    ff_pair *pairs;
    size_t count = read_sorted(hash, &pairs);
    ff_answer_become_map(map);
    for (size_t i = 0; i < count; i++) answer_field(map, pairs[i].field->text, pairs[i].value);
}

/* ---- FF.GET ---- */

typedef struct get_options {
    ff_text_list fields;
    ff_text with;
} get_options;

enum { FIELDS_ROW };
static const ff_option get_rows[] = {
    [FIELDS_ROW] = FF_OPTION("FIELDS", FF_OPTION_LIST, get_options, fields, .max = 1000),
    FF_OPTION("WITH", FF_OPTION_NONEMPTY, get_options, with),
};

static void answer_string(ff_request *r, ff_subject *s, const char *name) {
    ff_str *value = ff_string_get(ff_string_open(&r->txn, ff_subject_key(s, name)));
    ff_answer_text(&r->answer, name, value);
}

static void answer_result(ff_request *r, ff_subject *s) { answer_string(r, s, "result"); }

static void answer_payload(ff_request *r, ff_subject *s) { answer_string(r, s, "payload"); }

static void answer_policy(ff_request *r, ff_subject *s) { answer_string(r, s, "policy"); }

static void answer_lease(ff_request *r, ff_subject *s) {
    ff_answer *member = ff_answer_member(&r->answer, FF_TEXT("lease"));
    ff_key *lease = ff_hash_open(&r->txn, ff_subject_key(s, "lease:current"));
    if (ff_key_exists(lease)) answer_hash(member, lease);
}

static void answer_tags(ff_request *r, ff_subject *s) {
    ff_pair *pairs;
    size_t count = read_sorted(ff_hash_open(&r->txn, ff_subject_key(s, "tags")), &pairs);
    ff_answer *map = ff_answer_member(&r->answer, FF_TEXT("tags"));
    ff_answer_become_map(map);
    for (size_t i = 0; i < count; i++) {
        ff_answer_become_text(ff_answer_member(map, pairs[i].field->text), pairs[i].value);
    }
}

/* The last attempts: they are numbered from 0. */
static void answer_attempts(ff_request *r, ff_subject *s) {
    ff_txn *t = &r->txn;
    double count;
    ff_answer *list = ff_answer_member(&r->answer, FF_TEXT("attempts"));
    ff_answer_become_list(list);
    if (ff_hash_number(s->core, W(total_attempt_count), &count) != FF_NUMBER_GOOD) return;
    if (!(count >= 1) || count > (double)FF_MILLISECONDS_MAX) return;
    int64_t last = (int64_t)count;
    for (int64_t i = last > ATTEMPTS_MOST ? last - ATTEMPTS_MOST : 0; i < last; i++) {
        ff_text index = ff_integer_text(&t->arena, i);
        ff_key *attempt =
            ff_hash_open(t, ff_keyname_attempt(t, s->tag, ff_str_text(s->execution_id), index, ""));
        if (ff_key_exists(attempt)) answer_hash(ff_answer_add(list), attempt);
    }
}

static void answer_history(ff_request *r, ff_subject *s) {
    ff_txn *t = &r->txn;
    ff_stream_entry *entries;
    size_t found = 0;
    ff_answer *list = ff_answer_member(&r->answer, FF_TEXT("history"));
    ff_key *history = ff_stream_open(t, ff_subject_key(s, "lease:history"));
    ff_answer_become_list(list);
    if (!ff_key_exists(history)) return;
    ff_stream_range(history, ff_str_make(t, FF_TEXT("-")), ff_str_make(t, FF_TEXT("+")),
                    HISTORY_MOST, &entries, &found);
    for (size_t i = 0; i < found; i++) {
        ff_answer *map = ff_answer_add(list);
        ff_answer_become_map(map);
        ff_answer_text(map, "id", entries[i].id);
        for (size_t j = 0; j + 1 < entries[i].fields.count; j += 2) {
            answer_field(map, ff_str_text(entries[i].fields.items[j]),
                         entries[i].fields.items[j + 1]);
        }
    }
}

/* The fields asked for; `state` is what other replies call the public state. */
static void answer_fields(ff_request *r, ff_subject *s, ff_text_list names) {
    ff_answer_become_map(&r->answer);
    for (size_t i = 0; i < names.count; i++) {
        ff_text name = names.items[i];
        bool state = ff_text_equal(name, W(state)->text);
        ff_str *value = ff_hash_get(s->core, state ? W(public_state) : ff_field(&r->txn, name));
        answer_field(&r->answer, name, value);
    }
}

typedef struct addition {
    const char *name;
    void (*answer)(ff_request *r, ff_subject *s);
} addition;

static const addition additions[] = {
    {"result", answer_result},     {"payload", answer_payload}, {"policy", answer_policy},
    {"attempts", answer_attempts}, {"lease", answer_lease},     {"history", answer_history},
};

enum { ADDITIONS = sizeof additions / sizeof *additions };

/* Reads the words of WITH, between commas; false after a refusal. */
static bool read_with(ff_request *r, ff_text with, bool chosen[ADDITIONS]) {
    ff_text word;
    while (ff_text_split(&with, ',', &word)) {
        size_t i = 0;
        while (i < ADDITIONS && !ff_text_equal_ignoring_case(word, ff_text_of(additions[i].name))) {
            i++;
        }
        if (i == ADDITIONS) {
            ff_request_refuse(r, ff_arena_concat(&r->txn.arena,
                                                 FF_TEXT("WITH must be a list of result, payload, "
                                                         "policy, attempts, lease, history, got: "),
                                                 ff_arena_printable(&r->txn.arena, word)));
            return false;
        }
        chosen[i] = true;
    }
    return true;
}

/* eid [FIELDS n f…] [WITH result,payload,…] */
static ff_verdict get(ff_request *r) {
    get_options o = {0};
    uint64_t given;
    bool chosen[ADDITIONS] = {0};
    ff_subject s;
    if (!ff_request_subject(r, &s) ||
        !ff_request_options(r, 1, FF_OPTION_TABLE(get_rows), &o, &given) ||
        !read_with(r, o.with, chosen)) {
        return FF_DISCARD;
    }
    if (!ff_key_exists(s.core)) return ff_refuse(&r->result, FF_EXECUTION_NOT_FOUND);
    if (given >> FIELDS_ROW & 1) {
        answer_fields(r, &s, o.fields);
    } else {
        ff_request_answer_state(r, &s);
        answer_hash(&r->answer, s.core);
        answer_tags(r, &s);
    }
    for (size_t i = 0; i < ADDITIONS; i++) {
        if (chosen[i]) additions[i].answer(r, &s);
    }
    return FF_COMMIT;
}

/* ---- FF.LIST ---- */

typedef struct list_options {
    ff_listing_options common;
    ff_text lane, namespace;
    int state;
} list_options;

static const char *const states[] = {"waiting",   "delayed",   "rate_limited", "waiting_children",
                                     "active",    "suspended", "completed",    "failed",
                                     "cancelled", "expired",   "skipped",      NULL};

static const ff_option list_rows[] = {
    FF_LISTING_ROWS(list_options, common),
    FF_OPTION("LANE", FF_OPTION_NONEMPTY, list_options, lane),
    FF_OPTION("STATE", FF_OPTION_CHOICE, list_options, state, .choices = states),
    FF_OPTION("NAMESPACE", FF_OPTION_NONEMPTY, list_options, namespace),
};

static bool passes(ff_txn *t, ff_text core, const ff_word *field, ff_text wanted) {
    if (ff_text_is_absent(wanted)) return true;
    return ff_text_equal(ff_str_text(ff_hash_peek(t, core, field)), wanted);
}

static void list_one(ff_txn *t, ff_answer *list, ff_text tag, ff_str *execution_id, void *data) {
    const list_options *o = data;
    ff_text core = ff_str_text(ff_keyname_execution(t, tag, ff_str_text(execution_id), "core"));
    ff_text state = o->state < 0 ? FF_TEXT_ABSENT : ff_text_of(states[o->state]);
    ff_str *created_at = ff_hash_peek(t, core, W(created_at));
    if (created_at == NULL || !passes(t, core, W(public_state), state) ||
        !passes(t, core, W(lane_id), o->lane) || !passes(t, core, W(namespace), o->namespace)) {
        return;
    }
    ff_answer *map = ff_answer_add(list);
    ff_answer_become_map(map);
    ff_answer_text(map, "execution_id", execution_id);
    ff_answer_text(map, "state", ff_hash_peek(t, core, W(public_state)));
    ff_answer_text(map, "lane", ff_hash_peek(t, core, W(lane_id)));
    ff_answer_text(map, "kind", ff_hash_peek(t, core, W(execution_kind)));
    ff_answer_text(map, "namespace", ff_hash_peek(t, core, W(namespace)));
    ff_answer_number(map, "priority", ff_hash_peek(t, core, W(priority)));
    ff_answer_number(map, "created_at", created_at);
    ff_str *flow_id = ff_hash_peek(t, core, W(flow_id));
    ff_answer_text(map, "flow_id", ff_str_is_set(flow_id) ? flow_id : NULL);
}

/* [LANE l] [STATE s] [NAMESPACE ns] [PARTITION {fp:N}] [CURSOR c] [COUNT n] */
static ff_verdict list_executions(ff_request *r) {
    list_options o = {.common.count = FF_LISTING_COUNT, .state = -1};
    if (!ff_request_options(r, 0, FF_OPTION_TABLE(list_rows), &o, NULL)) return FF_DISCARD;
    return ff_listing_answer(r, FF_INDEX_ALL_EXECUTIONS, &o.common, "executions", list_one, &o);
}

static FF_NATIVE_READ(get_command, 1, get);
static FF_NATIVE_LISTING(list_command, 1, list_executions);

static const ff_command rows[] = {
    {"ff.get", get_command, FF_READS,
     .info = {FF_DOCUMENTED, .summary = "Returns what is known about an execution.",
              .complexity = "O(N) with N the number of fields, attempts and events returned",
              .arity = -2, .key_specs = FF_KEY_READ(1),
              .args = FF_ARGS(FF_KEY_ARG("execution-id"),
                              FF_BLOCK_ARG("fields", "FIELDS", FF_ARG("count", INTEGER),
                                           FF_MANY_ARG("field", STRING)),
                              FF_OPTION_ARG("what", "WITH", STRING))}},
    {"ff.list", list_command, FF_READS,
     .info = {FF_DOCUMENTED, .summary = "Pages through the executions of this node.",
              .complexity = "O(N) with N the count; O(P) with P the number of partitions",
              .arity = -1, .key_specs = FF_PARTITION_READ(1),
              .args = FF_ARGS(FF_OPTION_ARG("lane", "LANE", STRING),
                              FF_OPTION_ARG("state", "STATE", STRING),
                              FF_OPTION_ARG("namespace", "NAMESPACE", STRING), FF_LISTING_ARGS)}},
};

const ff_command_table ff_lookup_commands = FF_COMMAND_TABLE(rows);
