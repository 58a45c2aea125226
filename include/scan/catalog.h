/* The scanners by name, with how often each starts a round by default. */
#ifndef FF_SCAN_CATALOG_H
#define FF_SCAN_CATALOG_H

/* name in C, name for users, setting, default interval in ms */
#define FF_SCANNERS(X) \
    X(LEASE_EXPIRY, "lease_expiry", "lease-expiry-interval-ms", 1500) \
    X(DELAYED_PROMOTER, "delayed_promoter", "delayed-promoter-interval-ms", 750) \
    X(INDEX_RECONCILER, "index_reconciler", "index-reconciler-interval-ms", 45000) \
    X(ATTEMPT_TIMEOUT, "attempt_timeout", "attempt-timeout-interval-ms", 2000) \
    X(SUSPENSION_TIMEOUT, "suspension_timeout", "suspension-timeout-interval-ms", 2000) \
    X(PENDING_WP_EXPIRY, "pending_wp_expiry", "pending-wp-expiry-interval-ms", 5000) \
    X(RETENTION_TRIMMER, "retention_trimmer", "retention-trimmer-interval-ms", 60000) \
    X(BUDGET_RESET, "budget_reset", "budget-reset-interval-ms", 15000) \
    X(BUDGET_RECONCILER, "budget_reconciler", "budget-reconciler-interval-ms", 30000) \
    X(UNBLOCK, "unblock", "unblock-interval-ms", 5000) \
    X(DEPENDENCY_RECONCILER, "dependency_reconciler", "dependency-reconciler-interval-ms", 15000) \
    X(QUOTA_RECONCILER, "quota_reconciler", "quota-reconciler-interval-ms", 30000) \
    X(FLOW_PROJECTOR, "flow_projector", "flow-projector-interval-ms", 15000) \
    X(CANCEL_RECONCILER, "cancel_reconciler", "cancel-reconciler-interval-ms", 15000) \
    X(EDGE_CANCEL_DISPATCHER, "edge_cancel_dispatcher", "edge-cancel-dispatcher-interval-ms", \
      1000) \
    X(EDGE_CANCEL_RECONCILER, "edge_cancel_reconciler", "edge-cancel-reconciler-interval-ms", \
      10000) \
    X(EXECUTION_DEADLINE, "execution_deadline", "execution-deadline-interval-ms", 5000)

#define FF_SCANNER_ENUM(name, text, setting, interval) FF_SCANNER_##name,
typedef enum ff_scanner_id { FF_SCANNERS(FF_SCANNER_ENUM) FF_SCANNER_COUNT } ff_scanner_id;
#undef FF_SCANNER_ENUM

#endif
