#include "base/options.h"

#include "base/number.h"

#include <inttypes.h>

/* The parser's way through the arguments, and what it needs to say what is wrong. */
typedef struct parser {
    ff_option_table table;
    const ff_text *next;
    const ff_text *end;
    char *destination;
    uint64_t given;
    ff_arena *arena;
    ff_text *error;
} parser;

#define REFUSE(parser, ...) \
    (*(parser)->error = ff_arena_printf((parser)->arena, __VA_ARGS__), false)

static const char *shown(const parser *in, ff_text text) {
    return ff_arena_printable(in->arena, text).ptr;
}

bool ff_argument_integer(const char *name, ff_text text, int64_t min, int64_t max, int64_t *value,
                         ff_arena *arena, ff_text *error) {
    int64_t result;
    if (ff_integer_parse(text, &result) && result >= min && result <= max) {
        *value = result;
        return true;
    }
    const char *got = ff_arena_printable(arena, text).ptr;
    if (min == INT64_MIN && max == INT64_MAX) {
        *error = ff_arena_printf(arena, "%s must be an integer, got: %s", name, got);
    } else {
        *error = ff_arena_printf(
            arena, "%s must be an integer between %" PRId64 " and %" PRId64 ", got: %s", name, min,
            max, got);
    }
    return false;
}

/* "PRIORITY", or "IDEMPOTENT ttl" for a further value. */
static const char *value_name(const parser *in, const char *keyword, const ff_option *row) {
    if (!row->label) return keyword;
    return ff_arena_printf(in->arena, "%s %s", keyword, row->label).ptr;
}

static bool read_integer(parser *in, const char *name, const ff_option *row) {
    int64_t min = row->min;
    int64_t max = row->max;
    if (row->kind == FF_OPTION_INTEGER && min == 0 && max == 0) {
        min = INT64_MIN;
        max = INT64_MAX;
    } else if (row->kind != FF_OPTION_INTEGER && max == 0) {
        max = FF_MILLISECONDS_MAX;
    }
    int64_t *value = (int64_t *)(void *)(in->destination + row->offset);
    return ff_argument_integer(name, *in->next++, min, max, value, in->arena, in->error);
}

static bool read_text(parser *in, const char *name, const ff_option *row) {
    ff_text text = *in->next++;
    if (row->kind == FF_OPTION_NONEMPTY && text.len == 0) {
        return REFUSE(in, "%s must not be empty", name);
    }
    *(ff_text *)(void *)(in->destination + row->offset) = text;
    return true;
}

static ff_text choices_sentence(const parser *in, const ff_option *row) {
    ff_buffer sentence;
    ff_buffer_init(&sentence, in->arena);
    for (size_t i = 0; row->choices[i]; i++) {
        if (i > 0) ff_buffer_append(&sentence, FF_TEXT(", "));
        ff_buffer_append(&sentence, ff_text_of(row->choices[i]));
    }
    return ff_buffer_text(&sentence);
}

static bool read_choice(parser *in, const char *name, const ff_option *row) {
    ff_text text = *in->next++;
    for (int i = 0; row->choices[i]; i++) {
        if (!ff_text_equal_ignoring_case(text, ff_text_of(row->choices[i]))) continue;
        *(int *)(void *)(in->destination + row->offset) = i;
        return true;
    }
    ff_text choices = choices_sentence(in, row);
    return REFUSE(in, "%s must be one of %.*s, got: %s", name, FF_TEXT_ARGS(choices),
                  shown(in, text));
}

static bool read_list(parser *in, const char *name, const ff_option *row) {
    int64_t most = row->max > 0 ? row->max : INT32_MAX;
    int64_t count;
    const char *count_name = ff_arena_printf(in->arena, "the count of %s", name).ptr;
    if (!ff_argument_integer(count_name, *in->next++, row->min, most, &count, in->arena,
                             in->error)) {
        return false;
    }
    size_t values = (size_t)count * (row->kind == FF_OPTION_PAIRS ? 2 : 1);
    size_t left = (size_t)(in->end - in->next);
    if (values > left) {
        return REFUSE(in, "%s announces %zu values, but %zu follow", name, values, left);
    }
    *(ff_text_list *)(void *)(in->destination + row->offset) = (ff_text_list){in->next, values};
    in->next += values;
    return true;
}

static bool read_value(parser *in, const char *keyword, const ff_option *row) {
    if (row->kind == FF_OPTION_FLAG) {
        *(bool *)(in->destination + row->offset) = true;
        return true;
    }
    if (row->kind == FF_OPTION_REST) {
        *(ff_text_list *)(void *)(in->destination + row->offset) =
            (ff_text_list){in->next, (size_t)(in->end - in->next)};
        in->next = in->end;
        return true;
    }
    if (in->next == in->end) {
        return REFUSE(in, "option %s needs %s", keyword, row->label ? row->label : "a value");
    }
    const char *name = value_name(in, keyword, row);
    switch (row->kind) {
    case FF_OPTION_CHOICE: return read_choice(in, name, row);
    case FF_OPTION_LIST:
    case FF_OPTION_PAIRS: return read_list(in, name, row);
    case FF_OPTION_INTEGER:
    case FF_OPTION_DURATION:
    case FF_OPTION_TIME: return read_integer(in, name, row);
    default: return read_text(in, name, row);
    }
}

static bool is_given(const parser *in, size_t row) { return in->given >> row & 1; }

static bool check_group(parser *in, size_t chosen) {
    const ff_option *rows = in->table.rows;
    for (size_t i = 0; i < in->table.count; i++) {
        if (i == chosen || !is_given(in, i) || rows[i].group == 0) continue;
        if (rows[i].group == rows[chosen].group) {
            return REFUSE(in, "options %s and %s exclude each other", rows[i].keyword,
                          rows[chosen].keyword);
        }
    }
    return true;
}

static bool read_option(parser *in) {
    const ff_option *rows = in->table.rows;
    ff_text word = *in->next++;
    size_t row = 0;
    while (
        row < in->table.count &&
        !(rows[row].keyword && ff_text_equal_ignoring_case(word, ff_text_of(rows[row].keyword)))) {
        row++;
    }
    if (row == in->table.count) return REFUSE(in, "unknown option '%s'", shown(in, word));
    const char *keyword = rows[row].keyword;
    if (is_given(in, row)) return REFUSE(in, "option %s given twice", keyword);
    in->given |= UINT64_C(1) << row;
    if (!check_group(in, row) || !read_value(in, keyword, &rows[row])) return false;
    for (row++; row < in->table.count && !rows[row].keyword; row++) {
        if (!read_value(in, keyword, &rows[row])) return false;
    }
    return true;
}

static bool group_is_given(const parser *in, unsigned group) {
    for (size_t i = 0; i < in->table.count; i++) {
        if (in->table.rows[i].group == group && is_given(in, i)) return true;
    }
    return false;
}

static bool refuse_missing_group(parser *in, unsigned group) {
    ff_buffer names;
    ff_buffer_init(&names, in->arena);
    for (size_t i = 0; i < in->table.count; i++) {
        if (in->table.rows[i].group != group || !in->table.rows[i].keyword) continue;
        if (names.len > 0) ff_buffer_append(&names, FF_TEXT(", "));
        ff_buffer_append(&names, ff_text_of(in->table.rows[i].keyword));
    }
    return REFUSE(in, "one of the options %.*s is required", FF_TEXT_ARGS(ff_buffer_text(&names)));
}

static bool check_required(parser *in) {
    for (size_t i = 0; i < in->table.count; i++) {
        const ff_option *row = &in->table.rows[i];
        if (!row->required || !row->keyword || is_given(in, i)) continue;
        if (row->group == 0) return REFUSE(in, "option %s is required", row->keyword);
        if (!group_is_given(in, row->group)) return refuse_missing_group(in, row->group);
    }
    return true;
}

bool ff_options_parse(ff_option_table table, const ff_text *arguments, size_t count,
                      void *destination, uint64_t *given, ff_arena *arena, ff_text *error) {
    parser in = {table, arguments, arguments + count, destination, 0, arena, error};
    while (in.next < in.end) {
        if (!read_option(&in)) return false;
    }
    if (given) *given = in.given;
    return check_required(&in);
}
