#include "engine/execution.h"

#include "compat/function.h"

/* The version of the reference library whose functions these are: clients look for it before they load
 * their own. */
static ff_verdict version(ff_txn *t, const void *keys, const void *args, ff_result *out) {
    (void)keys;
    (void)args;
    out->shape = FF_SHAPE_SCALAR;
    ff_result_add(out, ff_str_make(t, FF_TEXT("34")));
    return ff_ok(out);
}

FF_ADAPT(ff_execution_create)

static const ff_function functions[] = {
    {.name = "ff_version", .operation = version, .readonly = true},
    FF_FUNCTION("ff_create_execution", ff_execution_create, 8),
};

const ff_function_table ff_execution_functions = FF_FUNCTION_TABLE(functions);
