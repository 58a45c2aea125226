/* A worker in C with hiredis: cc worker.c -lhiredis && ./a.out [port [lane]] */
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LEASE_MS = 5000, STEP_MS = LEASE_MS / 3 };
#define FENCE "%s %s %lld %s"
#define OF(job) at(job, "execution_id")->str, at(job, "lease_id")->str, \
    at(job, "lease_epoch")->integer, at(job, "attempt_id")->str

/* A map comes as names and values in turn; it has all the names that are asked for here. */
static redisReply *at(redisReply *map, const char *name) {
    size_t i = 0;
    while (strcmp(map->element[i]->str, name) != 0) i += 2;
    return map->element[i + 1];
}

static redisReply *run(redisContext *s, redisReply *job) {
    const char *kind = at(job, "kind")->str;
    const char *text = at(job, "payload")->str ? at(job, "payload")->str : "";
    if (strcmp(kind, "fail") == 0) return redisCommand(s, "FF.FAIL " FENCE " %s", OF(job), text);
    for (int left = strcmp(kind, "sleep") ? 0 : atoi(text); left > 0; left -= STEP_MS) {
        usleep(STEP_MS * 1000);
        freeReplyObject(redisCommand(s, "FF.RENEW " FENCE " LEASE %d", OF(job), LEASE_MS));
    }
    return redisCommand(s, "FF.COMPLETE " FENCE " RESULT %s", OF(job), text);
}

int main(int argc, char **argv) {
    redisContext *s = redisConnect("127.0.0.1", argc > 1 ? atoi(argv[1]) : 6379);
    const char *lane = argc > 2 ? argv[2] : "orders";
    const char *claim = "FF.CLAIM %s c c-%d LEASE %d BLOCK 5000";
    for (redisReply *jobs; (jobs = redisCommand(s, claim, lane, getpid(), LEASE_MS));) {
        for (size_t i = 0; i < jobs->elements; i++) freeReplyObject(run(s, jobs->element[i]));
        freeReplyObject(jobs);
    }
    fprintf(stderr, "no connection: %s\n", s->errstr);
}
