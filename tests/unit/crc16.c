#include "base/crc16.h"

#include "unit.h"

Test(crc16, check_value) {
    cr_expect(ff_crc16("123456789", 9) == 0x31C3);
    cr_expect(ff_crc16("", 0) == 0);
    cr_expect(ff_crc16(NULL, 0) == 0);
}

/* Bit by bit, as the definition has it. */
static uint16_t slow_crc16(const unsigned char *data, size_t len) {
    unsigned crc = 0;
    for (size_t i = 0; i < len; i++) {
        crc ^= (unsigned)data[i] << 8;
        for (int bit = 0; bit < 8; bit++)
            crc = (crc & 0x8000 ? crc << 1 ^ 0x1021 : crc << 1) & 0xFFFF;
    }
    return (uint16_t)crc;
}

Test(crc16, agrees_with_the_definition) {
    uint64_t seed = 7;
    for (size_t len = 0; len < 300; len++) {
        unsigned char data[300] = {0};
        for (size_t i = 0; i < len; i++) data[i] = (unsigned char)unit_random(&seed);
        cr_assert(ff_crc16(data, len) == slow_crc16(data, len));
    }
}

Test(crc16, slots) {
    cr_expect(ff_crc16_slot(FF_TEXT("foo")) == 12182);
    cr_expect(ff_crc16_slot(FF_TEXT("{foo}bar")) == 12182);
    cr_expect(ff_crc16_slot(FF_TEXT("x{foo}{bar}")) == 12182);
    cr_expect(ff_crc16_slot(FF_TEXT("{}foo")) == (ff_crc16("{}foo", 5) & 16383));
    cr_expect(ff_crc16_slot(FF_TEXT("{foo")) == (ff_crc16("{foo", 4) & 16383));
    cr_expect(ff_crc16_slot(FF_TEXT("}foo{")) == (ff_crc16("}foo{", 5) & 16383));
    cr_expect(ff_crc16_slot(FF_TEXT("{{foo}}")) == (ff_crc16("{foo", 4) & 16383));
    cr_expect(ff_crc16_slot(FF_TEXT("")) == 0);
}
