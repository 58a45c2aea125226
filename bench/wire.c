#include "wire.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define LEASE_MS "600000"
#define RENEW_BEFORE_MS "400000"

unsigned wire_crc16(const unsigned char *bytes, size_t size) {
    unsigned crc = 0;
    for (size_t i = 0; i < size; i++) {
        crc ^= (unsigned)bytes[i] << 8;
        for (int bit = 0; bit < 8; bit++) crc = crc & 0x8000 ? crc << 1 ^ 0x1021 : crc << 1;
    }
    return crc & 0xffff;
}

unsigned wire_lane_partition(const char *lane) {
    return wire_crc16((const unsigned char *)lane, strlen(lane)) % WIRE_PARTITIONS;
}

unsigned wire_uuid_partition(const char *uuid, unsigned partitions) {
    unsigned char raw[16] = {0};
    size_t digits = 0;
    for (; *uuid && digits < 32; uuid++) {
        if (*uuid == '-') continue;
        unsigned digit = (unsigned)(*uuid <= '9' ? *uuid - '0' : *uuid - 'a' + 10);
        raw[digits / 2] = (unsigned char)(raw[digits / 2] << 4 | digit);
        digits++;
    }
    return wire_crc16(raw, sizeof raw) % partitions;
}

static unsigned run;

void wire_new_run(void) { run = (run + 1) & 0xffff; }

void wire_uuid(char *id, char family, size_t first, size_t second) {
    snprintf(id, WIRE_UUID, "%08zx-%04x-4000-%c000-%012zx", first & 0xffffffff, run, family,
             second & 0xffffffffffff);
}

void wire_name(wire_execution *e, const char *lane, unsigned partition, size_t index) {
    char uuid[WIRE_UUID], id[64];
    wire_uuid(uuid, '8', index, index);
    snprintf(id, sizeof id, "{fp:%u}:%s", partition, uuid);
    wire_from_id(e, lane, id);
}

void wire_from_id(wire_execution *e, const char *lane, const char *execution_id) {
    memset(e, 0, sizeof *e);
    e->lane = lane;
    snprintf(e->id, sizeof e->id, "%s", execution_id);
    size_t size = strcspn(e->id, "}") + 1;
    load_check(size < sizeof e->tag, "'%s' is no execution id", execution_id);
    memcpy(e->tag, e->id, size);
    snprintf(e->exec, sizeof e->exec, "ff:exec:%s:%s:", e->tag, e->id);
}

size_t wire_index(const char *execution_id) {
    const char *last = strrchr(execution_id, '-');
    load_check(last != NULL, "'%s' is no execution id", execution_id);
    return (size_t)strtoull(last + 1, NULL, 16);
}

static void start(load_request *r, const char *way, const char *function, int keys) {
    request_start(r, way);
    request_add(r, function);
    request_add_number(r, keys);
}

static void add_now(load_request *r) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    request_add_number(r, (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000);
}

static void own(load_request *r, const wire_execution *e, const char *suffix) {
    request_join(r, e->exec, suffix);
}

static void index_key(load_request *r, const wire_execution *e, const char *name) {
    request_join(r, "ff:idx:", e->tag, ":", name);
}

static void lane_key(load_request *r, const wire_execution *e, const char *name) {
    request_join(r, "ff:idx:", e->tag, ":lane:", e->lane, ":", name);
}

static void leases_key(load_request *r, const wire_execution *e, const wire_worker *w) {
    request_join(r, "ff:idx:", e->tag, ":worker:", w->instance, ":leases");
}

static void attempt_key(load_request *r, const wire_execution *e, const char *suffix) {
    request_join(r, "ff:attempt:", e->tag, ":", e->id, ":0", suffix);
}

static void flow_key(load_request *r, const char *tag, const char *flow, const char *name,
                     const char *id) {
    request_join(r, "ff:flow:", tag, ":", flow, ":", name, id);
}

static void waitpoint_key(load_request *r, const wire_execution *e, const char *waitpoint,
                          const char *suffix) {
    request_join(r, "ff:wp:", e->tag, ":", waitpoint, suffix);
}

void wire_create(load_request *r, const char *way, const wire_execution *e, const char *payload,
                 const char *policy) {
    start(r, way, "ff_create_execution", 8);
    own(r, e, "core"), own(r, e, "payload"), own(r, e, "policy"), own(r, e, "tags");
    lane_key(r, e, "eligible");
    request_join(r, "ff:noop:", e->tag);
    index_key(r, e, "execution_deadline"), index_key(r, e, "all_executions");
    request_add(r, e->id);
    request_add(r, "default"); /* namespace */
    request_add(r, e->lane);
    request_add(r, "task"), request_add(r, "0"),
        request_add(r, "bench"); /* kind, priority, creator */
    request_add(r, policy[0] ? policy : "{}");
    request_add(r, payload);
    request_add(r, ""), request_add(r, ""); /* no delay, no deduplication */
    request_add(r, "{}");                   /* tags */
    request_add(r, "");                     /* no deadline */
    request_add_number(r, strtol(e->tag + 4, NULL, 10));
}

void wire_grant(load_request *r, const char *way, const wire_execution *e, const wire_worker *w) {
    start(r, way, "ff_issue_claim_grant", 3);
    own(r, e, "core"), own(r, e, "claim_grant"), lane_key(r, e, "eligible");
    request_add(r, e->id), request_add(r, w->id), request_add(r, w->instance);
    request_add(r, e->lane);
    request_add(r, ""), request_add(r, "5000"); /* capability hash, milliseconds to live */
    request_add(r, ""), request_add(r, "");     /* route snapshot, admission summary */
    request_add(r, w->capabilities);
}

void wire_claim(load_request *r, const char *way, const wire_execution *e, const wire_worker *w) {
    start(r, way, "ff_claim_execution", 14);
    own(r, e, "core"), own(r, e, "claim_grant"), lane_key(r, e, "eligible");
    index_key(r, e, "lease_expiry"), leases_key(r, e, w);
    attempt_key(r, e, ""), attempt_key(r, e, ":usage"), attempt_key(r, e, ":policy");
    own(r, e, "attempts"), own(r, e, "lease:current"), own(r, e, "lease:history");
    lane_key(r, e, "active");
    index_key(r, e, "attempt_timeout"), index_key(r, e, "execution_deadline");
    request_add(r, e->id), request_add(r, w->id), request_add(r, w->instance);
    request_add(r, e->lane), request_add(r, "");
    request_add(r, e->lease), request_add(r, LEASE_MS), request_add(r, RENEW_BEFORE_MS);
    request_add(r, e->attempt);
    request_add(r, ""), request_add(r, ""), request_add(r, ""); /* policy, timeout, deadline */
}

void wire_claim_resumed(load_request *r, const char *way, const wire_execution *e,
                        const wire_worker *w) {
    start(r, way, "ff_claim_resumed_execution", 11);
    own(r, e, "core"), own(r, e, "claim_grant"), lane_key(r, e, "eligible");
    index_key(r, e, "lease_expiry"), leases_key(r, e, w), attempt_key(r, e, "");
    own(r, e, "lease:current"), own(r, e, "lease:history"), lane_key(r, e, "active");
    index_key(r, e, "attempt_timeout"), index_key(r, e, "execution_deadline");
    request_add(r, e->id), request_add(r, w->id), request_add(r, w->instance);
    request_add(r, e->lane), request_add(r, "");
    request_add(r, e->lease), request_add(r, LEASE_MS), request_add(r, "");
}

void wire_renew(load_request *r, const char *way, const wire_execution *e) {
    start(r, way, "ff_renew_lease", 4);
    own(r, e, "core"), own(r, e, "lease:current"), own(r, e, "lease:history");
    index_key(r, e, "lease_expiry");
    request_add(r, e->id), request_add(r, "0"), request_add(r, e->attempt);
    request_add(r, e->lease), request_add(r, e->epoch);
    request_add(r, LEASE_MS), request_add(r, "5000");
}

void wire_progress(load_request *r, const char *way, const wire_execution *e) {
    start(r, way, "ff_update_progress", 1);
    own(r, e, "core");
    request_add(r, e->id), request_add(r, e->lease), request_add(r, e->epoch);
    request_add(r, "50"), request_add(r, "half");
}

void wire_complete(load_request *r, const char *way, const wire_execution *e,
                   const wire_worker *w) {
    start(r, way, "ff_complete_execution", 12);
    own(r, e, "core"), attempt_key(r, e, "");
    index_key(r, e, "lease_expiry"), leases_key(r, e, w), lane_key(r, e, "terminal");
    own(r, e, "lease:current"), own(r, e, "lease:history"), lane_key(r, e, "active");
    request_join(r, "ff:stream:", e->tag, ":", e->id, ":0:meta");
    own(r, e, "result");
    index_key(r, e, "attempt_timeout"), index_key(r, e, "execution_deadline");
    request_add(r, e->id), request_add(r, e->lease), request_add(r, e->epoch);
    request_add(r, e->attempt), request_add(r, "done"), request_add(r, "");
}

void wire_cancel(load_request *r, const char *way, const wire_execution *e, const wire_worker *w,
                 const char *reason) {
    start(r, way, "ff_cancel_execution", 21);
    own(r, e, "core"), attempt_key(r, e, "");
    request_join(r, "ff:stream:", e->tag, ":", e->id, ":0:meta");
    own(r, e, "lease:current"), own(r, e, "lease:history");
    index_key(r, e, "lease_expiry"), leases_key(r, e, w), own(r, e, "suspension:current");
    waitpoint_key(r, e, "none", ""), waitpoint_key(r, e, "none", ":condition");
    index_key(r, e, "suspension_timeout"), lane_key(r, e, "terminal");
    index_key(r, e, "attempt_timeout"), index_key(r, e, "execution_deadline");
    lane_key(r, e, "eligible"), lane_key(r, e, "delayed");
    lane_key(r, e, "blocked:dependencies"), lane_key(r, e, "blocked:budget");
    lane_key(r, e, "blocked:quota"), lane_key(r, e, "blocked:route");
    lane_key(r, e, "blocked:operator");
    request_add(r, e->id), request_add(r, reason), request_add(r, "operator_override");
    request_add(r, ""), request_add(r, "");
}

static bool is_budget(const char *set) { return strcmp(set, "budget") == 0; }

static const char *reason_of(const char *set) {
    return is_budget(set) ? "waiting_for_budget" : "waiting_for_capable_worker";
}

static void blocked_key(load_request *r, const wire_execution *e, const char *set) {
    request_join(r, "ff:idx:", e->tag, ":lane:", e->lane, ":blocked:", set);
}

void wire_block(load_request *r, const char *way, const wire_execution *e, const char *set) {
    start(r, way, "ff_block_execution_for_admission", 3);
    own(r, e, "core"), lane_key(r, e, "eligible"), blocked_key(r, e, set);
    request_add(r, e->id), request_add(r, reason_of(set));
    request_add(r, is_budget(set) ? "over budget"
                                  : "no connected worker satisfies required_capabilities");
    add_now(r);
}

void wire_unblock(load_request *r, const char *way, const wire_execution *e, const char *set) {
    start(r, way, "ff_unblock_execution", 3);
    own(r, e, "core"), blocked_key(r, e, set), lane_key(r, e, "eligible");
    request_add(r, e->id), add_now(r), request_add(r, reason_of(set));
}

void wire_secret(load_request *r, const char *way, const char *tag) {
    start(r, way, "ff_rotate_waitpoint_hmac_secret", 1);
    request_join(r, "ff:sec:", tag, ":waitpoint_hmac");
    request_add(r, "k1"), request_add(r, "00112233445566778899aabbccddeeff"), request_add(r, "0");
}

void wire_suspend(load_request *r, const char *way, const wire_execution *e, const wire_worker *w,
                  const char *waitpoint) {
    start(r, way, "ff_suspend_execution", 18);
    own(r, e, "core"), attempt_key(r, e, ""), own(r, e, "lease:current");
    own(r, e, "lease:history"), index_key(r, e, "lease_expiry"), leases_key(r, e, w);
    own(r, e, "suspension:current");
    waitpoint_key(r, e, waitpoint, ""), waitpoint_key(r, e, waitpoint, ":signals");
    index_key(r, e, "suspension_timeout"), index_key(r, e, "pending_waitpoint_expiry");
    lane_key(r, e, "active"), lane_key(r, e, "suspended"), own(r, e, "waitpoints");
    waitpoint_key(r, e, waitpoint, ":condition"), index_key(r, e, "attempt_timeout");
    request_join(r, "ff:sec:", e->tag, ":waitpoint_hmac");
    request_join(r, "ff:noop:", e->tag);
    request_add(r, e->id), request_add(r, "0"), request_add(r, e->attempt);
    request_add(r, e->lease), request_add(r, e->epoch);
    request_join(r, "s-", waitpoint);
    request_add(r, waitpoint), request_join(r, "wpk:", waitpoint);
    request_add(r, "waiting_for_signal"), request_add(r, "worker"), request_add(r, "");
    request_add(r, "{\"allow_operator_override\":true,\"condition_type\":\"signal_set\","
                   "\"minimum_signal_count\":1,\"required_signal_names\":[\"go\"],"
                   "\"signal_match_mode\":\"any\",\"timeout_behavior\":\"fail\"}");
    request_add(r, "{\"close_waitpoint_on_resume\":true,\"consume_matched_signals\":true,"
                   "\"resume_target\":\"runnable\",\"retain_signal_buffer_until_closed\":false}");
    request_add(r, ""), request_add(r, ""), request_add(r, "fail"), request_add(r, "1000");
    request_add(r, ""), request_add(r, "0");
}

void wire_signal(load_request *r, const char *way, const wire_execution *e, const char *waitpoint,
                 const char *signal, const char *token) {
    start(r, way, "ff_deliver_signal", 15);
    own(r, e, "core"), waitpoint_key(r, e, waitpoint, ":condition");
    waitpoint_key(r, e, waitpoint, ":signals"), own(r, e, "signals");
    request_join(r, "ff:signal:", e->tag, ":", signal);
    request_join(r, "ff:signal:", e->tag, ":", signal, ":payload");
    request_join(r, "ff:noop:", e->tag), waitpoint_key(r, e, waitpoint, "");
    own(r, e, "suspension:current");
    lane_key(r, e, "eligible"), lane_key(r, e, "suspended"), lane_key(r, e, "delayed");
    index_key(r, e, "suspension_timeout");
    request_join(r, "ff:sec:", e->tag, ":waitpoint_hmac");
    request_join(r, "ff:part:", e->tag, ":signal_delivery");
    request_add(r, signal), request_add(r, e->id), request_add(r, waitpoint);
    request_add(r, "go"), request_add(r, "external"), request_add(r, "user");
    request_add(r, "bench"), request_add(r, ""), request_add(r, "json");
    request_add(r, ""), request_add(r, ""), request_add(r, "waitpoint"), request_add(r, "");
    request_add(r, "86400000"), request_add(r, "0"), request_add(r, "1000");
    request_add(r, "10000"), request_add(r, token);
}

void wire_flow_create(load_request *r, const char *way, const char *tag, const char *flow) {
    start(r, way, "ff_create_flow", 3);
    flow_key(r, tag, flow, "core", ""), flow_key(r, tag, flow, "members", "");
    request_join(r, "ff:idx:", tag, ":flow_index");
    request_add(r, flow), request_add(r, "bench"), request_add(r, "default"), add_now(r);
}

void wire_flow_add(load_request *r, const char *way, const char *flow, const wire_execution *e) {
    start(r, way, "ff_add_execution_to_flow", 4);
    flow_key(r, e->tag, flow, "core", ""), flow_key(r, e->tag, flow, "members", "");
    index_key(r, e, "flow_index"), own(r, e, "core");
    request_add(r, flow), request_add(r, e->id), add_now(r);
}

void wire_edge_stage(load_request *r, const char *way, const char *flow, const char *edge,
                     const wire_execution *from, const wire_execution *to, int64_t revision) {
    start(r, way, "ff_stage_dependency_edge", 6);
    flow_key(r, to->tag, flow, "core", ""), flow_key(r, to->tag, flow, "members", "");
    flow_key(r, to->tag, flow, "edge:", edge), flow_key(r, to->tag, flow, "out:", from->id);
    flow_key(r, to->tag, flow, "in:", to->id), flow_key(r, to->tag, flow, "grant:", edge);
    request_add(r, flow), request_add(r, edge), request_add(r, from->id), request_add(r, to->id);
    request_add(r, "success_only"), request_add(r, ""), request_add_number(r, revision);
    add_now(r);
}

void wire_edge_policy(load_request *r, const char *way, const char *flow, const wire_execution *e,
                      int64_t quorum) {
    start(r, way, "ff_set_edge_group_policy", 2);
    flow_key(r, e->tag, flow, "core", ""), flow_key(r, e->tag, flow, "edgegroup:", e->id);
    request_add(r, "quorum"), request_add(r, "cancel_remaining"), request_add_number(r, quorum);
    add_now(r);
}

void wire_edge_apply(load_request *r, const char *way, const char *flow, const char *edge,
                     const wire_execution *from, const wire_execution *to, int64_t revision) {
    start(r, way, "ff_apply_dependency_to_child", 8);
    own(r, to, "core"), own(r, to, "deps:meta"), own(r, to, "deps:unresolved");
    request_join(r, to->exec, "dep:", edge);
    lane_key(r, to, "eligible"), lane_key(r, to, "blocked:dependencies");
    own(r, to, "deps:all_edges"), flow_key(r, to->tag, flow, "edgegroup:", to->id);
    request_add(r, flow), request_add(r, edge), request_add(r, from->id);
    request_add_number(r, revision), request_add(r, "success_only"), request_add(r, "");
    add_now(r);
}

void wire_resolve(load_request *r, const char *way, const char *flow, const char *edge,
                  const wire_execution *from, const wire_execution *to, const char *outcome) {
    start(r, way, "ff_resolve_dependency", 14);
    own(r, to, "core"), own(r, to, "deps:meta"), own(r, to, "deps:unresolved");
    request_join(r, to->exec, "dep:", edge);
    lane_key(r, to, "eligible"), lane_key(r, to, "terminal");
    lane_key(r, to, "blocked:dependencies"), attempt_key(r, to, "");
    request_join(r, "ff:stream:", to->tag, ":", to->id, ":0:meta");
    own(r, to, "payload"), own(r, from, "result");
    flow_key(r, to->tag, flow, "edgegroup:", to->id), flow_key(r, to->tag, flow, "in:", to->id);
    index_key(r, to, "pending_cancel_groups");
    request_add(r, edge), request_add(r, outcome), add_now(r);
    request_add(r, flow), request_add(r, to->id);
}

void wire_drain(load_request *r, const char *way, const char *flow, const wire_execution *e) {
    start(r, way, "ff_drain_sibling_cancel_group", 2);
    index_key(r, e, "pending_cancel_groups"), flow_key(r, e->tag, flow, "edgegroup:", e->id);
    request_add(r, flow), request_add(r, e->id);
}

bool wire_succeeded(const redisReply *reply) {
    return reply->type == REDIS_REPLY_ARRAY && reply->elements >= 2 &&
           reply->element[0]->type == REDIS_REPLY_INTEGER && reply->element[0]->integer == 1;
}

void wire_expect(const redisReply *reply, const char *what) {
    if (wire_succeeded(reply)) return;
    const char *said = reply->str             ? reply->str
                       : reply->elements >= 2 ? reply->element[1]->str
                                              : "nothing that makes sense";
    load_fail("%s was refused: %s", what, said ? said : "?");
}

const char *wire_text(const redisReply *reply, size_t n) {
    wire_expect(reply, "a call");
    load_check(n < reply->elements && reply->element[n]->str, "a reply has no text %zu", n);
    return reply->element[n]->str;
}
