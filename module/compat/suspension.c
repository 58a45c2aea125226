#include "engine/suspension.h"

#include "compat/function.h"
#include "engine/secret.h"
#include "engine/waitpoint.h"

FF_ADAPT(ff_suspension_begin)
FF_ADAPT(ff_suspension_resume)
FF_ADAPT(ff_suspension_expire)
FF_ADAPT(ff_waitpoint_create)
FF_ADAPT(ff_waitpoint_close)
FF_ADAPT(ff_secret_rotate)
FF_ADAPT(ff_secret_list)

static const ff_function functions[] = {
    FF_FUNCTION("ff_suspend_execution", ff_suspension_begin, 16, .more_keys = true,
                .more_args = true),
    FF_FUNCTION("ff_resume_execution", ff_suspension_resume, 8),
    FF_FUNCTION("ff_expire_suspension", ff_suspension_expire, 10),
    FF_FUNCTION("ff_create_pending_waitpoint", ff_waitpoint_create, 3),
    FF_FUNCTION("ff_close_waitpoint", ff_waitpoint_close, 3),
    FF_FUNCTION("ff_rotate_waitpoint_hmac_secret", ff_secret_rotate, 1),
    FF_FUNCTION("ff_list_waitpoint_hmac_kids", ff_secret_list, 1, .readonly = true),
};

const ff_function_table ff_suspension_functions = FF_FUNCTION_TABLE(functions);
