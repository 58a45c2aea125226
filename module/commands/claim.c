/* FF.CLAIM */

#include "claim/claim.h"

#include "base/arena.h"
#include "claim/waiter.h"
#include "commands/command.h"
#include "commands/request.h"
#include "worker_registry.h"

static ff_verdict claim(ff_request *r) {
    ff_claim_order order;
    if (!ff_claim_order_parse(&r->txn.arena, r->args, r->argc, &order, &r->error)) {
        return FF_DISCARD;
    }
    if (!ff_claim_is_possible(r->ctx)) {
        return ff_request_refuse(
            r, FF_TEXT("in a cluster FF.CLAIM cannot be part of a transaction or script"));
    }
    ff_workers_note_claim(order.namespace, order.worker, order.instance, order.capabilities_csv,
                          r->txn.now);
    bool keyed = !ff_text_is_absent(order.partition_tag);
    ff_answer_become_list(&r->answer);
    r->deferred = !ff_claim_serve(r->ctx, &order, keyed, &r->answer, NULL);
    return FF_COMMIT;
}

/* The tag given with PARTITION is the key. An option's value may look like a keyword, so the
 * options have to be read; a call that is refused for its options has none. */
static int report_key(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    char block[2048];
    ff_arena arena;
    ff_claim_order order;
    ff_text error;
    ff_arena_init(&arena, block, sizeof block);
    size_t count = (size_t)argc - 1;
    ff_text *arguments = ff_arena_array(&arena, count, sizeof *arguments);
    for (size_t i = 0; i < count; i++) arguments[i] = ff_str_text(argv[i + 1]);
    if (ff_claim_order_parse(&arena, arguments, count, &order, &error)) {
        for (size_t i = 0; i < count; i++) {
            if (arguments[i].ptr != order.partition_tag.ptr) continue;
            ValkeyModule_KeyAtPosWithFlags(ctx, (int)i + 1,
                                           VALKEYMODULE_CMD_KEY_RW | VALKEYMODULE_CMD_KEY_ACCESS |
                                               VALKEYMODULE_CMD_KEY_UPDATE);
        }
    }
    ff_arena_release(&arena);
    return VALKEYMODULE_OK;
}

static int claim_command(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    if (ValkeyModule_IsKeysPositionRequest(ctx)) return report_key(ctx, argv, argc);
    return ff_request_serve(ctx, argv, argc, 1, claim, false);
}

static const ff_command rows[] = {
    {
        "ff.claim",
        claim_command,
        .flags = "write deny-oom blocking getkeys-api",
        .categories = "write blocking",
        .info = {FF_DOCUMENTED,
                 .summary = "Takes executions that are ready to run, and leases them to a worker.",
                 .complexity =
                     "O(N+M) where N is the number of executions handed out and M is bounded by "
                     "ff.claim-partitions-per-scan, ff.claim-block-limit and ff.claim-lookahead.",
                 .arity = -4,
                 .key_specs =
                     FF_PARTITION_KEY(4, VALKEYMODULE_CMD_KEY_RW | VALKEYMODULE_CMD_KEY_ACCESS |
                                             VALKEYMODULE_CMD_KEY_UPDATE),
                 .args = FF_ARGS(FF_ARG("lane", STRING), FF_ARG("worker", STRING),
                                 FF_ARG("instance", STRING), FF_OPTION_ARG("csv", "CAPS", STRING),
                                 FF_OPTION_ARG("lease-ms", "LEASE", INTEGER),
                                 FF_OPTION_ARG("count", "COUNT", INTEGER),
                                 FF_OPTION_ARG("block-ms", "BLOCK", INTEGER),
                                 FF_BLOCK_ARG("lanes", "LANES", FF_ARG("numlanes", INTEGER),
                                              FF_MANY_ARG("lane", STRING)),
                                 FF_OPTION_ARG("namespace", "NAMESPACE", STRING), FF_PARTITION_ARG,
                                 FF_OPTION_ARG("grant-ttl-ms", "GRANT", INTEGER),
                                 FF_OPTION_ARG("timeout-ms", "TIMEOUT", INTEGER))},
    },
};

const ff_command_table ff_claim_commands = FF_COMMAND_TABLE(rows);
