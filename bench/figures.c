#include "figures.h"

#include <math.h>
#include <stdbool.h>
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

/* Ten thousands and more get a narrow space between groups of three digits. */
static void group_digits(char *text, size_t room, double value) {
    char digits[32];
    snprintf(digits, sizeof digits, "%.0f", value);
    size_t count = strlen(digits), used = 0;
    for (size_t i = 0; i < count && used + 5 < room; i++) {
        size_t left = count - i;
        bool is_group = i > 0 && left % 3 == 0 && digits[i - 1] != '-';
        if (is_group && count > 4) used += (size_t)snprintf(text + used, room - used, "\u202f");
        text[used++] = digits[i];
    }
    text[used] = '\0';
}

const char *number_text(double value) {
    static char texts[16][48];
    static size_t turn;
    char *text = texts[turn++ % 16];
    double size = fabs(value);
    if (size >= 100 || size < 1e-9) {
        group_digits(text, sizeof texts[0], value);
        return text;
    }
    snprintf(text, sizeof texts[0], "%.*f", size >= 10 ? 1 : size >= 0.1 ? 2 : 4, value);
    return text;
}

const char *series_text(const series *figure) {
    static char texts[8][160];
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
