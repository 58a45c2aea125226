/* The visits of all scanners; the table of scanners names them. */
#ifndef FF_SCAN_VISITORS_H
#define FF_SCAN_VISITORS_H

#include "scan/scanner.h"

ff_visitor ff_visit_lease_expiry, ff_visit_delayed, ff_visit_attempt_timeout, ff_visit_deadline,
    ff_visit_suspension_timeout, ff_visit_pending_waitpoint, ff_visit_terminal,
    ff_visit_budget_reset, ff_visit_budget, ff_visit_blocked, ff_visit_dependencies, ff_visit_quota,
    ff_visit_flow, ff_visit_execution, ff_visit_cancel_backlog, ff_visit_cancel_group,
    ff_visit_stale_cancel_group;

#endif
