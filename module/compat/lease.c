#include "engine/lease.h"

#include "compat/function.h"

FF_ADAPT(ff_lease_renew)

static const ff_function functions[] = {
    FF_FUNCTION("ff_renew_lease", ff_lease_renew, 4),
};

const ff_function_table ff_lease_functions = FF_FUNCTION_TABLE(functions);
