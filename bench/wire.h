/* The wire functions as clients of the reference call them: keys spelled out, arguments in order.
 * Each function writes one command into a request; `way` is the command that carries it, FF.CALL
 * or FCALL. */
#ifndef FF_BENCH_WIRE_H
#define FF_BENCH_WIRE_H

#include "load.h"

enum { WIRE_PARTITIONS = 256 };

/* An execution, and the lease of who works on it. */
typedef struct wire_execution {
    const char *lane;
    char tag[16];  /* {fp:7} */
    char id[64];   /* {fp:7}:<uuid> */
    char exec[96]; /* ff:exec:<tag>:<id>: */
    char lease[48];
    char attempt[48];
    char epoch[24];
} wire_execution;

/* A worker as a claim names it. */
typedef struct wire_worker {
    const char *id, *instance;
    const char *capabilities; /* sorted, comma separated */
} wire_worker;

/* CCITT/XMODEM, which partitions are computed with. */
unsigned wire_crc16(const unsigned char *bytes, size_t size);
/* Where the reference puts executions of a lane that belong to no flow. */
unsigned wire_lane_partition(const char *lane);
/* Where it puts a flow or a budget: by the sixteen bytes that the text of its id stands for. */
unsigned wire_uuid_partition(const char *uuid, unsigned partitions);

/* The ids that follow differ from all before, so that runs can share the data of a server. */
void wire_new_run(void);
/* An id of this run; `family` is a hexadecimal digit that keeps the ids of one kind of thing apart.
 */
enum { WIRE_UUID = 48 };
void wire_uuid(char *id, char family, size_t first, size_t second);

/* Names number `index` in a partition; wire_index is the way back. */
void wire_name(wire_execution *e, const char *lane, unsigned partition, size_t index);
size_t wire_index(const char *execution_id);
/* The same for an id that came from the server. */
void wire_from_id(wire_execution *e, const char *lane, const char *execution_id);

/* `policy` may be "". */
void wire_create(load_request *r, const char *way, const wire_execution *e, const char *payload,
                 const char *policy);
void wire_grant(load_request *r, const char *way, const wire_execution *e, const wire_worker *w);
/* Lease and attempt ids are the client's to mint: put them into `e` first. */
void wire_claim(load_request *r, const char *way, const wire_execution *e, const wire_worker *w);
void wire_claim_resumed(load_request *r, const char *way, const wire_execution *e,
                        const wire_worker *w);
void wire_renew(load_request *r, const char *way, const wire_execution *e);
void wire_progress(load_request *r, const char *way, const wire_execution *e);
void wire_complete(load_request *r, const char *way, const wire_execution *e, const wire_worker *w);
void wire_cancel(load_request *r, const char *way, const wire_execution *e, const wire_worker *w,
                 const char *reason);

/* Blocked for a budget, or for want of a capable worker: `set` is budget or route. */
void wire_block(load_request *r, const char *way, const wire_execution *e, const char *set);
void wire_unblock(load_request *r, const char *way, const wire_execution *e, const char *set);

/* Suspension on one waitpoint, `waitpoint` being its id, until a signal named "go". */
void wire_suspend(load_request *r, const char *way, const wire_execution *e, const wire_worker *w,
                  const char *waitpoint);
void wire_signal(load_request *r, const char *way, const wire_execution *e, const char *waitpoint,
                 const char *signal, const char *token);
void wire_secret(load_request *r, const char *way, const char *tag);

/* Flows: `flow` is the id, without a tag. */
void wire_flow_create(load_request *r, const char *way, const char *tag, const char *flow);
void wire_flow_add(load_request *r, const char *way, const char *flow, const wire_execution *e);
void wire_edge_stage(load_request *r, const char *way, const char *flow, const char *edge,
                     const wire_execution *from, const wire_execution *to, int64_t revision);
void wire_edge_policy(load_request *r, const char *way, const char *flow, const wire_execution *e,
                      int64_t quorum);
void wire_edge_apply(load_request *r, const char *way, const char *flow, const char *edge,
                     const wire_execution *from, const wire_execution *to, int64_t revision);
void wire_resolve(load_request *r, const char *way, const char *flow, const char *edge,
                  const wire_execution *from, const wire_execution *to, const char *outcome);
void wire_drain(load_request *r, const char *way, const char *flow, const wire_execution *e);

/* The nth text of a reply; fails the program unless the call succeeded. */
const char *wire_text(const redisReply *reply, size_t n);
bool wire_succeeded(const redisReply *reply);
/* Fails the program unless the call succeeded, with what was answered. */
void wire_expect(const redisReply *reply, const char *what);

#endif
