#include "base/id.h"

#include "base/crc16.h"
#include "base/number.h"

static const ff_text prefixes[FF_FAMILIES] = {
    [FF_FAMILY_FLOW] = {"{fp:", 4},
    [FF_FAMILY_BUDGET] = {"{b:", 3},
    [FF_FAMILY_QUOTA] = {"{q:", 3},
};

size_t ff_tag_format(ff_partition partition, char tag[FF_TAG_MAX]) {
    char number[FF_NUMBER_MAX];
    size_t digits = ff_integer_format(partition.number, number);
    ff_text prefix = prefixes[partition.family];
    memcpy(tag, prefix.ptr, prefix.len);
    memcpy(tag + prefix.len, number, digits);
    memcpy(tag + prefix.len + digits, "}", 2);
    return prefix.len + digits + 1;
}

ff_text ff_tag_text(ff_arena *arena, ff_partition partition) {
    char *tag = ff_arena_bytes(arena, FF_TAG_MAX);
    size_t len = ff_tag_format(partition, tag);
    return (ff_text){tag, len};
}

/* Reads `{<family>:N}` off the front; returns its length, or 0. */
static size_t take_tag(ff_text text, ff_family family, uint16_t *number, bool *shortest) {
    ff_text prefix = prefixes[family];
    if (!ff_text_starts_with(text, prefix)) return 0;
    size_t close = ff_text_find(text, '}', prefix.len);
    if (close == text.len || close == prefix.len) return 0;
    uint32_t value = 0;
    for (size_t i = prefix.len; i < close; i++) {
        char digit = text.ptr[i];
        if (digit < '0' || digit > '9') return 0;
        value = value * 10 + (uint32_t)(digit - '0');
        if (value > UINT16_MAX) return 0;
    }
    *number = (uint16_t)value;
    *shortest = text.ptr[prefix.len] != '0' || close == prefix.len + 1;
    return close + 1;
}

bool ff_tag_parse(ff_text text, ff_partition *partition) {
    for (int family = 0; family < FF_FAMILIES; family++) {
        uint16_t number;
        bool shortest;
        size_t len = take_tag(text, (ff_family)family, &number, &shortest);
        if (len == 0) continue;
        if (len != text.len || !shortest) return false;
        *partition = (ff_partition){(ff_family)family, number};
        return true;
    }
    return false;
}

uint16_t ff_partition_slot(ff_partition partition) {
    char tag[FF_TAG_MAX];
    size_t len = ff_tag_format(partition, tag);
    return ff_crc16_slot((ff_text){tag, len});
}

uint16_t ff_partition_of_uuid(const ff_uuid *uuid, uint16_t count) {
    return (uint16_t)(ff_crc16(uuid->bytes, sizeof(uuid->bytes)) % count);
}

/* What the CRC was sixteen bits before the end: its steps are shifts, and each can be taken back. */
static uint16_t rewind_crc(uint16_t crc) {
    for (int i = 0; i < 16; i++) {
        bool carried = crc & 1;
        crc = (uint16_t)((carried ? crc ^ 0x1021 : crc) >> 1 | (carried ? 0x8000 : 0));
    }
    return crc;
}

void ff_partition_place_uuid(ff_uuid *uuid, uint16_t partition, uint16_t count) {
    uint8_t *last = &uuid->bytes[14];
    unsigned random = (unsigned)last[0] << 8 | last[1];
    unsigned choices = (UINT16_MAX - (unsigned)partition) / count + 1;
    uint16_t crc = (uint16_t)(partition + random % choices * count);
    uint16_t bytes = rewind_crc(crc) ^ ff_crc16(uuid->bytes, 14);
    last[0] = (uint8_t)(bytes >> 8);
    last[1] = (uint8_t)bytes;
}

uint16_t ff_partition_of_id(ff_text id, uint16_t count) {
    ff_uuid uuid;
    return ff_uuid_parse(id, &uuid) ? ff_partition_of_uuid(&uuid, count) : 0;
}

uint16_t ff_partition_of_lane(ff_text lane, uint16_t count) {
    return (uint16_t)(ff_crc16(lane.ptr, lane.len) % count);
}

bool ff_reference_parse(ff_text text, ff_family family, ff_reference *reference) {
    ff_reference result = {.partition.family = family};
    size_t len = take_tag(text, family, &result.partition.number, &result.shortest);
    if (len == 0 || len == text.len || text.ptr[len] != ':') return false;
    result.tag = ff_text_slice(text, 0, len);
    result.id = ff_text_slice(text, len + 1, text.len);
    if (!ff_uuid_parse(result.id, &result.uuid)) return false;
    result.canonical = ff_uuid_is_canonical(result.id);
    *reference = result;
    return true;
}

bool ff_execution_id_parse(ff_text text, ff_reference *reference) {
    return ff_reference_parse(text, FF_FAMILY_FLOW, reference);
}

ff_text ff_reference_text(ff_arena *arena, ff_partition partition, const ff_uuid *uuid) {
    char *text = ff_arena_bytes(arena, FF_TAG_MAX + 1 + FF_UUID_TEXT + 1);
    size_t len = ff_tag_format(partition, text);
    text[len++] = ':';
    ff_uuid_format(uuid, text + len);
    len += FF_UUID_TEXT;
    text[len] = '\0';
    return (ff_text){text, len};
}

bool ff_lane_is_valid(ff_text lane) {
    if (lane.len < 1 || lane.len > 64) return false;
    for (size_t i = 0; i < lane.len; i++) {
        if (lane.ptr[i] < 0x20 || lane.ptr[i] > 0x7E) return false;
    }
    return true;
}
