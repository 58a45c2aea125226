#include "config.h"

#include <limits.h>
#include <strings.h>

#include "base/number.h"
#include "compat/intercept.h"
#include "store/txn.h"

ff_configuration ff_config;

typedef enum { FLAG, NUMBER } setting_kind;

typedef struct setting {
    const char *name;
    setting_kind kind;
    void *target; /* int of a flag, long long of a number */
    long long initial;
    long long min;
    long long max;
    unsigned flags;
    void (*apply)(ValkeyModuleCtx *ctx); /* makes a new value take effect; may be called at any time */
} setting;

static setting settings[] = {
    {"flow-partitions", NUMBER, &ff_config.flow_partitions, 256, 1, 65535,
     VALKEYMODULE_CONFIG_IMMUTABLE, NULL},
    {"budget-partitions", NUMBER, &ff_config.budget_partitions, 32, 1, 65535,
     VALKEYMODULE_CONFIG_IMMUTABLE, NULL},
    {"quota-partitions", NUMBER, &ff_config.quota_partitions, 32, 1, 65535,
     VALKEYMODULE_CONFIG_IMMUTABLE, NULL},
    {"intercept-fcall", FLAG, &ff_config.intercept_fcall, 0, 0, 1, VALKEYMODULE_CONFIG_DEFAULT,
     ff_intercept_apply},
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

static int read_argument(ValkeyModuleCtx *ctx, ValkeyModuleString *name,
                         ValkeyModuleString *value) {
    setting *s = find(ff_str_text(name));
    if (s == NULL) {
        ValkeyModule_Log(ctx, "warning", "unknown loadmodule argument '%s'",
                         ValkeyModule_StringPtrLen(name, NULL));
        return VALKEYMODULE_ERR;
    }
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
