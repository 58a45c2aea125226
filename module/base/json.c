#include "base/json.h"

#include "base/number.h"

#include <json-c/json.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* json-c holds the tree and judges the grammar, in its strict mode. Before that, one pass over
 * the text rewrites what JSON-IN allows beyond the standard, and refuses what json-c would let
 * through: numbers become standard decimals, control bytes become escapes, escapes are checked.
 *
 * Two things json-c cannot hold. Its null is no object but a NULL pointer: outside it is
 * `null_value`. Its member names end at a NUL: inside, a NUL in a name is spelled 0x01 0x02, and
 * 0x01 as 0x01 0x01. */

struct ff_json {
    char unused;
};

static ff_json null_value;

enum { NAME_MARK = 1, NAME_MARK_ITSELF = 1, NAME_MARK_NUL = 2, STACK_TEXT = 2048 };

static ff_json *from_tree(struct json_object *object) {
    return object ? (ff_json *)object : &null_value;
}

static struct json_object *to_tree(const ff_json *value) {
    return value == &null_value ? NULL : (struct json_object *)value;
}

/* ---- reading ---- */

typedef struct reader {
    const char *next;
    const char *end;
    ff_buffer out;
    unsigned depth;
    unsigned deepest;
    bool name_expected;
    bool in_object[FF_JSON_DEPTH_MAX + 1];
} reader;

/* What may follow a number: the end of the text, which a NUL is too, blanks, punctuation. */
static bool at_value_end(const reader *in) {
    static const char followers[] = " \t\n\r,]}";
    return in->next == in->end || memchr(followers, *in->next, sizeof(followers)) != NULL;
}

static bool open_container(reader *in, bool object) {
    if (in->depth == FF_JSON_DEPTH_MAX) return false;
    in->in_object[++in->depth] = object;
    if (in->depth > in->deepest) in->deepest = in->depth;
    in->name_expected = object;
    return true;
}

/* Keeps track of where member names are; whether the punctuation makes sense is json-c's to say. */
static bool read_punctuation(reader *in) {
    char byte = *in->next++;
    ff_buffer_append_byte(&in->out, byte);
    if (byte == '{' || byte == '[') return open_container(in, byte == '{');
    if (byte == ',') in->name_expected = in->in_object[in->depth];
    if (byte == ':') in->name_expected = false;
    if (byte == '}' || byte == ']') {
        if (in->depth == 0) return false;
        in->depth--;
        in->name_expected = false;
    }
    return true;
}

static void write_escape(reader *in, unsigned code) {
    char *escape = ff_buffer_reserve(&in->out, 7);
    in->out.len += (size_t)snprintf(escape, 7, "\\u%04x", code & 0xFFFF);
}

static void write_code(reader *in, unsigned code, bool name) {
    if (name && code <= NAME_MARK) {
        write_escape(in, NAME_MARK);
        code = code == 0 ? NAME_MARK_NUL : NAME_MARK_ITSELF;
    }
    write_escape(in, code);
}

/* The four digits after "\u"; -1 when they are not there. */
static int read_hex4(reader *in) {
    if (in->end - in->next < 4) return -1;
    int code = 0;
    for (int i = 0; i < 4; i++) {
        int digit = ff_hex_value(*in->next++);
        if (digit < 0) return -1;
        code = code << 4 | digit;
    }
    return code;
}

static bool read_unicode_escape(reader *in, bool name) {
    int code = read_hex4(in);
    if (code < 0 || (code >= 0xDC00 && code <= 0xDFFF)) return false;
    write_code(in, (unsigned)code, name);
    if (code < 0xD800 || code > 0xDBFF) return true;
    if (in->end - in->next < 2 || in->next[0] != '\\' || in->next[1] != 'u') return false;
    in->next += 2;
    int low = read_hex4(in);
    write_code(in, (unsigned)low, name);
    return low >= 0xDC00 && low <= 0xDFFF;
}

static bool read_escape(reader *in, bool name) {
    if (++in->next == in->end) return false;
    char letter = *in->next++;
    if (letter == 'u') return read_unicode_escape(in, name);
    if (letter == '\0' || !strchr("\"\\/bfnrt", letter)) return false;
    ff_buffer_append(&in->out, (ff_text){(char[]){'\\', letter}, 2});
    return true;
}

/* Bytes of a string up to the next that needs care. */
static void read_plain(reader *in) {
    const char *start = in->next;
    while (in->next < in->end && (unsigned char)*in->next >= 0x20 && *in->next != '"' &&
           *in->next != '\\') {
        in->next++;
    }
    ff_buffer_append(&in->out, (ff_text){start, (size_t)(in->next - start)});
}

static bool read_string(reader *in) {
    bool name = in->name_expected;
    ff_buffer_append_byte(&in->out, *in->next++);
    for (;;) {
        read_plain(in);
        if (in->next == in->end || *in->next == '\0') return false;
        if (*in->next == '"') break;
        if (*in->next == '\\') {
            if (!read_escape(in, name)) return false;
        } else {
            write_code(in, (unsigned char)*in->next++, name);
        }
    }
    ff_buffer_append_byte(&in->out, *in->next++);
    return true;
}

static size_t count_digits(ff_text text, size_t start) {
    size_t position = start;
    while (position < text.len && text.ptr[position] >= '0' && text.ptr[position] <= '9')
        position++;
    return position - start;
}

/* Digits with an optional fraction, written as the standard wants it, and short enough for json-c
 * to read without loss. It keeps integers as such, hence has no -0. */
static bool is_ordinary_number(ff_text text) {
    size_t start = text.ptr[0] == '-' ? 1 : 0;
    size_t whole = count_digits(text, start);
    if (whole == 0 || whole > 15) return false;
    if (text.ptr[start] == '0' && whole > 1) return false;
    size_t position = start + whole;
    if (position == text.len) return !(start == 1 && text.ptr[1] == '0');
    if (text.ptr[position] != '.') return false;
    size_t fraction = count_digits(text, position + 1);
    return fraction > 0 && position + 1 + fraction == text.len;
}

/* How json-c reads what "%.17g" cannot spell, or would spell as an integer; NULL for the rest. */
static const char *special_number(double value) {
    if (isnan(value)) return "NaN";
    if (isinf(value)) return value > 0 ? "1e999" : "-1e999";
    return value == 0 && signbit(value) ? "-0.0" : NULL;
}

static void write_number(reader *in, double value) {
    const char *special = special_number(value);
    if (special) {
        ff_buffer_append(&in->out, ff_text_of(special));
        return;
    }
    char *text = ff_buffer_reserve(&in->out, FF_NUMBER_MAX);
    in->out.len += (size_t)snprintf(text, FF_NUMBER_MAX, "%.17g", value);
}

static bool read_number(reader *in) {
    const char *start = in->next;
    while (!at_value_end(in)) in->next++;
    ff_text text = {start, (size_t)(in->next - start)};
    if (ff_text_trim(text).len < text.len) return false;
    if (is_ordinary_number(text)) {
        ff_buffer_append(&in->out, text);
        return true;
    }
    double value;
    if (!ff_number_parse(text, &value)) return false;
    write_number(in, value);
    return true;
}

static bool read_word(reader *in, ff_text word) {
    ff_text rest = {in->next, (size_t)(in->end - in->next)};
    if (!ff_text_starts_with(rest, word)) return false;
    ff_buffer_append(&in->out, word);
    in->next += word.len;
    return true;
}

static bool read_value(reader *in) {
    char byte = *in->next;
    if (byte == '"') return read_string(in);
    if ((byte >= '0' && byte <= '9') || byte == '-' || byte == '+') return read_number(in);
    if (read_word(in, FF_TEXT("true")) || read_word(in, FF_TEXT("false")) ||
        read_word(in, FF_TEXT("null"))) {
        return true;
    }
    return memchr("iInN", byte, 4) != NULL && read_number(in);
}

static bool read_all(reader *in) {
    while (in->next < in->end && *in->next != '\0') {
        bool fine;
        if (memchr(" \t\n\r", *in->next, 4)) {
            ff_buffer_append_byte(&in->out, *in->next++);
            fine = true;
        } else if (memchr("{}[],:", *in->next, 6)) {
            fine = read_punctuation(in);
        } else {
            fine = read_value(in);
        }
        if (!fine) return false;
    }
    ff_buffer_append_byte(&in->out, '\0');
    return in->out.len <= INT32_MAX;
}

/* `text` ends with a NUL, which tells json-c that nothing follows. */
static ff_json *build_tree(ff_text text, unsigned depth) {
    struct json_tokener *tokener = json_tokener_new_ex((int)depth + 1);
    if (!tokener) return NULL;
    json_tokener_set_flags(tokener, JSON_TOKENER_STRICT);
    struct json_object *tree = json_tokener_parse_ex(tokener, text.ptr, (int)text.len);
    bool fine = json_tokener_get_error(tokener) == json_tokener_success;
    json_tokener_free(tokener);
    return fine ? from_tree(tree) : NULL;
}

ff_json *ff_json_parse(ff_text text) {
    if (text.len == 0) return NULL;
    if (text.len >= 2 && (text.ptr[0] == '\0' || text.ptr[1] == '\0')) return NULL;
    char first[STACK_TEXT];
    ff_arena arena;
    ff_arena_init(&arena, first, sizeof(first));
    reader in;
    in.next = text.ptr;
    in.end = text.ptr + text.len;
    in.depth = in.deepest = 0;
    in.name_expected = in.in_object[0] = false;
    ff_buffer_init(&in.out, &arena);
    ff_buffer_reserve(&in.out, text.len + 1);
    ff_json *value = read_all(&in) ? build_tree(ff_buffer_text(&in.out), in.deepest) : NULL;
    ff_arena_release(&arena);
    return value;
}

void ff_json_free(ff_json *value) {
    if (value) json_object_put(to_tree(value));
}

ff_json_type ff_json_kind(const ff_json *value) {
    if (!value) return FF_JSON_ABSENT;
    struct json_object *object = to_tree(value);
    switch (json_object_get_type(object)) {
    case json_type_null: return FF_JSON_NULL;
    case json_type_boolean: return json_object_get_boolean(object) ? FF_JSON_TRUE : FF_JSON_FALSE;
    case json_type_double:
    case json_type_int: return FF_JSON_NUMBER;
    case json_type_string: return FF_JSON_STRING;
    case json_type_array: return FF_JSON_ARRAY;
    case json_type_object: return FF_JSON_OBJECT;
    }
    return FF_JSON_ABSENT;
}

double ff_json_number(const ff_json *value) {
    return ff_json_kind(value) == FF_JSON_NUMBER ? json_object_get_double(to_tree(value)) : 0;
}

ff_text ff_json_string(const ff_json *value) {
    if (ff_json_kind(value) != FF_JSON_STRING) return FF_TEXT_ABSENT;
    struct json_object *string = to_tree(value);
    return (ff_text){json_object_get_string(string), (size_t)json_object_get_string_len(string)};
}

bool ff_json_to_number(const ff_json *value, double *number) {
    if (ff_json_kind(value) != FF_JSON_NUMBER)
        return ff_number_parse(ff_json_string(value), number);
    *number = ff_json_number(value);
    return true;
}

size_t ff_json_array_length(const ff_json *value) {
    return ff_json_is_array(value) ? json_object_array_length(to_tree(value)) : 0;
}

ff_json *ff_json_at(const ff_json *array, size_t index) {
    if (index >= ff_json_array_length(array)) return NULL;
    return from_tree(json_object_array_get_idx(to_tree(array), index));
}

/* ---- members ---- */

static bool needs_spelling(ff_text name) {
    return ff_text_find(name, NAME_MARK, 0) < name.len || ff_text_find(name, '\0', 0) < name.len;
}

/* A name as json-c holds it, NUL-terminated. */
static const char *spell_name(ff_arena *arena, ff_text name) {
    if (!needs_spelling(name)) return ff_arena_dup(arena, ff_text_or_empty(name)).ptr;
    char *spelled = ff_arena_bytes(arena, 2 * name.len + 1);
    char *next = spelled;
    for (size_t i = 0; i < name.len; i++) {
        char byte = name.ptr[i];
        if (byte == '\0' || byte == NAME_MARK) *next++ = NAME_MARK;
        *next++ = byte == '\0' ? NAME_MARK_NUL : byte;
    }
    *next = '\0';
    return spelled;
}

/* The way back. */
static ff_text read_name(ff_arena *arena, const char *spelled) {
    ff_text name = ff_text_of(spelled);
    if (ff_text_find(name, NAME_MARK, 0) == name.len) return name;
    char *bytes = ff_arena_bytes(arena, name.len);
    size_t len = 0;
    for (size_t i = 0; i < name.len; i++) {
        bool marked = name.ptr[i] == NAME_MARK && i + 1 < name.len;
        if (marked) i++;
        bytes[len++] = marked && name.ptr[i] == NAME_MARK_NUL ? '\0' : name.ptr[i];
    }
    return (ff_text){bytes, len};
}

size_t ff_json_object_length(const ff_json *value) {
    return ff_json_is_object(value) ? (size_t)json_object_object_length(to_tree(value)) : 0;
}

static ff_json *find_member(const ff_json *object, const char *spelled) {
    struct json_object *member;
    if (!ff_json_is_object(object)) return NULL;
    if (!json_object_object_get_ex(to_tree(object), spelled, &member)) return NULL;
    return from_tree(member);
}

ff_json *ff_json_member(const ff_json *object, const char *name) {
    return find_member(object, name);
}

ff_json *ff_json_member_text(const ff_json *object, ff_text name) {
    char first[STACK_TEXT];
    ff_arena arena;
    ff_arena_init(&arena, first, sizeof(first));
    ff_json *member = find_member(object, spell_name(&arena, name));
    ff_arena_release(&arena);
    return member;
}

ff_json_walk ff_json_members(const ff_json *object) {
    ff_json_walk walk = {FF_TEXT_ABSENT, NULL, NULL};
    if (ff_json_is_object(object)) walk.next = json_object_get_object(to_tree(object))->head;
    return walk;
}

bool ff_json_next(ff_json_walk *walk, ff_arena *arena) {
    struct lh_entry *entry = walk->next;
    if (!entry) return false;
    walk->name = read_name(arena, lh_entry_k(entry));
    walk->value = from_tree(lh_entry_v(entry));
    walk->next = entry->next;
    return true;
}

/* ---- making and changing ---- */

ff_json *ff_json_new_null(void) { return &null_value; }

/* json-c answers NULL when memory is out, which would pass for a JSON null. */
static ff_json *made(struct json_object *object) {
    if (!object) abort();
    return from_tree(object);
}

ff_json *ff_json_new_boolean(bool value) { return made(json_object_new_boolean(value)); }

ff_json *ff_json_new_number(double value) { return made(json_object_new_double(value)); }

ff_json *ff_json_new_string(ff_text text) {
    if (text.len > INT32_MAX - 64) abort();
    return made(json_object_new_string_len(text.ptr ? text.ptr : "", (int)text.len));
}

ff_json *ff_json_new_array(void) { return made(json_object_new_array()); }

ff_json *ff_json_new_object(void) { return made(json_object_new_object()); }

ff_json *ff_json_share(ff_json *value) {
    return value ? from_tree(json_object_get(to_tree(value))) : NULL;
}

void ff_json_set(ff_json *object, ff_text name, ff_json *value) {
    char first[STACK_TEXT];
    ff_arena arena;
    ff_arena_init(&arena, first, sizeof(first));
    if (json_object_object_add(to_tree(object), spell_name(&arena, name), to_tree(value))) abort();
    ff_arena_release(&arena);
}

void ff_json_remove(ff_json *object, ff_text name) {
    char first[STACK_TEXT];
    ff_arena arena;
    ff_arena_init(&arena, first, sizeof(first));
    json_object_object_del(to_tree(object), spell_name(&arena, name));
    ff_arena_release(&arena);
}

void ff_json_array_set(ff_json *array, size_t index, ff_json *value) {
    if (json_object_array_put_idx(to_tree(array), index, to_tree(value))) abort();
}

void ff_json_array_append(ff_json *array, ff_json *value) {
    if (json_object_array_add(to_tree(array), to_tree(value))) abort();
}

/* ---- writing ---- */

/* The letter of a two-character escape, or 0. */
static char short_escape(char byte) {
    switch (byte) {
    case '"':
    case '\\':
    case '/': return byte;
    case '\b': return 'b';
    case '\f': return 'f';
    case '\n': return 'n';
    case '\r': return 'r';
    case '\t': return 't';
    default: return 0;
    }
}

static bool is_plain(char byte) {
    return (unsigned char)byte >= 0x20 && byte != 0x7F && byte != '"' && byte != '\\' &&
           byte != '/';
}

static void write_escaped(ff_buffer *buffer, char byte) {
    char letter = short_escape(byte);
    char *room = ff_buffer_reserve(buffer, 8);
    const char *format = letter ? "\\%c" : "\\u%04x";
    int written = snprintf(room, 8, format, letter ? letter : (unsigned char)byte);
    buffer->len += (size_t)written;
}

void ff_json_write_string(ff_buffer *buffer, ff_text text) {
    ff_buffer_append_byte(buffer, '"');
    for (size_t i = 0; i < text.len;) {
        size_t start = i;
        while (i < text.len && is_plain(text.ptr[i])) i++;
        ff_buffer_append(buffer, ff_text_slice(text, start, i));
        if (i < text.len) write_escaped(buffer, text.ptr[i++]);
    }
    ff_buffer_append_byte(buffer, '"');
}

static bool write_value(ff_buffer *buffer, const ff_json *value);

static bool write_finite(ff_buffer *buffer, double value) {
    if (!isfinite(value)) return false;
    char *room = ff_buffer_reserve(buffer, FF_NUMBER_MAX);
    buffer->len += ff_number_format(value, room);
    return true;
}

static bool write_array(ff_buffer *buffer, const ff_json *array) {
    size_t length = ff_json_array_length(array);
    if (length == 0) {
        ff_buffer_append(buffer, FF_TEXT("{}"));
        return true;
    }
    for (size_t i = 0; i < length; i++) {
        ff_buffer_append_byte(buffer, i == 0 ? '[' : ',');
        if (!write_value(buffer, ff_json_at(array, i))) return false;
    }
    ff_buffer_append_byte(buffer, ']');
    return true;
}

static bool write_object(ff_buffer *buffer, const ff_json *object) {
    ff_json_walk walk = ff_json_members(object);
    ff_buffer_append_byte(buffer, '{');
    for (bool first = true; ff_json_next(&walk, buffer->arena); first = false) {
        if (!first) ff_buffer_append_byte(buffer, ',');
        ff_json_write_string(buffer, walk.name);
        ff_buffer_append_byte(buffer, ':');
        if (!write_value(buffer, walk.value)) return false;
    }
    ff_buffer_append_byte(buffer, '}');
    return true;
}

/* The words of null, false and true; absent for other kinds. */
static ff_text word_of(ff_json_type kind) {
    switch (kind) {
    case FF_JSON_NULL: return FF_TEXT("null");
    case FF_JSON_FALSE: return FF_TEXT("false");
    case FF_JSON_TRUE: return FF_TEXT("true");
    default: return FF_TEXT_ABSENT;
    }
}

static bool write_value(ff_buffer *buffer, const ff_json *value) {
    ff_json_type kind = ff_json_kind(value);
    switch (kind) {
    case FF_JSON_NUMBER: return write_finite(buffer, ff_json_number(value));
    case FF_JSON_STRING: ff_json_write_string(buffer, ff_json_string(value)); return true;
    case FF_JSON_ARRAY: return write_array(buffer, value);
    case FF_JSON_OBJECT: return write_object(buffer, value);
    default: ff_buffer_append(buffer, word_of(kind)); return kind != FF_JSON_ABSENT;
    }
}

ff_text ff_json_write(ff_arena *arena, const ff_json *value) {
    ff_buffer buffer;
    ff_buffer_init(&buffer, arena);
    return write_value(&buffer, value) ? ff_buffer_text(&buffer) : FF_TEXT_ABSENT;
}

ff_text ff_json_flat_text(ff_arena *arena, const ff_json *value) {
    ff_json_type kind = ff_json_kind(value);
    switch (kind) {
    case FF_JSON_NULL: return FF_TEXT("userdata: (nil)");
    case FF_JSON_STRING: return ff_json_string(value);
    case FF_JSON_NUMBER: return ff_number_text(arena, ff_json_number(value));
    case FF_JSON_ARRAY:
    case FF_JSON_OBJECT: return ff_json_write(arena, value);
    default: return word_of(kind);
    }
}
