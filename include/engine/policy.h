/* What the server reads in an execution's policy document. */
#ifndef FF_ENGINE_POLICY_H
#define FF_ENGINE_POLICY_H

#include "engine/result.h"

/* The sorted CSV of required capabilities that a policy text asks for; empty when it asks for none. False
 * after a refusal was put into `out`. */
bool ff_policy_required_capabilities(ff_txn *t, const ff_str *policy, ff_text *csv, ff_result *out);

#endif
