#include "engine/claim.h"

#include "compat/function.h"
#include "engine/grant.h"

FF_ADAPT(ff_claim_fresh)
FF_ADAPT(ff_claim_resumed)
FF_ADAPT(ff_claim_reclaim)
FF_ADAPT(ff_claim_direct)
FF_ADAPT(ff_grant_issue)
FF_ADAPT(ff_grant_issue_reclaim)

static const ff_function functions[] = {
    FF_FUNCTION("ff_claim_execution", ff_claim_fresh, 14),
    FF_FUNCTION("ff_claim_resumed_execution", ff_claim_resumed, 10),
    FF_FUNCTION("ff_reclaim_execution", ff_claim_reclaim, 14),
    FF_FUNCTION("ff_issue_grant_and_claim", ff_claim_direct, 11),
    FF_FUNCTION("ff_issue_claim_grant", ff_grant_issue, 3),
    FF_FUNCTION("ff_issue_reclaim_grant", ff_grant_issue_reclaim, 2),
};

const ff_function_table ff_claim_functions = FF_FUNCTION_TABLE(functions);
