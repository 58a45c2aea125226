#include "engine/admission.h"

#include "compat/function.h"

FF_ADAPT(ff_admission_block)
FF_ADAPT(ff_admission_unblock)

static const ff_function functions[] = {
    FF_FUNCTION("ff_block_execution_for_admission", ff_admission_block, 3),
    FF_FUNCTION("ff_unblock_execution", ff_admission_unblock, 3),
};

const ff_function_table ff_admission_functions = FF_FUNCTION_TABLE(functions);
