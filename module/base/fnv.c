#include "base/fnv.h"

uint64_t ff_fnv1a(ff_text text) {
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < text.len; i++) {
        hash ^= (unsigned char)text.ptr[i];
        hash *= UINT64_C(0x100000001b3);
    }
    return hash;
}

uint16_t ff_fnv1a_mod(ff_text text, uint16_t modulus) {
    return (uint16_t)((uint16_t)ff_fnv1a(text) % modulus);
}

void ff_fnv1a_digest(ff_text text, char hex[8]) {
    uint64_t hash = ff_fnv1a(text);
    uint32_t folded = (uint32_t)(hash >> 32) ^ (uint32_t)hash;
    for (int i = 0; i < 8; i++) {
        hex[i] = "0123456789abcdef"[folded >> 28];
        folded <<= 4;
    }
}
