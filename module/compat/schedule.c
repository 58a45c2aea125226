#include "engine/schedule.h"

#include "compat/function.h"
#include "engine/progress.h"

FF_ADAPT(ff_schedule_change_priority)
FF_ADAPT(ff_schedule_promote_delayed)
FF_ADAPT(ff_progress_update)

static const ff_function functions[] = {
    FF_FUNCTION("ff_change_priority", ff_schedule_change_priority, 2),
    FF_FUNCTION("ff_promote_delayed", ff_schedule_promote_delayed, 3),
    FF_FUNCTION("ff_update_progress", ff_progress_update, 1),
};

const ff_function_table ff_schedule_functions = FF_FUNCTION_TABLE(functions);
