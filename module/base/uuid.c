#include "base/uuid.h"

static bool has_hyphen_before(size_t byte) {
    return byte == 4 || byte == 6 || byte == 8 || byte == 10;
}

enum { NO_DIGIT = 0x80 };

/* The value of each hex digit, either case: every id that comes in is read with them. */
static uint8_t values[256];

__attribute__((constructor)) static void make_values(void) {
    for (int byte = 0; byte < 256; byte++) {
        int value = ff_hex_value((char)byte);
        values[byte] = (uint8_t)(value < 0 ? NO_DIGIT : value);
    }
}

bool ff_uuid_parse(ff_text text, ff_uuid *uuid) {
    if (!text.ptr || (text.len != FF_UUID_TEXT && text.len != FF_UUID_SIMPLE_TEXT)) return false;
    bool hyphenated = text.len == FF_UUID_TEXT;
    const char *next = text.ptr;
    uint8_t seen = 0;
    ff_uuid result;
    for (size_t i = 0; i < sizeof(result.bytes); i++) {
        if (hyphenated && has_hyphen_before(i) && *next++ != '-') return false;
        uint8_t high = values[(uint8_t)next[0]];
        uint8_t low = values[(uint8_t)next[1]];
        seen |= high | low;
        result.bytes[i] = (uint8_t)(high << 4 | low);
        next += 2;
    }
    if (seen & NO_DIGIT) return false;
    *uuid = result;
    return true;
}

void ff_uuid_format(const ff_uuid *uuid, char text[FF_UUID_TEXT]) {
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < sizeof(uuid->bytes); i++) {
        if (has_hyphen_before(i)) *text++ = '-';
        *text++ = digits[uuid->bytes[i] >> 4];
        *text++ = digits[uuid->bytes[i] & 15];
    }
}

ff_uuid ff_uuid_v4(const uint8_t random[16]) {
    ff_uuid uuid;
    memcpy(uuid.bytes, random, sizeof(uuid.bytes));
    uuid.bytes[6] = (uint8_t)((uuid.bytes[6] & 0x0f) | 0x40);
    uuid.bytes[8] = (uint8_t)((uuid.bytes[8] & 0x3f) | 0x80);
    return uuid;
}

bool ff_uuid_is_canonical(ff_text text) {
    ff_uuid uuid;
    if (text.len != FF_UUID_TEXT || !ff_uuid_parse(text, &uuid)) return false;
    bool upper = false;
    for (size_t i = 0; i < FF_UUID_TEXT; i++) upper |= text.ptr[i] >= 'A' && text.ptr[i] <= 'F';
    return !upper;
}
