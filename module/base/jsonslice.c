#include "base/jsonslice.h"

static bool is_blank(char byte) {
    return byte == ' ' || byte == '\t' || byte == '\n' || byte == '\r';
}

static size_t skip_blanks(ff_text text, size_t at) {
    while (at < text.len && is_blank(text.ptr[at])) at++;
    return at;
}

static size_t skip_string(ff_text text, size_t at) {
    for (at++; at < text.len && text.ptr[at] != '"'; at++) {
        if (text.ptr[at] == '\\') at++;
    }
    return at < text.len ? at + 1 : text.len;
}

static size_t skip_container(ff_text text, size_t at) {
    size_t depth = 0;
    while (at < text.len) {
        char byte = text.ptr[at];
        if (byte == '"') {
            at = skip_string(text, at);
            continue;
        }
        at++;
        if (byte == '{' || byte == '[') depth++;
        if ((byte == '}' || byte == ']') && --depth == 0) break;
    }
    return at;
}

static bool ends_scalar(char byte) {
    return byte == ',' || byte == ']' || byte == '}' || is_blank(byte);
}

static size_t skip_value(ff_text text, size_t at) {
    if (at >= text.len) return text.len;
    if (text.ptr[at] == '"') return skip_string(text, at);
    if (text.ptr[at] == '{' || text.ptr[at] == '[') return skip_container(text, at);
    while (at < text.len && !ends_scalar(text.ptr[at])) at++;
    return at;
}

/* Where the first item of a container begins; the end of the text when it is no such container or empty. */
static size_t enter(ff_text text, char opening, char closing) {
    size_t at = skip_blanks(text, 0);
    if (at == text.len || text.ptr[at] != opening) return text.len;
    at = skip_blanks(text, at + 1);
    return at < text.len && text.ptr[at] == closing ? text.len : at;
}

/* Behind the comma after an item, or the end. */
static size_t pass_comma(ff_text text, size_t at) {
    at = skip_blanks(text, at);
    return at < text.len && text.ptr[at] == ',' ? skip_blanks(text, at + 1) : text.len;
}

ff_text ff_json_slice_member(ff_text object, ff_text name) {
    ff_text found = FF_TEXT_ABSENT;
    size_t at = enter(object, '{', '}');
    while (at < object.len) {
        size_t after_name = skip_string(object, at);
        ff_text spelled = ff_text_slice(object, at + 1, after_name - 1);
        size_t value = skip_blanks(object, skip_blanks(object, after_name) + 1);
        size_t end = skip_value(object, value);
        if (ff_text_equal(spelled, name)) found = ff_text_slice(object, value, end);
        at = pass_comma(object, end);
    }
    return found;
}

bool ff_json_slice_next(ff_text *rest, ff_text *element) {
    /* What is left of an array keeps the comma before its next element, or else begins with its bracket. */
    size_t at = enter(*rest, '[', ']');
    if (at == rest->len) {
        at = skip_blanks(*rest, 0);
        if (at == rest->len || rest->ptr[at] != ',') return false;
        at = skip_blanks(*rest, at + 1);
    }
    size_t end = skip_value(*rest, at);
    *element = ff_text_slice(*rest, at, end);
    *rest = ff_text_slice(*rest, end, rest->len);
    return true;
}
