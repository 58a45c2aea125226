#include "claim/order.h"

#include "base/id.h"
#include "base/options.h"
#include "presence.h"

enum {
    POSITIONAL = 3,
    COUNT_MAX = 10000,
    LANES_MAX = 256,
    LEASE_DEFAULT_MS = 30000,
};

/* The lanes come as a list, which the order keeps in another form. */
typedef struct parsed {
    ff_claim_order order;
    ff_text_list lanes;
} parsed;

#define ROW(keyword, kind, member, ...) \
    FF_OPTION(keyword, FF_OPTION_##kind, parsed, member, __VA_ARGS__)

enum { BLOCK_ROW = 0 };

static const ff_option options[] = {
    [BLOCK_ROW] = ROW("BLOCK", DURATION, order.wait_ms),
    ROW("CAPS", TEXT, order.capabilities_csv),
    ROW("LEASE", DURATION, order.lease_ms, .min = 1),
    ROW("COUNT", INTEGER, order.count, .min = 1, .max = COUNT_MAX),
    ROW("LANES", LIST, lanes, .min = 1, .max = LANES_MAX),
    ROW("NAMESPACE", NONEMPTY, order.namespace),
    ROW("PARTITION", NONEMPTY, order.partition_tag),
    ROW("GRANT", DURATION, order.grant_ttl_ms, .min = 1),
    ROW("TIMEOUT", DURATION, order.timeout_ms),
};

static bool parse_options(ff_arena *arena, const ff_text *arguments, size_t count, parsed *p,
                          ff_text *error) {
    uint64_t given;
    if (!ff_options_parse(FF_OPTION_TABLE(options), arguments, count, p, &given, arena, error)) {
        return false;
    }
    p->order.waits = given >> BLOCK_ROW & 1;
    return true;
}

static bool has_lane(const ff_claim_order *order, ff_text lane) {
    for (size_t i = 0; i < order->lane_count; i++) {
        if (ff_text_equal(order->lanes[i], lane)) return true;
    }
    return false;
}

static bool read_lanes(ff_arena *arena, ff_text first, ff_text_list further, ff_claim_order *order,
                       ff_text *error) {
    ff_text *lanes = ff_arena_array(arena, further.count + 1, sizeof *lanes);
    order->lanes = lanes;
    for (size_t i = 0; i <= further.count; i++) {
        ff_text lane = i == 0 ? first : further.items[i - 1];
        if (!ff_lane_is_valid(lane)) {
            *error = ff_arena_concat(arena, FF_TEXT("'"), ff_arena_printable(arena, lane),
                                     FF_TEXT("' is not a lane: expected 1 to 64 printable ASCII "
                                             "characters"));
            return false;
        }
        if (!has_lane(order, lane)) lanes[order->lane_count++] = lane;
    }
    return true;
}

static bool read_partition(ff_arena *arena, ff_claim_order *order, ff_text *error) {
    ff_partition partition;
    if (ff_text_is_absent(order->partition_tag)) return true;
    if (!ff_tag_parse(order->partition_tag, &partition) || partition.family != FF_FAMILY_FLOW ||
        partition.number >= ff_partition_count(FF_FAMILY_FLOW)) {
        *error =
            ff_arena_concat(arena, FF_TEXT("'"), ff_arena_printable(arena, order->partition_tag),
                            FF_TEXT("' is not a partition: expected {fp:N} with N below "
                                    "ff.flow-partitions"));
        return false;
    }
    order->partition = partition.number;
    return true;
}

static bool read_worker(const ff_text *arguments, ff_claim_order *order, ff_text *error) {
    order->worker = arguments[1];
    order->instance = arguments[2];
    if (order->worker.len && order->instance.len) return true;
    *error = FF_TEXT("worker and instance must not be empty");
    return false;
}

static bool parse(ff_arena *arena, const ff_text *arguments, size_t count, ff_claim_order *order,
                  ff_text *error) {
    if (count < POSITIONAL) {
        *error = FF_TEXT("expected a lane, a worker and an instance");
        return false;
    }
    parsed p = {.order = {.count = 1,
                          .lease_ms = LEASE_DEFAULT_MS,
                          .namespace = FF_TEXT_ABSENT,
                          .partition_tag = FF_TEXT_ABSENT}};
    if (!parse_options(arena, arguments + POSITIONAL, count - POSITIONAL, &p, error)) return false;
    *order = p.order;
    return read_worker(arguments, order, error) &&
           read_lanes(arena, arguments[0], p.lanes, order, error) &&
           read_partition(arena, order, error);
}

bool ff_claim_order_parse(ff_arena *arena, const ff_text *arguments, size_t count,
                          ff_claim_order *order, ff_text *error) {
    ff_text sentence;
    if (!parse(arena, arguments, count, order, &sentence)) {
        *error = ff_arena_concat(arena, FF_TEXT("ERR "), sentence);
        return false;
    }
    ff_capability_problem problem =
        ff_capability_parse_worker(arena, order->capabilities_csv, &order->capabilities);
    if (problem) {
        *error = ff_arena_concat(
            arena, FF_TEXT("INVALID_CAPABILITIES not a valid list of capabilities: worker:"),
            ff_text_of(ff_capability_problem_word(problem)));
        return false;
    }
    order->capabilities_csv = ff_capability_csv(arena, &order->capabilities);
    return true;
}

void ff_claim_order_copy(ff_arena *arena, const ff_claim_order *order, ff_claim_order *copy) {
    *copy = *order;
    copy->worker = ff_arena_dup(arena, order->worker);
    copy->instance = ff_arena_dup(arena, order->instance);
    copy->namespace = ff_arena_dup(arena, order->namespace);
    copy->partition_tag = ff_arena_dup(arena, order->partition_tag);
    copy->capabilities_csv = ff_arena_dup(arena, order->capabilities_csv);
    /* What passed once passes again. */
    (void)ff_capability_parse(arena, copy->capabilities_csv, &copy->capabilities);
    ff_text *lanes = ff_arena_array(arena, order->lane_count, sizeof *lanes);
    for (size_t i = 0; i < order->lane_count; i++) lanes[i] = ff_arena_dup(arena, order->lanes[i]);
    copy->lanes = lanes;
}

static bool same_text(ff_text a, ff_text b) {
    return ff_text_is_absent(a) ? ff_text_is_absent(b) : ff_text_equal(a, b);
}

bool ff_claim_order_alike(const ff_claim_order *a, const ff_claim_order *b) {
    if (a->lane_count != b->lane_count || (a->grant_ttl_ms > 0) != (b->grant_ttl_ms > 0) ||
        !same_text(a->namespace, b->namespace) || !same_text(a->partition_tag, b->partition_tag) ||
        !ff_text_equal(a->capabilities_csv, b->capabilities_csv)) {
        return false;
    }
    for (size_t i = 0; i < a->lane_count; i++) {
        if (!ff_text_equal(a->lanes[i], b->lanes[i])) return false;
    }
    return true;
}

bool ff_claim_order_admits(const ff_claim_order *order, ff_text lane, uint16_t partition,
                           ff_text namespace) {
    if (!ff_text_is_absent(order->partition_tag) && order->partition != partition) return false;
    if (!ff_text_is_absent(order->namespace) && !ff_text_equal(order->namespace, namespace)) {
        return false;
    }
    return has_lane(order, lane);
}
