#include "report.h"

#include "load.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static FILE *report;
static char directory[200];

void report_open(const char *where) {
    snprintf(directory, sizeof directory, "%s", where);
    char path[300];
    snprintf(path, sizeof path, "%s/REPORT.md", directory);
    report = fopen(path, "w");
    load_check(report != NULL, "cannot write %s", path);
}

void report_close(void) {
    if (report) fclose(report);
    report = NULL;
}

void report_heading(const char *title) {
    printf("\n== %s\n", title);
    if (report) fprintf(report, "\n## %s\n\n", title);
}

void report_text(const char *format, ...) {
    char text[4000];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    printf("%s\n", text);
    if (report) fprintf(report, "%s\n\n", text), fflush(report);
}

void report_verbatim(const char *text) {
    printf("%s\n", text);
    if (report) fprintf(report, "```\n%s\n```\n\n", text);
}

/* Columns are counted in characters, not bytes. */
static int padding(const char *text, int width) {
    int shown = 0;
    for (; *text; text++) shown += (*text & 0xc0) != 0x80;
    return shown < width ? width - shown : 1;
}

static void print_cells(const char *const *cells) {
    for (size_t i = 0; cells[i]; i++) {
        printf("%s%*s", cells[i], padding(cells[i], i == 0 ? 30 : 22), "");
    }
    putchar('\n');
}

void report_row_cells(const char *const *cells) {
    print_cells(cells);
    if (!report) return;
    for (size_t i = 0; cells[i]; i++) fprintf(report, "| %s ", cells[i]);
    fputs("|\n", report);
}

void report_header_cells(const char *const *cells) {
    report_row_cells(cells);
    if (!report) return;
    for (size_t i = 0; cells[i]; i++) fputs(i == 0 ? "|---" : "|--:", report);
    fputs("|\n", report);
}

void report_table_end(void) {
    if (report) fputc('\n', report), fflush(report);
}

/* ---- charts ---- */

#define CHART_WIDTH 720
#define LEFT 190
#define RIGHT 90
#define TOP 48

static const char *const colours[] = {"#2f6fb0", "#d1662b", "#3d9a55", "#b23a48",
                                      "#7a5fb0", "#8a6d3b", "#c25fa3", "#5f6b73"};

static const char *colour(size_t number) {
    return colours[number % (sizeof colours / sizeof colours[0])];
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

static void write_label(FILE *file, double x, double y, const char *anchor, const char *text) {
    fprintf(file, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">", x, y, anchor);
    write_escaped(file, text);
    fputs("</text>\n", file);
}

static FILE *start_chart(const char *name, const char *title, double height) {
    char path[400];
    snprintf(path, sizeof path, "%s/%s.svg", directory, name);
    FILE *file = fopen(path, "w");
    load_check(file != NULL, "cannot write %s", path);
    fprintf(file,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%.0f\" "
            "font-family=\"sans-serif\" font-size=\"12\" fill=\"#222\">\n"
            "<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n<g font-weight=\"bold\">",
            CHART_WIDTH, height);
    write_label(file, 12, 22, "start", title);
    fputs("</g>\n", file);
    return file;
}

static void end_chart(FILE *file, const char *name, const char *title) {
    fputs("</svg>\n", file);
    fclose(file);
    fprintf(report, "![%s](%s.svg)\n\n", title, name);
}

static double round_up(double value) {
    double unit = pow(10, floor(log10(value)));
    double steps[] = {1, 1.5, 2, 3, 4, 5, 6, 8, 10};
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        if (steps[i] * unit >= value) return steps[i] * unit;
    }
    return value;
}

void report_bars(const char *name, const char *title, const report_bar *bars, size_t count) {
    double most = 0;
    for (size_t i = 0; i < count; i++) most = fmax(most, series_greatest(&bars[i].figure));
    if (!report || most <= 0) return;
    double scale = (CHART_WIDTH - LEFT - RIGHT) / round_up(most);
    FILE *file = start_chart(name, title, TOP + 30.0 * (double)count);
    for (size_t i = 0; i < count; i++) {
        const series *figure = &bars[i].figure;
        double y = TOP + 30.0 * (double)i, median = series_median(figure) * scale;
        fprintf(file, "<rect x=\"%d\" y=\"%.1f\" width=\"%.1f\" height=\"18\" fill=\"%s\"/>\n",
                LEFT, y - 8, fmax(median, 1), colour(i));
        fprintf(file, "<line x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"#222\"/>\n",
                LEFT + series_least(figure) * scale, LEFT + series_greatest(figure) * scale, y + 1,
                y + 1);
        write_label(file, LEFT - 8, y + 5, "end", bars[i].label);
        write_label(file, LEFT + series_greatest(figure) * scale + 6, y + 5, "start",
                    figure->count ? number_text(series_median(figure)) : "–");
    }
    end_chart(file, name, title);
}

/* The plot of report_lines: where a value is, both axes. */
typedef struct plot {
    double bottom, height, step, most;
} plot;

static double x_of(const plot *where, size_t point) { return 70 + where->step * (double)point; }

static double y_of(const plot *where, double value) {
    return where->bottom - value / where->most * where->height;
}

static void write_axes(FILE *file, const plot *where, const char *point_name, const double *points,
                       size_t point_count) {
    for (int i = 0; i <= 4; i++) {
        double value = where->most * i / 4, y = y_of(where, value);
        fprintf(file, "<line x1=\"70\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"#ddd\"/>\n",
                x_of(where, point_count - 1), y, y);
        write_label(file, 64, y + 4, "end", number_text(value));
    }
    for (size_t i = 0; i < point_count; i++) {
        char text[32];
        snprintf(text, sizeof text, "%.0f", points[i]);
        write_label(file, x_of(where, i), where->bottom + 18, "middle", text);
    }
    write_label(file, x_of(where, 0), where->bottom + 36, "start", point_name);
}

static void write_line(FILE *file, const plot *where, const report_line *line, size_t point_count,
                       size_t number) {
    fprintf(file, "<polyline fill=\"none\" stroke-width=\"2\" stroke=\"%s\" points=\"",
            colour(number));
    for (size_t i = 0; i < point_count; i++) {
        if (line->figures[i].count == 0) continue;
        fprintf(file, "%.1f,%.1f ", x_of(where, i), y_of(where, series_median(&line->figures[i])));
    }
    fputs("\"/>\n", file);
    double y = TOP + 18.0 * (double)number;
    fprintf(file, "<rect x=\"%d\" y=\"%.1f\" width=\"12\" height=\"12\" fill=\"%s\"/>\n",
            CHART_WIDTH - 200, y - 10, colour(number));
    write_label(file, CHART_WIDTH - 182, y, "start", line->label);
}

void report_lines(const char *name, const char *title, const char *point_name, const double *points,
                  size_t point_count, const report_line *lines, size_t count) {
    double most = 0;
    for (size_t i = 0; i < count; i++) {
        for (size_t p = 0; p < point_count; p++) {
            most = fmax(most, series_median(&lines[i].figures[p]));
        }
    }
    if (!report || most <= 0) return;
    plot where = {.bottom = TOP + 230, .height = 220, .most = round_up(most)};
    where.step = (CHART_WIDTH - 290.0) / (double)(point_count > 1 ? point_count - 1 : 1);
    FILE *file = start_chart(name, title, where.bottom + 50);
    write_axes(file, &where, point_name, points, point_count);
    for (size_t i = 0; i < count; i++) write_line(file, &where, &lines[i], point_count, i);
    end_chart(file, name, title);
}
