#include "commands/unblock.h"

#include "commands/blocking.h"
#include "commands/request.h"
#include "presence.h"
#include "scan/runner.h"

enum { LIMIT = 10000 };

typedef struct pass_options {
    ff_text lane;
    int reason;
    int64_t limit;
} pass_options;

/* What an operator has blocked is never lifted by the pass. */
static const char *const reasons[] = {"budget", "quota", "route", NULL};

static const ff_option pass_rows[] = {
    FF_OPTION("LANE", FF_OPTION_NONEMPTY, pass_options, lane),
    FF_OPTION("REASON", FF_OPTION_CHOICE, pass_options, reason, .choices = reasons),
    FF_OPTION("LIMIT", FF_OPTION_INTEGER, pass_options, limit, .min = 1, .max = LIMIT),
};

/* False after a refusal. */
static bool read_where(ff_request *r, ff_scope *scope) {
    ff_partition partition;
    ff_text where = r->args[0];
    if (ff_text_equal(where, FF_TEXT("*"))) {
        if (!ff_request_in_cluster(r) || !ff_request_in_transaction(r)) return true;
        ff_request_refuse(r, FF_TEXT("in a cluster a transaction can only name a partition"));
        return false;
    }
    if (ff_tag_parse(where, &partition) && partition.family == FF_FAMILY_FLOW &&
        partition.number < ff_partition_count(FF_FAMILY_FLOW)) {
        scope->partition = partition.number;
        return true;
    }
    ff_request_refuse(r, ff_arena_concat(&r->txn.arena, FF_TEXT("'"),
                                         ff_arena_printable(&r->txn.arena, where),
                                         FF_TEXT("' is neither an execution id nor a partition "
                                                 "{fp:N} nor *")));
    return false;
}

static void answer_tally(ff_answer *map, const ff_tally *tally) {
    ff_answer_become_map(map);
    ff_answer_integer(map, "scanned", (int64_t)tally->scanned);
    ff_answer_integer(map, "processed", (int64_t)tally->processed);
    ff_answer_integer(map, "refused", (int64_t)tally->refused);
    ff_answer_integer(map, "skipped", (int64_t)tally->skipped);
    ff_answer_integer(map, "errors", (int64_t)tally->errors);
}

/* {fp:N}|* [LANE l] [REASON budget|quota|route] [LIMIT n] */
static ff_verdict run_pass(ff_request *r) {
    pass_options o = {.reason = -1, .limit = LIMIT};
    ff_scope scope = {.partition = -1, .by_command = true};
    ff_tally tally = {0};
    if (!read_where(r, &scope) ||
        !ff_request_options(r, 1, FF_OPTION_TABLE(pass_rows), &o, NULL)) {
        return FF_DISCARD;
    }
    scope.limit = (uint64_t)o.limit;
    if (o.reason >= 0) scope.indexes = 1U << o.reason;
    if (!ff_text_is_absent(o.lane)) scope.lane = ff_lane_find(o.lane);
    if (ff_text_is_absent(o.lane) || scope.lane) {
        ff_runner_run(r->ctx, FF_SCANNER_UNBLOCK, &scope, &tally);
    }
    answer_tally(&r->answer, &tally);
    return FF_COMMIT;
}

int ff_unblock_pass(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    return ff_request_serve(ctx, argv, argc, 1, run_pass, false);
}
