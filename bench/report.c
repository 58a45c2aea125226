#include "report.h"

#include "load.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static FILE *report;
static char directory[200];
static const char *program;

/* What was asked for, collected by the scenarios until it is told. */
enum { MAX_GOALS = 24 };

static struct {
    char what[120], asked[40], measured[120];
    bool is_met;
} goals[MAX_GOALS];
static size_t goal_count;

void report_open(const char *where) {
    snprintf(directory, sizeof directory, "%s", where);
    char path[300];
    snprintf(path, sizeof path, "%s/REPORT.md", directory);
    report = fopen(path, "w");
    load_check(report != NULL, "cannot write %s", path);
}

bool report_is_open(void) { return report != NULL; }

void report_chart_path(char *path, size_t room, const char *name) {
    snprintf(path, room, "%s/%s.svg", directory, name);
}

void report_chart(const char *name, const char *title) {
    if (report) fprintf(report, "![%s](%s.svg)\n\n", title, name), fflush(report);
}

void report_close(void) {
    if (report) fclose(report);
    report = NULL;
}

void report_program(const char *name) { program = name; }

void report_heading(const char *title) {
    printf("\n== %s\n", title);
    if (!report) return;
    fprintf(report, "\n## %s", title);
    if (program) fprintf(report, " (`%s`)", program);
    fputs("\n\n", report);
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

void report_progress(const char *format, ...) {
    static int64_t start_us;
    if (!start_us) start_us = load_now_us();
    int64_t seconds = (load_now_us() - start_us) / 1000000;
    va_list arguments;
    printf("-- [%02d:%02d] ", (int)(seconds / 60), (int)(seconds % 60));
    va_start(arguments, format);
    vprintf(format, arguments);
    va_end(arguments);
    putchar('\n');
}

void report_verbatim(const char *text) {
    printf("%s\n", text);
    if (report) fprintf(report, "```\n%s```\n\n", text), fflush(report);
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

static void write_header(const char *const *cells, const char *alignment) {
    report_row_cells(cells);
    if (!report) return;
    for (size_t i = 0; cells[i]; i++) fputs(i == 0 ? "|---" : alignment, report);
    fputs("|\n", report);
}

void report_header_cells(const char *const *cells) { write_header(cells, "|--:"); }

void report_text_header_cells(const char *const *cells) { write_header(cells, "|---"); }

void report_table_end(void) {
    if (report) fputc('\n', report), fflush(report);
}

/* ---- what was asked for ---- */

void report_goal(const char *what, const char *asked, const char *measured, bool is_met) {
    if (goal_count == MAX_GOALS) return;
    snprintf(goals[goal_count].what, sizeof goals[0].what, "%s", what);
    snprintf(goals[goal_count].asked, sizeof goals[0].asked, "%s", asked);
    snprintf(goals[goal_count].measured, sizeof goals[0].measured, "%s", measured);
    goals[goal_count++].is_met = is_met;
}

void report_goals(void) {
    report_text_header("", "asked for", "measured here", "");
    for (size_t i = 0; i < goal_count; i++) {
        report_row(goals[i].what, goals[i].asked, goals[i].measured,
                   goals[i].is_met ? "reached" : "**falls short**");
    }
    report_table_end();
}
