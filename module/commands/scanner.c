/* FF.SCANNER and FF.RECONCILE: running scanners by hand. */
#include "commands/command.h"
#include "commands/later.h"
#include "commands/pass.h"
#include "permission.h"

/* ---- What to run over ---- */

bool ff_pass_partition(ff_request *r, ff_text text, ff_family family, int32_t *number) {
    static const char *const expected[FF_FAMILIES] = {"{fp:N}", "{b:M}", "{q:K}"};
    ff_partition partition;
    *number = -1;
    if (ff_text_equal(text, FF_TEXT("*"))) return true;
    if (!ff_tag_parse(text, &partition) || partition.family != family ||
        partition.number >= ff_partition_count(family)) {
        ff_request_refuse(
            r, ff_arena_concat(&r->txn.arena, FF_TEXT("'"), ff_arena_printable(&r->txn.arena, text),
                               FF_TEXT("' is no partition to run this over: expected "),
                               ff_text_of(expected[family]), FF_TEXT(" or *")));
        return false;
    }
    if (!ff_partition_is_served(r->ctx, partition)) {
        ff_request_refuse(r, FF_TEXT("the partition is not served by this node"));
        return false;
    }
    *number = partition.number;
    return true;
}

static ff_family family_of(ff_scanner_id id) { return ff_index_family(ff_scanners[id].indexes[0]); }

/* ---- Answers ---- */

ff_verdict ff_pass_answer(ff_request *r, const ff_tally *tally) {
    uint64_t skipped = tally->skipped + tally->unknown + tally->filtered + tally->backed_off;
    ff_answer *map = &r->answer;
    ff_answer_become_map(map);
    ff_answer_integer(map, "scanned", (int64_t)tally->scanned);
    ff_answer_integer(map, "processed", (int64_t)tally->processed);
    ff_answer_integer(map, "refused", (int64_t)tally->refused);
    ff_answer_integer(map, "skipped", (int64_t)skipped);
    ff_answer_integer(map, "errors", (int64_t)tally->errors);
    if (ff_request_in_cluster(r)) ff_answer_integer(map, "unknown", (int64_t)tally->unknown);
    return FF_COMMIT;
}

static void answer_status(ff_answer *map, const ff_scanner_status *status) {
    ff_answer_become_map(map);
    ff_answer_text(map, "name", ff_str_make(map->txn, ff_text_of(status->name)));
    ff_answer_text(map, "state", ff_str_make(map->txn, ff_text_of(status->state)));
    ff_answer_integer(map, "interval_ms", status->interval_ms);
    ff_answer_integer(map, "cycles", (int64_t)status->cycles);
    ff_answer_integer(map, "last_started_at", (int64_t)status->last_started_at);
    ff_answer_integer(map, "last_us", (int64_t)status->last_us);
    ff_answer_integer(map, "longest_us", (int64_t)status->longest_us);
    ff_answer_integer(map, "scanned", (int64_t)status->totals.scanned);
    ff_answer_integer(map, "processed", (int64_t)status->totals.processed);
    ff_answer_integer(map, "refused", (int64_t)status->totals.refused);
    ff_answer_integer(map, "skipped", (int64_t)status->totals.skipped);
    ff_answer_integer(map, "unknown", (int64_t)status->totals.unknown);
    ff_answer_integer(map, "filtered", (int64_t)status->totals.filtered);
    ff_answer_integer(map, "backed_off", (int64_t)status->totals.backed_off);
    ff_answer_integer(map, "errors", (int64_t)status->totals.errors);
    ff_answer_integer(map, "backlog", (int64_t)status->backlog);
    ff_answer_integer(map, "oldest_ms", (int64_t)status->oldest_age_ms);
}

/* ---- FF.SCANNER ---- */

static ff_verdict list(ff_request *r) {
    if (r->argc != 0) return ff_request_wrong_arity(r);
    ff_answer_become_list(&r->answer);
    for (ff_scanner_id id = 0; id < FF_SCANNER_COUNT; id++) {
        ff_scanner_status status = ff_runner_status(id);
        answer_status(ff_answer_add(&r->answer), &status);
    }
    return FF_DISCARD;
}

static bool read_name(ff_request *r, ff_scanner_id *id) {
    if (r->argc < 1) {
        ff_request_wrong_arity(r);
        return false;
    }
    if (ff_scanner_find(r->args[0], id)) return true;
    ff_request_refuse(r, ff_arena_concat(&r->txn.arena, FF_TEXT("there is no scanner '"),
                                         ff_arena_printable(&r->txn.arena, r->args[0]),
                                         FF_TEXT("': see FF.SCANNER LIST")));
    return false;
}

typedef struct run_options {
    ff_text partition;
    int64_t limit;
} run_options;

static const ff_option run_rows[] = {
    FF_OPTION("PARTITION", FF_OPTION_NONEMPTY, run_options, partition),
    FF_OPTION("LIMIT", FF_OPTION_INTEGER, run_options, limit, .min = 1, .max = FF_PASS_LIMIT_MAX),
};

/* name [PARTITION partition] [LIMIT n] */
static ff_verdict run(ff_request *r) {
    run_options o = {.partition = FF_TEXT("*"), .limit = FF_PASS_LIMIT};
    ff_scanner_id id;
    ff_scope scope = FF_SCOPE_ALL;
    ff_tally tally = {0};
    if (!read_name(r, &id) || !ff_request_options(r, 1, FF_OPTION_TABLE(run_rows), &o, NULL) ||
        !ff_pass_partition(r, o.partition, family_of(id), &scope.partition)) {
        return FF_DISCARD;
    }
    scope.limit = (uint64_t)o.limit;
    ff_runner_run(r->ctx, id, &scope, &tally);
    return ff_pass_answer(r, &tally);
}

static ff_verdict set_paused(ff_request *r, bool paused) {
    ff_scanner_id id;
    if (!read_name(r, &id)) return FF_DISCARD;
    if (r->argc != 1) return ff_request_wrong_arity(r);
    ff_runner_pause(id, paused);
    ff_scanner_status status = ff_runner_status(id);
    answer_status(&r->answer, &status);
    return FF_DISCARD;
}

static ff_verdict pause(ff_request *r) { return set_paused(r, true); }
static ff_verdict resume(ff_request *r) { return set_paused(r, false); }

/* ---- FF.RECONCILE ---- */

static const struct {
    const char *name;
    ff_scanner_id scanners[2]; /* one after the other; the same twice: only one */
} reconcilers[] = {
    {"index", {FF_SCANNER_INDEX_RECONCILER, FF_SCANNER_INDEX_RECONCILER}},
    {"budget", {FF_SCANNER_BUDGET_RECONCILER, FF_SCANNER_BUDGET_RECONCILER}},
    {"quota", {FF_SCANNER_QUOTA_RECONCILER, FF_SCANNER_QUOTA_RECONCILER}},
    {"dependency", {FF_SCANNER_DEPENDENCY_RECONCILER, FF_SCANNER_DEPENDENCY_RECONCILER}},
    {"cancel", {FF_SCANNER_CANCEL_RECONCILER, FF_SCANNER_CANCEL_RECONCILER}},
    {"sibling_cancel", {FF_SCANNER_EDGE_CANCEL_DISPATCHER, FF_SCANNER_EDGE_CANCEL_RECONCILER}},
    {"flow_summary", {FF_SCANNER_FLOW_PROJECTOR, FF_SCANNER_FLOW_PROJECTOR}},
    {"retention", {FF_SCANNER_RETENTION_TRIMMER, FF_SCANNER_RETENTION_TRIMMER}},
};

static const ff_scanner_id *find_reconciler(ff_request *r, ff_text name) {
    for (size_t i = 0; i < sizeof reconcilers / sizeof *reconcilers; i++) {
        if (ff_text_equal_ignoring_case(name, ff_text_of(reconcilers[i].name))) {
            return reconcilers[i].scanners;
        }
    }
    ff_request_refuse(r, FF_TEXT("a reconciler is one of index, budget, quota, dependency, cancel, "
                                 "sibling_cancel, flow_summary, retention"));
    return NULL;
}

/* partition|* name [LIMIT n] */
static ff_verdict reconcile(ff_request *r) {
    run_options o = {.limit = FF_PASS_LIMIT};
    const ff_option_table limit_row = {&run_rows[1], 1};
    ff_scope scope = FF_SCOPE_ALL;
    ff_tally tally = {0};
    if (r->argc < 2) return ff_request_wrong_arity(r);
    const ff_scanner_id *ids = find_reconciler(r, r->args[1]);
    if (ids == NULL || !ff_request_options(r, 2, limit_row, &o, NULL) ||
        !ff_pass_partition(r, r->args[0], family_of(ids[0]), &scope.partition)) {
        return FF_DISCARD;
    }
    scope.limit = (uint64_t)o.limit;
    ff_runner_run(r->ctx, ids[0], &scope, &tally);
    if (ids[1] != ids[0]) ff_runner_run(r->ctx, ids[1], &scope, &tally);
    return ff_pass_answer(r, &tally);
}

static int serve_reconcile(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    /* A moment may have passed since the server let the command through. */
    if (ff_permission_of_node(ctx) == FF_MAY_NOT) {
        return ValkeyModule_ReplyWithError(ctx, "ERR this node may not write now");
    }
    return ff_request_serve(ctx, argv, argc, 1, reconcile, false);
}

static int reconcile_command(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    if (ValkeyModule_IsKeysPositionRequest(ctx)) {
        return ff_request_report_key(ctx, argv, argc, 1,
                                     VALKEYMODULE_CMD_KEY_RW | VALKEYMODULE_CMD_KEY_ACCESS |
                                         VALKEYMODULE_CMD_KEY_UPDATE);
    }
    return ff_serve_in_any_slot(ctx, argv, argc, serve_reconcile);
}

static FF_NATIVE_READ(list_command, 2, list);
static FF_NATIVE_WRITE(run_command, 2, run);
static FF_NATIVE_READ(pause_command, 2, pause);
static FF_NATIVE_READ(resume_command, 2, resume);

#define PER_CANDIDATE "O(N) in the number of candidates, at most LIMIT."

static const ff_command rows[] = {
    {"ff.scanner", FF_CONTAINER_OF("the background scanners")},
    {"ff.scanner|list", list_command, FF_OPERATOR_READS,
     .info = {FF_DOCUMENTED, .summary = "Returns every scanner with its state and counters.",
              .complexity = "O(1)", .arity = 2}},
    {"ff.scanner|run", run_command, FF_OPERATOR_FREES,
     .info = {FF_DOCUMENTED, .summary = "Runs one cycle of a scanner now.",
              .complexity = PER_CANDIDATE, .arity = -3,
              .args =
                  FF_ARGS(FF_ARG("name", STRING), FF_OPTION_ARG("partition", "PARTITION", STRING),
                          FF_OPTION_ARG("limit", "LIMIT", INTEGER))}},
    {"ff.scanner|pause", pause_command, FF_OPERATOR_READS,
     .info = {FF_DOCUMENTED, .summary = "Stops a scanner's cycles until it is resumed.",
              .complexity = "O(1)", .arity = 3, .args = FF_ARGS(FF_ARG("name", STRING))}},
    {"ff.scanner|resume", resume_command, FF_OPERATOR_READS,
     .info = {FF_DOCUMENTED, .summary = "Lets a scanner go on that was paused.",
              .complexity = "O(1)", .arity = 3, .args = FF_ARGS(FF_ARG("name", STRING))}},
    {"ff.reconcile", reconcile_command, FF_OPERATOR_FREES,
     .info = {FF_DOCUMENTED, .summary = "Runs one reconciler now, over a partition or all.",
              .complexity = PER_CANDIDATE, .arity = -3, .key_specs = FF_KEY_WRITE(1),
              .args = FF_ARGS(FF_KEY_ARG("partition"), FF_ARG("name", STRING),
                              FF_OPTION_ARG("limit", "LIMIT", INTEGER))}},
};

const ff_command_table ff_scanner_commands = FF_COMMAND_TABLE(rows);
