#include "info.h"

#include <stdio.h>
#include <string.h>

#include "claim/waiter.h"
#include "config.h"
#include "counters.h"
#include "permission.h"
#include "presence.h"
#include "scan/dispatch.h"
#include "scan/runner.h"
#include "version.h"

uint64_t ff_counters[FF_COUNTER_COUNT];

static ValkeyModuleCtx *own_ctx; /* INFO comes without one that can ask the server */

/* Where sections and fields go: into INFO, or into a reply. */
typedef struct sink {
    ValkeyModuleInfoCtx *info;
    ValkeyModuleCtx *reply;
    long fields;       /* of the current section or group, when replying */
    long outer_fields; /* of the section around the group */
    long sections;
} sink;

static void begin_section(sink *s, const char *name) {
    if (s->info) {
        ValkeyModule_InfoAddSection(s->info, name);
        return;
    }
    if (s->sections++) ValkeyModule_ReplySetMapLength(s->reply, s->fields);
    ValkeyModule_ReplyWithCString(s->reply, name);
    ValkeyModule_ReplyWithMap(s->reply, VALKEYMODULE_POSTPONED_LEN);
    s->fields = 0;
}

static void add_number(sink *s, const char *name, unsigned long long value) {
    if (s->info) {
        ValkeyModule_InfoAddFieldULongLong(s->info, name, value);
        return;
    }
    ValkeyModule_ReplyWithCString(s->reply, name);
    ValkeyModule_ReplyWithLongLong(s->reply, (long long)value);
    s->fields++;
}

static void add_text(sink *s, const char *name, const char *value) {
    if (s->info) {
        ValkeyModule_InfoAddFieldCString(s->info, name, value);
        return;
    }
    ValkeyModule_ReplyWithCString(s->reply, name);
    ValkeyModule_ReplyWithCString(s->reply, value);
    s->fields++;
}

typedef struct counted {
    const char *section;
    const char *field;
} counted;

#define FF_COUNTER_FIELD(name, section, field) {section, field},
static const counted counted_fields[] = {FF_COUNTERS(FF_COUNTER_FIELD)};

static void add_counters(sink *s, const char *section) {
    for (size_t i = 0; i < FF_COUNTER_COUNT; i++) {
        if (strcmp(counted_fields[i].section, section) == 0) {
            add_number(s, counted_fields[i].field, ff_counters[i]);
        }
    }
}

static void add_scanner_number(sink *s, const char *scanner, const char *name,
                               unsigned long long value) {
    char field[64];
    snprintf(field, sizeof field, "%s_%s", scanner, name);
    add_number(s, field, value);
}

static void add_scanner(sink *s, ff_scanner_id id) {
    ff_scanner_status status = ff_runner_status(id);
    const struct {
        const char *name;
        unsigned long long value;
    } fields[] = {
        {"cycles", status.cycles},
        {"last_us", status.last_us},
        {"longest_us", status.longest_us},
        {"slices_cut", status.slices_cut},
        {"scanned", status.totals.scanned},
        {"processed", status.totals.processed},
        {"refused", status.totals.refused},
        {"skipped", status.totals.skipped},
        {"unknown", status.totals.unknown},
        {"filtered", status.totals.filtered},
        {"backed_off", status.totals.backed_off},
        {"errors", status.totals.errors},
        {"failing", status.failing},
        {"backlog", status.backlog},
        {"oldest_ms", (unsigned long long)status.oldest_age_ms},
    };
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        add_scanner_number(s, status.name, fields[i].name, fields[i].value);
    }
}

static void add_scanners(sink *s) {
    ff_runner_totals totals = ff_runner_sum();
    add_number(s, "ticks", totals.ticks);
    add_number(s, "tick_us_total", totals.busy_us);
    add_number(s, "tick_us_longest", totals.longest_tick_us);
    add_number(s, "dispatch_queue", ff_dispatch_length());
    add_number(s, "cancel_backlog_depth", ff_runner_status(FF_SCANNER_CANCEL_RECONCILER).entries);
    add_counters(s, "scanners");
    for (ff_scanner_id id = 0; id < FF_SCANNER_COUNT; id++) add_scanner(s, id);
}

static void begin_group(sink *s, const char *name) {
    if (s->info) {
        ValkeyModule_InfoBeginDictField(s->info, name);
        return;
    }
    ValkeyModule_ReplyWithCString(s->reply, name);
    ValkeyModule_ReplyWithMap(s->reply, VALKEYMODULE_POSTPONED_LEN);
    s->outer_fields = s->fields;
    s->fields = 0;
}

static void end_group(sink *s) {
    if (s->info) {
        ValkeyModule_InfoEndDictField(s->info);
        return;
    }
    ValkeyModule_ReplySetMapLength(s->reply, s->fields);
    s->fields = s->outer_fields + 1;
}

static void write_claims(sink *s) {
    begin_section(s, "claims");
    add_number(s, "waiters", ff_waiters_count());
    add_counters(s, "claims");
    for (const ff_claim_lane *lane = ff_claim_lanes(); lane != NULL; lane = lane->next) {
        char name[96];
        snprintf(name, sizeof name, "lane_%.*s", (int)lane->name.len, lane->name.ptr);
        begin_group(s, name);
        add_number(s, "claimed", lane->claimed);
        add_number(s, "granted", lane->granted);
        add_number(s, "empty_calls", lane->empty_calls);
        add_number(s, "blocked", lane->blocked);
        add_number(s, "stepped_over", lane->stepped_over);
        add_number(s, "microseconds", lane->microseconds);
        end_group(s);
    }
}

static unsigned long long served(ValkeyModuleCtx *ctx, ff_family family) {
    unsigned long long count = 0;
    for (uint32_t i = 0; i < ff_partition_count(family); i++) {
        count += ff_partition_is_served(ctx, (ff_partition){family, (uint16_t)i});
    }
    return count;
}

/* What of the data is this node's, and what had to wait because it is another's. */
static void write_cluster(sink *s) {
    ValkeyModuleCtx *ctx = s->reply ? s->reply : own_ctx;
    bool enabled = ValkeyModule_GetContextFlags(ctx) & VALKEYMODULE_CTX_FLAGS_CLUSTER;
    begin_section(s, "cluster");
    add_number(s, "cluster_enabled", enabled);
    add_number(s, "flow_partitions_served", served(ctx, FF_FAMILY_FLOW));
    add_number(s, "budget_partitions_served", served(ctx, FF_FAMILY_BUDGET));
    add_number(s, "quota_partitions_served", served(ctx, FF_FAMILY_QUOTA));
    add_number(s, "claims_left_foreign_limit", ff_counters[FF_COUNT_CLAIM_FOREIGN]);
    add_number(s, "unblock_unknown", ff_runner_status(FF_SCANNER_UNBLOCK).totals.unknown);
}

static void write_all(sink *s) {
    begin_section(s, "engine");
    add_text(s, "version", FF_VERSION);
    add_number(s, "flow_partitions", (unsigned long long)ff_config.flow_partitions);
    add_number(s, "budget_partitions", (unsigned long long)ff_config.budget_partitions);
    add_number(s, "quota_partitions", (unsigned long long)ff_config.quota_partitions);
    add_counters(s, "engine");
    write_claims(s);
    begin_section(s, "scanners");
    add_scanners(s);
    write_cluster(s);
}

static void print(ValkeyModuleInfoCtx *ctx, int for_crash_report) {
    if (!for_crash_report) write_all(&(sink){.info = ctx});
}

void ff_info_load(ValkeyModuleCtx *ctx) {
    own_ctx = ValkeyModule_GetDetachedThreadSafeContext(ctx);
    ValkeyModule_RegisterInfoFunc(ctx, print);
}

void ff_info_unload(void) {
    if (own_ctx) ValkeyModule_FreeThreadSafeContext(own_ctx);
    own_ctx = NULL;
}

int ff_info_command(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    (void)argv;
    if (argc != 1) return ValkeyModule_WrongArity(ctx);
    sink s = {.reply = ctx};
    ValkeyModule_ReplyWithMap(ctx, VALKEYMODULE_POSTPONED_LEN);
    write_all(&s);
    ValkeyModule_ReplySetMapLength(ctx, s.fields);
    ValkeyModule_ReplySetMapLength(ctx, s.sections);
    return VALKEYMODULE_OK;
}
