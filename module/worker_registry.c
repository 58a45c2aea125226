#include "worker_registry.h"

#include <math.h>

#include "base/number.h"
#include "store/txn.h"
#include "watch.h"

/* By namespace, NUL, instance; made when the first worker comes. */
static ValkeyModuleDict *workers;
static uint64_t count;
static uint64_t generation;

enum { SWEEP_FROM = 64 };
static uint64_t sweep_at = SWEEP_FROM;

static ff_text name_of(ff_arena *arena, ff_text namespace, ff_text instance) {
    return ff_arena_concat(arena, namespace, ff_text_make("", 1), instance);
}

static ff_worker *find(ff_text namespace, ff_text instance) {
    char first[512];
    ff_arena arena;
    if (workers == NULL) return NULL;
    ff_arena_init(&arena, first, sizeof first);
    ff_text name = name_of(&arena, namespace, instance);
    ff_worker *worker = ValkeyModule_DictGetC(workers, (void *)(uintptr_t)name.ptr, name.len, NULL);
    ff_arena_release(&arena);
    return worker;
}

static void free_text(ff_text *text) {
    ValkeyModule_Free((void *)(uintptr_t)text->ptr);
    *text = FF_TEXT_ABSENT;
}

/* Replaces a text by a copy of another. Returns whether it changed. */
static bool set_text(ff_text *text, ff_text value) {
    if (ff_text_equal(*text, value)) return false;
    free_text(text);
    char *copy = ValkeyModule_Alloc(value.len + 1);
    if (value.len) memcpy(copy, value.ptr, value.len);
    copy[value.len] = '\0';
    *text = ff_text_make(copy, value.len);
    return true;
}

static void free_worker(ff_worker *worker) {
    free_text(&worker->namespace);
    free_text(&worker->instance);
    free_text(&worker->worker_id);
    free_text(&worker->lanes);
    free_text(&worker->capabilities);
    free_text(&worker->claim_capabilities);
    ValkeyModule_Free(worker);
}

static void take_out(ff_worker *worker) {
    char first[512];
    ff_arena arena;
    ff_arena_init(&arena, first, sizeof first);
    ff_text name = name_of(&arena, worker->namespace, worker->instance);
    ValkeyModule_DictDelC(workers, (void *)(uintptr_t)name.ptr, name.len, NULL);
    ff_arena_release(&arena);
    free_worker(worker);
    count--;
}

bool ff_worker_is_alive(const ff_worker *worker, double now) {
    return worker->registered_until >= now || worker->claimed_until >= now;
}

/* The dead are forgotten once there could be as many of them as living. */
static void sweep(double now) {
    ValkeyModuleDictIter *iterator = ValkeyModule_DictIteratorStartC(workers, "^", NULL, 0);
    ff_worker **dead = ValkeyModule_Alloc(count * sizeof(ff_worker *));
    size_t found = 0;
    void *worker;
    while (ValkeyModule_DictNextC(iterator, NULL, &worker)) {
        if (!ff_worker_is_alive(worker, now)) dead[found++] = worker;
    }
    ValkeyModule_DictIteratorStop(iterator);
    for (size_t i = 0; i < found; i++) take_out(dead[i]);
    ValkeyModule_Free(dead);
    sweep_at = count * 2 > SWEEP_FROM ? count * 2 : SWEEP_FROM;
}

static ff_worker *find_or_add(ff_text namespace, ff_text instance, double now) {
    char first[512];
    ff_arena arena;
    ff_worker *worker = find(namespace, instance);
    if (worker) return worker;
    if (workers == NULL) workers = ValkeyModule_CreateDict(NULL);
    if (count >= sweep_at) sweep(now);
    worker = ValkeyModule_Calloc(1, sizeof *worker);
    set_text(&worker->namespace, namespace);
    set_text(&worker->instance, instance);
    set_text(&worker->worker_id, FF_TEXT(""));
    ff_arena_init(&arena, first, sizeof first);
    ff_text name = name_of(&arena, namespace, instance);
    ValkeyModule_DictSetC(workers, (void *)(uintptr_t)name.ptr, name.len, worker);
    ff_arena_release(&arena);
    count++;
    return worker;
}

const ff_worker *ff_workers_find(ff_text namespace, ff_text instance) {
    return find(namespace, instance);
}

uint64_t ff_workers_generation(void) { return generation; }

void ff_workers_note_claim(ff_text namespace, ff_text worker_id, ff_text instance,
                           ff_text capabilities, double now) {
    ff_worker *worker = find_or_add(ff_text_or_empty(namespace), instance, now);
    bool returns = worker->claimed_until < now;
    if (set_text(&worker->claim_capabilities, ff_text_or_empty(capabilities)) || returns) {
        generation++;
    }
    if (worker->registered_until < now) set_text(&worker->worker_id, worker_id);
    worker->claimed_until = now + FF_WORKER_CLAIM_TTL_MS;
}

void ff_workers_register(const ff_worker *r) {
    ff_worker *worker = find_or_add(r->namespace, r->instance, r->heartbeat_at);
    bool returns = worker->registered_until < r->heartbeat_at;
    if (set_text(&worker->capabilities, r->capabilities) || returns) generation++;
    set_text(&worker->worker_id, r->worker_id);
    set_text(&worker->lanes, r->lanes);
    worker->registered_at = r->registered_at;
    worker->heartbeat_at = r->heartbeat_at;
    worker->registered_until = r->registered_until;
    worker->ttl_ms = r->ttl_ms;
}

bool ff_workers_heartbeat(ff_text namespace, ff_text instance, double now) {
    ff_worker *worker = find(namespace, instance);
    if (worker == NULL || worker->registered_until < now) return false;
    worker->heartbeat_at = now;
    worker->registered_until = now + (double)worker->ttl_ms;
    return true;
}

void ff_workers_remove(ff_text namespace, ff_text instance) {
    ff_worker *worker = find(namespace, instance);
    if (worker) take_out(worker);
}

void ff_workers_forget(void) {
    if (workers == NULL) return;
    ValkeyModuleDictIter *iterator = ValkeyModule_DictIteratorStartC(workers, "^", NULL, 0);
    void *worker;
    while (ValkeyModule_DictNextC(iterator, NULL, &worker)) free_worker(worker);
    ValkeyModule_DictIteratorStop(iterator);
    ValkeyModule_FreeDict(NULL, workers);
    workers = NULL;
    count = 0;
    sweep_at = SWEEP_FROM;
}

void ff_workers_visit(double now, bool (*visit)(const ff_worker *worker, void *data), void *data) {
    if (workers == NULL) return;
    ValkeyModuleDictIter *iterator = ValkeyModule_DictIteratorStartC(workers, "^", NULL, 0);
    void *worker;
    bool more = true;
    while (more && ValkeyModule_DictNextC(iterator, NULL, &worker)) {
        if (ff_worker_is_alive(worker, now)) more = visit(worker, data);
    }
    ValkeyModule_DictIteratorStop(iterator);
}

/* ---- Who can do what ---- */

typedef struct question {
    ff_text namespace;
    const ff_capability_set *required;
    double now;
    bool claims_count;
    ff_arena arena;
    bool covered;
} question;

static bool covers(question *q, ff_text capabilities) {
    ff_capability_set own;
    return ff_capability_parse(&q->arena, capabilities, &own) == FF_CAPABILITY_FINE &&
           ff_capability_covers(&own, q->required);
}

static bool ask(const ff_worker *worker, void *data) {
    char first[16 * 1024];
    question *q = data;
    bool any = worker->namespace.len == 0;
    if (!any && !ff_text_equal(worker->namespace, q->namespace)) return true;
    ff_arena_init(&q->arena, first, sizeof first);
    q->covered = (worker->registered_until >= q->now && covers(q, worker->capabilities)) ||
                 (q->claims_count && worker->claimed_until >= q->now &&
                  covers(q, worker->claim_capabilities));
    ff_arena_release(&q->arena);
    return !q->covered;
}

static bool is_covered(question q) {
    ff_workers_visit(q.now, ask, &q);
    return q.covered;
}

bool ff_workers_cover(ff_text namespace, const ff_capability_set *required, double now) {
    return is_covered((question){namespace, required, now, .claims_count = true});
}

bool ff_workers_registered_cover(ff_text namespace, const ff_capability_set *required, double now) {
    return is_covered((question){namespace, required, now, .claims_count = false});
}

/* ---- The keys ---- */

/* ff:worker:<namespace>:<instance>:caps. A namespace ends at the first colon. */
static bool parse_key(ff_text key, ff_text *namespace, ff_text *instance) {
    const ff_text prefix = FF_TEXT("ff:worker:");
    const ff_text ending = FF_TEXT(":caps");
    if (!ff_text_starts_with(key, prefix) || key.len < prefix.len + ending.len) return false;
    size_t end = key.len - ending.len;
    if (!ff_text_equal(ff_text_slice(key, end, key.len), ending)) return false;
    size_t colon = ff_text_find(key, ':', prefix.len);
    if (colon >= end) return false;
    *namespace = ff_text_slice(key, prefix.len, colon);
    *instance = ff_text_slice(key, colon + 1, end);
    return namespace->len > 0 && instance->len > 0;
}

/* Only the registration goes: what the worker said in its claims is not in the key. */
static void forget_registration(ff_text namespace, ff_text instance) {
    ff_worker *worker = find(namespace, instance);
    if (worker) worker->registered_until = 0;
}

static double number_or(ValkeyModuleString *text, double otherwise) {
    double number;
    return ff_str_to_number(text, &number) ? number : otherwise;
}

static void read_registration(ValkeyModuleKey *key, ff_worker *r) {
    enum { WORKER, LANES, CAPS, TTL, REGISTERED, HEARTBEAT, FIELDS };
    ValkeyModuleString *value[FIELDS] = {NULL};
    ValkeyModule_HashGet(key, VALKEYMODULE_HASH_CFIELDS, "worker_id", &value[WORKER], "lanes_csv",
                         &value[LANES], "caps_csv", &value[CAPS], "ttl_ms", &value[TTL],
                         "registered_at_ms", &value[REGISTERED], "last_heartbeat_ms",
                         &value[HEARTBEAT], NULL);
    mstime_t until = ValkeyModule_GetAbsExpire(key);
    double now = (double)(ValkeyModule_CachedMicroseconds() / 1000);
    ff_number_to_integer(number_or(value[TTL], 0), &r->ttl_ms);
    r->registered_at = number_or(value[REGISTERED], now);
    r->heartbeat_at = now;
    r->registered_until = until == VALKEYMODULE_NO_EXPIRE ? INFINITY : (double)until;
    r->worker_id = ff_text_or_empty(ff_str_text(value[WORKER]));
    r->lanes = ff_text_or_empty(ff_str_text(value[LANES]));
    r->capabilities = ff_text_or_empty(ff_str_text(value[CAPS]));
    ff_workers_register(r);
    ff_worker *worker = find(r->namespace, r->instance);
    worker->heartbeat_at = number_or(value[HEARTBEAT], now);
    for (int i = 0; i < FIELDS; i++) {
        if (value[i]) ValkeyModule_FreeString(NULL, value[i]);
    }
}

static void see_key(ValkeyModuleCtx *ctx, ValkeyModuleString *name) {
    ff_worker r = {0};
    if (!parse_key(ff_str_text(name), &r.namespace, &r.instance)) return;
    /* While a file is loaded the server's own string must not be held on to. */
    ValkeyModuleString *copy = ValkeyModule_CreateStringFromString(NULL, name);
    ValkeyModuleKey *key =
        ValkeyModule_OpenKey(ctx, copy,
                             VALKEYMODULE_READ | VALKEYMODULE_OPEN_KEY_NOTOUCH |
                                 VALKEYMODULE_OPEN_KEY_NOSTATS | VALKEYMODULE_OPEN_KEY_NOEXPIRE);
    if (key && ValkeyModule_KeyType(key) == VALKEYMODULE_KEYTYPE_HASH) {
        read_registration(key, &r);
    } else {
        forget_registration(r.namespace, r.instance);
    }
    if (key) ValkeyModule_CloseKey(key);
    ValkeyModule_FreeString(NULL, copy);
}

void ff_workers_load(void) {
    ff_watch_keys(see_key);
    ff_watch_flush(ff_workers_forget);
}
