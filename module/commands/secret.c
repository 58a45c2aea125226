/* FF.SECRET: the secrets that sign waitpoint tokens, on all partitions of this node at once. */

#include "engine/secret.h"

#include "base/table.h"
#include "commands/command.h"
#include "commands/place.h"
#include "permission.h"
#include "presence.h"

enum { GRACE_USUAL_MS = 24 * 60 * 60 * 1000 };

/* Moves to the next partition that this node serves; begins behind -1. */
static bool next_keystore(ff_request *r, int32_t *number, ff_str **keystore) {
    int32_t count = ff_partition_count(FF_FAMILY_FLOW);
    while (++*number < count) {
        ff_partition partition = {FF_FAMILY_FLOW, (uint16_t)*number};
        if (!ff_partition_is_served(r->ctx, partition)) continue;
        ff_text tag = ff_tag_text(&r->txn.arena, partition);
        *keystore = FF_CONCAT(&r->txn, FF_TEXT("ff:sec:"), tag, FF_TEXT(":waitpoint_hmac"));
        return true;
    }
    return false;
}

typedef struct rotate_options {
    int64_t grace_ms;
} rotate_options;

static const ff_option rotate_rows[] = {
    FF_OPTION("GRACE", FF_OPTION_DURATION, rotate_options, grace_ms),
};

/* kid hex [GRACE ms] */
static ff_verdict rotate(ff_request *r) {
    rotate_options o = {GRACE_USUAL_MS};
    ff_str *keystore;
    ff_str *former = NULL;
    int64_t partitions = 0;
    int64_t rotated = 0;
    /* A secret is nobody's business in MONITOR and SLOWLOG. */
    ValkeyModule_RedactClientCommandArgument(r->ctx, 3);
    if (!ff_request_options(r, 2, FF_OPTION_TABLE(rotate_rows), &o, NULL) ||
        !ff_request_reaches_all_slots(r)) {
        return FF_DISCARD;
    }
    ff_secret_rotate_args args = {r->argv[0], r->argv[1], ff_str_integer(&r->txn, o.grace_ms)};
    for (int32_t number = -1; next_keystore(r, &number, &keystore); partitions++) {
        ff_secret_rotate_keys keys = {keystore};
        r->result = (ff_result){.txn = &r->txn};
        if (ff_secret_rotate(&r->txn, &keys, &args, &r->result) == FF_DISCARD) return FF_DISCARD;
        if (!ff_str_is(r->result.values[0].str, W(rotated))) continue;
        rotated++;
        if (former == NULL && ff_str_is_set(r->result.values[1].str)) {
            former = r->result.values[1].str;
        }
    }
    ff_answer_become_map(&r->answer);
    ff_answer_word(&r->answer, "status", rotated ? W(rotated) : W(noop));
    ff_answer_text(&r->answer, "kid", r->argv[0]);
    ff_answer_text(&r->answer, "previous_kid", former);
    ff_answer_integer(&r->answer, "partitions", partitions);
    ff_answer_integer(&r->answer, "rotated", rotated);
    return FF_COMMIT;
}

/* Partitions that have the same keys. */
typedef struct agreement {
    struct agreement *next;
    ff_result *listed;
    int64_t partitions;
} agreement;

static bool is_same(const ff_result *a, const ff_result *b) {
    if (a->count != b->count) return false;
    for (size_t i = 0; i < a->count; i++) {
        if (!ff_str_equal(a->values[i].str, b->values[i].str)) return false;
    }
    return true;
}

static void answer_agreement(ff_answer *list, const agreement *a) {
    ff_answer *entry = ff_answer_add(list);
    const ff_value *values = a->listed->values;
    ff_answer_become_map(entry);
    ff_answer_text(entry, "current_kid", ff_str_is_set(values[0].str) ? values[0].str : NULL);
    ff_answer *former = ff_answer_member(entry, FF_TEXT("verifying"));
    ff_answer_become_list(former);
    for (size_t i = 2; i + 1 < a->listed->count; i += 2) {
        ff_answer *key = ff_answer_add(former);
        ff_answer_become_map(key);
        ff_answer_text(key, "kid", values[i].str);
        ff_answer_number(key, "expires_at", values[i + 1].str);
    }
    ff_answer_integer(entry, "partitions", a->partitions);
}

static agreement *find_agreement(agreement **first, const ff_result *listed) {
    while (*first && !is_same((*first)->listed, listed)) first = &(*first)->next;
    return *first;
}

/* One entry for each state that partitions are in: all of them in one, unless a rotation was missed. */
static ff_verdict list(ff_request *r) {
    enum { STATES_MOST = 100 };
    agreement *first = NULL;
    agreement **end = &first;
    size_t states = 0;
    ff_str *keystore;
    ff_txn *t = &r->txn;
    if (!ff_request_reaches_all_slots(r)) return FF_DISCARD;
    for (int32_t number = -1; next_keystore(r, &number, &keystore);) {
        ff_secret_list_keys keys = {keystore};
        ff_secret_list_args args = {NULL};
        ff_result *listed = ff_arena_zeroed(&t->arena, sizeof *listed);
        listed->txn = t;
        ff_secret_list(t, &keys, &args, listed);
        agreement *same = find_agreement(&first, listed);
        if (same == NULL && states < STATES_MOST) {
            same = ff_arena_zeroed(&t->arena, sizeof *same);
            same->listed = listed;
            *end = same;
            end = &same->next;
            states++;
        }
        if (same) same->partitions++;
    }
    ff_answer_become_list(&r->answer);
    for (; first; first = first->next) answer_agreement(&r->answer, first);
    return FF_DISCARD;
}

/* Neither names a key. */
static int rotate_command(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    return ff_request_serve(ctx, argv, argc, 2, rotate, false);
}

static int list_command(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    return ff_request_serve(ctx, argv, argc, 2, list, true);
}

static const ff_command rows[] = {
    {"ff.secret", FF_CONTAINER_OF("the secrets that sign tokens")},
    {"ff.secret|rotate", rotate_command, .flags = "write deny-oom",
     .categories = "write admin dangerous",
     .info = {FF_DOCUMENTED,
              .summary = "Makes a secret the signing one on all partitions of this node.",
              .complexity = "O(P) with P the number of partitions", .arity = -4,
              .args = FF_ARGS(FF_ARG("kid", STRING), FF_ARG("secret", STRING),
                              FF_OPTION_ARG("grace-ms", "GRACE", INTEGER))}},
    {"ff.secret|list", list_command, .flags = "readonly", .categories = "read admin dangerous",
     .info = {FF_DOCUMENTED,
              .summary = "Returns which keys sign and verify on the partitions of this node.",
              .complexity = "O(P) with P the number of partitions", .arity = 2}},
};

const ff_command_table ff_secret_commands = FF_COMMAND_TABLE(rows);
