#include "info.h"

#include <string.h>

#include "config.h"
#include "counters.h"
#include "version.h"

uint64_t ff_counters[FF_COUNTER_COUNT];

/* Where sections and fields go: into INFO, or into a reply. */
typedef struct sink {
    ValkeyModuleInfoCtx *info;
    ValkeyModuleCtx *reply;
    long fields; /* of the current section, when replying */
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

static void write_all(sink *s) {
    begin_section(s, "engine");
    add_text(s, "version", FF_VERSION);
    add_number(s, "flow_partitions", (unsigned long long)ff_config.flow_partitions);
    add_number(s, "budget_partitions", (unsigned long long)ff_config.budget_partitions);
    add_number(s, "quota_partitions", (unsigned long long)ff_config.quota_partitions);
    add_counters(s, "engine");
}

void ff_info_print(ValkeyModuleInfoCtx *ctx, int for_crash_report) {
    (void)for_crash_report;
    write_all(&(sink){.info = ctx});
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
