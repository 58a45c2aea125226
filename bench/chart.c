#include "chart.h"

#include "load.h"
#include "report.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define WIDTH 760
#define TOP 50
#define BAR_TOP 62
#define BAR_LEFT 190
#define BAR_ROOM 390 /* what is right of the longest bar is for its number and note */
#define BAR_STEP 30.0
#define PLOT_LEFT 84
#define PLOT_WIDTH 440
#define PLOT_HEIGHT 230
#define MAX_LABELS 24
#define GREY "#666"

static const char *const colours[] = {"#2f6fb0", "#d1662b", "#3d9a55", "#b23a48", "#7a5fb0",
                                      "#8a6d3b", "#c25fa3", "#5f6b73", "#1f9aa0", "#a0a020"};

/* The colour of a label: the next free one when it is seen for the first time. */
static const char *colour(const char *label) {
    static char labels[MAX_LABELS][48];
    static size_t count;
    size_t at = 0;
    while (at < count && strcmp(labels[at], label) != 0) at++;
    if (at == count && count < MAX_LABELS) snprintf(labels[count++], sizeof labels[0], "%s", label);
    return colours[at % (sizeof colours / sizeof colours[0])];
}

static void write_escaped(FILE *file, const char *text) {
    for (; *text; text++) {
        switch (*text) {
        case '&': fputs("&amp;", file); break;
        case '<': fputs("&lt;", file); break;
        case '>': fputs("&gt;", file); break;
        default: fputc(*text, file);
        }
    }
}

static void write_label(FILE *file, double x, double y, const char *style, const char *text) {
    fprintf(file, "<text x=\"%.1f\" y=\"%.1f\" %s>", x, y, style);
    write_escaped(file, text);
    fputs("</text>\n", file);
}

#define AT_START "text-anchor=\"start\""
#define AT_MIDDLE "text-anchor=\"middle\""
#define AT_END "text-anchor=\"end\""

static FILE *start_chart(const char *name, const char *title, double height) {
    char path[400];
    report_chart_path(path, sizeof path, name);
    FILE *file = fopen(path, "w");
    load_check(file != NULL, "cannot write %s", path);
    fprintf(file,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%.0f\" "
            "viewBox=\"0 0 %d %.0f\" font-family=\"sans-serif\" font-size=\"12\" fill=\"#222\">\n"
            "<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n",
            WIDTH, height, WIDTH, height);
    write_label(file, 12, 24, AT_START " font-weight=\"bold\" font-size=\"13\"", title);
    return file;
}

static void end_chart(FILE *file, const char *name, const char *title) {
    fputs("</svg>\n", file);
    fclose(file);
    report_chart(name, title);
}

static void write_segment(FILE *file, double x1, double y1, double x2, double y2,
                          const char *stroke) {
    fprintf(file, "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"%s\"/>\n", x1, y1,
            x2, y2, stroke);
}

/* ---- bars ---- */

static void write_whisker(FILE *file, double from, double to, double y) {
    write_segment(file, from, y, to, y, "#222");
    write_segment(file, from, y - 4, from, y + 4, "#222");
    write_segment(file, to, y - 4, to, y + 4, "#222");
}

static void write_bar(FILE *file, const chart_bar *bar, double scale, double middle) {
    const series *figure = &bar->figure;
    double median = series_median(figure) * scale, end = series_greatest(figure) * scale;
    char text[120];
    fprintf(file, "<rect x=\"%d\" y=\"%.1f\" width=\"%.1f\" height=\"18\" fill=\"%s\"/>\n",
            BAR_LEFT, middle - 9, fmax(median, 1), colour(bar->label));
    double start = series_least(figure) * scale;
    if (end - start > 2) write_whisker(file, BAR_LEFT + start, BAR_LEFT + end, middle);
    write_label(file, BAR_LEFT - 8, middle + 4, AT_END, bar->label);
    snprintf(text, sizeof text, "%s%s%s", number_text(series_median(figure)),
             bar->note[0] ? "   " : "", bar->note);
    write_label(file, BAR_LEFT + fmax(end, median) + 7, middle + 4,
                AT_START " xml:space=\"preserve\"", text);
}

void chart_bars(const char *name, const char *title, const char *meaning, const chart_bar *bars,
                size_t count) {
    double most = 0;
    for (size_t i = 0; i < count; i++) most = fmax(most, series_greatest(&bars[i].figure));
    if (!report_is_open() || most <= 0) return;
    double scale = BAR_ROOM / most, height = BAR_TOP + BAR_STEP * (double)count;
    FILE *file = start_chart(name, title, height + 6);
    write_label(file, 12, 42, AT_START " fill=\"" GREY "\"", meaning);
    write_segment(file, BAR_LEFT, BAR_TOP - 6, BAR_LEFT, height - 6, "#999");
    for (size_t i = 0; i < count; i++) {
        write_bar(file, &bars[i], scale, BAR_TOP + BAR_STEP * ((double)i + 0.3));
    }
    end_chart(file, name, title);
}

/* ---- lines ---- */

/* The plot: which values its lower and upper edge stand for, and how far its points are apart. */
typedef struct plot {
    double lowest, highest, step;
    bool is_logarithmic;
} plot;

static double x_of(const plot *where, size_t point) {
    return PLOT_LEFT + where->step * (double)point;
}

static double y_of(const plot *where, double value) {
    double share = where->is_logarithmic
                       ? log(value / where->lowest) / log(where->highest / where->lowest)
                       : value / where->highest;
    return TOP + PLOT_HEIGHT * (1 - share);
}

static double round_up(double value) {
    static const double steps[] = {1, 1.2, 1.6, 2, 2.4, 3.2, 4, 6, 8, 10};
    double unit = pow(10, floor(log10(value)));
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        if (steps[i] * unit >= value * 0.999) return steps[i] * unit;
    }
    return value;
}

/* From one to ten is too much for a plain scale that begins at 0 and shows both. */
static plot plot_for(double least, double most, size_t point_count) {
    plot where = {.lowest = 0, .highest = round_up(most)};
    where.step = PLOT_WIDTH / (double)(point_count > 1 ? point_count - 1 : 1);
    where.is_logarithmic = most > least * 10;
    if (where.is_logarithmic) {
        where.lowest = pow(10, floor(log10(least)));
        where.highest = pow(10, ceil(log10(most)));
    }
    return where;
}

/* Points and ticks are mostly whole numbers, and look better as such. */
static const char *axis_text(double value) {
    static char text[24];
    if (value >= 100 || value != floor(value)) return number_text(value);
    snprintf(text, sizeof text, "%.0f", value);
    return text;
}

static void write_tick(FILE *file, const plot *where, double value) {
    double y = y_of(where, value);
    write_segment(file, PLOT_LEFT, y, PLOT_LEFT + PLOT_WIDTH, y, "#ddd");
    write_label(file, PLOT_LEFT - 8, y + 4, AT_END, axis_text(value));
}

static void write_axes(FILE *file, const plot *where, const char *point_name, const double *points,
                       size_t point_count) {
    if (where->is_logarithmic) {
        for (double v = where->lowest; v < where->highest * 1.01; v *= 10)
            write_tick(file, where, v);
    } else {
        for (int i = 0; i <= 4; i++) write_tick(file, where, where->highest * i / 4);
    }
    double bottom = TOP + PLOT_HEIGHT;
    for (size_t i = 0; i < point_count; i++) {
        write_segment(file, x_of(where, i), bottom, x_of(where, i), bottom + 4, "#999");
        write_label(file, x_of(where, i), bottom + 18, AT_MIDDLE, axis_text(points[i]));
    }
    char text[120];
    snprintf(text, sizeof text, "%s%s", point_name,
             where->is_logarithmic ? "  (vertical scale is logarithmic)" : "");
    write_label(file, PLOT_LEFT + PLOT_WIDTH / 2.0, bottom + 38, AT_MIDDLE " fill=\"" GREY "\"",
                text);
}

static void write_line(FILE *file, const plot *where, const chart_line *line, size_t point_count,
                       size_t number) {
    const char *stroke = colour(line->label);
    fprintf(file, "<polyline fill=\"none\" stroke-width=\"2\" stroke=\"%s\" points=\"", stroke);
    for (size_t i = 0; i < point_count; i++) {
        double median = series_median(&line->figures[i]);
        if (median > 0) fprintf(file, "%.1f,%.1f ", x_of(where, i), y_of(where, median));
    }
    fputs("\"/>\n", file);
    for (size_t i = 0; i < point_count; i++) {
        double median = series_median(&line->figures[i]);
        if (median <= 0) continue;
        fprintf(file, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3\" fill=\"%s\"/>\n", x_of(where, i),
                y_of(where, median), stroke);
    }
    double x = PLOT_LEFT + PLOT_WIDTH + 30, y = TOP + 8 + 20.0 * (double)number;
    fprintf(file, "<rect x=\"%.1f\" y=\"%.1f\" width=\"12\" height=\"12\" fill=\"%s\"/>\n", x,
            y - 10, stroke);
    write_label(file, x + 18, y, AT_START, line->label);
}

void chart_lines(const char *name, const char *title, const char *point_name, const double *points,
                 size_t point_count, const chart_line *lines, size_t count) {
    double least = INFINITY, most = 0;
    for (size_t i = 0; i < count; i++) {
        for (size_t p = 0; p < point_count; p++) {
            double median = series_median(&lines[i].figures[p]);
            if (median <= 0) continue;
            least = fmin(least, median);
            most = fmax(most, median);
        }
    }
    if (!report_is_open() || most <= 0) return;
    plot where = plot_for(least, most, point_count);
    FILE *file = start_chart(name, title, TOP + PLOT_HEIGHT + 54);
    write_axes(file, &where, point_name, points, point_count);
    for (size_t i = 0; i < count; i++) write_line(file, &where, &lines[i], point_count, i);
    end_chart(file, name, title);
}
