/* FF.BUDGET: what executions may spend, and what they have spent. */

#include "engine/budget.h"
#include "base/number.h"
#include "commands/command.h"
#include "commands/place.h"
#include "engine/keyname.h"

enum { DIMENSIONS_MOST = 64 };

/* A budget by its reference. */
typedef struct budget {
    ff_reference reference;
    ff_str *id;
    ff_str *definition, *limits, *usage;
} budget;

static ff_str *key_of(ff_txn *t, const budget *b, ff_text suffix) {
    return FF_CONCAT(t, FF_TEXT("ff:budget:"), b->reference.tag, FF_TEXT(":"), ff_str_text(b->id),
                     suffix);
}

static void name_keys(ff_txn *t, budget *b) {
    b->id = ff_reference_id(t, &b->reference);
    b->definition = key_of(t, b, FF_TEXT(""));
    b->limits = key_of(t, b, FF_TEXT(":limits"));
    b->usage = key_of(t, b, FF_TEXT(":usage"));
}

static ff_str *ledger_of(ff_txn *t, const budget *b, ff_str *execution_id) {
    ff_text suffix = ff_arena_concat(&t->arena, FF_TEXT(":by_exec:"), ff_str_text(execution_id));
    return key_of(t, b, suffix);
}

static ff_str *ledger_index_of(ff_txn *t, const budget *b) {
    return key_of(t, b, FF_TEXT(":by_exec:index"));
}

/* The budget that the first argument names. What the wire functions leave when they spend on a budget that was never
 * created has no id, and does not count. False after a refusal. */
static bool open_budget(ff_request *r, budget *b) {
    if (!ff_request_reference(r, r->args[0], FF_FAMILY_BUDGET, &b->reference)) return false;
    name_keys(&r->txn, b);
    if (ff_hash_get(ff_hash_open(&r->txn, b->definition), W(budget_id))) return true;
    ff_request_refuse_with(r, "NOT_FOUND", FF_TEXT("no such budget"));
    return false;
}

/* An argument that names an execution, in its usual form; NULL after a refusal. */
static ff_str *read_execution(ff_request *r, size_t at) {
    ff_reference id;
    return ff_request_execution_id(r, r->args[at], &id) ? ff_reference_str(&r->txn, &id) : NULL;
}

static bool check_dimension(ff_request *r, ff_table *seen, ff_text name) {
    ff_arena *arena = &r->txn.arena;
    if (name.len == 0) {
        ff_request_refuse(r, FF_TEXT("a dimension must not be empty"));
        return false;
    }
    if (ff_table_add(seen, arena, name)) return true;
    ff_request_refuse(r, ff_arena_concat(arena, FF_TEXT("the dimension "),
                                         ff_arena_printable(arena, name),
                                         FF_TEXT(" is given more than once")));
    return false;
}

/* The number of a dimension: a name and its text. */
static bool check_amount(ff_request *r, const char *what, const ff_text *pair, int64_t least) {
    ff_arena *arena = &r->txn.arena;
    ff_text name = ff_arena_concat(arena, ff_text_of(what), ff_arena_printable(arena, pair[0]));
    int64_t amount;
    ff_text error;
    if (ff_argument_integer(name.ptr, pair[1], least, FF_MILLISECONDS_MAX, &amount, arena,
                            &error)) {
        return true;
    }
    ff_request_refuse(r, error);
    return false;
}

/* ---- CREATE ---- */

typedef struct create_options {
    ff_text scope_type, scope_id, enforcement, on_hard, on_soft;
    int64_t interval_ms;
    ff_text_list hard, soft;
} create_options;

static const ff_option create_rows[] = {
    FF_OPTION("HARD", FF_OPTION_PAIRS, create_options, hard, .min = 1, .max = DIMENSIONS_MOST),
    FF_OPTION("SOFT", FF_OPTION_PAIRS, create_options, soft, .min = 1, .max = DIMENSIONS_MOST),
    FF_OPTION("RESET", FF_OPTION_DURATION, create_options, interval_ms, .min = 1),
    FF_OPTION("SCOPE", FF_OPTION_NONEMPTY, create_options, scope_type, .label = "type"),
    FF_OPTION_THEN(FF_OPTION_TEXT, create_options, scope_id, .label = "id"),
    FF_OPTION("ENFORCEMENT", FF_OPTION_NONEMPTY, create_options, enforcement),
    FF_OPTION("ON_HARD", FF_OPTION_NONEMPTY, create_options, on_hard),
    FF_OPTION("ON_SOFT", FF_OPTION_NONEMPTY, create_options, on_soft),
};

/* The limits of all dimensions: their names, in the order they were first given, and a limit or NULL each. */
typedef struct limits {
    ff_table places; /* by name: 1 + position */
    size_t count;
    ff_str *names[2 * DIMENSIONS_MOST];
    ff_str *hard[2 * DIMENSIONS_MOST];
    ff_str *soft[2 * DIMENSIONS_MOST];
} limits;

static size_t place_of(ff_request *r, limits *l, ff_text name) {
    void **slot = ff_table_at(&l->places, &r->txn.arena, name);
    if (*slot == NULL) {
        l->names[l->count] = ff_str_make(&r->txn, name);
        *slot = (void *)(uintptr_t)++l->count;
    }
    return (size_t)(uintptr_t)*slot - 1;
}

static bool read_limits(ff_request *r, ff_text_list pairs, limits *l, ff_str **values) {
    ff_table seen = {0};
    for (size_t i = 0; i < pairs.count; i += 2) {
        if (!check_dimension(r, &seen, pairs.items[i]) ||
            !check_amount(r, "the limit of ", &pairs.items[i], 1)) {
            return false;
        }
        values[place_of(r, l, pairs.items[i])] = ff_str_make(&r->txn, pairs.items[i + 1]);
    }
    return true;
}

/* Names, hard limits, soft limits; 0 is no limit. */
static ff_strs limit_arguments(ff_txn *t, const limits *l) {
    ff_strs rest = {ff_arena_array(&t->arena, 3 * l->count, sizeof(ff_str *)), 3 * l->count};
    for (size_t i = 0; i < l->count; i++) {
        rest.items[i] = l->names[i];
        rest.items[l->count + i] = ff_str_or(l->hard[i], W(zero));
        rest.items[2 * l->count + i] = ff_str_or(l->soft[i], W(zero));
    }
    return rest;
}

static ff_verdict create_budget(ff_request *r, budget *b, const create_options *o,
                                const limits *l) {
    ff_txn *t = &r->txn;
    ff_budget_create_keys keys = {b->definition, b->limits, b->usage,
                                  ff_keyname_index(t, b->reference.tag, "budget_resets"),
                                  ff_keyname_index(t, b->reference.tag, "budget_policies")};
    ff_budget_create_args args = {
        .budget_id = b->id,
        .scope_type = ff_str_make(t, o->scope_type),
        .scope_id = ff_str_make(t, o->scope_id),
        .enforcement_mode = ff_str_make(t, o->enforcement),
        .on_hard_limit = ff_str_make(t, o->on_hard),
        .on_soft_limit = ff_str_make(t, o->on_soft),
        .reset_interval_ms = ff_str_integer(t, o->interval_ms),
        .now = ff_str_now(t),
        .dimension_count = ff_str_integer(t, (int64_t)l->count),
        .rest = limit_arguments(t, l),
    };
    return ff_budget_create(t, &keys, &args, &r->result);
}

/* where|ref [HARD n dim limit …] [SOFT n dim limit …] [RESET ms] … */
static ff_verdict create(ff_request *r) {
    create_options o = {FF_TEXT(""),     FF_TEXT(""),     FF_TEXT("strict"),
                        FF_TEXT("fail"), FF_TEXT("warn"), .interval_ms = 0};
    budget b;
    limits l = {.count = 0};
    if (!ff_request_place(r, r->args[0], FF_FAMILY_BUDGET, &b.reference) ||
        !ff_request_options(r, 1, FF_OPTION_TABLE(create_rows), &o, NULL) ||
        !read_limits(r, o.hard, &l, l.hard) || !read_limits(r, o.soft, &l, l.soft)) {
        return FF_DISCARD;
    }
    if (l.count == 0) return ff_request_refuse(r, FF_TEXT("a budget needs HARD or SOFT limits"));
    name_keys(&r->txn, &b);
    ff_verdict verdict = create_budget(r, &b, &o, &l);
    if (r->result.code >= FF_FIRST_REFUSAL) return verdict;
    ff_key *definition = ff_hash_open(&r->txn, b.definition);
    ff_answer_become_map(&r->answer);
    ff_answer_text(&r->answer, "budget", ff_reference_str(&r->txn, &b.reference));
    ff_answer_integer(&r->answer, "created", r->result.code == FF_OK);
    ff_answer_number(&r->answer, "next_reset_at", ff_hash_get(definition, W(next_reset_at)));
    return verdict;
}

/* ---- SPEND and REPORT ---- */

typedef struct spend_options {
    ff_text dedup;
} spend_options;

static const ff_option spend_rows[] = {
    FF_OPTION("DEDUP", FF_OPTION_NONEMPTY, spend_options, dedup),
};

/* What is spent: pairs of dimension and delta. */
typedef struct spending {
    ff_str **pairs;
    size_t count;
    ff_str *dedup;
} spending;

/* n dim delta … [DEDUP k], from argument `at` on. */
static bool read_spending(ff_request *r, size_t at, const budget *b, spending *s) {
    spend_options o = {0};
    int64_t count;
    ff_text error;
    ff_table seen = {0};
    ff_arena *arena = &r->txn.arena;
    if (!ff_argument_integer("the count of dimensions", r->args[at], 1, DIMENSIONS_MOST, &count,
                             arena, &error)) {
        return ff_request_refuse(r, error), false;
    }
    s->count = (size_t)count;
    s->pairs = r->argv + at + 1;
    if (r->argc - at - 1 < 2 * s->count) {
        error = ff_arena_printf(arena, "%zu dimensions need %zu values, but %zu follow", s->count,
                                2 * s->count, r->argc - at - 1);
        return ff_request_refuse(r, error), false;
    }
    for (size_t i = 0; i < 2 * s->count; i += 2) {
        if (!check_dimension(r, &seen, r->args[at + 1 + i]) ||
            !check_amount(r, "the delta of ", &r->args[at + 1 + i], -FF_MILLISECONDS_MAX)) {
            return false;
        }
    }
    if (!ff_request_options(r, at + 1 + 2 * s->count, FF_OPTION_TABLE(spend_rows), &o, NULL)) {
        return false;
    }
    s->dedup = W(empty)->str;
    if (!ff_text_is_absent(o.dedup)) {
        s->dedup =
            FF_CONCAT(&r->txn, FF_TEXT("ff:usagededup:"), b->reference.tag, FF_TEXT(":"), o.dedup);
    }
    return true;
}

static ff_verdict answer_spending(ff_request *r, ff_verdict verdict) {
    const ff_value *details = r->result.values;
    if (r->result.code >= FF_FIRST_REFUSAL) return verdict;
    ff_request_answer_status(r);
    if (r->result.code == FF_HARD_BREACH || r->result.code == FF_SOFT_BREACH) {
        ff_answer_text(&r->answer, "dimension", details[0].str);
        ff_answer_number(&r->answer, "usage", details[1].str);
        ff_answer_number(&r->answer, "limit", details[2].str);
    }
    return verdict;
}

/* ref eid n dim delta … [DEDUP k] */
static ff_verdict spend(ff_request *r) {
    budget b;
    spending s;
    ff_txn *t = &r->txn;
    ff_str *execution_id = NULL;
    if (!ff_request_reference(r, r->args[0], FF_FAMILY_BUDGET, &b.reference) ||
        (execution_id = read_execution(r, 1)) == NULL || !read_spending(r, 2, &b, &s) ||
        !open_budget(r, &b)) {
        return FF_DISCARD;
    }
    ff_budget_spend_keys keys = {b.usage, b.limits, b.definition, ledger_of(t, &b, execution_id),
                                 ledger_index_of(t, &b)};
    ff_budget_spend_args args = {.pair_count = ff_str_integer(t, (int64_t)s.count)};
    args.rest.count = 2 * s.count + 3;
    args.rest.items = ff_arena_array(&t->arena, args.rest.count, sizeof(ff_str *));
    memcpy(args.rest.items, s.pairs, 2 * s.count * sizeof(ff_str *));
    args.rest.items[2 * s.count] = ff_str_now(t);
    args.rest.items[2 * s.count + 1] = s.dedup;
    args.rest.items[2 * s.count + 2] = execution_id;
    return answer_spending(r, ff_budget_spend(t, &keys, &args, &r->result));
}

/* ref n dim delta … [DEDUP k] */
static ff_verdict report(ff_request *r) {
    budget b;
    spending s;
    ff_txn *t = &r->txn;
    if (!ff_request_reference(r, r->args[0], FF_FAMILY_BUDGET, &b.reference) ||
        !read_spending(r, 1, &b, &s) || !open_budget(r, &b)) {
        return FF_DISCARD;
    }
    ff_budget_report_keys keys = {b.usage, b.limits, b.definition};
    ff_budget_report_args args = {.dimension_count = ff_str_integer(t, (int64_t)s.count)};
    args.rest.count = 2 * s.count + 2;
    args.rest.items = ff_arena_array(&t->arena, args.rest.count, sizeof(ff_str *));
    for (size_t i = 0; i < s.count; i++) {
        args.rest.items[i] = s.pairs[2 * i];
        args.rest.items[s.count + i] = s.pairs[2 * i + 1];
    }
    args.rest.items[2 * s.count] = ff_str_now(t);
    args.rest.items[2 * s.count + 1] = s.dedup;
    return answer_spending(r, ff_budget_report(t, &keys, &args, &r->result));
}

/* ---- RELEASE and RESET ---- */

/* ref eid */
static ff_verdict release(ff_request *r) {
    budget b;
    ff_txn *t = &r->txn;
    ff_str *execution_id = read_execution(r, 1);
    if (execution_id == NULL || !open_budget(r, &b)) return FF_DISCARD;
    ff_budget_release_keys keys = {b.usage, ledger_of(t, &b, execution_id), ledger_index_of(t, &b)};
    ff_budget_release_args args = {b.id, execution_id};
    ff_verdict verdict = ff_budget_release(t, &keys, &args, &r->result);
    if (r->result.code != FF_OK) return verdict;
    ff_answer_become_map(&r->answer);
    ff_answer_text(&r->answer, "status", r->result.values[0].str);
    return verdict;
}

/* ref */
static ff_verdict reset(ff_request *r) {
    budget b;
    ff_txn *t = &r->txn;
    if (!open_budget(r, &b)) return FF_DISCARD;
    ff_budget_reset_keys keys = {b.definition, b.usage,
                                 ff_keyname_index(t, b.reference.tag, "budget_resets")};
    ff_budget_reset_args args = {b.id, ff_str_now(t)};
    ff_verdict verdict = ff_budget_reset(t, &keys, &args, &r->result);
    if (r->result.code != FF_OK) return verdict;
    ff_key *definition = ff_hash_open(t, b.definition);
    bool repeats = !ff_str_is(r->result.values[0].str, W(zero));
    ff_answer_become_map(&r->answer);
    ff_answer_number(&r->answer, "reset_count", ff_hash_get(definition, W(reset_count)));
    ff_answer_number(&r->answer, "next_reset_at", repeats ? r->result.values[0].str : NULL);
    return verdict;
}

/* ---- GET ---- */

/* A limit of 0 is none. */
static void answer_limit(ff_answer *map, const char *name, ff_str *limit) {
    double number;
    bool none = ff_str_to_number(limit, &number) && !(number > 0);
    ff_answer_number(map, name, none ? NULL : limit);
}

static void answer_dimension(ff_answer *dimensions, ff_text name, ff_key *limits_key,
                             ff_key *usage) {
    ff_txn *t = dimensions->txn;
    ff_answer *entry = ff_answer_member(dimensions, name);
    ff_text hard = ff_arena_concat(&t->arena, FF_TEXT("hard:"), name);
    ff_text soft = ff_arena_concat(&t->arena, FF_TEXT("soft:"), name);
    ff_answer_become_map(entry);
    ff_answer_number(entry, "usage", ff_str_or(ff_hash_get(usage, ff_field(t, name)), W(zero)));
    answer_limit(entry, "hard", ff_hash_get(limits_key, ff_field(t, hard)));
    answer_limit(entry, "soft", ff_hash_get(limits_key, ff_field(t, soft)));
}

/* Every dimension that has a limit or was spent. */
static void answer_dimensions(ff_request *r, const budget *b) {
    ff_txn *t = &r->txn;
    ff_key *limits_key = ff_hash_open(t, b->limits);
    ff_key *usage = ff_hash_open(t, b->usage);
    ff_answer *dimensions = ff_answer_member(&r->answer, FF_TEXT("dimensions"));
    ff_table seen = {0};
    const ff_word *field;
    ff_str *value;
    size_t cursor = 0;
    const size_t prefix = FF_TEXT("hard:").len;
    ff_answer_become_map(dimensions);
    while (ff_hash_next(limits_key, &cursor, &field, &value)) {
        ff_text name = ff_text_slice(field->text, prefix, field->text.len);
        if (ff_table_add(&seen, &t->arena, name)) {
            answer_dimension(dimensions, name, limits_key, usage);
        }
    }
    cursor = 0;
    while (ff_hash_next(usage, &cursor, &field, &value)) {
        if (ff_table_add(&seen, &t->arena, field->text)) {
            answer_dimension(dimensions, field->text, limits_key, usage);
        }
    }
}

/* ref */
static ff_verdict get(ff_request *r) {
    budget b;
    if (!open_budget(r, &b)) return FF_DISCARD;
    ff_key *definition = ff_hash_open(&r->txn, b.definition);
    const struct {
        const char *name;
        const ff_word *field;
        bool number;
    } fields[] = {
        {"scope_type", W(scope_type), false},
        {"scope_id", W(scope_id), false},
        {"enforcement_mode", W(enforcement_mode), false},
        {"on_hard_limit", W(on_hard_limit), false},
        {"on_soft_limit", W(on_soft_limit), false},
        {"reset_interval_ms", W(reset_interval_ms), true},
        {"next_reset_at", W(next_reset_at), true},
        {"reset_count", W(reset_count), true},
        {"last_reset_at", W(last_reset_at), true},
        {"breach_count", W(breach_count), true},
        {"soft_breach_count", W(soft_breach_count), true},
        {"last_breach_at", W(last_breach_at), true},
        {"last_breach_dimension", W(last_breach_dim), false},
        {"created_at", W(created_at), true},
        {"last_updated_at", W(last_updated_at), true},
    };
    ff_answer_become_map(&r->answer);
    ff_answer_text(&r->answer, "budget", ff_reference_str(&r->txn, &b.reference));
    answer_dimensions(r, &b);
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        ff_str *value = ff_hash_get(definition, fields[i].field);
        if (fields[i].number) {
            ff_answer_number(&r->answer, fields[i].name, value);
        } else {
            ff_answer_text(&r->answer, fields[i].name, ff_str_is_set(value) ? value : NULL);
        }
    }
    return FF_DISCARD;
}

static FF_NATIVE_WRITE(create_command, 2, create);
static FF_NATIVE_WRITE(spend_command, 2, spend);
static FF_NATIVE_WRITE(report_command, 2, report);
static FF_NATIVE_WRITE(release_command, 2, release);
static FF_NATIVE_WRITE(reset_command, 2, reset);
static FF_NATIVE_READ(get_command, 2, get);

#define LIMIT_ARGS \
    FF_ARG("count", INTEGER), \
        FF_ARG("limit", BLOCK, .flags = VALKEYMODULE_CMD_ARG_MULTIPLE, \
               .subargs = FF_ARGS(FF_ARG("dimension", STRING), FF_ARG("limit", INTEGER)))
#define DELTA_ARGS \
    FF_ARG("count", INTEGER), \
        FF_ARG("spent", BLOCK, .flags = VALKEYMODULE_CMD_ARG_MULTIPLE, \
               .subargs = FF_ARGS(FF_ARG("dimension", STRING), FF_ARG("delta", INTEGER))), \
        FF_OPTION_ARG("dedup", "DEDUP", STRING)

static const ff_command rows[] = {
    {"ff.budget", FF_CONTAINER_OF("budgets")},
    {"ff.budget|create", create_command, FF_WRITES,
     .info = {FF_DOCUMENTED, .summary = "Defines a budget.",
              .complexity = "O(N) with N the number of dimensions", .arity = -3,
              .key_specs = FF_KEY_WRITE(2),
              .args = FF_ARGS(
                  FF_KEY_ARG("where"), FF_BLOCK_ARG("hard", "HARD", LIMIT_ARGS),
                  FF_BLOCK_ARG("soft", "SOFT", LIMIT_ARGS),
                  FF_OPTION_ARG("interval-ms", "RESET", INTEGER),
                  FF_BLOCK_ARG("scope", "SCOPE", FF_ARG("type", STRING), FF_ARG("id", STRING)),
                  FF_OPTION_ARG("mode", "ENFORCEMENT", STRING),
                  FF_OPTION_ARG("hard-action", "ON_HARD", STRING),
                  FF_OPTION_ARG("soft-action", "ON_SOFT", STRING))}},
    {"ff.budget|spend", spend_command, FF_WRITES,
     .info = {FF_DOCUMENTED,
              .summary = "Counts what an execution spends, unless a hard limit forbids it.",
              .complexity = "O(N) with N the number of dimensions", .arity = -7,
              .key_specs = FF_KEY_WRITE(2),
              .args = FF_ARGS(FF_KEY_ARG("budget"), FF_ARG("execution-id", STRING), DELTA_ARGS)}},
    {"ff.budget|report", report_command, FF_WRITES,
     .info = {FF_DOCUMENTED,
              .summary = "Counts usage of nobody in particular, unless a hard limit forbids it.",
              .complexity = "O(N) with N the number of dimensions", .arity = -6,
              .key_specs = FF_KEY_WRITE(2), .args = FF_ARGS(FF_KEY_ARG("budget"), DELTA_ARGS)}},
    {"ff.budget|release", release_command, FF_WRITES,
     .info = {FF_DOCUMENTED, .summary = "Gives back what an execution has spent.",
              .complexity = "O(N) with N the number of dimensions it spent", .arity = 4,
              .key_specs = FF_KEY_WRITE(2),
              .args = FF_ARGS(FF_KEY_ARG("budget"), FF_ARG("execution-id", STRING))}},
    {"ff.budget|reset", reset_command, FF_OPERATOR_WRITES,
     .info = {FF_DOCUMENTED, .summary = "Starts a budget again from zero.",
              .complexity = "O(N) with N the number of dimensions", .arity = 3,
              .key_specs = FF_KEY_WRITE(2), .args = FF_ARGS(FF_KEY_ARG("budget"))}},
    {"ff.budget|get", get_command, FF_READS,
     .info = {FF_DOCUMENTED, .summary = "Returns the limits and the usage of a budget.",
              .complexity = "O(N) with N the number of dimensions", .arity = 3,
              .key_specs = FF_KEY_READ(2), .args = FF_ARGS(FF_KEY_ARG("budget"))}},
};

const ff_command_table ff_budget_commands = FF_COMMAND_TABLE(rows);
