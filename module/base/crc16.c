#include "base/crc16.h"

/* The CRC of each value of the upper four bits: two steps per byte, in a table that stays in
 * cache. */
static const uint16_t nibbles[16] = {
    0x0000, 0x1021, 0x2042, 0x3063, 0x4084, 0x50a5, 0x60c6, 0x70e7,
    0x8108, 0x9129, 0xa14a, 0xb16b, 0xc18c, 0xd1ad, 0xe1ce, 0xf1ef,
};

static uint16_t step(uint16_t crc, unsigned nibble) {
    return (uint16_t)((uint16_t)(crc << 4) ^ nibbles[(crc >> 12) ^ nibble]);
}

uint16_t ff_crc16(const void *data, size_t len) {
    const unsigned char *bytes = data;
    uint16_t crc = 0;
    for (size_t i = 0; i < len; i++) {
        crc = step(crc, bytes[i] >> 4);
        crc = step(crc, bytes[i] & 15u);
    }
    return crc;
}

uint16_t ff_crc16_slot(ff_text key) {
    size_t open = ff_text_find(key, '{', 0);
    size_t close = ff_text_find(key, '}', open);
    if (close < key.len && close > open + 1) key = ff_text_slice(key, open + 1, close);
    return ff_crc16(key.ptr, key.len) & 16383u;
}
