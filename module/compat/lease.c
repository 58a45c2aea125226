#include "engine/lease.h"

#include "compat/function.h"

FF_ADAPT(ff_lease_mark_expired)
FF_ADAPT(ff_lease_renew)
FF_ADAPT(ff_lease_revoke)

static const ff_function functions[] = {
    FF_FUNCTION("ff_mark_lease_expired_if_due", ff_lease_mark_expired, 4),
    FF_FUNCTION("ff_renew_lease", ff_lease_renew, 4),
    FF_FUNCTION("ff_revoke_lease", ff_lease_revoke, 5),
};

const ff_function_table ff_lease_functions = FF_FUNCTION_TABLE(functions);
