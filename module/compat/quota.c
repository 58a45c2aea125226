#include "engine/quota.h"

#include "compat/function.h"

FF_ADAPT(ff_quota_create)
FF_ADAPT(ff_quota_admit)
FF_ADAPT(ff_quota_release)

static const ff_function functions[] = {
    FF_FUNCTION("ff_create_quota_policy", ff_quota_create, 5),
    FF_FUNCTION("ff_check_admission_and_record", ff_quota_admit, 5),
    FF_FUNCTION("ff_release_admission", ff_quota_release, 3),
};

const ff_function_table ff_quota_functions = FF_FUNCTION_TABLE(functions);
