#include "engine/execution.h"

#include "compat/function.h"
#include "engine/cancellation.h"
#include "engine/ending.h"
#include "engine/pause.h"
#include "engine/retry.h"
#include "engine/tag.h"

/* The version of the reference library whose functions these are: clients look for it before they load
 * their own. */
static ff_verdict version(ff_txn *t, const void *keys, const void *args, ff_result *out) {
    (void)keys;
    (void)args;
    out->shape = FF_SHAPE_SCALAR;
    ff_result_add(out, ff_str_make(t, FF_TEXT("34")));
    return ff_ok(out);
}

FF_ADAPT(ff_execution_cancel)
FF_ADAPT(ff_execution_complete)
FF_ADAPT(ff_execution_create)
FF_ADAPT(ff_execution_delay)
FF_ADAPT(ff_execution_expire)
FF_ADAPT(ff_execution_fail)
FF_ADAPT(ff_execution_tag)
FF_ADAPT(ff_execution_wait_children)

static const ff_function functions[] = {
    {.name = "ff_version", .operation = version, .readonly = true},
    FF_FUNCTION("ff_cancel_execution", ff_execution_cancel, 21),
    FF_FUNCTION("ff_complete_execution", ff_execution_complete, 12),
    FF_FUNCTION("ff_create_execution", ff_execution_create, 8),
    FF_FUNCTION("ff_delay_execution", ff_execution_delay, 9),
    FF_FUNCTION("ff_expire_execution", ff_execution_expire, 14),
    FF_FUNCTION("ff_fail_execution", ff_execution_fail, 12),
    FF_FUNCTION("ff_move_to_waiting_children", ff_execution_wait_children, 9),
    FF_FUNCTION("ff_set_execution_tags", ff_execution_tag, 2, .more_args = true),
};

const ff_function_table ff_execution_functions = FF_FUNCTION_TABLE(functions);
