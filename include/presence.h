/* Which indexes of which partitions may hold something.
 *
 * The server keeps no list of the zsets and sets that exist, and asking 256 partitions of every lane costs
 * 256 look-ups. So the module watches the keyspace (watch.h), and keeps one bit for each index of each
 * partition and lane. A set bit means "maybe": whoever finds the index empty clears it. A clear bit means
 * "certainly empty", and that must always be true. Lanes are known from the names of their indexes, so
 * that nobody has to configure them.
 */
#ifndef FF_PRESENCE_H
#define FF_PRESENCE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/id.h"
#include "base/text.h"
#include "store/txn.h"
#include "valkeymodule.h"

/* name of the index, its family, whether there is one per lane, the end of its key */
#define FF_INDEXES(X) \
    X(ELIGIBLE, FLOW, true, "eligible") \
    X(DELAYED, FLOW, true, "delayed") \
    X(ACTIVE, FLOW, true, "active") \
    X(TERMINAL, FLOW, true, "terminal") \
    X(SUSPENDED, FLOW, true, "suspended") \
    X(BLOCKED_DEPENDENCIES, FLOW, true, "blocked:dependencies") \
    X(BLOCKED_BUDGET, FLOW, true, "blocked:budget") \
    X(BLOCKED_QUOTA, FLOW, true, "blocked:quota") \
    X(BLOCKED_ROUTE, FLOW, true, "blocked:route") \
    X(BLOCKED_OPERATOR, FLOW, true, "blocked:operator") \
    X(LEASE_EXPIRY, FLOW, false, "lease_expiry") \
    X(ATTEMPT_TIMEOUT, FLOW, false, "attempt_timeout") \
    X(EXECUTION_DEADLINE, FLOW, false, "execution_deadline") \
    X(SUSPENSION_TIMEOUT, FLOW, false, "suspension_timeout") \
    X(PENDING_WAITPOINT_EXPIRY, FLOW, false, "pending_waitpoint_expiry") \
    X(ALL_EXECUTIONS, FLOW, false, "all_executions") \
    X(FLOW_INDEX, FLOW, false, "flow_index") \
    X(CANCEL_BACKLOG, FLOW, false, "cancel_backlog") \
    X(PENDING_CANCEL_GROUPS, FLOW, false, "pending_cancel_groups") \
    X(BUDGET_RESETS, BUDGET, false, "budget_resets") \
    X(BUDGET_POLICIES, BUDGET, false, "budget_policies") \
    X(QUOTA_POLICIES, QUOTA, false, "quota_policies")

#define FF_INDEX_ENUM(name, family, per_lane, ending) FF_INDEX_##name,
typedef enum ff_index { FF_INDEXES(FF_INDEX_ENUM) FF_INDEX_COUNT } ff_index;
#undef FF_INDEX_ENUM

#define FF_LANE_INDEX_COUNT (FF_INDEX_BLOCKED_OPERATOR + 1)

/* A lane that has, or had, data on this node. Once known it stays. */
typedef struct ff_lane {
    struct ff_lane *next; /* all lanes, in the order they were found */
    ff_text name;
    uint64_t *maybe[FF_LANE_INDEX_COUNT]; /* a bit per partition */
} ff_lane;

/* Starts watching (watch.h). */
void ff_presence_load(void);
void ff_presence_unload(void);

ff_lane *ff_lanes(void);
ff_lane *ff_lane_find(ff_text name);
ff_lane *ff_lane_make(ff_text name);

ff_family ff_index_family(ff_index index);
bool ff_index_is_per_lane(ff_index index);
uint16_t ff_partition_count(ff_family family);

/* The key of an index; lane is NULL where there is one per partition. */
ff_str *ff_index_key(ff_txn *t, ff_index index, const ff_lane *lane, uint16_t partition);

bool ff_presence_maybe(ff_index index, const ff_lane *lane, uint16_t partition);
void ff_presence_mark(ff_index index, ff_lane *lane, uint16_t partition);

/* To be called right after the index was seen empty, before anything else runs. */
void ff_presence_clear(ff_index index, ff_lane *lane, uint16_t partition);

/* The first partition from `from` on that may hold something; -1 when there is none. */
int32_t ff_presence_next(ff_index index, const ff_lane *lane, uint32_t from);

/* Told of every write to an index (lane is NULL where there is one per partition). Runs inside the write:
 * it must not touch the keyspace. */
typedef void ff_presence_listener(ff_index index, ff_lane *lane, uint16_t partition);
void ff_presence_listen(ff_presence_listener *listener);

#endif
