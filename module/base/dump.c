#include "base/dump.h"

#include <stdint.h>
#include <string.h>

#include "base/number.h"

enum {
    HASH_LISTPACK = 16, /* the RDB's names for the types */
    STREAM_LISTPACKS = 21,
    RDB_VERSION = 11, /* the oldest that a server we run on writes; newer ones read it */
    HEADER = 6,       /* total bytes, number of entries */
    ENTRY_EXTRA = 12, /* at most, around the bytes of a text: its encoding and its back length */
    FRAME = 192,      /* at most, what is not for texts */
    SAME_FIELDS = 2,  /* flag of a stream's entry */
    END = 0xFF,
    COUNT_UNKNOWN = 0xFFFF,
};

/* ---- The checksum: CRC-64 with the Jones polynomial, eight bytes at a time ---- */

static uint64_t crc_tables[8][256];

__attribute__((constructor)) static void make_crc_tables(void) {
    for (unsigned byte = 0; byte < 256; byte++) {
        uint64_t crc = byte;
        for (int bit = 0; bit < 8; bit++) {
            crc = crc & 1 ? crc >> 1 ^ UINT64_C(0x95ac9329ac4bc9b5) : crc >> 1;
        }
        crc_tables[0][byte] = crc;
    }
    for (unsigned byte = 0; byte < 256; byte++) {
        for (int i = 1; i < 8; i++) {
            uint64_t crc = crc_tables[i - 1][byte];
            crc_tables[i][byte] = crc_tables[0][crc & 0xff] ^ crc >> 8;
        }
    }
}

static uint64_t crc64(const unsigned char *bytes, size_t length) {
    uint64_t crc = 0;
    for (; length >= 8; bytes += 8, length -= 8) {
        uint64_t next;
        memcpy(&next, bytes, sizeof next);
        crc ^= next;
        uint64_t sum = 0;
#pragma GCC unroll 8
        for (int i = 0; i < 8; i++) sum ^= crc_tables[7 - i][crc >> (8 * i) & 0xff];
        crc = sum;
    }
    while (length--) crc = crc_tables[0][(crc ^ *bytes++) & 0xff] ^ crc >> 8;
    return crc;
}

/* ---- Entries ---- */

static unsigned char *put_little_endian(unsigned char *to, uint64_t value, int bytes) {
    for (int i = 0; i < bytes; i++) *to++ = (unsigned char)(value >> (8 * i));
    return to;
}

static unsigned char *put_integer(unsigned char *to, int64_t value) {
    uint64_t bits = (uint64_t)value;
    if (value >= 0 && value <= 127) {
        *to++ = (unsigned char)value;
    } else if (value >= -4096 && value <= 4095) {
        *to++ = (unsigned char)(0xC0 | (bits >> 8 & 0x1F));
        *to++ = (unsigned char)bits;
    } else if (value >= INT16_MIN && value <= INT16_MAX) {
        *to++ = 0xF1;
        to = put_little_endian(to, bits, 2);
    } else if (value >= -8388608 && value <= 8388607) {
        *to++ = 0xF2;
        to = put_little_endian(to, bits, 3);
    } else if (value >= INT32_MIN && value <= INT32_MAX) {
        *to++ = 0xF3;
        to = put_little_endian(to, bits, 4);
    } else {
        *to++ = 0xF4;
        to = put_little_endian(to, bits, 8);
    }
    return to;
}

static unsigned char *put_text(unsigned char *to, ff_text text) {
    if (text.len < 64) {
        *to++ = (unsigned char)(0x80 | text.len);
    } else {
        *to++ = (unsigned char)(0xE0 | text.len >> 8);
        *to++ = (unsigned char)text.len;
    }
    if (text.len) memcpy(to, text.ptr, text.len);
    return to + text.len;
}

/* The length of an entry again, behind it, readable backwards. */
static unsigned char *put_back_length(unsigned char *to, size_t length) {
    if (length < 128) {
        *to++ = (unsigned char)length;
    } else {
        *to++ = (unsigned char)(length >> 7);
        *to++ = (unsigned char)(128 | (length & 127));
    }
    return to;
}

/* Numbers are kept as such, in the forms that the server chooses. */
static unsigned char *put_entry(unsigned char *to, ff_text text) {
    unsigned char *start = to;
    int64_t integer;
    bool maybe_integer = text.len - 1 < 20 && (unsigned char)text.ptr[0] <= '9';
    if (maybe_integer && ff_integer_parse(text, &integer)) {
        to = put_integer(to, integer);
    } else {
        to = put_text(to, text);
    }
    return put_back_length(to, (size_t)(to - start));
}

static unsigned char *end_listpack(unsigned char *start, unsigned char *to, size_t count) {
    *to++ = END;
    put_little_endian(start, (uint64_t)(to - start), 4);
    put_little_endian(start + 4, count < COUNT_UNKNOWN ? count : COUNT_UNKNOWN, 2);
    return to;
}

static unsigned char *put_number(unsigned char *to, int64_t value) {
    unsigned char *start = to;
    to = put_integer(to, value);
    return put_back_length(to, (size_t)(to - start));
}

/* Every other text, beginning with the first. */
static unsigned char *put_every_other(unsigned char *to, const ff_text *texts, size_t count) {
    for (size_t i = 0; i < count; i += 2) to = put_entry(to, texts[i]);
    return to;
}

/* ---- The file around them ---- */

static unsigned char *put_big_endian(unsigned char *to, uint64_t value, int bytes) {
    while (bytes--) *to++ = (unsigned char)(value >> (8 * bytes));
    return to;
}

static unsigned char *put_id(unsigned char *to, uint64_t ms, uint64_t seq) {
    return put_big_endian(put_big_endian(to, ms, 8), seq, 8);
}

static unsigned char *put_length(unsigned char *to, uint64_t value) {
    if (value < 64) {
        *to++ = (unsigned char)value;
        return to;
    }
    *to++ = 0x81; /* eight bytes follow; the server takes the longest form for any value */
    return put_big_endian(to, value, 8);
}

/* The listpack as a string: its length is known once it is there. */
static unsigned char *begin_string(unsigned char *to) {
    *to++ = 0x80; /* a length of four bytes follows, the highest first */
    return to + 4;
}

static void end_string(unsigned char *start, const unsigned char *to) {
    put_big_endian(start - 4, (uint64_t)(to - start), 4);
}

static unsigned char *begin(ff_arena *arena, unsigned char type, const ff_text *texts,
                            size_t count) {
    size_t room = FRAME;
    for (size_t i = 0; i < count; i++) room += texts[i].len + ENTRY_EXTRA;
    unsigned char *payload = (unsigned char *)ff_arena_bytes(arena, room);
    payload[0] = type;
    return payload;
}

static ff_text end(unsigned char *payload, unsigned char *to) {
    to = put_little_endian(to, RDB_VERSION, 2);
    to = put_little_endian(to, crc64(payload, (size_t)(to - payload)), 8);
    return ff_text_make((const char *)payload, (size_t)(to - payload));
}

ff_text ff_dump_hash(ff_arena *arena, const ff_text *texts, size_t count) {
    unsigned char *payload = begin(arena, HASH_LISTPACK, texts, count);
    unsigned char *listpack = begin_string(payload + 1);
    unsigned char *to = listpack + HEADER;
    for (size_t i = 0; i < count; i++) to = put_entry(to, texts[i]);
    to = end_listpack(listpack, to, count);
    end_string(listpack, to);
    return end(payload, to);
}

/* A node of a stream names the fields of its first entry once, in front; that entry itself has only the
 * values, between its flags and distance from the node's id, and its length. */
static unsigned char *put_node(unsigned char *to, const ff_text *texts, size_t count) {
    unsigned char *start = to;
    int64_t pairs = (int64_t)(count / 2);
    to = put_number(to + HEADER, 1); /* entries that are there, and deleted ones */
    to = put_number(put_number(to, 0), pairs);
    to = put_number(put_every_other(to, texts, count), 0);
    to = put_number(put_number(put_number(to, SAME_FIELDS), 0), 0);
    to = put_number(put_every_other(to, texts + 1, count), pairs + 3);
    return end_listpack(start, to, count + 8);
}

ff_text ff_dump_stream(ff_arena *arena, uint64_t ms, const ff_text *texts, size_t count) {
    unsigned char *payload = begin(arena, STREAM_LISTPACKS, texts, count);
    unsigned char *to = put_length(payload + 1, 1);
    *to++ = 16; /* the bytes of the node's id */
    unsigned char *listpack = begin_string(put_id(to, ms, 0));
    to = put_node(listpack, texts, count);
    end_string(listpack, to);
    to = put_length(to, 1);                 /* entries */
    to = put_length(put_length(to, ms), 0); /* the last one's id */
    to = put_length(put_length(to, ms), 0); /* the first one's */
    to = put_length(put_length(to, 0), 0);  /* the highest that was deleted */
    to = put_length(to, 1);                 /* entries ever added */
    return end(payload, put_length(to, 0)); /* consumer groups */
}
