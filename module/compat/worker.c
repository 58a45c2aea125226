#include "engine/worker.h"

#include "compat/function.h"

FF_ADAPT(ff_worker_register)
FF_ADAPT(ff_worker_heartbeat)

static const ff_function functions[] = {
    FF_FUNCTION("ff_register_worker", ff_worker_register, 3),
    FF_FUNCTION("ff_heartbeat_worker", ff_worker_heartbeat, 2),
};

const ff_function_table ff_worker_functions = FF_FUNCTION_TABLE(functions);
