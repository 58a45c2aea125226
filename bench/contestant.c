#include "contestant.h"

#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LEASE_MS "600000"
#define PARTITIONS_PER_CYCLE 32
#define ROTATION_MS 250

/* ---- what workers share ---- */

redisReply *worker_call(worker *self) {
    redisReply *reply = load_call(self->connection, &self->request);
    if (self->who->distance_us) load_sleep_until(load_now_us() + self->who->distance_us);
    if (reply->type == REDIS_REPLY_ERROR) {
        load_fail("%s: %.*s: %s", self->who->name, (int)self->request.sizes[0], self->request.text,
                  reply->str);
    }
    return reply;
}

bool worker_try(worker *self) {
    redisReply *reply = worker_call(self);
    bool succeeded = wire_succeeded(reply);
    freeReplyObject(reply);
    return succeeded;
}

void worker_expect(worker *self, const char *what) {
    redisReply *reply = worker_call(self);
    wire_expect(reply, what);
    freeReplyObject(reply);
}

void worker_read_text(worker *self, char *text, size_t room) {
    redisReply *reply = worker_call(self);
    snprintf(text, room, "%s", reply->str ? reply->str : "");
    freeReplyObject(reply);
}

const redisReply *reply_find(const redisReply *reply, const char *name) {
    if (reply->type != REDIS_REPLY_ARRAY) return NULL;
    for (size_t i = 0; i + 1 < reply->elements; i += 2) {
        const redisReply *key = reply->element[i];
        if (key->str && strcmp(key->str, name) == 0) return reply->element[i + 1];
    }
    for (size_t i = 0; i < reply->elements; i++) {
        const redisReply *found = reply_find(reply->element[i], name);
        if (found) return found;
    }
    return NULL;
}

int64_t worker_count_in_lane(worker *self, const char *index) {
    char tag[16];
    for (unsigned p = 0; p < WIRE_PARTITIONS; p++) {
        snprintf(tag, sizeof tag, "{fp:%u}", p);
        request_start(&self->request, "ZCARD");
        request_join(&self->request, "ff:idx:", tag, ":lane:", self->lane, ":", index);
        load_send(self->connection, &self->request);
    }
    int64_t sum = 0;
    for (unsigned p = 0; p < WIRE_PARTITIONS; p++) {
        redisReply *reply = load_receive(self->connection);
        sum += reply->integer;
        freeReplyObject(reply);
    }
    return sum;
}

static int64_t count_terminal(worker *self) { return worker_count_in_lane(self, "terminal"); }

/* ---- native ---- */

static void native_submit(worker *self, size_t index, const char *capability) {
    load_request *r = &self->request;
    request_start(r, "FF.CREATE");
    request_add(r, "*"), request_add(r, self->lane), request_add(r, "task");
    request_add(r, "PAYLOAD"), request_add_number(r, (int64_t)index);
    if (capability) request_add(r, "CAPS"), request_add(r, capability);
    freeReplyObject(worker_call(self));
}

static void add_claim_words(worker *self, int wait_ms) {
    load_request *r = &self->request;
    request_add(r, self->lane), request_add(r, self->as.id), request_add(r, self->as.instance);
    request_add(r, "LEASE"), request_add(r, LEASE_MS);
    if (self->as.capabilities[0]) request_add(r, "CAPS"), request_add(r, self->as.capabilities);
    if (wait_ms > 0) request_add(r, "BLOCK"), request_add_number(r, wait_ms);
}

static void copy_field(char *text, size_t room, const redisReply *map, const char *name) {
    const redisReply *value = reply_find(map, name);
    load_check(value != NULL, "a claim's reply has no %s", name);
    if (value->str) {
        snprintf(text, room, "%s", value->str);
    } else {
        snprintf(text, room, "%lld", value->integer);
    }
}

static bool read_lease(worker *self, const redisReply *reply, job *taken) {
    if (!reply_find(reply, "lease_id")) return false;
    wire_execution *e = &taken->execution;
    char text[64];
    copy_field(text, sizeof text, reply, "execution_id");
    wire_from_id(e, self->lane, text);
    copy_field(e->lease, sizeof e->lease, reply, "lease_id");
    copy_field(e->epoch, sizeof e->epoch, reply, "lease_epoch");
    copy_field(e->attempt, sizeof e->attempt, reply, "attempt_id");
    copy_field(text, sizeof text, reply, "payload");
    taken->index = (size_t)strtoull(text, NULL, 10);
    return true;
}

static bool native_claim(worker *self, job *taken, int wait_ms) {
    request_start(&self->request, "FF.CLAIM");
    add_claim_words(self, wait_ms);
    redisReply *reply = worker_call(self);
    bool found = read_lease(self, reply, taken);
    freeReplyObject(reply);
    return found;
}

static void start_complete(worker *self, const job *held) {
    const wire_execution *e = &held->execution;
    load_request *r = &self->request;
    request_start(r, "FF.COMPLETE");
    request_add(r, e->id), request_add(r, e->lease), request_add(r, e->epoch);
    request_add(r, e->attempt), request_add(r, "RESULT"), request_add(r, "done");
}

static void native_complete(worker *self, const job *held) {
    start_complete(self, held);
    freeReplyObject(worker_call(self));
}

static bool native_complete_and_claim(worker *self, const job *held, job *taken) {
    start_complete(self, held);
    request_add(&self->request, "CLAIM");
    add_claim_words(self, 0);
    redisReply *reply = worker_call(self);
    bool found = read_lease(self, reply, taken);
    freeReplyObject(reply);
    return found;
}

static const driver native_driver = {native_submit, native_claim, native_complete,
                                     native_complete_and_claim, count_terminal};

/* ---- wire: the reference's way ---- */

static void wire_submit(worker *self, size_t index, const char *capability) {
    wire_execution e;
    char payload[24], policy[120] = "";
    unsigned partition =
        self->who->spread ? (unsigned)(index % WIRE_PARTITIONS) : wire_lane_partition(self->lane);
    wire_name(&e, self->lane, partition, index);
    snprintf(payload, sizeof payload, "%zu", index);
    if (capability) {
        snprintf(policy, sizeof policy,
                 "{\"routing_requirements\":{\"required_capabilities\":[\"%s\"]}}", capability);
    }
    wire_create(&self->request, self->who->way, &e, payload, policy);
    worker_expect(self, "create");
}

/* The server's clock in milliseconds. */
static int64_t ask_time(worker *self) {
    request_start(&self->request, "TIME");
    redisReply *reply = worker_call(self);
    load_check(reply->elements == 2, "TIME answers two numbers");
    int64_t seconds = strtoll(reply->element[0]->str, NULL, 10);
    int64_t microseconds = strtoll(reply->element[1]->str, NULL, 10);
    freeReplyObject(reply);
    return seconds * 1000 + microseconds / 1000;
}

static bool head_of(worker *self, unsigned partition, wire_execution *e) {
    load_request *r = &self->request;
    char tag[16];
    snprintf(tag, sizeof tag, "{fp:%u}", partition);
    request_start(r, "ZRANGEBYSCORE");
    request_join(r, "ff:idx:", tag, ":lane:", self->lane, ":eligible");
    request_add(r, "-inf"), request_add(r, "+inf");
    request_add(r, "LIMIT"), request_add(r, "0"), request_add(r, "1");
    redisReply *reply = worker_call(self);
    bool found = reply->elements > 0;
    if (found) wire_from_id(e, self->lane, reply->element[0]->str);
    freeReplyObject(reply);
    return found;
}

static void read_core(worker *self, const wire_execution *e, const char *field, char *value,
                      size_t room) {
    request_start(&self->request, "HGET");
    request_join(&self->request, e->exec, "core");
    request_add(&self->request, field);
    worker_read_text(self, value, room);
}

/* One required capability is enough for what is measured here. */
static bool has_capability(const worker *self, const char *required) {
    size_t size = strlen(required);
    for (const char *at = self->as.capabilities; at && *at;) {
        if (strcspn(at, ",") == size && strncmp(at, required, size) == 0) return true;
        at = strchr(at, ',');
        if (at) at++;
    }
    return false;
}

/* The checks of the cycle; what fails one is blocked. */
static bool may_take(worker *self, const wire_execution *e) {
    char required[100], budgets[100], quota[100];
    read_core(self, e, "required_capabilities", required, sizeof required);
    if (required[0] && !has_capability(self, required)) {
        wire_block(&self->request, self->who->way, e, "route");
        worker_try(self);
        return false;
    }
    read_core(self, e, "budget_ids", budgets, sizeof budgets);
    read_core(self, e, "quota_policy_id", quota, sizeof quota);
    load_check(!budgets[0] && !quota[0], "a job with limits was not expected here");
    return true;
}

static void mint(worker *self, wire_execution *e) {
    self->minted++;
    snprintf(e->lease, sizeof e->lease, "%s-lease-%08x", self->instance, self->minted);
    snprintf(e->attempt, sizeof e->attempt, "%s-attempt-%08x", self->instance, self->minted);
}

/* A worker cannot work without; the reply to a native claim has it. */
static void read_payload(worker *self, const wire_execution *e) {
    request_start(&self->request, "GET");
    request_join(&self->request, e->exec, "payload");
    redisReply *reply = worker_call(self);
    load_check(reply->str != NULL, "%s has no payload", e->id);
    freeReplyObject(reply);
}

/* Spends the grant. What was interrupted says so, and keeps its attempt. */
static bool spend_grant(worker *self, wire_execution *e) {
    mint(self, e);
    wire_claim(&self->request, self->who->way, e, &self->as);
    redisReply *reply = worker_call(self);
    if (!wire_succeeded(reply) && reply->elements >= 2 &&
        strcmp(reply->element[1]->str, "use_claim_resumed_execution") == 0) {
        freeReplyObject(reply);
        wire_claim_resumed(&self->request, self->who->way, e, &self->as);
        reply = worker_call(self);
    }
    bool claimed = wire_succeeded(reply);
    if (claimed) {
        snprintf(e->epoch, sizeof e->epoch, "%s", wire_text(reply, 3));
        snprintf(e->attempt, sizeof e->attempt, "%s", wire_text(reply, 5));
    }
    freeReplyObject(reply);
    if (claimed) read_payload(self, e);
    return claimed;
}

bool wire_take(worker *self, wire_execution *e) {
    wire_grant(&self->request, self->who->way, e, &self->as);
    return worker_try(self) && spend_grant(self, e);
}

static unsigned held_back[WIRE_PARTITIONS];

void wire_hold_back(unsigned partition) { held_back[partition]++; }
void wire_let_go(unsigned partition) { held_back[partition]--; }

/* Where a cycle begins to look moves with the clock alone: a worker that finds nothing looks at the
 * same partitions until the next rotation window. */
static bool run_cycle(worker *self, job *taken) {
    unsigned window = (unsigned)(ask_time(self) / ROTATION_MS % WIRE_PARTITIONS);
    for (unsigned i = 0; i < PARTITIONS_PER_CYCLE; i++) {
        unsigned partition = (self->start + window * PARTITIONS_PER_CYCLE + i) % WIRE_PARTITIONS;
        wire_execution *e = &taken->execution;
        if (!head_of(self, partition, e) || held_back[partition]) continue;
        if (!may_take(self, e) || !wire_take(self, e)) continue;
        taken->index = wire_index(e->id);
        return true;
    }
    return false;
}

static bool wire_claim_job(worker *self, job *taken, int wait_ms) {
    int64_t deadline = load_now_us() + wait_ms * INT64_C(1000);
    do {
        if (run_cycle(self, taken)) return true;
        load_sleep_until(load_now_us() + self->who->rest_ms * INT64_C(1000));
    } while (load_now_us() < deadline);
    return false;
}

static void wire_finish(worker *self, const job *held) {
    wire_complete(&self->request, self->who->way, &held->execution, &self->as);
    worker_expect(self, "complete");
}

static const driver wire_driver = {wire_submit, wire_claim_job, wire_finish, NULL, count_terminal};

/* ---- bare ---- */

static void bare_submit(worker *self, size_t index, const char *capability) {
    (void)capability;
    load_request *r = &self->request;
    char number[24];
    snprintf(number, sizeof number, "%zu", index);
    request_start(r, "HSET");
    request_join(r, "job:", number);
    request_add(r, "state"), request_add(r, "waiting");
    request_add(r, "payload"), request_add(r, number);
    load_send(self->connection, r);
    request_start(r, "ZADD");
    request_add(r, self->lane), request_add(r, number), request_add(r, number);
    load_send(self->connection, r);
    freeReplyObject(load_receive(self->connection));
    freeReplyObject(load_receive(self->connection));
}

static bool bare_claim(worker *self, job *taken, int wait_ms) {
    load_request *r = &self->request;
    char seconds[24];
    snprintf(seconds, sizeof seconds, "%d.%03d", wait_ms / 1000, wait_ms % 1000);
    request_start(r, wait_ms > 0 ? "BZPOPMIN" : "ZPOPMIN");
    request_add(r, self->lane);
    if (wait_ms > 0) request_add(r, seconds);
    redisReply *reply = worker_call(self);
    bool found = reply->type == REDIS_REPLY_ARRAY && reply->elements >= 2;
    if (found) {
        const char *number = reply->element[wait_ms > 0 ? 1 : 0]->str;
        taken->index = (size_t)strtoull(number, NULL, 10);
    }
    freeReplyObject(reply);
    return found;
}

static void bare_complete(worker *self, const job *held) {
    char number[24];
    snprintf(number, sizeof number, "%zu", held->index);
    request_start(&self->request, "HSET");
    request_join(&self->request, "job:", number);
    request_add(&self->request, "state"), request_add(&self->request, "done");
    freeReplyObject(worker_call(self));
}

static const driver bare_driver = {bare_submit, bare_claim, bare_complete, NULL, NULL};

/* ---- who is there ---- */

static const char *native_needs[] = {"FF.CREATE", "FF.CLAIM", "FF.COMPLETE"};
static char absent[2000];

static void say_absent(const char *name, const char *why) {
    size_t used = strlen(absent);
    snprintf(absent + used, sizeof absent - used, "%s**%s** does not take part: %s.",
             used ? " " : "", name, why);
}

const char *contestants_absent(void) { return absent; }

/* Asks a server that is started once for the purpose. */
static bool module_knows(const char *command) {
    static load_server *asked;
    if (!asked) asked = load_server_start(&(load_server_options){.with_module = true});
    return load_server_knows(asked, command);
}

bool contestant_is_native(const contestant *who) { return who->driver == &native_driver; }

bool contestant_is_wire(const contestant *who) { return who->driver == &wire_driver; }

bool contestant_is_variant(const contestant *who) {
    return contestant_is_wire(who) && who->options.with_module && strcmp(who->way, "FCALL") == 0;
}

bool contestant_is_plain(const contestant *who) { return !who->chained && !who->spread; }

bool contestant_knows(const contestant *who, const char *command) {
    return !contestant_is_native(who) || module_knows(command);
}

static bool native_is_there(void) {
    for (size_t i = 0; i < sizeof native_needs / sizeof native_needs[0]; i++) {
        if (module_knows(native_needs[i])) continue;
        char why[100];
        snprintf(why, sizeof why, "this module has no %s", native_needs[i]);
        say_absent("native", why);
        return false;
    }
    return true;
}

static contestant wire_contestant(const char *name, const char *way, load_server_options options) {
    return (contestant){.name = name,
                        .driver = &wire_driver,
                        .way = way,
                        .rest_ms = CONTESTANT_REST_MS,
                        .options = options};
}

static size_t add_native(contestant *all) {
    if (!native_is_there()) return 0;
    all[0] = (contestant){.name = "native",
                          .driver = &native_driver,
                          .options = {.with_module = true, .config = "ff.scanners yes"}};
    all[1] = all[0];
    all[1].name = "native, COMPLETE … CLAIM";
    all[1].chained = true;
    return 2;
}

static size_t add_module_wire(contestant *all) {
    load_server_options module = {.with_module = true}, compat = module, intercepted = module;
    compat.library = settings.compat;
    intercepted.config = "ff.intercept-fcall yes";
    all[0] = wire_contestant("FF.CALL", "FF.CALL", module);
    all[1] = all[0];
    all[1].name = "FF.CALL, jobs spread";
    all[1].spread = true;
    all[2] = wire_contestant("FCALL, lua-compat", "FCALL", compat);
    all[3] = wire_contestant("FCALL, intercepted", "FCALL", intercepted);
    return 4;
}

static size_t add_reference(contestant *all) {
    if (!settings.reference) {
        say_absent("reference", "its library was not given (REFERENCE=)");
        return 0;
    }
    all[0] =
        wire_contestant("reference", "FCALL", (load_server_options){.library = settings.reference});
    all[1] = all[0];
    all[1].name = "reference, jobs spread";
    all[1].spread = true;
    return 2;
}

static size_t add_bullmq(contestant *all) {
    if (!settings.bullmq) {
        say_absent("BullMQ", "npm could not install it here, or it was not asked for");
        return 0;
    }
    all[0] = (contestant){.name = "BullMQ"};
    return 1;
}

size_t contestants_present(contestant *all) {
    absent[0] = '\0';
    size_t count = add_native(all);
    count += add_module_wire(all + count);
    count += add_reference(all + count);
    count += add_bullmq(all + count);
    all[count++] = (contestant){.name = "bare commands", .driver = &bare_driver};
    return count;
}

/* ---- workers ---- */

/* FNV-1a, as the reference spreads its workers over the partitions. */
static unsigned partition_of(const char *instance) {
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (; *instance; instance++) {
        hash = (hash ^ (unsigned char)*instance) * UINT64_C(0x100000001b3);
    }
    return (unsigned)(hash & 0xffff) % WIRE_PARTITIONS;
}

worker *workers_open(const contestant *who, load_server *server, size_t count, const char *lane) {
    worker *workers = calloc(count ? count : 1, sizeof *workers);
    load_check(workers != NULL, "out of memory");
    for (size_t i = 0; i < count; i++) {
        worker *self = &workers[i];
        self->who = who;
        self->number = i;
        self->server = server;
        self->lane = lane;
        self->connection = load_connect(server);
        snprintf(self->instance, sizeof self->instance, "w-%zu", i);
        self->as = (wire_worker){"worker", self->instance, ""};
        self->start = partition_of(self->instance);
    }
    return workers;
}

void workers_close(worker *workers, size_t count) {
    for (size_t i = 0; i < count; i++) load_disconnect(workers[i].connection);
    free(workers);
}

/* ---- tallies ---- */

void tally_start(tally *all, size_t expected) {
    *all = (tally){.expected = expected, .seen = calloc(expected ? expected : 1, 1)};
    load_check(all->seen != NULL, "out of memory");
}

void tally_add(tally *all, size_t index) {
    load_check(index < all->expected, "job %zu was never submitted", index);
    load_check(!all->seen[index], "job %zu was handed out twice", index);
    all->seen[index] = 1;
    all->done++;
}

void tally_end(tally *all, const char *who) {
    load_check(all->done == all->expected, "%s: %zu of %zu jobs were done", who, all->done,
               all->expected);
    free(all->seen);
    all->seen = NULL;
}
