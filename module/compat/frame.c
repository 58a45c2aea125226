#include "engine/frame.h"
#include "engine/summary.h"

#include "compat/function.h"

FF_ADAPT(ff_frame_append)
FF_ADAPT(ff_frame_read)
FF_ADAPT(ff_summary_read)

static const ff_function functions[] = {
    FF_FUNCTION("ff_append_frame", ff_frame_append, 3),
    FF_FUNCTION("ff_read_attempt_stream", ff_frame_read, 2, .readonly = true),
    FF_FUNCTION("ff_read_summary", ff_summary_read, 1, .readonly = true),
};

const ff_function_table ff_frame_functions = FF_FUNCTION_TABLE(functions);
