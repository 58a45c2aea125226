#ifndef FF_BASE_ID_H
#define FF_BASE_ID_H

#include "base/arena.h"
#include "base/text.h"
#include "base/uuid.h"

#include <stdbool.h>
#include <stdint.h>

/* Partitions, and the ids and references that carry one: `{fp:N}:<uuid>` for executions and flows,
 * `{b:M}:<uuid>` for budgets, `{q:K}:<uuid>` for quota policies. */

typedef enum ff_family { FF_FAMILY_FLOW, FF_FAMILY_BUDGET, FF_FAMILY_QUOTA } ff_family;

enum { FF_FAMILIES = 3 };

typedef struct ff_partition {
    ff_family family;
    uint16_t number;
} ff_partition;

/* Room for "{fp:65535}" and a NUL. */
enum { FF_TAG_MAX = 12 };

/* Writes the tag with its braces, NUL-terminated; returns its length. */
size_t ff_tag_format(ff_partition partition, char tag[FF_TAG_MAX]);

ff_text ff_tag_text(ff_arena *arena, ff_partition partition);

/* Reads exactly one tag, of any family, in its shortest form. */
bool ff_tag_parse(ff_text text, ff_partition *partition);

/* The cluster slot of a partition. */
uint16_t ff_partition_slot(ff_partition partition);

/* The partition that a UUID gives, out of `count` (which must not be 0): crc16 of its raw bytes. */
uint16_t ff_partition_of_uuid(const ff_uuid *uuid, uint16_t count);

/* Makes a random UUID one that gives `partition` out of `count`, by its last two bytes. */
void ff_partition_place_uuid(ff_uuid *uuid, uint16_t partition, uint16_t count);

/* The partition of an id as text; one that is no UUID lives on partition 0. */
uint16_t ff_partition_of_id(ff_text id, uint16_t count);

/* The partition of a solo execution: crc16 of the lane's bytes. */
uint16_t ff_partition_of_lane(ff_text lane, uint16_t count);

/* An id with its tag, taken apart. The texts point into the text that was parsed. */
typedef struct ff_reference {
    ff_partition partition;
    ff_text tag; /* as spelled, braces included */
    ff_text id;  /* what follows "}:", as spelled */
    ff_uuid uuid;
    bool shortest;  /* the number is in its shortest form: the tag names the slot it seems to */
    bool canonical; /* the UUID is hyphenated lower-case */
} ff_reference;

/* Reads `{<family>:N}:<uuid>` with N a decimal u16. A number with leading zeros parses, and is
 * told by `shortest`: native commands refuse it, since `{fp:07}` is another slot than `{fp:7}`. */
bool ff_reference_parse(ff_text text, ff_family family, ff_reference *reference);

/* An execution id: a reference of the flow family. */
bool ff_execution_id_parse(ff_text text, ff_reference *reference);

/* Writes `{<family>:N}:<uuid>` in canonical form. */
ff_text ff_reference_text(ff_arena *arena, ff_partition partition, const ff_uuid *uuid);

/* A lane as a user may name it: 1..64 bytes, each 0x20..0x7E. */
bool ff_lane_is_valid(ff_text lane);

#endif
