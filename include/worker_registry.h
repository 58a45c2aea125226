/* The workers that this node knows.
 *
 * A worker is known from its keys (ff:worker:<namespace>:<instance>:caps), whoever wrote them, for those whose
 * slot is here; from FF.WORKER REGISTER on this node, wherever its keys belong; and from its claims, which
 * are a sign of life too. All of it is kept in memory with its time to live. The keys are watched by
 * keyspace events, so that a restart, a replica or a moved slot brings their workers back; what was
 * only in memory comes back with the worker's next registration, heartbeat or claim. */
#ifndef FF_WORKER_REGISTRY_H
#define FF_WORKER_REGISTRY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/capability.h"
#include "base/text.h"
#include "valkeymodule.h"

/* A claim speaks for its worker for that long. */
enum { FF_WORKER_CLAIM_TTL_MS = 60000 };

/* Texts are the registry's. A worker known from claims alone has no registration: registered_until is 0; it is infinite
 * when the worker's key has no expiry. One that claims without naming a namespace has the empty one, and may take work of any. */
typedef struct ff_worker {
    ff_text namespace, instance, worker_id;
    ff_text lanes; /* comma-separated */
    ff_text capabilities;
    double registered_at, heartbeat_at, registered_until;
    int64_t ttl_ms;
    ff_text claim_capabilities; /* what it said when it claimed last */
    double claimed_until;
} ff_worker;

/* Whether a live worker that may take work of the namespace has all of the required capabilities; the second
 * asks those only that are registered. */
bool ff_workers_cover(ff_text namespace, const ff_capability_set *required, double now);
bool ff_workers_registered_cover(ff_text namespace, const ff_capability_set *required, double now);

/* Grows whenever a worker appears, or comes with other capabilities than before: what was blocked for want of a
 * capable worker is worth another look. */
uint64_t ff_workers_generation(void);

/* A worker claims; an empty or absent namespace stands for any. */
void ff_workers_note_claim(ff_text namespace, ff_text worker_id, ff_text instance,
                           ff_text capabilities, double now);

/* The worker, alive or not; NULL when it is not known. */
const ff_worker *ff_workers_find(ff_text namespace, ff_text instance);

/* Whether it is registered, or has claimed lately. */
bool ff_worker_is_alive(const ff_worker *worker, double now);

/* Takes over a registration, texts copied; a claim noted before stays. */
void ff_workers_register(const ff_worker *registration);

/* Renews a live registration for another time to live. False when there is none. */
bool ff_workers_heartbeat(ff_text namespace, ff_text instance, double now);

void ff_workers_remove(ff_text namespace, ff_text instance);

/* Calls `visit` with each live worker, in the order of their names, until it returns false. */
void ff_workers_visit(double now, bool (*visit)(const ff_worker *worker, void *data), void *data);

/* Starts watching the workers' keys (watch.h). */
void ff_workers_load(void);

/* Forgets all of them. */
void ff_workers_forget(void);

#endif
