/* Frames: the output of an attempt, as a stream.
 *
 * The first frame creates the stream's `meta` record, which counts what was ever appended and says when
 * the stream was closed. A frame is durable, or patches the summary (engine/summary.h), or is made on best
 * effort: a stream that has only frames of the last kind expires, and is kept as short as their rate and
 * time to live ask for. */
#ifndef FF_ENGINE_FRAME_H
#define FF_ENGINE_FRAME_H

#include "engine/result.h"

/* ff_append_frame */
typedef struct ff_frame_append_keys {
    ff_str *core, *stream, *meta, *summary;
} ff_frame_append_keys;

typedef struct ff_frame_append_args {
    ff_str *execution_id, *attempt_index, *lease_id, *lease_epoch, *frame_type, *ts, *payload,
        *encoding, *correlation_id, *source, *retention_maxlen, *attempt_id, *max_payload_bytes,
        *mode, *patch_kind, *ttl_ms, *window_floor, *window_ceiling, *alpha;
} ff_frame_append_args;

ff_verdict ff_frame_append(ff_txn *t, const ff_frame_append_keys *k, const ff_frame_append_args *a,
                           ff_result *out);

/* ff_read_attempt_stream */
typedef struct ff_frame_read_keys {
    ff_str *stream, *meta;
} ff_frame_read_keys;

typedef struct ff_frame_read_args {
    ff_str *from, *to, *count, *visibility;
} ff_frame_read_args;

ff_verdict ff_frame_read(ff_txn *t, const ff_frame_read_keys *k, const ff_frame_read_args *a,
                         ff_result *out);

#endif
