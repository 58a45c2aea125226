#include "field.h"

#include "bench.h"
#include "chart.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void field_start(field *all, bool durable, field_filter *wanted) {
    contestant present[CONTESTANTS];
    size_t count = contestants_present(present);
    all->count = 0;
    for (size_t i = 0; i < count; i++) {
        if (wanted && !wanted(&present[i])) continue;
        entrant *each = &all->entrants[all->count++];
        each->who = present[i];
        each->who.options.durable = durable;
        each->server = load_server_start(&each->who.options);
    }
}

void field_stop(field *all) {
    for (size_t i = 0; i < all->count; i++) load_server_stop(all->entrants[i].server);
    all->count = 0;
}

size_t field_named(const field *all, const char *name) {
    for (size_t i = 0; i < all->count; i++) {
        if (strcmp(all->entrants[i].who.name, name) == 0) return i;
    }
    return all->count;
}

size_t field_base(const field *all) {
    size_t base = field_named(all, "reference");
    if (base == all->count) base = field_named(all, "FF.CALL");
    return base == all->count ? 0 : base;
}

series field_gain(const field *all, const field_figures *figures, size_t number,
                  field_order order) {
    const series *own = &figures->of[number], *base = &figures->of[field_base(all)];
    return order == MORE_IS_BETTER ? series_ratio(own, base) : series_ratio(base, own);
}

const char *field_gain_title(const field *all) {
    static char title[80];
    snprintf(title, sizeof title, "times as fast as %s", all->entrants[field_base(all)].who.name);
    return title;
}

const char *field_gain_text(const field *all, const field_figures *figures, size_t number,
                            field_order order) {
    series gain = field_gain(all, figures, number, order);
    return series_text(&gain);
}

void field_chart(const field *all, const char *file, const char *title,
                 const field_figures *figures, field_order order) {
    chart_bar bars[CONTESTANTS];
    size_t count = 0;
    for (size_t i = 0; i < all->count; i++) {
        if (figures->of[i].count == 0) continue;
        chart_bar *bar = &bars[count++];
        *bar = (chart_bar){.label = all->entrants[i].who.name, .figure = figures->of[i]};
        series gain = field_gain(all, figures, i, order);
        if (gain.count == 0 || i == field_base(all)) continue;
        snprintf(bar->note, sizeof bar->note, "(%s ×)", number_text(series_median(&gain)));
    }
    char meaning[100];
    snprintf(meaning, sizeof meaning, "%s is better; in brackets: times as good as %s",
             order == MORE_IS_BETTER ? "more" : "less", all->entrants[field_base(all)].who.name);
    chart_bars(file, title, meaning, bars, count);
}

bool is_bullmq(const contestant *who) { return who->driver == NULL; }

static void read_output(const char *command, char *line, size_t room) {
    fflush(NULL);
    FILE *output = popen(command, "r");
    load_check(output != NULL, "cannot run %s", command);
    bool got = fgets(line, (int)room, output) != NULL;
    load_check(pclose(output) == 0 && got, "failed: %s", command);
}

void bullmq_run(const entrant *who, double *results, size_t count, const char *mode,
                const char *numbers) {
    char command[600], line[400];
    snprintf(command, sizeof command, "node '%s' %s %d %s", settings.bullmq, mode,
             load_server_port(who->server), numbers);
    read_output(command, line, sizeof line);
    char *at = line;
    for (size_t i = 0; i < count; i++) {
        char *end;
        results[i] = strtod(at, &end);
        load_check(end != at, "%s said: %s", command, line);
        at = end;
    }
}

const char *bullmq_version(void) {
    static char version[64];
    char command[500];
    if (!settings.bullmq) return "absent";
    snprintf(command, sizeof command, "node '%s' version", settings.bullmq);
    read_output(command, version, sizeof version);
    version[strcspn(version, "\n")] = '\0';
    return version;
}
