#include "base/capability.h"

#include <stdint.h>
#include <stdlib.h>

const char *ff_capability_problem_word(ff_capability_problem problem) {
    static const char *const words[] = {
        [FF_CAPABILITY_FINE] = "",
        [FF_CAPABILITY_EMPTY_TOKEN] = "empty_token",
        [FF_CAPABILITY_COMMA_IN_TOKEN] = "comma_in_token",
        [FF_CAPABILITY_CONTROL_OR_WHITESPACE] = "control_or_whitespace",
        [FF_CAPABILITY_TOO_MANY_TOKENS] = "too_many_tokens",
        [FF_CAPABILITY_TOO_MANY_BYTES] = "too_many_bytes",
    };
    return words[problem];
}

static int compare_tokens(const void *a, const void *b) {
    return ff_text_compare(*(const ff_text *)a, *(const ff_text *)b);
}

/* Stored lists are in order already, so look before sorting. */
static void sort_tokens(ff_text *tokens, size_t count) {
    for (size_t i = 1; i < count; i++) {
        if (ff_text_compare(tokens[i - 1], tokens[i]) <= 0) continue;
        qsort(tokens, count, sizeof(tokens[0]), compare_tokens);
        return;
    }
}

static ff_capability_set make_set(ff_text *tokens, size_t count) {
    sort_tokens(tokens, count);
    size_t distinct = 0;
    for (size_t i = 0; i < count; i++) {
        if (distinct > 0 && ff_text_equal(tokens[distinct - 1], tokens[i])) continue;
        tokens[distinct++] = tokens[i];
    }
    return (ff_capability_set){tokens, distinct};
}

ff_capability_problem ff_capability_parse(ff_arena *arena, ff_text csv, ff_capability_set *set) {
    *set = (ff_capability_set){NULL, 0};
    if (csv.len == 0) return FF_CAPABILITY_FINE;
    if (csv.len > FF_CAPABILITY_BYTES_MAX) return FF_CAPABILITY_TOO_MANY_BYTES;
    ff_text tokens[FF_CAPABILITY_TOKENS_MAX];
    size_t count = 0;
    for (ff_text piece; ff_text_split(&csv, ',', &piece);) {
        if (piece.len == 0) continue;
        if (count == FF_CAPABILITY_TOKENS_MAX) return FF_CAPABILITY_TOO_MANY_TOKENS;
        tokens[count++] = piece;
    }
    if (count == 0) return FF_CAPABILITY_FINE;
    ff_text *kept = ff_arena_array(arena, count, sizeof(tokens[0]));
    memcpy(kept, tokens, count * sizeof(tokens[0]));
    *set = make_set(kept, count);
    return FF_CAPABILITY_FINE;
}

/* The position in `set`, from `start` on, where `token` is or would be. */
static size_t seek(const ff_capability_set *set, size_t start, ff_text token, bool *found) {
    int order = -1;
    while (start < set->count && (order = ff_text_compare(set->tokens[start], token)) < 0) start++;
    *found = start < set->count && order == 0;
    return start;
}

bool ff_capability_covers(const ff_capability_set *worker, const ff_capability_set *required) {
    size_t position = 0;
    bool found = true;
    for (size_t i = 0; found && i < required->count; i++) {
        position = seek(worker, position, required->tokens[i], &found);
    }
    return found;
}

static void append_token(ff_buffer *csv, ff_text token) {
    if (csv->len > 0) ff_buffer_append_byte(csv, ',');
    ff_buffer_append(csv, token);
}

ff_text ff_capability_missing(ff_arena *arena, const ff_capability_set *required,
                              const ff_capability_set *worker) {
    ff_buffer csv;
    ff_buffer_init(&csv, arena);
    size_t position = 0;
    for (size_t i = 0; i < required->count; i++) {
        bool found;
        position = seek(worker, position, required->tokens[i], &found);
        if (!found) append_token(&csv, required->tokens[i]);
    }
    return ff_buffer_text(&csv);
}

static ff_text join_tokens(ff_arena *arena, const ff_text *tokens, size_t count) {
    ff_buffer csv;
    ff_buffer_init(&csv, arena);
    for (size_t i = 0; i < count; i++) append_token(&csv, tokens[i]);
    return ff_buffer_text(&csv);
}

ff_text ff_capability_csv(ff_arena *arena, const ff_capability_set *set) {
    return join_tokens(arena, set->tokens, set->count);
}

ff_capability_problem ff_capability_check_token(ff_text token) {
    if (token.len == 0) return FF_CAPABILITY_EMPTY_TOKEN;
    if (ff_text_find(token, ',', 0) < token.len) return FF_CAPABILITY_COMMA_IN_TOKEN;
    for (size_t i = 0; i < token.len; i++) {
        unsigned char byte = (unsigned char)token.ptr[i];
        if (byte <= 0x20 || byte == 0x7F) return FF_CAPABILITY_CONTROL_OR_WHITESPACE;
    }
    return FF_CAPABILITY_FINE;
}

/* Length that the first byte of a UTF-8 sequence announces; 0 for one that cannot be first. */
static size_t sequence_length(unsigned char first) {
    if (first < 0x80) return 1;
    if (first >= 0xC2 && first <= 0xDF) return 2;
    if (first >= 0xE0 && first <= 0xEF) return 3;
    if (first >= 0xF0 && first <= 0xF4) return 4;
    return 0;
}

/* Decodes one code point; returns the bytes it takes, or 0 when they are not valid UTF-8. */
static size_t decode_utf8(ff_text text, uint32_t *code_point) {
    static const uint32_t lowest[] = {0, 0, 0x80, 0x800, 0x10000};
    unsigned char first = (unsigned char)text.ptr[0];
    size_t length = sequence_length(first);
    if (length == 0 || length > text.len) return 0;
    uint32_t value = length == 1 ? first : first & (0xFFu >> (length + 1));
    for (size_t i = 1; i < length; i++) {
        unsigned char byte = (unsigned char)text.ptr[i];
        if ((byte & 0xC0) != 0x80) return 0;
        value = value << 6 | (byte & 0x3Fu);
    }
    bool surrogate = value >= 0xD800 && value <= 0xDFFF;
    if (value < lowest[length] || value > 0x10FFFF || surrogate) return 0;
    *code_point = value;
    return length;
}

/* A C1 control, or of the property White_Space beyond ASCII. */
static bool is_control_or_white(uint32_t code_point) {
    return (code_point >= 0x80 && code_point <= 0xA0) || code_point == 0x1680 ||
           (code_point >= 0x2000 && code_point <= 0x200A) || code_point == 0x2028 ||
           code_point == 0x2029 || code_point == 0x202F || code_point == 0x205F ||
           code_point == 0x3000;
}

ff_capability_problem ff_capability_check_worker_token(ff_text token) {
    ff_capability_problem problem = ff_capability_check_token(token);
    if (problem) return problem;
    bool suspicious = false;
    while (token.len > 0) {
        uint32_t code_point;
        size_t length = decode_utf8(token, &code_point);
        if (length == 0) return FF_CAPABILITY_FINE;
        suspicious |= is_control_or_white(code_point);
        token = ff_text_slice(token, length, token.len);
    }
    return suspicious ? FF_CAPABILITY_CONTROL_OR_WHITESPACE : FF_CAPABILITY_FINE;
}

ff_capability_problem ff_capability_required_csv(ff_arena *arena, const ff_text *tokens,
                                                 size_t count, ff_text *csv) {
    size_t bytes = count ? count - 1 : 0;
    for (size_t i = 0; i < count; i++) {
        ff_capability_problem problem = ff_capability_check_token(tokens[i]);
        if (problem) return problem;
        bytes += tokens[i].len;
    }
    if (count > FF_CAPABILITY_TOKENS_MAX) return FF_CAPABILITY_TOO_MANY_TOKENS;
    if (bytes > FF_CAPABILITY_BYTES_MAX) return FF_CAPABILITY_TOO_MANY_BYTES;
    ff_text sorted[FF_CAPABILITY_TOKENS_MAX];
    if (count > 0) memcpy(sorted, tokens, count * sizeof(tokens[0]));
    sort_tokens(sorted, count);
    *csv = join_tokens(arena, sorted, count);
    return FF_CAPABILITY_FINE;
}

static size_t csv_length(const ff_capability_set *set) {
    size_t bytes = set->count ? set->count - 1 : 0;
    for (size_t i = 0; i < set->count; i++) bytes += set->tokens[i].len;
    return bytes;
}

ff_capability_problem ff_capability_parse_worker(ff_arena *arena, ff_text csv,
                                                 ff_capability_set *set) {
    *set = (ff_capability_set){NULL, 0};
    if (csv.len == 0) return FF_CAPABILITY_FINE;
    size_t pieces = 1;
    for (size_t i = 0; i < csv.len; i++) pieces += csv.ptr[i] == ',';
    ff_text *tokens = ff_arena_array(arena, pieces, sizeof(ff_text));
    for (size_t i = 0; ff_text_split(&csv, ',', &tokens[i]); i++) {
        ff_capability_problem problem = ff_capability_check_worker_token(tokens[i]);
        if (problem) return problem;
        if (i + 1 == pieces) break;
    }
    ff_capability_set distinct = make_set(tokens, pieces);
    if (distinct.count > FF_CAPABILITY_TOKENS_MAX) return FF_CAPABILITY_TOO_MANY_TOKENS;
    if (csv_length(&distinct) > FF_CAPABILITY_BYTES_MAX) return FF_CAPABILITY_TOO_MANY_BYTES;
    *set = distinct;
    return FF_CAPABILITY_FINE;
}
