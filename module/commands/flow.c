/* FF.FLOW CREATE, ADD, EDGE, CANCEL, TAG: flows built and changed step by step. */

#include "engine/flow.h"
#include "commands/command.h"
#include "commands/graph.h"
#include "commands/place.h"
#include "config.h"
#include "engine/keyname.h"
#include "scan/member.h"

/* The flow that the first argument names; false after a refusal. */
static bool open_flow(ff_request *r, ff_reference *reference, ff_graph *g) {
    if (!ff_request_reference(r, r->args[0], FF_FAMILY_FLOW, reference)) return false;
    ff_graph_open(&r->txn, reference->tag, ff_reference_id(&r->txn, reference), g);
    return true;
}

/* An argument that names an execution of the flow's partition, in its usual form; NULL after a refusal. */
static ff_str *read_member(ff_request *r, const ff_graph *g, size_t at) {
    ff_reference id;
    if (!ff_request_execution_id(r, r->args[at], &id)) return NULL;
    if (ff_text_equal(id.tag, g->tag)) return ff_reference_str(&r->txn, &id);
    ff_request_refuse(r, ff_arena_concat(&r->txn.arena, FF_TEXT("the execution "), r->args[at],
                                         FF_TEXT(" is not in the flow's partition "), g->tag));
    return NULL;
}

static ff_strs strings_of(ff_request *r, ff_text_list list) {
    ff_strs strs = {ff_arena_array(&r->txn.arena, list.count, sizeof(ff_str *)), list.count};
    for (size_t i = 0; i < list.count; i++) strs.items[i] = ff_str_make(&r->txn, list.items[i]);
    return strs;
}

static ff_verdict write_tags(ff_graph *g, ff_strs pairs, ff_result *out) {
    ff_flow_tag_keys keys = {g->core_name, ff_graph_key(g, "tags", FF_TEXT(""))};
    ff_flow_tag_args args = {.pairs = pairs};
    return ff_flow_tag(g->txn, &keys, &args, out);
}

typedef struct create_options {
    ff_text namespace;
    ff_text_list tags;
} create_options;

static const ff_option create_rows[] = {
    FF_OPTION("NAMESPACE", FF_OPTION_NONEMPTY, create_options, namespace),
    FF_OPTION("TAGS", FF_OPTION_PAIRS, create_options, tags, .min = 1),
};

/* where|ref kind [NAMESPACE ns] [TAGS n name value …] */
static ff_verdict create(ff_request *r) {
    create_options o = {.namespace = FF_TEXT("default")};
    ff_reference reference;
    ff_graph g;
    if (!ff_request_place(r, r->args[0], FF_FAMILY_FLOW, &reference) ||
        !ff_request_options(r, 2, FF_OPTION_TABLE(create_rows), &o, NULL)) {
        return FF_DISCARD;
    }
    if (r->args[1].len == 0) return ff_request_refuse(r, FF_TEXT("the kind must not be empty"));
    ff_graph_open(&r->txn, reference.tag, ff_reference_id(&r->txn, &reference), &g);
    ff_verdict verdict =
        ff_graph_create(&g, r->argv[1], ff_str_make(&r->txn, o.namespace), &r->result);
    bool created = r->result.code == FF_OK;
    if (created && o.tags.count) {
        r->result = (ff_result){.txn = &r->txn};
        verdict = write_tags(&g, strings_of(r, o.tags), &r->result);
    }
    if (r->result.code >= FF_FIRST_REFUSAL) return verdict;
    ff_answer_become_map(&r->answer);
    ff_answer_text(&r->answer, "flow", ff_reference_str(&r->txn, &reference));
    ff_answer_text(&r->answer, "state", ff_hash_get(g.core, W(public_flow_state)));
    ff_answer_integer(&r->answer, "created", created);
    return verdict;
}

/* ref eid */
static ff_verdict add(ff_request *r) {
    ff_reference reference;
    ff_graph g;
    if (!open_flow(r, &reference, &g)) return FF_DISCARD;
    ff_subject member;
    ff_str *member_id = read_member(r, &g, 1);
    if (member_id == NULL) return FF_DISCARD;
    ff_subject_open(&r->txn, g.tag, member_id, &member);
    ff_verdict verdict = ff_graph_add(&g, &member, &r->result);
    if (r->result.code >= FF_FIRST_REFUSAL) return FF_DISCARD;
    ff_request_answer_status(r);
    ff_answer_text(&r->answer, "execution_id", member_id);
    ff_answer_number(&r->answer, "node_count", r->result.values[1].str);
    return verdict;
}

typedef struct edge_options {
    ff_text kind, data;
    int on_satisfied;
} edge_options;

static const char *const on_satisfied_choices[] = {"cancel_remaining", "let_run", NULL};

static const ff_option edge_rows[] = {
    FF_OPTION("ON_SATISFIED", FF_OPTION_CHOICE, edge_options, on_satisfied,
              .choices = on_satisfied_choices),
    FF_OPTION("KIND", FF_OPTION_NONEMPTY, edge_options, kind),
    FF_OPTION("DATA", FF_OPTION_NONEMPTY, edge_options, data),
};

/* The value of POLICY at argument `at`; returns how many arguments it takes, 0 after a refusal. */
static size_t read_policy(ff_request *r, size_t at, ff_join *join) {
    ff_text variant = at < r->argc ? r->args[at] : FF_TEXT_ABSENT;
    ff_text k = at + 1 < r->argc ? r->args[at + 1] : FF_TEXT_ABSENT;
    ff_text error = FF_TEXT("POLICY must be all_of, any_of or quorum n");
    if (ff_text_equal_ignoring_case(variant, FF_TEXT("all_of"))) {
        join->variant = W(all_of);
        return 1;
    }
    if (ff_text_equal_ignoring_case(variant, FF_TEXT("any_of"))) {
        join->variant = W(any_of);
        return 1;
    }
    if (ff_text_equal_ignoring_case(variant, FF_TEXT("quorum"))) {
        join->variant = W(quorum);
        if (!ff_text_is_absent(k) &&
            ff_argument_integer("the quorum", k, 1, INT32_MAX, &join->k, &r->txn.arena, &error)) {
            return 2;
        }
    }
    ff_request_refuse(r, error);
    return 0;
}

/* POLICY takes one value or two, which a table of options cannot tell: it is taken out of the arguments
 * before they are read by the table. */
static bool take_policy(ff_request *r, size_t from, ff_join *join) {
    size_t at = from;
    while (at < r->argc) {
        if (!ff_text_equal_ignoring_case(r->args[at], FF_TEXT("POLICY"))) {
            at += 2;
            continue;
        }
        if (join->variant) {
            ff_request_refuse(r, FF_TEXT("POLICY is given more than once"));
            return false;
        }
        size_t taken = read_policy(r, at + 1, join);
        if (taken == 0) return false;
        for (size_t i = at; i + taken + 1 < r->argc; i++) r->args[i] = r->args[i + taken + 1];
        r->argc -= taken + 1;
    }
    return true;
}

static bool read_join(ff_request *r, edge_options *o, ff_join *join) {
    uint64_t given;
    if (!take_policy(r, 3, join) ||
        !ff_request_options(r, 3, FF_OPTION_TABLE(edge_rows), o, &given)) {
        return false;
    }
    if (!(given & 1)) return true;
    join->on_satisfied = o->on_satisfied == 0 ? W(cancel_remaining) : W(let_run);
    if (join->variant == W(any_of) || join->variant == W(quorum)) return true;
    ff_request_refuse(r, FF_TEXT("ON_SATISFIED needs POLICY any_of or quorum"));
    return false;
}

static ff_verdict link_members(ff_request *r, ff_graph *g, const ff_edge *edge,
                               const ff_join *join) {
    ff_code refused = ff_flow_check_open(g->core);
    if (refused) return ff_refuse(&r->result, refused);
    if (ff_graph_join(g, edge->downstream->execution_id, join, &r->result) == FF_DISCARD)
        return FF_DISCARD;
    r->result = (ff_result){.txn = &r->txn};
    if (ff_graph_link(g, edge, &r->result) == FF_DISCARD) return FF_DISCARD;
    ff_result settled = {.txn = &r->txn};
    if (ff_graph_settle(g, edge, r->result.values[0].str, &settled) == FF_COMMIT) return FF_COMMIT;
    r->result = settled;
    return FF_DISCARD;
}

/* ref upstream downstream [POLICY all_of|any_of|quorum n] [ON_SATISFIED …] [KIND k] [DATA name] */
static ff_verdict edge(ff_request *r) {
    edge_options o = {0};
    ff_join join = {0};
    ff_reference reference;
    ff_graph g;
    ff_subject child;
    if (!open_flow(r, &reference, &g)) return FF_DISCARD;
    ff_edge added = {.upstream = read_member(r, &g, 1), .downstream = &child};
    if (added.upstream == NULL) return FF_DISCARD;
    ff_str *child_id = read_member(r, &g, 2);
    if (child_id == NULL || !read_join(r, &o, &join)) return FF_DISCARD;
    ff_subject_open(&r->txn, g.tag, child_id, &child);
    added.kind = ff_request_str(r, o.kind);
    added.data = ff_request_str(r, o.data);
    if (link_members(r, &g, &added, &join) == FF_DISCARD) return FF_DISCARD;
    ff_answer_become_map(&r->answer);
    ff_answer_text(&r->answer, "edge_id", r->result.values[0].str);
    ff_answer_number(&r->answer, "graph_revision", r->result.values[1].str);
    ff_answer_text(&r->answer, "state", ff_hash_get(child.core, W(public_state)));
    return FF_COMMIT;
}

typedef struct cancelling {
    ff_str *reason;
    ff_key *owed; /* members left for the scanner */
    int64_t cancelled, ended, pending;
} cancelling;

static void cancel_member(ff_graph *g, ff_str *member, bool in_bounds, cancelling *c) {
    ff_member_fate fate = FF_MEMBER_TRY_AGAIN;
    if (in_bounds && ff_member_is_local(ff_str_text(member), g->tag)) {
        fate = ff_member_cancel(g->txn, g->tag, member, c->reason);
    }
    if (fate == FF_MEMBER_CANCELLED) {
        c->cancelled++;
    } else if (fate == FF_MEMBER_TRY_AGAIN) {
        ff_set_add(c->owed, member);
        c->pending++;
    } else {
        c->ended++;
    }
}

/* ref reason */
static ff_verdict cancel(ff_request *r) {
    ff_reference reference;
    ff_graph g;
    if (!open_flow(r, &reference, &g)) return FF_DISCARD;
    ff_txn *t = &r->txn;
    ff_flow_cancel_keys keys = {
        g.core_name,
        g.members_name,
        g.index_name,
        ff_graph_key(&g, "pending_cancels", FF_TEXT("")),
        ff_keyname_index(t, g.tag, "cancel_backlog"),
    };
    /* Only what is not done here is owed: the engine would note down all members first. */
    ff_flow_cancel_args args = {g.flow_id, r->argv[1], W(flow_only)->str, NULL, NULL};
    if (ff_flow_cancel(t, &keys, &args, &r->result) == FF_DISCARD) return FF_DISCARD;
    ff_hash_set_word(g.core, W(cancellation_policy), W(cancel_all));

    cancelling c = {.reason = r->argv[1], .owed = ff_set_open(t, keys.pending_cancels)};
    for (size_t i = 1; i < r->result.count; i++) {
        cancel_member(&g, r->result.values[i].str, i <= (size_t)ff_config.cascade_limit, &c);
    }
    if (c.pending) ff_zset_add(ff_zset_open(t, keys.cancel_backlog), g.flow_id, t->now);
    ff_answer_become_map(&r->answer);
    ff_answer_text(&r->answer, "state", ff_hash_get(g.core, W(public_flow_state)));
    ff_answer_integer(&r->answer, "cancelled", c.cancelled);
    ff_answer_integer(&r->answer, "ended_before", c.ended);
    ff_answer_integer(&r->answer, "pending", c.pending);
    return FF_COMMIT;
}

/* ref n name value [name value …] */
static ff_verdict tag(ff_request *r) {
    int64_t count;
    ff_text error;
    ff_reference reference;
    ff_graph g;
    if (!open_flow(r, &reference, &g)) return FF_DISCARD;
    if (!ff_argument_integer("the count of tags", r->args[1], 1, INT32_MAX, &count, &r->txn.arena,
                             &error)) {
        return ff_request_refuse(r, error);
    }
    if ((size_t)count * 2 != r->argc - 2) {
        return ff_request_refuse(r, ff_arena_printf(&r->txn.arena,
                                                    "%zu tags need %zu values, but %zu follow",
                                                    (size_t)count, (size_t)count * 2, r->argc - 2));
    }
    ff_verdict verdict = write_tags(&g, (ff_strs){r->argv + 2, r->argc - 2}, &r->result);
    if (r->result.code != FF_OK) return verdict;
    ff_answer_become_map(&r->answer);
    ff_answer_number(&r->answer, "tags", r->result.values[0].str);
    return verdict;
}

static FF_NATIVE_WRITE(create_command, 2, create);
static FF_NATIVE_WRITE(add_command, 2, add);
static FF_NATIVE_WRITE(edge_command, 2, edge);
static FF_NATIVE_WRITE(cancel_command, 2, cancel);
static FF_NATIVE_WRITE(tag_command, 2, tag);

#define TAG_ARGS \
    FF_ARG("count", INTEGER), \
        FF_ARG("tag", BLOCK, .flags = VALKEYMODULE_CMD_ARG_MULTIPLE, \
               .subargs = FF_ARGS(FF_ARG("name", STRING), FF_ARG("value", STRING)))

static const ff_command rows[] = {
    {"ff.flow", FF_CONTAINER_OF("flows")},
    {"ff.flow|create", create_command, FF_WRITES,
     .info = {FF_DOCUMENTED, .summary = "Creates a flow without members.", .complexity = "O(1)",
              .arity = -4, .key_specs = FF_KEY_WRITE(2),
              .args = FF_ARGS(FF_KEY_ARG("where"), FF_ARG("kind", STRING),
                              FF_OPTION_ARG("namespace", "NAMESPACE", STRING),
                              FF_BLOCK_ARG("tags", "TAGS", TAG_ARGS))}},
    {"ff.flow|add", add_command, FF_WRITES,
     .info = {FF_DOCUMENTED, .summary = "Makes an execution a member of a flow.",
              .complexity = "O(1)", .arity = 4, .key_specs = FF_KEY_WRITE(2),
              .args = FF_ARGS(FF_KEY_ARG("flow"), FF_ARG("execution-id", STRING))}},
    {"ff.flow|edge", edge_command, FF_WRITES,
     .info = {FF_DOCUMENTED, .summary = "Makes one member of a flow wait for another.",
              .complexity = "O(N) with N the number of executions and edges behind the downstream, "
                            "at most 1000 executions",
              .arity = -5, .key_specs = FF_KEY_WRITE(2),
              .args = FF_ARGS(
                  FF_KEY_ARG("flow"), FF_ARG("upstream", STRING), FF_ARG("downstream", STRING),
                  FF_ONE_OPTION_ARG("policy", "POLICY", FF_WORD_ARG("all-of", "all_of"),
                                    FF_WORD_ARG("any-of", "any_of"),
                                    FF_ARG("quorum", INTEGER, .token = "quorum")),
                  FF_ONE_OPTION_ARG("on-satisfied", "ON_SATISFIED",
                                    FF_WORD_ARG("cancel-remaining", "cancel_remaining"),
                                    FF_WORD_ARG("let-run", "let_run")),
                  FF_OPTION_ARG("kind", "KIND", STRING), FF_OPTION_ARG("data", "DATA", STRING))}},
    {"ff.flow|cancel", cancel_command, FF_WRITES,
     .info = {FF_DOCUMENTED, .summary = "Cancels a flow and its members.",
              .complexity =
                  "O(N) with N the number of members; at most ff.cascade-limit of them are "
                  "cancelled in the same step",
              .arity = 4, .key_specs = FF_KEY_WRITE(2),
              .args = FF_ARGS(FF_KEY_ARG("flow"), FF_ARG("reason", STRING))}},
    {"ff.flow|tag", tag_command, FF_WRITES,
     .info = {FF_DOCUMENTED, .summary = "Sets tags of a flow.",
              .complexity = "O(N) with N the number of tags", .arity = -6,
              .key_specs = FF_KEY_WRITE(2), .args = FF_ARGS(FF_KEY_ARG("flow"), TAG_ARGS)}},
};

const ff_command_table ff_flow_commands = FF_COMMAND_TABLE(rows);
