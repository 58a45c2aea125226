/* Scenarios about flows: linear ones, fans, and a quorum that cancels the rest. */
#include "scenarios.h"

#include "bench.h"
#include "chart.h"
#include "field.h"
#include "flow.h"
#include "report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool has_flows(const contestant *who) {
    if (contestant_is_native(who)) return contestant_knows(who, "FF.FLOW|SUBMIT");
    return contestant_is_wire(who) && !who->spread;
}

static bool has_lines(const contestant *who) { return has_flows(who) || is_bullmq(who); }

static bool has_plain_flows(const contestant *who) { return has_flows(who) && !who->chained; }

/* What is measured, and under which names it is told. */
typedef struct flow_case {
    const shape *form;
    size_t flows, wire_flows;
    field_filter *wanted;
    bool is_durable;
    const char *file, *title;
} flow_case;

static void note_goal(const field *all, const field_figures *rates, const char *what) {
    size_t native = field_named(all, "native"),
           chained = field_named(all, "native, COMPLETE … CLAIM");
    char text[120];
    if (native == all->count || chained == all->count || field_base(all) == native) return;
    series gain = field_gain(all, rates, native, MORE_IS_BETTER);
    series best = field_gain(all, rates, chained, MORE_IS_BETTER);
    snprintf(text, sizeof text, "%s times; with COMPLETE … CLAIM %s times", series_text(&gain),
             series_text(&best));
    report_goal(what, "at least 50 times", text, series_median(&gain) >= 50);
}

static void measure(const flow_case *what) {
    field all;
    field_figures rates = {0}, submit = {0}, drain = {0};
    field_start(&all, what->is_durable, what->wanted);
    for (size_t round = 0; round < scaled(3, 2, 1); round++) {
        for (size_t i = 0; i < all.count; i++) {
            const entrant *on = &all.entrants[i];
            size_t flows = contestant_is_wire(&on->who) ? what->wire_flows : what->flows;
            load_server_empty(on->server);
            flow_figures figures = flow_run(on, what->form, 16, flows);
            series_add(&rates.of[i], figures.rate);
            if (figures.submit_rate <= 0) continue;
            series_add(&submit.of[i], figures.submit_rate);
            series_add(&drain.of[i], figures.drain_rate);
        }
    }
    report_text("%s: %zu flows (the wire way: %zu) of %zu members, 16 connections:", what->title,
                what->flows, what->wire_flows, what->form->members);
    report_header("", field_gain_title(&all), "flows/s", "submitted/s", "drained/s");
    for (size_t i = 0; i < all.count; i++) {
        report_row(all.entrants[i].who.name, field_gain_text(&all, &rates, i, MORE_IS_BETTER),
                   series_text(&rates.of[i]), series_text(&submit.of[i]),
                   series_text(&drain.of[i]));
    }
    report_table_end();
    field_chart(&all, what->file, what->title, &rates, MORE_IS_BETTER);
    if (what->wanted == has_lines && !what->is_durable) {
        note_goal(&all, &rates,
                  "Ten-node linear flows against the wire way, 16 connections, all at once (4)");
    }
    field_stop(&all);
}

void scenario_flow(void) {
    shape line = shape_line(10), fan = shape_fan(100);
    flow_case lines = {.form = &line,
                       .flows = scaled(1000, 50, 5),
                       .wire_flows = scaled(300, 30, 5),
                       .wanted = has_lines,
                       .file = "flow-line",
                       .title = "Ten-node linear flows per second"};
    flow_case durable = lines, fans = lines;
    durable.is_durable = true;
    durable.file = "flow-line-durable";
    durable.title = "Ten-node linear flows per second, with AOF and replica";
    fans.form = &fan;
    fans.flows = scaled(50, 2, 1), fans.wire_flows = scaled(10, 2, 1);
    fans.wanted = has_flows;
    fans.file = "flow-fan";
    fans.title = "100-way fan-out and fan-in, flows per second";
    report_heading("4. Flows");
    report_text(
        "All flows are submitted, then drained; every member ran exactly once, and after those "
        "it waits for. Native flows are one FF.FLOW SUBMIT each, and FF.COMPLETE resolves what "
        "depends on a member. Wire flows are built call by call: flow, then create and add for "
        "each member, then stage and apply for each edge. One connection is subscribed to "
        "`ff:dag:completions`; each message starts a cascade of its own, as many at a time as "
        "there are workers: the outcome is read, the outgoing edges, and for each edge one "
        "after the other its child, the child's lane and attempt, then "
        "`ff_resolve_dependency`. Workers find members by the claim cycle.");
    measure(&lines);
    measure(&durable);
    measure(&fans);
    shape_free(&line);
    shape_free(&fan);
}

/* ---- one after the other ---- */

static bool has_arrivals(const contestant *who) {
    return has_flows(who) && !contestant_is_variant(who);
}

static void measure_arrivals(const field *all, const shape *form, size_t at_a_time) {
    field_figures rates = {0}, p50 = {0}, p99 = {0};
    size_t flows = scaled(1000, 100, 20), wire_flows = scaled(20, 5, 2) * (at_a_time > 1 ? 5 : 1);
    for (size_t round = 0; round < scaled(3, 2, 1); round++) {
        for (size_t i = 0; i < all->count; i++) {
            const entrant *on = &all->entrants[i];
            bool is_wire = contestant_is_wire(&on->who);
            load_server_empty(on->server);
            arrival_figures figures =
                flow_run_arrivals(on, form, 16, is_wire ? wire_flows : flows, at_a_time);
            series_add(&rates.of[i], figures.rate);
            series_add(&p50.of[i], figures.p50_ms);
            series_add(&p99.of[i], figures.p99_ms);
        }
    }
    report_text("%zu at a time, %zu flows (the wire way: %zu), 16 workers:", at_a_time, flows,
                wire_flows);
    report_header("", field_gain_title(all), "flows/s", "a flow, p50 ms", "p99 ms");
    for (size_t i = 0; i < all->count; i++) {
        report_row(all->entrants[i].who.name, field_gain_text(all, &rates, i, MORE_IS_BETTER),
                   series_text(&rates.of[i]), series_text(&p50.of[i]), series_text(&p99.of[i]));
    }
    report_table_end();
    char goal[120];
    snprintf(goal, sizeof goal,
             "Ten-node linear flows against the wire way, 16 connections, %zu at a time (4b)",
             at_a_time);
    note_goal(all, &rates, goal);
}

void scenario_arrivals(void) {
    shape line = shape_line(10);
    field all;
    report_heading("4b. Flows that come one after the other");
    report_text(
        "Ten-node linear flows once more, but not in heaps: the next is submitted when one "
        "has ended, so that what counts is how long a flow takes, not how much the server "
        "can do at once. Workers wait for members as in 3; wire workers are kept from a flow "
        "until all its edges are there, without which its members would run too early.");
    field_start(&all, false, has_arrivals);
    measure_arrivals(&all, &line, 1);
    measure_arrivals(&all, &line, 16);
    field_stop(&all);
    shape_free(&line);
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

/* One cycle of the reference's dispatcher over the partitions, up to the one with the group. It
 * starts a cycle each second, at a moment that the round decides; returns when that was. */
static int64_t dispatch_cancels(worker *self, const char *flow, const wire_execution *child,
                                size_t round) {
    static const int64_t phases_us[] = {500000, 200000, 800000};
    load_sleep_until(load_now_us() + phases_us[round % 3]);
    int64_t begun = load_now_us();
    for (unsigned p = 0; p < WIRE_PARTITIONS; p++) {
        char tag[16];
        snprintf(tag, sizeof tag, "{fp:%u}", p);
        request_start(&self->request, "SRANDMEMBER");
        request_join(&self->request, "ff:idx:", tag, ":pending_cancel_groups");
        request_add(&self->request, "50");
        redisReply *groups = worker_call(self);
        bool is_here = groups->elements > 0;
        freeReplyObject(groups);
        if (!is_here) continue;
        cancel_siblings(self, flow, child);
        break;
    }
    return begun;
}

typedef struct quorum_figures {
    double ms;      /* from completing one sibling until all others have ended */
    double work_ms; /* of that, without waiting for a dispatcher */
} quorum_figures;

/* Takes the first sibling; wire workers know which it is and need not look for it. */
static void take_sibling(worker *self, const shape *form, job *held) {
    if (!contestant_is_wire(self->who)) {
        load_check(self->who->driver->claim(self, held, 5000), "no sibling can be claimed");
        return;
    }
    wire_name(&held->execution, self->lane, flow_partition(0), 0);
    load_check(form->members > 1 && wire_take(self, &held->execution), "a sibling is not granted");
}

static void wait_for_ends(worker *self, int64_t siblings) {
    int64_t limit = load_now_us() + 60000000, ended;
    while ((ended = self->who->driver->count_ended(self)) < siblings) {
        load_check(load_now_us() < limit, "%s: only %lld of %lld siblings ended", self->who->name,
                   (long long)ended, (long long)siblings);
    }
    load_check(ended == siblings && worker_count_in_lane(self, "eligible") == 1,
               "%s: the child should be claimable, and nothing else", self->who->name);
}

static quorum_figures run_quorum(const entrant *on, const shape *form, size_t round) {
    worker *self = workers_open(&on->who, on->server, 1, "work");
    char flow[WIRE_UUID];
    wire_execution child;
    job held;
    wire_new_run();
    flow_submit(self, form, 0);
    flow_id(flow, 0);
    wire_name(&child, self->lane, flow_partition(0), form->members - 1);
    take_sibling(self, form, &held);
    int64_t start = load_now_us(), waited = 0;
    on->who.driver->complete(self, &held);
    if (contestant_is_wire(&on->who)) {
        flow_resolve(self, flow, &held.execution);
        int64_t resolved = load_now_us();
        waited = dispatch_cancels(self, flow, &child, round) - resolved;
    }
    wait_for_ends(self, (int64_t)form->members - 1);
    int64_t took = load_now_us() - start;
    workers_close(self, 1);
    return (quorum_figures){.ms = (double)took / 1e3, .work_ms = (double)(took - waited) / 1e3};
}

static void tell_quorum(const field *all, size_t siblings, const field_figures *ms,
                        const field_figures *work_ms) {
    report_text("%zu siblings:", siblings);
    report_header("", field_gain_title(all), "ms", "of that work, ms", "times as fast, work alone");
    for (size_t i = 0; i < all->count; i++) {
        report_row(all->entrants[i].who.name, field_gain_text(all, ms, i, LESS_IS_BETTER),
                   series_text(&ms->of[i]), series_text(&work_ms->of[i]),
                   field_gain_text(all, work_ms, i, LESS_IS_BETTER));
    }
    report_table_end();
}

void scenario_quorum(void) {
    static const size_t widths[] = {10, 100, 1000};
    static chart_line lines[CONTESTANTS];
    size_t count = scaled(3, 3, 2);
    double points[3];
    report_heading("6. Quorum of one, and the rest cancelled");
    report_text(
        "n siblings, of which one is enough for the child. Milliseconds from completing "
        "one until all others are cancelled and the child is eligible; the asking itself, one "
        "pipeline of ZCARD, is in it. The reference's dispatcher begins a cycle over the "
        "partitions each second: the wire contestants complete 0.2, 0.5 or 0.8 s before "
        "one begins. The last two columns leave that wait out.");
    field all;
    field_start(&all, false, has_plain_flows);
    for (size_t w = 0; w < count; w++) {
        shape form = shape_quorum(widths[w]);
        field_figures ms = {0}, work_ms = {0};
        points[w] = (double)widths[w];
        for (size_t round = 0; round < scaled(3, 2, 1); round++) {
            for (size_t i = 0; i < all.count; i++) {
                load_server_empty(all.entrants[i].server);
                quorum_figures figures = run_quorum(&all.entrants[i], &form, round);
                series_add(&ms.of[i], figures.ms);
                series_add(&work_ms.of[i], figures.work_ms);
            }
        }
        tell_quorum(&all, widths[w], &ms, &work_ms);
        for (size_t i = 0; i < all.count; i++) {
            lines[i].label = all.entrants[i].who.name;
            lines[i].figures[w] = work_ms.of[i];
        }
        shape_free(&form);
    }
    chart_lines("quorum",
                "Until all siblings are cancelled, ms, without waiting for the dispatcher",
                "siblings", points, count, lines, all.count);
    field_stop(&all);
}
