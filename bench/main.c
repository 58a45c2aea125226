/* ff-bench <program>: the entry of all benchmarks. The Makefile says which and with what. */
#include "bench.h"
#include "life.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bench_settings settings;

static const char *environment(const char *name) {
    const char *value = getenv(name);
    return value && value[0] ? value : NULL;
}

static int scale_named(const char *name) {
    if (!name || strcmp(name, "0") == 0 || strcmp(name, "no") == 0) return SCALE_FULL;
    return strcmp(name, "smoke") == 0 ? SCALE_SMOKE : SCALE_QUICK;
}

size_t scaled(size_t full, size_t quick, size_t smoke) {
    if (settings.scale == SCALE_SMOKE) return smoke;
    return settings.scale == SCALE_QUICK ? quick : full;
}

static const struct {
    const char *name;
    void (*run)(void);
} programs[] = {
    {"wire", bench_wire},
    {"life", scenario_life},
    {"life-durable", scenario_life_durable},
};

int main(int count, char **words) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    settings = (bench_settings){
        .scale = scale_named(environment("QUICK")),
        .reference = environment("REFERENCE"),
        .compat = "lua-compat/flowfabric.lua",
        .report_dir = environment("FF_REPORT_DIR"),
        .bullmq = environment("FF_BULLMQ"),
        .module = environment("FF_MODULE"),
    };
    for (size_t i = 0; count == 2 && i < sizeof programs / sizeof programs[0]; i++) {
        if (strcmp(words[1], programs[i].name) != 0) continue;
        programs[i].run();
        return 0;
    }
    fputs("usage: ff-bench <program>, where the program is one of:", stderr);
    for (size_t i = 0; i < sizeof programs / sizeof programs[0]; i++) {
        fprintf(stderr, " %s", programs[i].name);
    }
    fputs("\n", stderr);
    return 2;
}
