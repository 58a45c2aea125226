/* FF.WORKER: who claims executions on this node.
 *
 * The registry is in memory (worker_registry.h). Beside it the keys of the reference are written, in a cluster
 * those whose slot is here: their names have no tag, so the three of one worker may belong to three nodes. */

#include "worker_registry.h"

#include <math.h>

#include "base/capability.h"
#include "commands/command.h"
#include "commands/place.h"
#include "engine/worker.h"
#include "permission.h"

enum { TTL_USUAL_MS = 60000, LANES_MOST = 1000 };

/* A worker instance that a command is about. */
typedef struct subject {
    ff_text namespace;
    ff_str *instance;
    ff_worker_register_keys keys; /* NULL: of another node */
} subject;

static ff_str *served(ff_request *r, ff_str *key) {
    return ff_key_is_served(r->ctx, key) ? key : NULL;
}

/* False after a refusal. */
static bool open_subject(ff_request *r, ff_text namespace, ff_str *instance, subject *s) {
    ff_txn *t = &r->txn;
    if (!ff_str_is_set(instance)) {
        ff_request_refuse(r, FF_TEXT("the worker instance must not be empty"));
        return false;
    }
    if (ff_text_find(namespace, ':', 0) < namespace.len) {
        /* The keys of two namespaces could not be told apart. */
        ff_request_refuse(r, FF_TEXT("the NAMESPACE of a worker must not contain a colon"));
        return false;
    }
    if (!ff_request_reaches_all_slots(r)) return false;
    ff_text stem = ff_arena_concat(&t->arena, FF_TEXT("ff:worker:"), namespace, FF_TEXT(":"),
                                   ff_str_text(instance));
    *s = (subject){namespace,
                   instance,
                   {served(r, FF_CONCAT(t, stem, FF_TEXT(":alive"))),
                    served(r, FF_CONCAT(t, stem, FF_TEXT(":caps"))),
                    served(r, FF_CONCAT(t, FF_TEXT("ff:idx:"), namespace, FF_TEXT(":workers")))}};
    return true;
}

/* The registration, if it is still good. */
static const ff_worker *find_registered(ff_request *r, const subject *s) {
    const ff_worker *worker = ff_workers_find(s->namespace, ff_str_text(s->instance));
    return worker && worker->registered_until >= r->txn.now ? worker : NULL;
}

/* ---- REGISTER ---- */

typedef struct register_options {
    ff_text namespace, capabilities;
    ff_text_list lanes;
    int64_t ttl_ms;
} register_options;

static const ff_option register_rows[] = {
    FF_OPTION("NAMESPACE", FF_OPTION_NONEMPTY, register_options, namespace),
    FF_OPTION("LANES", FF_OPTION_LIST, register_options, lanes, .min = 1, .max = LANES_MOST),
    FF_OPTION("CAPS", FF_OPTION_TEXT, register_options, capabilities),
    FF_OPTION("TTL", FF_OPTION_DURATION, register_options, ttl_ms, .min = 1, .max = 99999999999999),
};

static bool read_lanes(ff_request *r, ff_text_list lanes, ff_text *csv) {
    ff_buffer joined;
    ff_buffer_init(&joined, &r->txn.arena);
    for (size_t i = 0; i < lanes.count; i++) {
        ff_text lane = lanes.items[i];
        if (!ff_lane_is_valid(lane) || ff_text_find(lane, ',', 0) < lane.len) {
            ff_request_refuse(r, FF_TEXT("a lane of a worker is 1 to 64 printable ASCII characters "
                                         "without a comma"));
            return false;
        }
        if (i) ff_buffer_append_byte(&joined, ',');
        ff_buffer_append(&joined, lane);
    }
    *csv = ff_buffer_text(&joined);
    return true;
}

static bool read_capabilities(ff_request *r, ff_text csv, ff_text *sorted) {
    ff_capability_set set;
    ff_capability_problem problem = ff_capability_parse_worker(&r->txn.arena, csv, &set);
    if (problem) {
        ff_text word = ff_text_of(ff_capability_problem_word(problem));
        ff_refuse_with(&r->result, FF_INVALID_CAPABILITIES,
                       FF_CONCAT(&r->txn, FF_TEXT("worker:"), word));
        return false;
    }
    *sorted = ff_capability_csv(&r->txn.arena, &set);
    return true;
}

static void remember(ff_request *r, const subject *s, ff_text lanes, ff_text capabilities,
                     int64_t ttl_ms) {
    double now = r->txn.now;
    if (ff_txn_error(&r->txn)) return;
    ff_workers_register(&(ff_worker){
        .namespace = s->namespace,
        .instance = ff_str_text(s->instance),
        .worker_id = r->args[0],
        .lanes = lanes,
        .capabilities = capabilities,
        .registered_at = now,
        .heartbeat_at = now,
        .registered_until = now + (double)ttl_ms,
        .ttl_ms = ttl_ms,
    });
}

/* worker instance [NAMESPACE ns] [LANES n lane …] [CAPS csv] [TTL ms] */
static ff_verdict register_worker(ff_request *r) {
    register_options o = {.namespace = FF_TEXT("default"), .ttl_ms = TTL_USUAL_MS};
    ff_txn *t = &r->txn;
    ff_text lanes;
    ff_text capabilities;
    subject s;
    if (!ff_request_options(r, 2, FF_OPTION_TABLE(register_rows), &o, NULL) ||
        !read_lanes(r, o.lanes, &lanes) || !read_capabilities(r, o.capabilities, &capabilities) ||
        !open_subject(r, o.namespace, r->argv[1], &s)) {
        return FF_DISCARD;
    }
    if (r->args[0].len == 0) return ff_request_refuse(r, FF_TEXT("the worker must not be empty"));
    bool known = find_registered(r, &s) != NULL;
    ff_worker_register_args args = {
        s.instance,
        r->argv[0],
        ff_str_make(t, lanes),
        ff_str_make(t, capabilities),
        ff_str_integer(t, o.ttl_ms),
        ff_str_now(t),
    };
    ff_verdict verdict = ff_worker_register(t, &s.keys, &args, &r->result);
    if (r->result.code != FF_OK) return verdict;
    remember(r, &s, lanes, capabilities, o.ttl_ms);
    ff_str *status = r->result.values[0].str;
    if (s.keys.alive == NULL) status = known ? W(refreshed)->str : W(registered)->str;
    ff_answer_become_map(&r->answer);
    ff_answer_text(&r->answer, "status", status);
    ff_answer_integer(&r->answer, "expires_at", (int64_t)t->now + o.ttl_ms);
    return verdict;
}

/* ---- HEARTBEAT ---- */

typedef struct instance_options {
    ff_text namespace;
} instance_options;

static const ff_option instance_rows[] = {
    FF_OPTION("NAMESPACE", FF_OPTION_NONEMPTY, instance_options, namespace),
};

/* instance [NAMESPACE ns] */
static bool read_instance(ff_request *r, subject *s) {
    instance_options o = {FF_TEXT("default")};
    return ff_request_options(r, 1, FF_OPTION_TABLE(instance_rows), &o, NULL) &&
           open_subject(r, o.namespace, r->argv[0], s);
}

/* What the worker is able to do is on another node: this one goes by its memory. */
static ff_verdict beat_in_memory(ff_request *r, const subject *s) {
    const ff_worker *worker = find_registered(r, s);
    if (worker == NULL) return ff_ok_word(&r->result, W(not_registered));
    if (s->keys.alive) {
        ff_key *alive = ff_any_open(&r->txn, s->keys.alive);
        ff_string_set(alive, W(one)->str, worker->ttl_ms);
    }
    ff_result_add_word(&r->result, W(refreshed));
    ff_result_add(&r->result, ff_str_integer(&r->txn, worker->ttl_ms));
    return ff_ok(&r->result);
}

static ff_verdict heartbeat(ff_request *r) {
    subject s;
    ff_txn *t = &r->txn;
    if (!read_instance(r, &s)) return FF_DISCARD;
    ff_worker_heartbeat_keys keys = {s.keys.alive, s.keys.caps};
    ff_worker_heartbeat_args args = {ff_str_now(t)};
    ff_verdict verdict =
        s.keys.caps ? ff_worker_heartbeat(t, &keys, &args, &r->result) : beat_in_memory(r, &s);
    if (r->result.code != FF_OK) return verdict;
    bool refreshed = r->result.count > 1;
    if (refreshed && !ff_txn_error(t)) {
        ff_workers_heartbeat(s.namespace, ff_str_text(s.instance), t->now);
    }
    ff_answer_become_map(&r->answer);
    ff_answer_text(&r->answer, "status", r->result.values[0].str);
    ff_answer_number(&r->answer, "ttl_ms", refreshed ? r->result.values[1].str : NULL);
    return verdict;
}

/* ---- DEAD ---- */

/* instance [NAMESPACE ns] */
static ff_verdict dead(ff_request *r) {
    subject s;
    ff_txn *t = &r->txn;
    if (!read_instance(r, &s)) return FF_DISCARD;
    bool known = ff_workers_find(s.namespace, ff_str_text(s.instance)) ||
                 (s.keys.alive && ff_key_exists(ff_any_open(t, s.keys.alive))) ||
                 (s.keys.caps && ff_key_exists(ff_any_open(t, s.keys.caps))) ||
                 (s.keys.workers && ff_set_has(ff_set_open(t, s.keys.workers), s.instance));
    ff_worker_dismiss(t, &s.keys, s.instance);
    if (!ff_txn_error(t)) ff_workers_remove(s.namespace, ff_str_text(s.instance));
    ff_answer_become_map(&r->answer);
    ff_answer_word(&r->answer, "status", known ? W(removed) : W(not_registered));
    return FF_COMMIT;
}

/* ---- LIST ---- */

typedef struct list_options {
    ff_text namespace, lane;
} list_options;

static const ff_option list_rows[] = {
    FF_OPTION("NAMESPACE", FF_OPTION_NONEMPTY, list_options, namespace),
    FF_OPTION("LANE", FF_OPTION_NONEMPTY, list_options, lane),
};

typedef struct listing {
    ff_request *r;
    list_options o;
} listing;

static void answer_csv(ff_answer *map, const char *name, ff_text csv) {
    ff_answer *pieces = ff_answer_member(map, ff_text_of(name));
    ff_text piece;
    ff_answer_become_list(pieces);
    while (csv.len && ff_text_split(&csv, ',', &piece)) {
        ff_answer_become_text(ff_answer_add(pieces), ff_str_make(map->txn, piece));
    }
}

static bool has_lane(ff_text csv, ff_text lane) {
    ff_text piece;
    while (ff_text_split(&csv, ',', &piece)) {
        if (ff_text_equal(piece, lane)) return true;
    }
    return false;
}

static void answer_time(ff_answer *map, const char *name, double at) {
    if (at > 0 && isfinite(at)) {
        ff_answer_integer(map, name, (int64_t)at);
    } else {
        ff_answer_null(map, name);
    }
}

static bool list_one(const ff_worker *worker, void *data) {
    listing *l = data;
    ff_txn *t = &l->r->txn;
    bool registered = worker->registered_until >= t->now;
    bool any_namespace = ff_text_is_absent(l->o.namespace);
    if (!any_namespace && !ff_text_equal(worker->namespace, l->o.namespace)) return true;
    if (!ff_text_is_absent(l->o.lane) && !has_lane(worker->lanes, l->o.lane)) return true;
    double until = registered ? worker->registered_until : worker->claimed_until;
    ff_answer *entry = ff_answer_add(&l->r->answer);
    ff_answer_become_map(entry);
    ff_answer_text(entry, "instance", ff_str_make(t, worker->instance));
    ff_answer_text(entry, "worker", ff_str_make(t, worker->worker_id));
    ff_answer_text(entry, "namespace",
                   worker->namespace.len ? ff_str_make(t, worker->namespace) : NULL);
    answer_csv(entry, "lanes", registered ? ff_text_or_empty(worker->lanes) : FF_TEXT(""));
    answer_csv(entry, "capabilities",
               ff_text_or_empty(registered ? worker->capabilities : worker->claim_capabilities));
    answer_time(entry, "registered_at", registered ? worker->registered_at : 0);
    answer_time(entry, "last_heartbeat_at", registered ? worker->heartbeat_at : 0);
    answer_time(entry, "expires_at", until);
    return true;
}

/* [NAMESPACE ns] [LANE lane] */
static ff_verdict list(ff_request *r) {
    listing l = {.r = r};
    if (!ff_request_options(r, 0, FF_OPTION_TABLE(list_rows), &l.o, NULL)) return FF_DISCARD;
    ff_answer_become_list(&r->answer);
    ff_workers_visit(r->txn.now, list_one, &l);
    return FF_DISCARD;
}

/* None of them names a key. */
static int register_command(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    return ff_request_serve(ctx, argv, argc, 2, register_worker, false);
}

static int heartbeat_command(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    return ff_request_serve(ctx, argv, argc, 2, heartbeat, false);
}

static int dead_command(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    return ff_request_serve(ctx, argv, argc, 2, dead, false);
}

static int list_command(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    return ff_request_serve(ctx, argv, argc, 2, list, true);
}

static const ff_command rows[] = {
    {"ff.worker", FF_CONTAINER_OF("workers")},
    {"ff.worker|register", register_command, .flags = "write deny-oom", .categories = "write",
     .info = {FF_DOCUMENTED, .summary = "Announces a worker instance to this node.",
              .complexity = "O(N) with N the number of lanes and capabilities", .arity = -4,
              .args = FF_ARGS(FF_ARG("worker", STRING), FF_ARG("instance", STRING),
                              FF_OPTION_ARG("namespace", "NAMESPACE", STRING),
                              FF_BLOCK_ARG("lanes", "LANES", FF_ARG("count", INTEGER),
                                           FF_MANY_ARG("lane", STRING)),
                              FF_OPTION_ARG("capabilities", "CAPS", STRING),
                              FF_OPTION_ARG("ttl-ms", "TTL", INTEGER))}},
    {"ff.worker|heartbeat", heartbeat_command, .flags = "write deny-oom", .categories = "write",
     .info = {FF_DOCUMENTED, .summary = "Renews the registration of a worker instance.",
              .complexity = "O(1)", .arity = -3,
              .args = FF_ARGS(FF_ARG("instance", STRING),
                              FF_OPTION_ARG("namespace", "NAMESPACE", STRING))}},
    {"ff.worker|list", list_command, .flags = "readonly", .categories = "read",
     .info = {FF_DOCUMENTED, .summary = "Returns the live workers that this node knows.",
              .complexity = "O(N) with N the number of workers", .arity = -2,
              .args = FF_ARGS(FF_OPTION_ARG("namespace", "NAMESPACE", STRING),
                              FF_OPTION_ARG("lane", "LANE", STRING))}},
    {"ff.worker|dead", dead_command, .flags = "write", .categories = "write",
     .info = {FF_DOCUMENTED,
              .summary = "Takes a worker instance out of the registry before its time is over.",
              .complexity = "O(1)", .arity = -3,
              .args = FF_ARGS(FF_ARG("instance", STRING),
                              FF_OPTION_ARG("namespace", "NAMESPACE", STRING))}},
};

const ff_command_table ff_worker_commands = FF_COMMAND_TABLE(rows);
