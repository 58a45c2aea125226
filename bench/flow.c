#include "flow.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LANE "work"
#define COMPLETIONS "ff:dag:completions"

/* ---- shapes ---- */

static shape new_shape(size_t members, size_t edges) {
    shape form = {.members = members, .edges = calloc(edges ? edges : 1, sizeof(edge))};
    load_check(form.edges != NULL, "out of memory");
    return form;
}

static void add_edge(shape *form, size_t from, size_t to) {
    form->edges[form->edge_count++] = (edge){from, to};
}

shape shape_line(size_t members) {
    shape form = new_shape(members, members);
    for (size_t i = 1; i < members; i++) add_edge(&form, i - 1, i);
    return form;
}

shape shape_fan(size_t width) {
    shape form = new_shape(width + 2, width * 2);
    for (size_t i = 1; i <= width; i++) add_edge(&form, 0, i);
    for (size_t i = 1; i <= width; i++) add_edge(&form, i, width + 1);
    return form;
}

shape shape_quorum(size_t width) {
    shape form = new_shape(width + 1, width);
    for (size_t i = 0; i < width; i++) add_edge(&form, i, width);
    form.quorum = 1;
    return form;
}

void shape_free(shape *form) {
    free(form->edges);
    form->edges = NULL;
}

/* ---- native: one document ---- */

static void write_after(FILE *out, const shape *form, size_t member) {
    const char *comma = "";
    for (size_t i = 0; i < form->edge_count; i++) {
        if (form->edges[i].to != member) continue;
        fprintf(out, "%s\"m%zu\"", comma[0] ? "," : ",\"after\":[", form->edges[i].from);
        comma = ",";
    }
    if (comma[0]) fputc(']', out);
    if (form->quorum && member == form->members - 1) {
        fprintf(out, ",\"join\":{\"quorum\":%zu},\"on_satisfied\":\"cancel_remaining\"",
                form->quorum);
    }
}

static void native_submit(worker *self, const shape *form, size_t flow) {
    char *document = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&document, &size);
    fputs("{\"kind\":\"bench\",\"members\":[", out);
    for (size_t i = 0; i < form->members; i++) {
        fprintf(out, "%s{\"name\":\"m%zu\",\"lane\":\"%s\",\"kind\":\"task\",\"payload\":\"%zu\"",
                i ? "," : "", i, self->lane, flow * form->members + i);
        write_after(out, form, i);
        fputc('}', out);
    }
    fputs("]}", out);
    fclose(out);
    request_start(&self->request, "FF.FLOW");
    request_add(&self->request, "SUBMIT"), request_add(&self->request, "*");
    request_add(&self->request, document);
    free(document);
    freeReplyObject(worker_call(self));
}

/* ---- wire: one call for each thing ---- */

void flow_id(char *id, size_t flow) { wire_uuid(id, 'b', flow, flow); }

unsigned flow_partition(size_t flow) {
    char id[WIRE_UUID];
    flow_id(id, flow);
    return wire_uuid_partition(id, WIRE_PARTITIONS);
}

static void name_member(wire_execution *e, const worker *self, const shape *form, size_t flow,
                        size_t member) {
    wire_name(e, self->lane, flow_partition(flow), flow * form->members + member);
}

static void wire_submit_members(worker *self, const shape *form, size_t flow, const char *id) {
    const char *way = self->who->way;
    for (size_t i = 0; i < form->members; i++) {
        wire_execution e;
        name_member(&e, self, form, flow, i);
        wire_create(&self->request, way, &e, "input", "");
        worker_expect(self, "create");
        wire_flow_add(&self->request, way, id, &e);
        worker_expect(self, "add");
    }
}

static void wire_submit_edges(worker *self, const shape *form, size_t flow, const char *id) {
    const char *way = self->who->way;
    wire_execution from, to;
    int64_t revision = (int64_t)form->members;
    if (form->quorum) {
        name_member(&to, self, form, flow, form->members - 1);
        wire_edge_policy(&self->request, way, id, &to, (int64_t)form->quorum);
        worker_expect(self, "policy");
    }
    for (size_t i = 0; i < form->edge_count; i++) {
        char edge_id[WIRE_UUID];
        wire_uuid(edge_id, 'c', i, flow);
        name_member(&from, self, form, flow, form->edges[i].from);
        name_member(&to, self, form, flow, form->edges[i].to);
        wire_edge_stage(&self->request, way, id, edge_id, &from, &to, revision++);
        worker_expect(self, "stage");
        wire_edge_apply(&self->request, way, id, edge_id, &from, &to, revision);
        worker_expect(self, "apply");
    }
}

void flow_submit(worker *self, const shape *form, size_t flow) {
    if (contestant_is_native(self->who)) {
        native_submit(self, form, flow);
        return;
    }
    char id[WIRE_UUID];
    wire_execution first;
    flow_id(id, flow);
    name_member(&first, self, form, flow, 0);
    wire_hold_back(flow_partition(flow));
    wire_flow_create(&self->request, self->who->way, first.tag, id);
    worker_expect(self, "create flow");
    wire_submit_members(self, form, flow, id);
    wire_submit_edges(self, form, flow, id);
    wire_let_go(flow_partition(flow));
}

/* ---- resolving from outside ---- */

static void read_field(worker *self, const char *key, const char *suffix, const char *name,
                       char *text, size_t room) {
    request_start(&self->request, "HGET");
    request_join(&self->request, key, suffix);
    request_add(&self->request, name);
    worker_read_text(self, text, room);
}

static void resolve_edge(worker *self, const char *flow, const char *edge_id,
                         const wire_execution *ended, const char *outcome) {
    char key[200], child_id[64], ignored[64];
    wire_execution child;
    snprintf(key, sizeof key, "ff:flow:%s:%s:edge:", ended->tag, flow);
    read_field(self, key, edge_id, "downstream_execution_id", child_id, sizeof child_id);
    wire_from_id(&child, self->lane, child_id);
    read_field(self, child.exec, "core", "lane_id", ignored, sizeof ignored);
    read_field(self, child.exec, "core", "current_attempt_index", ignored, sizeof ignored);
    wire_resolve(&self->request, self->who->way, flow, edge_id, ended, &child, outcome);
    worker_expect(self, "resolve");
}

void flow_resolve(worker *self, const char *flow, const wire_execution *ended) {
    char outcome[32];
    read_field(self, ended->exec, "core", "terminal_outcome", outcome, sizeof outcome);
    request_start(&self->request, "SMEMBERS");
    request_join(&self->request, "ff:flow:", ended->tag, ":", flow, ":out:", ended->id);
    redisReply *edges = worker_call(self);
    for (size_t i = 0; i < edges->elements; i++) {
        resolve_edge(self, flow, edges->element[i]->str, ended, outcome);
    }
    freeReplyObject(edges);
}

/* ---- a run ---- */

typedef struct message {
    char flow[WIRE_UUID];
    char execution[64];
} message;

typedef struct run {
    /* They drain; wire: then come as many resolvers, and the listener; then those that submit. */
    worker *workers;
    size_t connections, drainers;
    const shape *form;
    size_t flows, submitted;
    tally done;
    int64_t last_us;
    bool is_listening; /* or nobody needs to */
    message *messages;
    size_t message_count, resolved;
    size_t *left; /* members of each flow that have not ended */
    samples lasted_us;
} run;

static void submit_task(size_t number, void *argument) {
    run *self = argument;
    while (self->submitted < self->flows) {
        flow_submit(&self->workers[number], self->form, self->submitted++);
        self->last_us = load_now_us();
    }
}

/* Nobody may start before all that it waits for is done. */
static void check_order(const run *self, size_t index) {
    const shape *form = self->form;
    size_t member = index % form->members, first = index - member;
    for (size_t i = 0; i < form->edge_count; i++) {
        if (form->edges[i].to != member) continue;
        load_check(self->done.seen[first + form->edges[i].from], "a member ran before its turn");
    }
}

/* Does the job; true when the next one came with the answer. */
static bool work_on(run *self, worker *mine, job *held) {
    job next;
    bool more = false;
    check_order(self, held->index);
    tally_add(&self->done, held->index);
    if (mine->who->chained) {
        more = mine->who->driver->complete_and_claim(mine, held, &next);
    } else {
        mine->who->driver->complete(mine, held);
    }
    self->last_us = load_now_us();
    if (--self->left[held->index / self->form->members] == 0) load_notify();
    if (more) *held = next;
    return more;
}

static void work(run *self, worker *mine) {
    job held;
    while (!self->is_listening) load_wait_until(INT64_MAX);
    while (self->done.done < self->done.expected) {
        bool more = mine->who->driver->claim(mine, &held, 20);
        while (more) more = work_on(self, mine, &held);
    }
    load_notify();
}

static void copy_member(char *text, size_t room, const char *json, const char *name) {
    char start[40];
    snprintf(start, sizeof start, "\"%s\":\"", name);
    const char *at = strstr(json, start);
    load_check(at != NULL, "a completion without %s: %s", name, json);
    at += strlen(start);
    snprintf(text, room, "%.*s", (int)strcspn(at, "\""), at);
}

static void listen_to_completions(run *self, worker *mine) {
    request_start(&mine->request, "SUBSCRIBE");
    request_add(&mine->request, COMPLETIONS);
    freeReplyObject(worker_call(mine));
    self->is_listening = true;
    load_notify();
    while (self->message_count < self->done.expected) {
        redisReply *reply = load_receive(mine->connection);
        message *next = &self->messages[self->message_count++];
        copy_member(next->flow, sizeof next->flow, reply->element[2]->str, "flow_id");
        copy_member(next->execution, sizeof next->execution, reply->element[2]->str,
                    "execution_id");
        freeReplyObject(reply);
        load_notify();
    }
}

static void resolve_messages(run *self, worker *mine) {
    while (self->resolved < self->done.expected) {
        if (self->resolved == self->message_count) {
            load_wait_until(load_now_us() + 100000);
            continue;
        }
        const message *next = &self->messages[self->resolved++];
        wire_execution ended;
        wire_from_id(&ended, mine->lane, next->execution);
        flow_resolve(mine, next->flow, &ended);
    }
    load_notify();
}

static void submit_in_turn(run *self, worker *mine) {
    while (!self->is_listening) load_wait_until(INT64_MAX);
    while (self->submitted < self->flows) {
        size_t flow = self->submitted++;
        int64_t start = load_now_us();
        flow_submit(mine, self->form, flow);
        while (self->left[flow] > 0) load_wait_until(INT64_MAX);
        samples_add(&self->lasted_us, (double)(load_now_us() - start));
    }
}

static void drain_task(size_t number, void *argument) {
    run *self = argument;
    worker *mine = &self->workers[number];
    if (number >= self->drainers) {
        submit_in_turn(self, mine);
    } else if (number < self->connections) {
        work(self, mine);
    } else if (number < self->connections * 2) {
        resolve_messages(self, mine);
    } else {
        listen_to_completions(self, mine);
    }
}

/* BullMQ's script adds and drains in one go. */
static flow_figures run_bullmq(const entrant *on, const shape *form, size_t connections,
                               size_t flows) {
    char numbers[64];
    double seconds;
    snprintf(numbers, sizeof numbers, "%zu %zu %zu", flows, form->members, connections);
    bullmq_run(on, &seconds, 1, "flow", numbers);
    return (flow_figures){.rate = (double)flows / seconds};
}

static double seconds_of(size_t tasks, load_task *task, run *self) {
    int64_t start = load_now_us();
    load_parallel(tasks, task, self);
    return (double)(self->last_us - start) / 1e6;
}

static size_t *count_members(size_t flows, size_t members) {
    size_t *left = calloc(flows, sizeof *left);
    load_check(left != NULL, "out of memory");
    for (size_t i = 0; i < flows; i++) left[i] = members;
    return left;
}

static run run_start(const entrant *on, const shape *form, size_t connections, size_t flows,
                     size_t submitters) {
    wire_new_run();
    bool is_wire = contestant_is_wire(&on->who);
    size_t drainers = is_wire ? connections * 2 + 1 : connections;
    run self = {.workers = workers_open(&on->who, on->server, drainers + submitters, LANE),
                .connections = connections,
                .drainers = drainers,
                .is_listening = !is_wire,
                .form = form,
                .flows = flows,
                .left = count_members(flows, form->members)};
    tally_start(&self.done, flows * form->members);
    self.messages = calloc(self.done.expected, sizeof *self.messages);
    load_check(self.messages != NULL, "out of memory");
    return self;
}

/* `ended` is how many had ended before. */
static void run_end(run *self, const entrant *on, size_t submitters, int64_t ended) {
    ended = on->who.driver->count_ended(self->workers) - ended;
    load_check(ended == (int64_t)self->done.expected, "%s: not all members ended", on->who.name);
    tally_end(&self->done, on->who.name);
    free(self->messages);
    free(self->left);
    samples_clear(&self->lasted_us);
    workers_close(self->workers, self->drainers + submitters);
}

flow_figures flow_run(const entrant *on, const shape *form, size_t connections, size_t flows) {
    if (is_bullmq(&on->who)) return run_bullmq(on, form, connections, flows);
    run self = run_start(on, form, connections, flows, 0);
    int64_t ended_before = on->who.driver->count_ended(self.workers);
    double submit = seconds_of(connections, submit_task, &self);
    double drain = seconds_of(self.drainers, drain_task, &self);
    run_end(&self, on, 0, ended_before);
    return (flow_figures){.rate = (double)flows / (submit + drain),
                          .submit_rate = (double)flows / submit,
                          .drain_rate = (double)flows / drain};
}

arrival_figures flow_run_arrivals(const entrant *on, const shape *form, size_t connections,
                                  size_t flows, size_t at_a_time) {
    run self = run_start(on, form, connections, flows, at_a_time);
    int64_t ended_before = on->who.driver->count_ended(self.workers);
    double seconds = seconds_of(self.drainers + at_a_time, drain_task, &self);
    arrival_figures figures = {.rate = (double)flows / seconds,
                               .p50_ms = samples_percentile(&self.lasted_us, 0.5) / 1e3,
                               .p99_ms = samples_percentile(&self.lasted_us, 0.99) / 1e3};
    run_end(&self, on, at_a_time, ended_before);
    return figures;
}
