#include "config.h"

#include <limits.h>
#include <strings.h>

#include "base/number.h"
#include "base/options.h"
#include "compat/intercept.h"
#include "scan/filter.h"
#include "scan/runner.h"
#include "store/txn.h"

ff_configuration ff_config;

typedef enum { FLAG, NUMBER, TEXT } setting_kind;

typedef struct setting {
    const char *name;
    setting_kind kind;
    void *target; /* int of a flag, long long of a number, ff_text of a text */
    long long initial;
    long long min;
    long long max;
    unsigned flags;
    void (*apply)(
        ValkeyModuleCtx *ctx);      /* makes a new value take effect; may be called at any time */
    bool (*is_valid)(ff_text text); /* of a text */
    const char *expected;           /* what a valid text looks like */
    ValkeyModuleString *text;       /* the value of a text */
} setting;

enum { INTERVAL_MAX_MS = 24 * 60 * 60 * 1000 };

#define YES_NO(name_, target_, initial_, ...) \
    { \
        .name = name_, .kind = FLAG, .target = &ff_config.target_, .initial = initial_, .max = 1, \
        .flags = VALKEYMODULE_CONFIG_DEFAULT, __VA_ARGS__ \
    }
#define NUMERIC(name_, target_, initial_, min_, max_, ...) \
    { \
        .name = name_, .kind = NUMBER, .target = &ff_config.target_, .initial = initial_, \
        .min = min_, .max = max_, .flags = VALKEYMODULE_CONFIG_DEFAULT, __VA_ARGS__ \
    }
#define TEXTUAL(name_, target_, ...) \
    { \
        .name = name_, .kind = TEXT, .target = &ff_config.target_, \
        .flags = VALKEYMODULE_CONFIG_DEFAULT, __VA_ARGS__ \
    }
#define PARTITIONS(name_, target_, initial_) \
    { \
        .name = name_, .kind = NUMBER, .target = &ff_config.target_, .initial = initial_, \
        .min = 1, .max = 65535, .flags = VALKEYMODULE_CONFIG_IMMUTABLE \
    }
#define INTERVAL(id, name_, setting_, ms) \
    NUMERIC(setting_, scanner_interval_ms[FF_SCANNER_##id], ms, 0, INTERVAL_MAX_MS, \
            .apply = ff_runner_apply),

static setting settings[] = {
    PARTITIONS("flow-partitions", flow_partitions, 256),
    PARTITIONS("budget-partitions", budget_partitions, 32),
    PARTITIONS("quota-partitions", quota_partitions, 32),
    YES_NO("intercept-fcall", intercept_fcall, 0, .apply = ff_intercept_apply),
    NUMERIC("claim-partitions-per-scan", claim_partitions_per_scan, 32, 1, 65535),
    NUMERIC("claim-rotation-ms", claim_rotation_ms, 250, 1, INTERVAL_MAX_MS),
    NUMERIC("claim-block-limit", claim_block_limit, 16, 1, 10000),
    NUMERIC("claim-lookahead", claim_lookahead, 64, 1, 10000),
    YES_NO("scanners", scanners, 0, .apply = ff_runner_apply),
    FF_SCANNERS(INTERVAL) NUMERIC("scanner-slice-us", scanner_slice_us, 1000, 50, 1000000),
    NUMERIC("scan-batch", scan_batch, 64, 1, 10000),
    NUMERIC("retention-ms", retention_ms, 24 * 60 * 60 * 1000, 0, FF_MILLISECONDS_MAX),
    YES_NO("inline-cascade", inline_cascade, 1),
    NUMERIC("cascade-limit", cascade_limit, 1000, 0, 1000000),
    TEXTUAL("lanes", lanes, .apply = ff_runner_apply, .is_valid = ff_runner_lanes_are_valid,
            .expected = "a comma-separated list of lanes, each 1 to 64 printable characters"),
    TEXTUAL("filter-namespace", filter_namespace),
    TEXTUAL("filter-tag", filter_tag, .is_valid = ff_filter_tag_is_valid,
            .expected = "empty, or name=value"),
};

enum { SETTING_COUNT = sizeof settings / sizeof *settings };

static int get_flag(const char *name, void *data) {
    (void)name;
    return *(int *)((setting *)data)->target;
}

static int set_flag(const char *name, int value, void *data, ValkeyModuleString **error) {
    (void)name;
    (void)error;
    *(int *)((setting *)data)->target = value;
    return VALKEYMODULE_OK;
}

static long long get_number(const char *name, void *data) {
    (void)name;
    return *(long long *)((setting *)data)->target;
}

static int set_number(const char *name, long long value, void *data, ValkeyModuleString **error) {
    (void)name;
    (void)error;
    *(long long *)((setting *)data)->target = value;
    return VALKEYMODULE_OK;
}

static ValkeyModuleString *get_text(const char *name, void *data) {
    (void)name;
    return ((setting *)data)->text;
}

static void hold_text(setting *s, ValkeyModuleString *value) {
    if (s->text) ValkeyModule_FreeString(NULL, s->text);
    s->text = value;
    *(ff_text *)s->target = ff_str_text(value);
}

static int set_text(const char *name, ValkeyModuleString *value, void *data,
                    ValkeyModuleString **error) {
    setting *s = data;
    if (s->is_valid && !s->is_valid(ff_str_text(value))) {
        *error = ValkeyModule_CreateStringPrintf(NULL, "ff.%s must be %s", name, s->expected);
        return VALKEYMODULE_ERR;
    }
    hold_text(s, ValkeyModule_CreateStringFromString(NULL, value));
    return VALKEYMODULE_OK;
}

static int apply(ValkeyModuleCtx *ctx, void *data, ValkeyModuleString **error) {
    (void)error;
    ((setting *)data)->apply(ctx);
    return VALKEYMODULE_OK;
}

static int register_setting(ValkeyModuleCtx *ctx, setting *s) {
    ValkeyModuleConfigApplyFunc on_apply = s->apply ? apply : NULL;
    if (s->kind == FLAG) {
        return ValkeyModule_RegisterBoolConfig(ctx, s->name, (int)s->initial, s->flags, get_flag,
                                               set_flag, on_apply, s);
    }
    if (s->kind == TEXT) {
        const char *initial = s->text ? ValkeyModule_StringPtrLen(s->text, NULL) : "";
        return ValkeyModule_RegisterStringConfig(ctx, s->name, initial, s->flags, get_text,
                                                 set_text, on_apply, s);
    }
    return ValkeyModule_RegisterNumericConfig(ctx, s->name, s->initial, s->flags, s->min, s->max,
                                              get_number, set_number, on_apply, s);
}

static setting *find(ff_text name) {
    for (size_t i = 0; i < SETTING_COUNT; i++) {
        if (ff_text_equal_ignoring_case(name, ff_text_of(settings[i].name))) return &settings[i];
    }
    return NULL;
}

static bool read_value(const setting *s, ff_text text, long long *value) {
    if (s->kind == FLAG) {
        bool yes = ff_text_equal_ignoring_case(text, FF_TEXT("yes"));
        *value = yes;
        return yes || ff_text_equal_ignoring_case(text, FF_TEXT("no"));
    }
    int64_t number;
    if (!ff_integer_parse(text, &number)) return false;
    *value = number;
    return number >= s->min && number <= s->max;
}

static int read_text(ValkeyModuleCtx *ctx, setting *s, ValkeyModuleString *value) {
    if (s->is_valid && !s->is_valid(ff_str_text(value))) {
        ValkeyModule_Log(ctx, "warning", "loadmodule argument %s must be %s", s->name, s->expected);
        return VALKEYMODULE_ERR;
    }
    hold_text(s, ValkeyModule_CreateStringFromString(NULL, value));
    return VALKEYMODULE_OK;
}

static int read_argument(ValkeyModuleCtx *ctx, ValkeyModuleString *name,
                         ValkeyModuleString *value) {
    setting *s = find(ff_str_text(name));
    if (s == NULL) {
        ValkeyModule_Log(ctx, "warning", "unknown loadmodule argument '%s'",
                         ValkeyModule_StringPtrLen(name, NULL));
        return VALKEYMODULE_ERR;
    }
    if (s->kind == TEXT) return read_text(ctx, s, value);
    if (!read_value(s, ff_str_text(value), &s->initial)) {
        if (s->kind == FLAG) {
            ValkeyModule_Log(ctx, "warning", "loadmodule argument %s must be yes or no", s->name);
        } else {
            ValkeyModule_Log(ctx, "warning",
                             "loadmodule argument %s must be a number between %lld and %lld",
                             s->name, s->min, s->max);
        }
        return VALKEYMODULE_ERR;
    }
    return VALKEYMODULE_OK;
}

static int read_arguments(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    if (argc % 2) {
        ValkeyModule_Log(ctx, "warning", "loadmodule arguments are pairs of a name and a value");
        return VALKEYMODULE_ERR;
    }
    for (int i = 0; i < argc; i += 2) {
        if (read_argument(ctx, argv[i], argv[i + 1]) != VALKEYMODULE_OK) return VALKEYMODULE_ERR;
    }
    return VALKEYMODULE_OK;
}

int ff_config_load(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    if (read_arguments(ctx, argv, argc) != VALKEYMODULE_OK) return VALKEYMODULE_ERR;
    for (size_t i = 0; i < SETTING_COUNT; i++) {
        if (register_setting(ctx, &settings[i]) != VALKEYMODULE_OK) return VALKEYMODULE_ERR;
    }
    if (ValkeyModule_LoadConfigs(ctx) != VALKEYMODULE_OK) return VALKEYMODULE_ERR;
    for (size_t i = 0; i < SETTING_COUNT; i++) {
        if (settings[i].apply) settings[i].apply(ctx);
    }
    return VALKEYMODULE_OK;
}

void ff_config_unload(void) {
    for (size_t i = 0; i < SETTING_COUNT; i++) {
        if (settings[i].text) ValkeyModule_FreeString(NULL, settings[i].text);
        settings[i].text = NULL;
    }
}
