/* FF.CREATE: a new execution. */

#include "base/crc16.h"
#include "commands/command.h"
#include "commands/creation.h"
#include "commands/graph.h"
#include "commands/place.h"
#include "engine/keyname.h"
#include "engine/mint.h"
#include "permission.h"
#include "presence.h"

enum { LIST_MOST = 10000 };

typedef struct create_options {
    ff_text namespace, payload, creator, policy, capabilities, idempotency_key, quota, flow;
    int64_t priority, delay, at, deadline, remember_ms;
    ff_text_list tags, budgets, after;
} create_options;

enum { DELAY_ROW, AT_ROW, DEADLINE_ROW };
enum { DUE = 1 };
static const ff_option create_rows[] = {
    [DELAY_ROW] = FF_OPTION("DELAY", FF_OPTION_DURATION, create_options, delay, .group = DUE),
    [AT_ROW] = FF_OPTION("AT", FF_OPTION_TIME, create_options, at, .group = DUE),
    [DEADLINE_ROW] = FF_OPTION("DEADLINE", FF_OPTION_TIME, create_options, deadline),
    FF_OPTION("NAMESPACE", FF_OPTION_NONEMPTY, create_options, namespace),
    FF_OPTION("PAYLOAD", FF_OPTION_TEXT, create_options, payload),
    FF_OPTION("PRIORITY", FF_OPTION_INTEGER, create_options, priority,
              .max = FF_CREATION_PRIORITY_MOST),
    FF_OPTION("CREATOR", FF_OPTION_TEXT, create_options, creator),
    FF_OPTION("POLICY", FF_OPTION_TEXT, create_options, policy),
    FF_OPTION("CAPS", FF_OPTION_TEXT, create_options, capabilities),
    FF_OPTION("TAGS", FF_OPTION_PAIRS, create_options, tags, .max = LIST_MOST),
    FF_OPTION("IDEMPOTENT", FF_OPTION_NONEMPTY, create_options, idempotency_key, .label = "key"),
    FF_OPTION_THEN(FF_OPTION_DURATION, create_options, remember_ms, .label = "ttl-ms", .min = 1),
    FF_OPTION("BUDGETS", FF_OPTION_LIST, create_options, budgets, .max = LIST_MOST),
    FF_OPTION("QUOTA", FF_OPTION_TEXT, create_options, quota),
    FF_OPTION("FLOW", FF_OPTION_TEXT, create_options, flow),
    FF_OPTION("AFTER", FF_OPTION_LIST, create_options, after, .min = 1, .max = LIST_MOST),
};

/* A creation whose arguments are being read. */
typedef struct creating {
    ff_request *r;
    create_options o;
    uint64_t given;
    ff_creation c;
    ff_subject s;
    bool in_flow;
    ff_reference flow;
} creating;

static bool refuse(creating *g, ff_text sentence) {
    ff_request_refuse(g->r, sentence);
    return false;
}

static bool is_given(const creating *g, int row) { return g->given >> row & 1; }

/* ---- Where it goes ---- */

/* Always the same one for the same key, or a retry would not find what the first call has
 * created. */
static bool pick_by_key(creating *g, ff_partition *partition) {
    ff_arena *arena = &g->r->txn.arena;
    ff_text hashed =
        ff_arena_concat(arena, g->o.namespace, ff_text_make("", 1), g->o.idempotency_key);
    uint16_t count = ff_partition_count(FF_FAMILY_FLOW);
    *partition =
        (ff_partition){FF_FAMILY_FLOW, (uint16_t)(ff_crc16(hashed.ptr, hashed.len) % count)};
    if (ff_partition_is_served(g->r->ctx, *partition)) return true;
    return refuse(g, ff_arena_concat(arena,
                                     FF_TEXT("that idempotency key belongs to a partition of "
                                             "another node: use "),
                                     ff_tag_text(arena, *partition), FF_TEXT(" instead of *")));
}

static bool pick_partition(creating *g, ff_partition *partition) {
    ff_text where = g->r->args[0];
    if (ff_text_equal(where, FF_TEXT("*"))) {
        if (g->in_flow) {
            *partition = g->flow.partition;
            return true;
        }
        if (!ff_request_reaches_all_slots(g->r)) return false;
        if (!ff_text_is_absent(g->o.idempotency_key)) return pick_by_key(g, partition);
    }
    if (where.len && (where.ptr[0] == '*' || where.ptr[where.len - 1] == '}')) {
        return ff_request_partition(g->r, where, FF_FAMILY_FLOW, partition);
    }
    ff_arena *arena = &g->r->txn.arena;
    return refuse(g, ff_arena_concat(arena, FF_TEXT("'"), ff_arena_printable(arena, where),
                                     FF_TEXT("' is not a place: expected {fp:N}:<uuid>, {fp:N} "
                                             "or *")));
}

/* Reads `where`: an execution id, a partition, or `*`. */
static bool read_where(creating *g) {
    ff_request *r = g->r;
    ff_reference id;
    if (ff_execution_id_parse(r->args[0], &id)) {
        if (!ff_request_execution_id(r, r->args[0], &id)) return false;
    } else {
        id.uuid = ff_mint_uuid();
        if (!pick_partition(g, &id.partition)) return false;
    }
    ff_text tag = ff_tag_text(&r->txn.arena, id.partition);
    if (g->in_flow && !ff_text_equal(tag, g->flow.tag)) {
        return refuse(g, ff_arena_concat(&r->txn.arena, FF_TEXT("'"), r->args[0],
                                         FF_TEXT("' is not in the partition of its FLOW: use "),
                                         g->flow.tag, FF_TEXT(" or *")));
    }
    ff_subject_open(&r->txn, tag, ff_reference_str(&r->txn, &id), &g->s);
    return true;
}

/* ---- The other arguments ---- */

static bool read_flow(creating *g) {
    g->in_flow = !ff_text_is_absent(g->o.flow);
    if (g->o.after.count && (is_given(g, DELAY_ROW) || is_given(g, AT_ROW))) {
        return refuse(g, FF_TEXT("AFTER excludes DELAY and AT: what waits for others starts when "
                                 "they have ended"));
    }
    if (g->in_flow) return ff_request_reference(g->r, g->o.flow, FF_FAMILY_FLOW, &g->flow);
    return g->o.after.count == 0 ? true : refuse(g, FF_TEXT("AFTER needs a FLOW"));
}

static bool read_names(creating *g) {
    ff_request *r = g->r;
    if (!ff_lane_is_valid(r->args[1])) {
        return refuse(g, FF_TEXT("the lane must be 1 to 64 printable ASCII characters"));
    }
    if (r->args[2].len == 0) return refuse(g, FF_TEXT("the kind must not be empty"));
    if (ff_text_contains(ff_text_or_empty(g->o.idempotency_key), FF_TEXT("ff:noop:"))) {
        return refuse(g, FF_TEXT("an idempotency key must not contain ff:noop:"));
    }
    return true;
}

static bool read_limits(creating *g) {
    g->c.policy = ff_request_str(g->r, g->o.policy);
    return ff_request_budget_ids(g->r, g->o.budgets, &g->c.budget_ids) &&
           ff_request_quota_id(g->r, g->o.quota, &g->c.quota_id) &&
           ff_request_capabilities(g->r, g->c.policy, g->o.capabilities, &g->c.capabilities);
}

static ff_strs strs_of(ff_txn *t, ff_text_list list) {
    ff_strs strs = {ff_arena_array(&t->arena, list.count, sizeof(ff_str *)), list.count};
    for (size_t i = 0; i < list.count; i++) strs.items[i] = ff_str_make(t, list.items[i]);
    return strs;
}

static void fill_in(creating *g) {
    ff_request *r = g->r;
    ff_txn *t = &r->txn;
    ff_creation *c = &g->c;
    c->namespace = ff_str_make(t, g->o.namespace);
    c->lane = r->argv[1];
    c->kind = r->argv[2];
    c->creator = ff_request_str(r, g->o.creator);
    c->payload = ff_request_str(r, g->o.payload);
    c->priority = g->o.priority;
    c->due_at = is_given(g, AT_ROW) ? g->o.at : (int64_t)t->now + g->o.delay;
    c->has_deadline = is_given(g, DEADLINE_ROW);
    c->deadline_at = g->o.deadline;
    c->tags = strs_of(t, g->o.tags);
    if (ff_text_is_absent(g->o.idempotency_key)) return;
    c->remember_ms = g->o.remember_ms;
    c->idempotency = FF_CONCAT(t, FF_TEXT("ff:idem:"), g->s.tag, FF_TEXT(":"), g->o.namespace,
                               FF_TEXT(":"), g->o.idempotency_key);
}

/* ---- Joining a flow ---- */

/* One edge; an upstream that has ended will not do so again, so the edge is resolved at once. */
static bool wait_for(creating *g, ff_graph *graph, ff_text upstream) {
    ff_request *r = g->r;
    ff_reference id;
    if (!ff_request_execution_id(r, upstream, &id)) return false;
    if (!ff_text_equal(id.tag, g->flow.tag)) {
        return refuse(g,
                      ff_arena_concat(&r->txn.arena, FF_TEXT("AFTER '"), upstream,
                                      FF_TEXT("' is not in the flow's partition "), g->flow.tag));
    }
    ff_edge edge = {.upstream = ff_reference_str(&r->txn, &id), .downstream = &g->s};
    r->result.count = 0;
    if (ff_graph_link(graph, &edge, &r->result) == FF_DISCARD) return false;
    ff_str *edge_id = r->result.values[0].str;
    r->result.count = 0;
    return ff_graph_settle(graph, &edge, edge_id, &r->result) == FF_COMMIT;
}

static bool join(creating *g) {
    ff_graph graph;
    ff_txn *t = &g->r->txn;
    ff_graph_open(t, g->s.tag, ff_reference_id(t, &g->flow), &graph);
    g->r->result.count = 0;
    if (ff_graph_add(&graph, &g->s, &g->r->result) == FF_DISCARD) return false;
    for (size_t i = 0; i < g->o.after.count; i++) {
        if (!wait_for(g, &graph, g->o.after.items[i])) return false;
    }
    return true;
}

/* ---- The command ---- */

static void answer(creating *g, ff_str *execution_id, ff_str *state, bool created) {
    ff_answer *map = &g->r->answer;
    ff_answer_become_map(map);
    ff_answer_text(map, "execution_id", execution_id);
    ff_answer_text(map, "state", state);
    ff_answer_integer(map, "created", created);
}

static ff_verdict answer_existing(creating *g, ff_str *execution_id) {
    ff_txn *t = &g->r->txn;
    ff_str *core = ff_keyname_execution(t, g->s.tag, ff_str_text(execution_id), "core");
    answer(g, execution_id, ff_hash_peek(t, ff_str_text(core), W(public_state)), false);
    return FF_COMMIT;
}

/* where lane kind … */
static ff_verdict create(ff_request *r) {
    creating g = {.r = r, .o = {.namespace = FF_TEXT("default")}};
    if (!ff_request_options(r, 3, FF_OPTION_TABLE(create_rows), &g.o, &g.given) ||
        !read_names(&g) || !read_flow(&g) || !read_limits(&g) || !read_where(&g)) {
        return FF_DISCARD;
    }
    fill_in(&g);
    ff_verdict verdict = ff_creation_stage(&g.s, &g.c, &r->result);
    if (r->result.code == FF_DUPLICATE) return answer_existing(&g, r->result.values[0].str);
    if (r->result.code != FF_OK) return verdict;
    if (g.in_flow && !join(&g)) return FF_DISCARD;
    answer(&g, g.s.execution_id, ff_hash_get(g.s.core, W(public_state)), true);
    return FF_COMMIT;
}

/* Keys are `where` if it begins with a tag, and so the flow. */
static int report_keys(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    enum { OPTIONS_AT = 4 };
    int access =
        VALKEYMODULE_CMD_KEY_RW | VALKEYMODULE_CMD_KEY_ACCESS | VALKEYMODULE_CMD_KEY_UPDATE;
    char block[1024];
    ff_arena arena;
    create_options o = {.flow = FF_TEXT_ABSENT};
    ff_text error;
    ff_request_report_key(ctx, argv, argc, 1, access);
    if (argc <= OPTIONS_AT) return VALKEYMODULE_OK;
    ff_arena_init(&arena, block, sizeof block);
    size_t count = (size_t)(argc - OPTIONS_AT);
    ff_text *words = ff_arena_array(&arena, count, sizeof *words);
    for (size_t i = 0; i < count; i++) words[i] = ff_str_text(argv[OPTIONS_AT + i]);
    ff_options_parse(FF_OPTION_TABLE(create_rows), words, count, &o, NULL, &arena, &error);
    if (ff_text_starts_with(o.flow, FF_TEXT("{"))) {
        for (size_t i = 0; i < count; i++) {
            if (words[i].ptr == o.flow.ptr) {
                ValkeyModule_KeyAtPosWithFlags(ctx, OPTIONS_AT + (int)i, access);
            }
        }
    }
    ff_arena_release(&arena);
    return VALKEYMODULE_OK;
}

static int create_command(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    if (ValkeyModule_IsKeysPositionRequest(ctx)) return report_keys(ctx, argv, argc);
    return ff_request_serve(ctx, argv, argc, 1, create, false);
}

static ValkeyModuleCommandArg tag_args[] = {FF_ARG("name", STRING), FF_ARG("value", STRING), {0}};
static ValkeyModuleCommandArg due_args[] = {
    FF_ARG("milliseconds", INTEGER, .token = "DELAY"),
    FF_ARG("unix-time-milliseconds", UNIX_TIME, .token = "AT"),
    {0},
};

static const ff_command rows[] = {
    {"ff.create", create_command, FF_WRITES,
     .info = {FF_DOCUMENTED, .summary = "Creates an execution.",
              .complexity = "O(log(N)+T+E) with T tags and E edges; the check for cycles looks at "
                            "up to 1000 members",
              .arity = -4, .key_specs = FF_KEY_WRITE(1),
              .args = FF_ARGS(
                  FF_KEY_ARG("where"), FF_ARG("lane", STRING), FF_ARG("kind", STRING),
                  FF_OPTION_ARG("namespace", "NAMESPACE", STRING),
                  FF_OPTION_ARG("payload", "PAYLOAD", STRING),
                  FF_OPTION_ARG("priority", "PRIORITY", INTEGER),
                  FF_OPTION_ARG("creator", "CREATOR", STRING),
                  FF_OPTION_ARG("policy", "POLICY", STRING),
                  FF_OPTION_ARG("capabilities", "CAPS", STRING),
                  FF_BLOCK_ARG("tags", "TAGS", FF_ARG("count", INTEGER),
                               FF_ARG("tag", BLOCK, .flags = VALKEYMODULE_CMD_ARG_MULTIPLE,
                                      .subargs = tag_args)),
                  FF_ARG("due", ONEOF, .flags = VALKEYMODULE_CMD_ARG_OPTIONAL, .subargs = due_args),
                  FF_OPTION_ARG("deadline", "DEADLINE", UNIX_TIME),
                  FF_BLOCK_ARG("idempotent", "IDEMPOTENT", FF_ARG("key", STRING),
                               FF_ARG("ttl-ms", INTEGER)),
                  FF_BLOCK_ARG("budgets", "BUDGETS", FF_ARG("count", INTEGER),
                               FF_MANY_ARG("budget", STRING)),
                  FF_OPTION_ARG("quota", "QUOTA", STRING), FF_OPTION_ARG("flow", "FLOW", STRING),
                  FF_BLOCK_ARG("after", "AFTER", FF_ARG("count", INTEGER),
                               FF_MANY_ARG("execution-id", STRING)))}},
};

const ff_command_table ff_create_commands = FF_COMMAND_TABLE(rows);
