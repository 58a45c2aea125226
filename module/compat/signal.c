#include "engine/signal.h"

#include "compat/function.h"

/* A missing key after the waitpoint is found out by the operations, in its place among their checks. */
enum { KEYS_UP_TO_WAITPOINT = sizeof(ff_signal_keys) / sizeof(ff_str *) };

FF_ADAPT(ff_signal_deliver)
FF_ADAPT(ff_signal_buffer)

static const ff_function functions[] = {
    FF_FUNCTION("ff_buffer_signal_for_pending_waitpoint", ff_signal_buffer, KEYS_UP_TO_WAITPOINT),
    FF_FUNCTION("ff_deliver_signal", ff_signal_deliver, KEYS_UP_TO_WAITPOINT),
};

const ff_function_table ff_signal_functions = FF_FUNCTION_TABLE(functions);
