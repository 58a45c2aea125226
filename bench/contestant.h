/* Who competes: the ways of doing the same job, behind one set of verbs.
 *
 * A wire contestant does everything the way the reference's scheduler and engine do it, one round
 * trip for each step: it asks the time, looks at one partition after the other until one has
 * something, reads what the checks need, takes a grant, and spends it. One cycle looks at 32
 * partitions of 256; which ones depends on the worker's name and the clock. The native one uses the
 * module's own commands. The bare one is a queue of plain commands that keeps no promise at all:
 * the limit. */
#ifndef FF_BENCH_CONTESTANT_H
#define FF_BENCH_CONTESTANT_H

#include "load.h"
#include "wire.h"

typedef struct contestant contestant;

/* One piece of work in somebody's hands. */
typedef struct job {
    size_t index; /* of the submission, which its payload or its id carries */
    wire_execution execution;
} job;

/* One worker: a connection, a name, and what the claim cycle remembers. */
typedef struct worker {
    const contestant *who;
    load_server *server;
    load_connection *connection;
    const char *lane;
    wire_worker as;
    size_t number;
    char instance[24];
    unsigned start;  /* where the claim cycle begins to look */
    unsigned minted; /* ids so far */
    load_request request;
} worker;

typedef struct driver {
    /* Submits job number `index`; `capability` is what a worker must have for it, or NULL. */
    void (*submit)(worker *self, size_t index, const char *capability);
    /* Takes one job; false when there is none, after `wait_ms` milliseconds of waiting for one. */
    bool (*claim)(worker *self, job *taken, int wait_ms);
    void (*complete)(worker *self, const job *held);
    /* Completes `held` and takes the next in one round trip; NULL where that does not exist. */
    bool (*complete_and_claim)(worker *self, const job *held, job *taken);
    /* How many jobs of the lane have ended, according to the server; NULL where it cannot tell. */
    int64_t (*count_ended)(worker *self);
} driver;

struct contestant {
    const char *name;
    const driver *driver; /* NULL: BullMQ, which brings its own client */
    const char *way;      /* of wire contestants: FF.CALL or FCALL */
    bool chained;         /* uses complete_and_claim */
    bool spread;          /* wire: jobs over all partitions, not where the reference puts a lane */
    int rest_ms;          /* of wire workers, after a cycle that found nothing */
    int distance_us;      /* what the network would add to each round trip */
    load_server_options options;
};

enum { CONTESTANTS = 10 };

/* How long wire workers rest unless a scenario says otherwise. The description of the claim cycle
 * does not say; this is far shorter than the 250 ms after which a worker would look elsewhere. */
enum { CONTESTANT_REST_MS = 10 };

/* Those that can take part in this run: the reference if it was given, BullMQ if it can run, native
 * commands if the module has them. The others are named, with the reason, by contestants_absent. */
size_t contestants_present(contestant *all);
const char *contestants_absent(void);

/* Whether this contestant's module has the command; true for those that need no module. */
bool contestant_knows(const contestant *who, const char *command);

bool contestant_is_native(const contestant *who);
/* Neither chained nor spread: those two are shown in the first scenario only. */
bool contestant_is_plain(const contestant *who);
bool contestant_is_wire(const contestant *who);
/* The module by FCALL: what differs from FF.CALL by a few microseconds in each call. */
bool contestant_is_variant(const contestant *who);

/* Opens `count` workers on a server, each with a connection. */
worker *workers_open(const contestant *who, load_server *server, size_t count, const char *lane);
void workers_close(worker *workers, size_t count);

/* Sends the worker's request and waits for the reply; an error reply ends the program. */
redisReply *worker_call(worker *self);
/* The same, unless the wire function refuses; the reply is freed. False: refused. */
bool worker_try(worker *self);
void worker_expect(worker *self, const char *what);
/* A text of a reply that the caller keeps; "" for null. Frees the reply. */
void worker_read_text(worker *self, char *text, size_t room);

/* Wire workers step over a partition between the two: a flow is being built there, call by call, and
 * what is claimed before it has its edges would leave its children to a reconciler. */
void wire_hold_back(unsigned partition);
void wire_let_go(unsigned partition);

/* Grants and claims an execution that the wire worker knows, without looking for it; false:
 * refused. */
bool wire_take(worker *self, wire_execution *e);

/* How many are in an index of the worker's lane (eligible, terminal, …), all partitions together.
 */
int64_t worker_count_in_lane(worker *self, const char *index);

/* The value of `name` in the first map, however deep, that has it; NULL if none has. Maps are flat
 * arrays here. */
const redisReply *reply_find(const redisReply *reply, const char *name);

/* Checks that everything was done, and once. */
typedef struct tally {
    size_t expected, done;
    unsigned char *seen;
} tally;

void tally_start(tally *all, size_t expected);
void tally_add(tally *all, size_t index);
void tally_end(tally *all, const char *who);

#endif
