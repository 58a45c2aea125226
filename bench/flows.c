/* Scenarios about flows: linear ones, fans, and a quorum that cancels the rest. */
#include "scenarios.h"

#include "bench.h"
#include "field.h"
#include "flow.h"
#include "report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool has_flows(const contestant *who) {
    if (contestant_is_native(who)) return !who->chained && contestant_knows(who, "FF.FLOW|SUBMIT");
    return contestant_is_wire(who) && !who->spread;
}

static bool has_lines(const contestant *who) { return has_flows(who) || is_bullmq(who); }

static void measure(const shape *form, size_t flows, field_filter *wanted, bool durable,
                    const char *file, const char *title) {
    field all;
    field_figures rates = {0};
    field_start(&all, durable, wanted);
    for (size_t round = 0; round < scaled(3, 2, 1); round++) {
        for (size_t i = 0; i < all.count; i++) {
            load_server_empty(all.entrants[i].server);
            series_add(&rates.of[i], flow_run(&all.entrants[i], form, 16, flows));
        }
    }
    report_text("%s: %zu flows of %zu members, 16 connections; the base is %s.", title, flows,
                form->members, all.entrants[field_base(&all)].who.name);
    report_header("", "flows/s", "times the base");
    for (size_t i = 0; i < all.count; i++) {
        report_row(all.entrants[i].who.name, series_text(&rates.of[i]),
                   field_ratio(&all, &rates, i));
    }
    report_table_end();
    field_chart(&all, file, title, &rates);
    field_stop(&all);
}

void scenario_flow(void) {
    shape line = shape_line(10), fan = shape_fan(100);
    report_heading("4. Flows");
    report_text(
        "All flows are submitted, then drained; every member ran exactly once, and after those "
        "it waits for. Wire flows are built call by call, and their dependents are "
        "resolved from outside: a listener receives the completions, and as many "
        "connections as there are workers do what the reference's engine does with them.");
    measure(&line, scaled(1000, 20, 5), has_lines, false, "flow-line",
            "Ten-node linear flows per second");
    measure(&line, scaled(1000, 20, 5), has_lines, true, "flow-line-durable",
            "Ten-node linear flows per second, with AOF and replica");
    measure(&fan, scaled(50, 2, 1), has_flows, false, "flow-fan",
            "100-way fan-out and fan-in, flows per second");
    shape_free(&line);
    shape_free(&fan);
}

/* ---- quorum ---- */

/* CANCEL-ONE for each listed sibling, then the drain, as the reference's dispatcher does. */
static void cancel_siblings(worker *self, const char *flow, const wire_execution *child) {
    char members[1000 * 64];
    request_start(&self->request, "HMGET");
    request_join(&self->request, "ff:flow:", child->tag, ":", flow, ":edgegroup:", child->id);
    request_add(&self->request, "cancel_siblings_reason");
    request_add(&self->request, "cancel_siblings_pending_members");
    request_add(&self->request, "cancel_siblings_pending_flag");
    redisReply *reply = worker_call(self);
    const char *listed = reply->element[1]->str;
    snprintf(members, sizeof members, "%s", listed ? listed : "");
    freeReplyObject(reply);
    char *rest = NULL;
    for (char *id = strtok_r(members, "|", &rest); id; id = strtok_r(NULL, "|", &rest)) {
        wire_execution sibling;
        wire_from_id(&sibling, self->lane, id);
        request_start(&self->request, "HMGET");
        request_join(&self->request, sibling.exec, "core");
        request_add(&self->request, "lane_id"),
            request_add(&self->request, "current_attempt_index");
        request_add(&self->request, "current_waitpoint_id");
        request_add(&self->request, "current_worker_instance_id");
        freeReplyObject(worker_call(self));
        wire_cancel(&self->request, self->who->way, &sibling, &self->as,
                    "sibling_quorum_satisfied");
        worker_expect(self, "cancel");
    }
    wire_drain(&self->request, self->who->way, flow, child);
    worker_expect(self, "drain");
}

static void finish_from_outside(worker *self, const shape *form, const job *done) {
    char flow[48];
    wire_execution child;
    flow_id(flow, sizeof flow, 0);
    flow_resolve(self, flow, &done->execution);
    wire_name(&child, self->lane, flow_partition(0), form->members - 1);
    cancel_siblings(self, flow, &child);
}

/* Milliseconds from completing one sibling until all others have ended. */
static double quorum_ms(const entrant *on, const shape *form) {
    worker *self = workers_open(&on->who, on->server, 1, "work");
    int64_t siblings = (int64_t)form->members - 1;
    job held;
    flow_submit(self, form, 0);
    int64_t limit = load_now_us() + 60000000;
    load_check(on->who.driver->claim(self, &held, 5000), "no sibling can be claimed");
    int64_t start = load_now_us();
    on->who.driver->complete(self, &held);
    if (contestant_is_wire(&on->who)) finish_from_outside(self, form, &held);
    int64_t ended;
    while ((ended = on->who.driver->count_ended(self)) < siblings) {
        load_check(load_now_us() < limit, "%s: only %lld of %lld siblings ended", on->who.name,
                   (long long)ended, (long long)siblings);
    }
    double ms = (double)(load_now_us() - start) / 1e3;
    load_check(ended == siblings && on->who.driver->claim(self, &held, 5000) &&
                   held.index == form->members - 1,
               "%s: the child should be claimable, and nothing else", on->who.name);
    workers_close(self, 1);
    return ms;
}

void scenario_quorum(void) {
    static const size_t widths[] = {10, 100, 1000};
    size_t count = scaled(3, 3, 2);
    static report_line lines[CONTESTANTS];
    double points[3];
    report_heading("6. Quorum of one, and the rest cancelled");
    report_text("n siblings, of which one is enough for the child. Milliseconds from completing "
                "one to all others being cancelled and the child eligible; the asking itself, one "
                "pipeline of ZCARD, is in it. The reference would first wait for its dispatcher's "
                "next second; that wait is left out.");
    field all;
    field_start(&all, false, has_flows);
    for (size_t w = 0; w < count; w++) {
        shape form = shape_quorum(widths[w]);
        field_figures ms = {0};
        points[w] = (double)widths[w];
        for (size_t round = 0; round < scaled(3, 2, 1); round++) {
            for (size_t i = 0; i < all.count; i++) {
                load_server_empty(all.entrants[i].server);
                series_add(&ms.of[i], quorum_ms(&all.entrants[i], &form));
            }
        }
        char title[40];
        snprintf(title, sizeof title, "%zu siblings, ms", widths[w]);
        report_header("", title, "times the base");
        for (size_t i = 0; i < all.count; i++) {
            report_row(all.entrants[i].who.name, series_text(&ms.of[i]), field_ratio(&all, &ms, i));
            lines[i].label = all.entrants[i].who.name;
            lines[i].figures[w] = ms.of[i];
        }
        report_table_end();
        shape_free(&form);
    }
    report_lines("quorum", "Until all siblings are cancelled, ms", "siblings", points, count, lines,
                 all.count);
    field_stop(&all);
}
