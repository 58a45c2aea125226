#include "suspension.h"

#include <stdio.h>

static void copy_text(char *text, size_t room, const redisReply *reply, const char *name) {
    const redisReply *value = reply_find(reply, name);
    load_check(value && value->str, "FF.SUSPEND answered no %s", name);
    snprintf(text, room, "%s", value->str);
}

static void native_suspend(worker *self, const job *held, waitpoint *at) {
    const wire_execution *e = &held->execution;
    load_request *r = &self->request;
    request_start(r, "FF.SUSPEND");
    request_add(r, e->id), request_add(r, e->lease), request_add(r, e->epoch);
    request_add(r, e->attempt), request_add(r, "REASON"), request_add(r, "waiting_for_signal");
    request_add(r, "CONDITION");
    request_add(r, "{\"condition_type\":\"signal_set\",\"required_signal_names\":[\"go\"]}");
    redisReply *reply = worker_call(self);
    copy_text(at->id, sizeof at->id, reply, "waitpoint_id");
    copy_text(at->token, sizeof at->token, reply, "token");
    freeReplyObject(reply);
}

static void wire_suspend_job(worker *self, const job *held, waitpoint *at) {
    self->minted++;
    wire_uuid(at->id, '9', self->minted, self->number);
    wire_suspend(&self->request, self->who->way, &held->execution, &self->as, at->id);
    redisReply *reply = worker_call(self);
    wire_expect(reply, "suspend");
    snprintf(at->token, sizeof at->token, "%s", wire_text(reply, 5));
    freeReplyObject(reply);
}

static void native_signal(worker *self, const job *held, const waitpoint *at) {
    load_request *r = &self->request;
    request_start(r, "FF.SIGNAL");
    request_add(r, held->execution.id), request_add(r, at->id), request_add(r, "go");
    request_add(r, "TOKEN"), request_add(r, at->token);
    freeReplyObject(worker_call(self));
}

static void wire_signal_job(worker *self, const job *held, const waitpoint *at) {
    char signal[WIRE_UUID];
    self->minted++;
    wire_uuid(signal, 'a', self->minted, self->number);
    wire_signal(&self->request, self->who->way, &held->execution, at->id, signal, at->token);
    worker_expect(self, "signal");
}

void suspension_begin(worker *self, const job *held, waitpoint *at) {
    if (contestant_is_native(self->who)) {
        native_suspend(self, held, at);
    } else {
        wire_suspend_job(self, held, at);
    }
}

void suspension_signal(worker *self, const job *held, const waitpoint *at) {
    if (contestant_is_native(self->who)) {
        native_signal(self, held, at);
    } else {
        wire_signal_job(self, held, at);
    }
}

void suspension_prepare(const entrant *on) {
    worker *mine = workers_open(&on->who, on->server, 1, "none");
    const char *way = on->who.way ? on->who.way : "FF.CALL";
    for (unsigned p = 0; p < WIRE_PARTITIONS; p++) {
        char tag[16];
        snprintf(tag, sizeof tag, "{fp:%u}", p);
        wire_secret(&mine->request, way, tag);
        worker_expect(mine, "a secret");
    }
    workers_close(mine, 1);
}

bool suspension_wanted(const contestant *who) {
    if (contestant_is_native(who)) {
        return !who->chained && contestant_knows(who, "FF.SUSPEND") &&
               contestant_knows(who, "FF.SIGNAL");
    }
    return contestant_is_wire(who) && !who->spread;
}
