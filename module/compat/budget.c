#include "engine/budget.h"

#include "compat/function.h"

FF_ADAPT(ff_budget_create)
FF_ADAPT(ff_budget_report)
FF_ADAPT(ff_budget_spend)
FF_ADAPT(ff_budget_release)
FF_ADAPT(ff_budget_reset)

static const ff_function functions[] = {
    FF_FUNCTION("ff_create_budget", ff_budget_create, 5, .more_args = true),
    FF_FUNCTION("ff_report_usage_and_check", ff_budget_report, 3, .more_args = true),
    FF_FUNCTION("ff_record_spend", ff_budget_spend, 3, .more_args = true),
    FF_FUNCTION("ff_release_budget", ff_budget_release, 3),
    FF_FUNCTION("ff_reset_budget", ff_budget_reset, 3),
};

const ff_function_table ff_budget_functions = FF_FUNCTION_TABLE(functions);
