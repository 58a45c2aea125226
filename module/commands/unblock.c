#include "commands/unblock.h"

#include "commands/later.h"
#include "commands/pass.h"
#include "presence.h"

typedef struct pass_options {
    ff_text lane;
    int reason;
    int64_t limit;
} pass_options;

/* In the order of the scanner's indexes. What an operator has blocked is never lifted by the pass. */
static const char *const reasons[] = {"budget", "quota", "route", NULL};

static const ff_option pass_rows[] = {
    FF_OPTION("LANE", FF_OPTION_NONEMPTY, pass_options, lane),
    FF_OPTION("REASON", FF_OPTION_CHOICE, pass_options, reason, .choices = reasons),
    FF_OPTION("LIMIT", FF_OPTION_INTEGER, pass_options, limit, .min = 1, .max = FF_PASS_LIMIT_MAX),
};

/* {fp:N}|* [LANE l] [REASON budget|quota|route] [LIMIT n] */
static ff_verdict run_pass(ff_request *r) {
    pass_options o = {.reason = -1, .limit = FF_PASS_LIMIT};
    ff_scope scope = FF_SCOPE_ALL;
    ff_tally tally = {0};
    if (!ff_pass_partition(r, r->args[0], FF_FAMILY_FLOW, &scope.partition) ||
        !ff_request_options(r, 1, FF_OPTION_TABLE(pass_rows), &o, NULL)) {
        return FF_DISCARD;
    }
    scope.limit = (uint64_t)o.limit;
    if (o.reason >= 0) scope.indexes = 1U << o.reason;
    if (!ff_text_is_absent(o.lane)) scope.lane = ff_lane_find(o.lane);
    if (ff_text_is_absent(o.lane) || scope.lane) {
        ff_runner_run(r->ctx, FF_SCANNER_UNBLOCK, &scope, &tally);
    }
    return ff_pass_answer(r, &tally);
}

static int serve(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    return ff_request_serve(ctx, argv, argc, 1, run_pass, false);
}

int ff_unblock_pass(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    return ff_serve_in_any_slot(ctx, argv, argc, serve);
}
