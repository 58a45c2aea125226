#include "figures.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void samples_add(samples *all, double value) {
    if (all->count == all->room) {
        all->room = all->room ? all->room * 2 : 1024;
        all->values = realloc(all->values, all->room * sizeof *all->values);
        if (!all->values) abort();
    }
    all->values[all->count++] = value;
}

void samples_clear(samples *all) {
    free(all->values);
    *all = (samples){0};
}

static int by_value(const void *a, const void *b) {
    double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

double samples_percentile(samples *all, double share) {
    if (all->count == 0) return 0;
    qsort(all->values, all->count, sizeof *all->values, by_value);
    size_t at = (size_t)ceil(share * (double)all->count);
    return all->values[at > 0 ? at - 1 : 0];
}

void series_add(series *figure, double value) {
    if (figure->count < SERIES_ROUNDS) figure->values[figure->count++] = value;
}

static series in_order(const series *figure) {
    series ordered = *figure;
    qsort(ordered.values, ordered.count, sizeof *ordered.values, by_value);
    return ordered;
}

double series_median(const series *figure) {
    if (figure->count == 0) return 0;
    series ordered = in_order(figure);
    size_t middle = ordered.count / 2;
    if (ordered.count % 2) return ordered.values[middle];
    return (ordered.values[middle - 1] + ordered.values[middle]) / 2;
}

double series_least(const series *figure) { return figure->count ? in_order(figure).values[0] : 0; }

double series_greatest(const series *figure) {
    return figure->count ? in_order(figure).values[figure->count - 1] : 0;
}

const char *number_text(double value) {
    static char texts[16][32];
    static size_t turn;
    char *text = texts[turn++ % 16];
    double size = fabs(value);
    int digits = size >= 100 ? 0 : size >= 10 ? 1 : size >= 0.1 || size < 1e-9 ? 2 : 4;
    snprintf(text, sizeof texts[0], "%.*f", digits, value);
    return text;
}

const char *series_text(const series *figure) {
    static char texts[8][96];
    static size_t turn;
    if (figure->count == 0) return "–";
    char *text = texts[turn++ % 8];
    if (figure->count == 1) {
        snprintf(text, sizeof texts[0], "%s", number_text(figure->values[0]));
    } else {
        snprintf(text, sizeof texts[0], "%s (%s–%s)", number_text(series_median(figure)),
                 number_text(series_least(figure)), number_text(series_greatest(figure)));
    }
    return text;
}

series series_ratio(const series *above, const series *below) {
    series ratio = {0};
    size_t rounds = above->count < below->count ? above->count : below->count;
    for (size_t i = 0; i < rounds; i++) {
        if (below->values[i] > 0) series_add(&ratio, above->values[i] / below->values[i]);
    }
    return ratio;
}
