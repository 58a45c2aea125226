#include "base/id.h"

#include "base/crc16.h"
#include "unit.h"

#define UUID "f10f0004-0000-4000-8000-000000000001"

Test(id, tags) {
    unit_arena unit;
    ff_arena *arena = unit_arena_open(&unit);
    expect_text(ff_tag_text(arena, (ff_partition){FF_FAMILY_FLOW, 7}), "{fp:7}");
    expect_text(ff_tag_text(arena, (ff_partition){FF_FAMILY_FLOW, 65535}), "{fp:65535}");
    expect_text(ff_tag_text(arena, (ff_partition){FF_FAMILY_BUDGET, 0}), "{b:0}");
    expect_text(ff_tag_text(arena, (ff_partition){FF_FAMILY_QUOTA, 31}), "{q:31}");
    char tag[FF_TAG_MAX];
    cr_expect(ff_tag_format((ff_partition){FF_FAMILY_FLOW, 65535}, tag) == 10 && tag[10] == '\0');
    ff_arena_release(arena);
}

Test(id, every_tag_reads_back_the_same) {
    for (int family = 0; family < FF_FAMILIES; family++) {
        for (unsigned number = 0; number <= UINT16_MAX; number++) {
            char tag[FF_TAG_MAX];
            size_t len = ff_tag_format((ff_partition){(ff_family)family, (uint16_t)number}, tag);
            ff_partition back;
            cr_assert(ff_tag_parse((ff_text){tag, len}, &back));
            cr_assert(back.family == (ff_family)family && back.number == number);
        }
    }
}

Test(id, what_is_no_tag) {
    static const char *const bad[] = {"",           "{",
                                      "{}",         "{fp}",
                                      "{fp:}",      "{fp:7",
                                      "{fp:7}x",    "x{fp:7}",
                                      "{fp:07}",    "{fp:00}",
                                      "{fp:+7}",    "{fp:-7}",
                                      "{fp:65536}", "{fp: 7}",
                                      "{fp:7 }",    "{FP:7}",
                                      "{p:7}",      "{fp:7}:",
                                      "fp:7",       "{b:}",
                                      "{q:x}",      "{fp:99999999999999999999}"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        ff_partition partition;
        cr_expect(!ff_tag_parse(ff_text_of(bad[i]), &partition), "%s", bad[i]);
    }
    ff_partition partition;
    cr_expect(!ff_tag_parse(FF_TEXT_ABSENT, &partition));
}

Test(id, slot_of_a_partition) {
    cr_expect(ff_partition_slot((ff_partition){FF_FAMILY_FLOW, 7}) ==
              (ff_crc16("fp:7", 4) & 16383));
    cr_expect(ff_partition_slot((ff_partition){FF_FAMILY_QUOTA, 3}) ==
              (ff_crc16("q:3", 3) & 16383));
}

Test(id, partition_of_ids) {
    ff_uuid uuid;
    cr_assert(ff_uuid_parse(FF_TEXT(UUID), &uuid));
    uint16_t crc = ff_crc16(uuid.bytes, 16);
    cr_expect(ff_partition_of_uuid(&uuid, 256) == crc % 256);
    cr_expect(ff_partition_of_id(FF_TEXT(UUID), 32) == crc % 32);
    cr_expect(ff_partition_of_id(FF_TEXT("F10F000400004000800000000000"
                                         "0001"),
                                 32) == crc % 32);
    cr_expect(ff_partition_of_id(FF_TEXT(UUID), 1) == 0);
    cr_expect(ff_partition_of_id(FF_TEXT("my-budget"), 32) == 0);
    cr_expect(ff_partition_of_id(FF_TEXT(""), 32) == 0);
    cr_expect(ff_partition_of_lane(FF_TEXT("123456789"), 256) == 0xC3);
}

Test(id, execution_ids) {
    ff_reference id;
    cr_assert(ff_execution_id_parse(FF_TEXT("{fp:7}:" UUID), &id));
    cr_expect(id.partition.family == FF_FAMILY_FLOW && id.partition.number == 7);
    cr_expect(id.shortest && id.canonical);
    expect_text(id.tag, "{fp:7}");
    expect_text(id.id, UUID);
    cr_assert(ff_execution_id_parse(FF_TEXT("{fp:0}:" UUID), &id));
    cr_expect(id.shortest && id.partition.number == 0);
    cr_assert(ff_execution_id_parse(FF_TEXT("{fp:07}:" UUID), &id));
    cr_expect(!id.shortest && id.partition.number == 7);
    cr_assert(ff_execution_id_parse(FF_TEXT("{fp:00}:" UUID), &id));
    cr_expect(!id.shortest && id.partition.number == 0);
    cr_assert(ff_execution_id_parse(FF_TEXT("{fp:65535}:f10f0004000040008000000000000001"), &id));
    cr_expect(id.shortest && !id.canonical && id.partition.number == 65535);
    cr_assert(ff_execution_id_parse(FF_TEXT("{fp:1}:F10F0004-0000-4000-8000-000000000001"), &id));
    cr_expect(!id.canonical);
}

Test(id, what_is_no_execution_id) {
    static const char *const bad[] = {
        "",
        UUID,
        "{fp:7}",
        "{fp:7}:",
        "{fp:7}" UUID,
        "{fp:7}::" UUID,
        "{fp:65536}:" UUID,
        "{fp:}:" UUID,
        "{fp:-1}:" UUID,
        "{fp:+1}:" UUID,
        "{fp:1:" UUID,
        "{b:1}:" UUID,
        "{fp:1}:x",
        "{fp:1}:" UUID " ",
        " {fp:1}:" UUID,
        "{fp:1}}:" UUID,
        "{{fp:1}:" UUID,
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        ff_reference id;
        ff_text exact = unit_exact(ff_text_of(bad[i]));
        cr_expect(!ff_execution_id_parse(exact, &id), "%s", bad[i]);
        unit_exact_free(exact);
    }
    ff_reference id;
    cr_expect(!ff_execution_id_parse(FF_TEXT_ABSENT, &id));
}

Test(id, references_of_each_family) {
    unit_arena unit;
    ff_arena *arena = unit_arena_open(&unit);
    ff_reference reference;
    cr_assert(ff_reference_parse(FF_TEXT("{b:31}:" UUID), FF_FAMILY_BUDGET, &reference));
    cr_expect(reference.partition.family == FF_FAMILY_BUDGET && reference.partition.number == 31);
    cr_expect(!ff_reference_parse(FF_TEXT("{b:31}:" UUID), FF_FAMILY_QUOTA, &reference));
    cr_assert(ff_reference_parse(FF_TEXT("{q:2}:" UUID), FF_FAMILY_QUOTA, &reference));
    expect_text(ff_reference_text(arena, reference.partition, &reference.uuid), "{q:2}:" UUID);
    ff_arena_release(arena);
}

Test(id, places_ids) {
    const uint16_t counts[] = {1, 2, 7, 256, 1000, 32768, 65535};
    uint32_t random = 1;
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        for (int round = 0; round < 2000; round++) {
            uint8_t bytes[16];
            for (size_t b = 0; b < sizeof(bytes); b++) {
                random = random * 1664525u + 1013904223u;
                bytes[b] = (uint8_t)(random >> 24);
            }
            ff_uuid uuid = ff_uuid_v4(bytes);
            ff_uuid before = uuid;
            uint16_t partition = (uint16_t)((random >> 8) % counts[i]);
            ff_partition_place_uuid(&uuid, partition, counts[i]);
            cr_assert_eq(ff_partition_of_uuid(&uuid, counts[i]), partition);
            cr_assert(memcmp(&uuid, &before, 14) == 0);
        }
    }
}

Test(id, lanes) {
    char long_lane[65];
    memset(long_lane, 'x', sizeof(long_lane));
    cr_expect(ff_lane_is_valid((ff_text){long_lane, 64}));
    cr_expect(!ff_lane_is_valid((ff_text){long_lane, 65}));
    cr_expect(ff_lane_is_valid(FF_TEXT(" ")) && ff_lane_is_valid(FF_TEXT("~")));
    cr_expect(!ff_lane_is_valid(FF_TEXT("")) && !ff_lane_is_valid(FF_TEXT_ABSENT));
    cr_expect(!ff_lane_is_valid(FF_TEXT("\x1f")) && !ff_lane_is_valid(FF_TEXT("\x7f")));
    cr_expect(!ff_lane_is_valid(FF_TEXT("\xc3\xa9")) && !ff_lane_is_valid(FF_TEXT("a\0b")));
}
