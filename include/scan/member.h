/* What scanners and the dispatch do to one member of a flow. */
#ifndef FF_SCAN_MEMBER_H
#define FF_SCAN_MEMBER_H

#include "engine/result.h"

/* Rule RESOLVE-ONE. `tag` is that of the partition that the flow and all its members share. */
typedef struct ff_member_edge {
    ff_text tag;
    ff_str *flow_id;
    ff_str *edge_id;
    ff_str *upstream_id;
    ff_str *child_id;
    ff_str *outcome; /* of the upstream */
} ff_member_edge;

ff_verdict ff_member_resolve(ff_txn *t, const ff_member_edge *edge, ff_result *out);

/* Rule CANCEL-ONE. */
typedef enum {
    FF_MEMBER_CANCELLED,
    FF_MEMBER_ENDED, /* had ended before */
    FF_MEMBER_GONE,
    FF_MEMBER_TRY_AGAIN,
} ff_member_fate;

/* Stages the cancellation. */
ff_member_fate ff_member_cancel(ff_txn *t, ff_text tag, ff_str *execution_id, ff_str *reason);

/* The outcome of an execution that has ended; NULL when it has not, or has none. A key of the wrong type counts
 * as not ended. */
ff_str *ff_member_outcome(ff_txn *t, ff_text tag, ff_text execution_id);

/* Whether an id is that of an execution of this partition. */
bool ff_member_is_local(ff_text execution_id, ff_text tag);

#endif
