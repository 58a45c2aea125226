#include "engine/budget.h"

#include <math.h>

#include "base/number.h"

enum { DEDUP_TTL_MS = 24 * 60 * 60 * 1000 };

/* When the next reset is due, as text and as the number that this text is. */
typedef struct due {
    ff_str *text;
    double at;
} due;

/* False, with the refusal in `out`, when there is no such time. */
static bool next_reset(ff_txn *t, ff_str *now, double interval, due *next, ff_result *out) {
    double from;
    if (!ff_str_to_number(now, &from)) {
        ff_not_a_number(out, "now", now);
        return false;
    }
    next->text = ff_str_number(t, from + interval);
    if (!ff_str_to_number(next->text, &next->at) || isnan(next->at)) {
        ff_bad_input(out, "now and reset_interval_ms give no time");
        return false;
    }
    return true;
}

static void schedule_reset(ff_key *definition, ff_str *schedule, ff_str *budget_id,
                           const due *next) {
    ff_hash_set(definition, W(next_reset_at), next->text);
    ff_zset_add(ff_zset_open(ff_key_txn(definition), schedule), budget_id, next->at);
}

/* How many dimensions a creation names; false when the arguments cannot hold them. */
static bool count_dimensions(double count, size_t given, size_t *dimensions) {
    int64_t whole;
    *dimensions = 0;
    if (!(count >= 1)) return true;
    if (!ff_number_to_integer(count, &whole) || (uint64_t)whole > given / 3) return false;
    *dimensions = (size_t)whole;
    return true;
}

static void write_definition(ff_key *definition, const ff_budget_create_args *a) {
    ff_hash_set(definition, W(budget_id), a->budget_id);
    ff_hash_set(definition, W(scope_type), a->scope_type);
    ff_hash_set(definition, W(scope_id), a->scope_id);
    ff_hash_set(definition, W(enforcement_mode), a->enforcement_mode);
    ff_hash_set(definition, W(on_hard_limit), a->on_hard_limit);
    ff_hash_set(definition, W(on_soft_limit), a->on_soft_limit);
    ff_hash_set(definition, W(reset_interval_ms), a->reset_interval_ms);
    ff_hash_set_word(definition, W(breach_count), W(zero));
    ff_hash_set_word(definition, W(soft_breach_count), W(zero));
    ff_hash_set(definition, W(created_at), a->now);
    ff_hash_set(definition, W(last_updated_at), a->now);
}

/* The field of a dimension's limit. */
static const ff_word *limit_field(ff_txn *t, ff_text kind, const ff_str *dimension) {
    return ff_field_str(t, FF_CONCAT(t, kind, ff_str_text(dimension)));
}

#define HARD FF_TEXT("hard:")
#define SOFT FF_TEXT("soft:")

static void write_limits(ff_txn *t, ff_str *name, ff_str *const *names, size_t count) {
    if (count == 0) return;
    ff_key *limits = ff_hash_open(t, name);
    for (size_t i = 0; i < count; i++) {
        ff_hash_set(limits, limit_field(t, HARD, names[i]), names[count + i]);
        ff_hash_set(limits, limit_field(t, SOFT, names[i]), names[2 * count + i]);
    }
}

static ff_verdict define(ff_txn *t, const ff_budget_create_keys *k, const ff_budget_create_args *a,
                         double count, ff_result *out) {
    size_t dimensions;
    double interval;
    due next;
    if (!count_dimensions(count, a->rest.count, &dimensions)) {
        return ff_bad_input(out, "dim_count must be a whole number, and that many dimensions, hard "
                                 "limits and soft limits must follow it");
    }
    if (!ff_str_to_number(a->reset_interval_ms, &interval)) {
        return ff_not_a_number(out, "reset_interval_ms", a->reset_interval_ms);
    }
    bool recurring = interval > 0;
    if (recurring && !next_reset(t, a->now, interval, &next, out)) return FF_DISCARD;

    ff_key *definition = ff_hash_open(t, k->definition);
    write_definition(definition, a);
    write_limits(t, k->limits, a->rest.items, dimensions);
    if (recurring) schedule_reset(definition, k->schedule, a->budget_id, &next);
    ff_result_add(out, a->budget_id);
    return ff_ok(out);
}

ff_verdict ff_budget_create(ff_txn *t, const ff_budget_create_keys *k,
                            const ff_budget_create_args *a, ff_result *out) {
    double count;
    if (a->budget_id == NULL) return ff_bad_input(out, "budget_id is missing");
    /* Kept whatever follows: it repairs an index that lost its entry. */
    ff_set_add(ff_set_open(t, k->policies), a->budget_id);
    if (ff_key_exists(ff_any_open(t, k->definition))) {
        ff_result_add(out, a->budget_id);
        return ff_succeed(out, FF_ALREADY_SATISFIED);
    }
    if (!ff_str_to_number(a->dimension_count, &count)) {
        ff_not_a_number(out, "dim_count", a->dimension_count);
        return ff_refuse_keeping(out, FF_INVALID_INPUT);
    }
    return define(t, k, a, count, out);
}

typedef struct charge {
    const ff_word *dimension;
    ff_str *delta_text;
    double delta;
} charge;

/* A report or a spend, its arguments sorted out. */
typedef struct bill {
    ff_budget_spend_keys names; /* of a report: without ledger */
    ff_key *usage;
    ff_key *limits;
    charge *charges;
    size_t count;
    ff_str *now;
    ff_str *dedup;
    ff_str *execution_id; /* NULL or empty: nobody's */
} bill;

/* Reads the count of dimensions, and finds `now` and the dedup key behind them. */
static bool read_count(ff_txn *t, const char *name, ff_str *text, ff_strs rest, bill *b,
                       ff_result *out) {
    double number;
    int64_t count;
    if (!ff_str_to_number(text, &number)) {
        ff_not_a_number(out, name, text);
        return false;
    }
    if (!ff_number_to_integer(number, &count) || count < 0 || rest.count == 0 ||
        (uint64_t)count > (rest.count - 1) / 2) {
        ff_bad_input(out, "the number of dimensions must be whole and not negative, and that many "
                          "dimensions and deltas and the time must follow it");
        return false;
    }
    b->count = (size_t)count;
    b->charges = ff_arena_array(&t->arena, b->count, sizeof *b->charges);
    size_t after = 2 * b->count;
    b->now = rest.items[after];
    b->dedup = after + 1 < rest.count ? rest.items[after + 1] : NULL;
    b->execution_id = after + 2 < rest.count ? rest.items[after + 2] : NULL;
    return true;
}

typedef struct limit {
    ff_str *text;
    double value; /* 0: not in force */
} limit;

/* Rule LIMIT; false when a number should be there and is not. */
static bool read_limit(ff_key *limits, ff_text kind, const charge *c, limit *l) {
    l->text = ff_hash_get(limits, limit_field(ff_key_txn(limits), kind, c->dimension->str));
    l->value = 0;
    if (!ff_str_is_set(l->text)) return true;
    if (!ff_str_to_number(l->text, &l->value)) return false;
    if (!(l->value > 0)) l->value = 0;
    return true;
}

static bool bites(const limit *l, double total) { return l->value > 0 && total > l->value; }

static ff_verdict refuse_limit(ff_result *out) {
    return ff_bad_input(out, "a stored limit is no number");
}

static ff_verdict refuse_counter(ff_result *out) {
    return ff_bad_input(out, "a stored counter is no whole number, or would grow beyond 64 bits");
}

static ff_verdict report_breach(const bill *b, const charge *c, double current, const limit *hard,
                                ff_result *out) {
    ff_key *definition = ff_hash_open(out->txn, b->names.definition);
    if (!ff_hash_increment(definition, W(breach_count), 1, NULL)) return refuse_counter(out);
    ff_hash_set(definition, W(last_breach_at), b->now);
    ff_hash_set(definition, W(last_breach_dim), c->dimension->str);
    ff_hash_set(definition, W(last_updated_at), b->now);
    ff_result_add(out, c->dimension->str);
    ff_result_add_number(out, current);
    ff_result_add(out, hard->text);
    return ff_succeed(out, FF_HARD_BREACH);
}

/* Dimension by dimension, since an early breach hides what is wrong with a later one. True when all
 * fit; else the answer is in `out` and `verdict`. */
static bool check_hard(const bill *b, ff_result *out, ff_verdict *verdict) {
    for (size_t i = 0; i < b->count; i++) {
        charge *c = &b->charges[i];
        double current;
        limit hard;
        if (!ff_str_to_number(c->delta_text, &c->delta)) {
            *verdict = ff_not_a_number(out, "delta", c->delta_text);
            return false;
        }
        if (ff_hash_number(b->usage, c->dimension, &current) == FF_NUMBER_BAD) {
            *verdict = refuse_counter(out);
            return false;
        }
        if (!read_limit(b->limits, HARD, c, &hard)) {
            *verdict = refuse_limit(out);
            return false;
        }
        if (bites(&hard, current + c->delta)) {
            *verdict = report_breach(b, c, current, &hard, out);
            return false;
        }
    }
    return true;
}

/* Adds one charge to the usage and, if there is one, the ledger. */
static bool count_charge(const bill *b, ff_key *ledger, const charge *c, int64_t *total) {
    int64_t delta;
    if (!ff_number_to_integer(c->delta, &delta)) return false;
    if (!ff_hash_increment(b->usage, c->dimension, delta, total)) return false;
    return ledger == NULL || ff_hash_increment(ledger, c->dimension, delta, NULL);
}

/* The first dimension that passed its soft limit; NULL when none did. */
typedef struct soft_breach {
    const charge *charge;
    double limit;
} soft_breach;

static bool count_all(const bill *b, ff_key *ledger, soft_breach *breach, ff_result *out) {
    *breach = (soft_breach){NULL, 0};
    for (size_t i = 0; i < b->count; i++) {
        const charge *c = &b->charges[i];
        int64_t total;
        limit soft;
        if (!count_charge(b, ledger, c, &total)) {
            ff_bad_input(out, "deltas must be whole, and stored counters whole numbers that 64 "
                              "bits can hold");
            return false;
        }
        if (!read_limit(b->limits, SOFT, c, &soft)) {
            refuse_limit(out);
            return false;
        }
        if (!breach->charge && bites(&soft, (double)total)) *breach = (soft_breach){c, soft.value};
    }
    return true;
}

static ff_verdict report_soft_breach(const bill *b, ff_key *definition, const soft_breach *breach,
                                     ff_result *out) {
    const ff_word *dimension = breach->charge->dimension;
    double used;
    if (!ff_hash_increment(definition, W(soft_breach_count), 1, NULL)) return refuse_counter(out);
    ff_hash_number(b->usage, dimension, &used);
    ff_result_add(out, dimension->str);
    ff_result_add_number(out, used);
    ff_result_add_number(out, breach->limit);
    return ff_succeed(out, FF_SOFT_BREACH);
}

static void open_counters(ff_txn *t, bill *b) {
    if (b->count == 0) return;
    b->usage = ff_hash_open(t, b->names.usage);
    b->limits = ff_hash_open(t, b->names.limits);
}

/* Checks, then counts. */
static ff_verdict settle(ff_txn *t, bill *b, ff_result *out) {
    ff_verdict verdict;
    soft_breach breach;
    ff_key *ledger = NULL;
    ff_key *dedup = ff_str_is_set(b->dedup) ? ff_string_open(t, b->dedup) : NULL;
    if (dedup && ff_key_exists(dedup)) return ff_succeed(out, FF_ALREADY_APPLIED);
    open_counters(t, b);
    if (!check_hard(b, out, &verdict)) return verdict;

    if (ff_str_is_set(b->execution_id)) {
        if (!b->names.ledger_index) return ff_bad_input(out, "an execution id needs all five keys");
        if (b->count) ledger = ff_hash_open(t, b->names.ledger);
        ff_set_add(ff_set_open(t, b->names.ledger_index), b->execution_id);
    }
    if (!count_all(b, ledger, &breach, out)) return FF_DISCARD;
    ff_key *definition = ff_hash_open(t, b->names.definition);
    ff_hash_set(definition, W(last_updated_at), b->now);
    if (dedup) ff_string_set(dedup, W(one)->str, DEDUP_TTL_MS);
    return breach.charge ? report_soft_breach(b, definition, &breach, out) : ff_ok(out);
}

ff_verdict ff_budget_report(ff_txn *t, const ff_budget_report_keys *k,
                            const ff_budget_report_args *a, ff_result *out) {
    bill b = {.names = {k->usage, k->limits, k->definition, NULL, NULL}};
    if (!read_count(t, "dim_count", a->dimension_count, a->rest, &b, out)) return FF_DISCARD;
    b.execution_id = NULL;
    for (size_t i = 0; i < b.count; i++) {
        b.charges[i].dimension = ff_field_str(t, a->rest.items[i]);
        b.charges[i].delta_text = a->rest.items[b.count + i];
    }
    return settle(t, &b, out);
}

ff_verdict ff_budget_spend(ff_txn *t, const ff_budget_spend_keys *k, const ff_budget_spend_args *a,
                           ff_result *out) {
    bill b = {.names = *k};
    if (!read_count(t, "pair_count", a->pair_count, a->rest, &b, out)) return FF_DISCARD;
    for (size_t i = 0; i < b.count; i++) {
        b.charges[i].dimension = ff_field_str(t, a->rest.items[2 * i]);
        b.charges[i].delta_text = a->rest.items[2 * i + 1];
    }
    return settle(t, &b, out);
}

/* What is left of a usage when a spend is taken off, never below zero. Whole numbers stay exact. */
static ff_str *taken_off(ff_txn *t, ff_text usage, double used, ff_text spent, double delta) {
    int64_t exact_used;
    int64_t exact_spent;
    if (ff_integer_parse(usage, &exact_used) && ff_integer_parse(spent, &exact_spent) &&
        !__builtin_sub_overflow(exact_used, exact_spent, &exact_used)) {
        return ff_str_integer(t, exact_used > 0 ? exact_used : 0);
    }
    double left = used - delta;
    if (left < 0) left = 0;
    return ff_number_to_integer(left, &exact_used) ? ff_str_integer(t, exact_used)
                                                   : ff_str_number(t, left);
}

static bool give_back(ff_txn *t, ff_str *name, const ff_word *dimension, const ff_str *spent) {
    double delta;
    double used;
    if (!ff_str_to_number(spent, &delta) || !(delta > 0)) return true;
    ff_key *usage = ff_hash_open(t, name);
    if (ff_hash_number(usage, dimension, &used) == FF_NUMBER_BAD) return false;
    ff_text usage_text = ff_str_text(ff_str_or(ff_hash_get(usage, dimension), W(zero)));
    ff_hash_set(usage, dimension, taken_off(t, usage_text, used, ff_str_text(spent), delta));
    return true;
}

ff_verdict ff_budget_release(ff_txn *t, const ff_budget_release_keys *k,
                             const ff_budget_release_args *a, ff_result *out) {
    size_t cursor = 0;
    const ff_word *dimension;
    ff_str *spent;
    if (a->execution_id == NULL) return ff_bad_input(out, "execution_id is missing");
    ff_key *ledger = ff_hash_open(t, k->ledger);
    if (!ff_key_exists(ledger)) return ff_ok_word(out, W(noop));
    while (ff_hash_next(ledger, &cursor, &dimension, &spent)) {
        if (!give_back(t, k->usage, dimension, spent)) return refuse_counter(out);
    }
    ff_key_delete(ledger);
    ff_set_remove(ff_set_open(t, k->ledger_index), a->execution_id);
    return ff_ok_word(out, W(released));
}

static bool mark_reset(ff_key *definition, ff_str *now) {
    if (!ff_hash_increment(definition, W(reset_count), 1, NULL)) return false;
    ff_hash_set(definition, W(last_reset_at), now);
    ff_hash_set(definition, W(last_updated_at), now);
    ff_hash_set_empty(definition, W(last_breach_at));
    ff_hash_set_empty(definition, W(last_breach_dim));
    return true;
}

static void zero_usage(ff_key *usage) {
    size_t cursor = 0;
    const ff_word *dimension;
    ff_str *used;
    while (ff_hash_next(usage, &cursor, &dimension, &used)) {
        ff_hash_set_word(usage, dimension, W(zero));
    }
}

ff_verdict ff_budget_reset(ff_txn *t, const ff_budget_reset_keys *k, const ff_budget_reset_args *a,
                           ff_result *out) {
    double interval;
    due next = {W(zero)->str, 0};
    if (FF_GIVEN(a) < 2) return ff_too_few_arguments(out, "2", FF_GIVEN(a));
    ff_key *definition = ff_hash_open(t, k->definition);
    if (ff_hash_number(definition, W(reset_interval_ms), &interval) == FF_NUMBER_BAD) {
        return ff_not_a_number(out, "reset_interval_ms",
                               ff_hash_get(definition, W(reset_interval_ms)));
    }
    if (interval > 0 && !next_reset(t, a->now, interval, &next, out)) return FF_DISCARD;

    zero_usage(ff_hash_open(t, k->usage));
    if (!mark_reset(definition, a->now)) return refuse_counter(out);
    if (interval > 0) {
        schedule_reset(definition, k->schedule, a->budget_id, &next);
    } else {
        ff_zset_remove(ff_zset_open(t, k->schedule), a->budget_id);
    }
    ff_result_add(out, next.text);
    return ff_ok(out);
}
