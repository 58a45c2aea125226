/* What was measured, told twice: on the standard output as it comes, and, when a report is open, in
 * REPORT.md with charts beside it. */
#ifndef FF_BENCH_REPORT_H
#define FF_BENCH_REPORT_H

#include <stdbool.h>
#include <stddef.h>

void report_open(const char *directory);
void report_close(void);

/* The program that the next heading names as its own; NULL: none. */
void report_program(const char *name);
void report_heading(const char *title);
void report_text(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Text that is shown as it is: the output of another program. */
void report_verbatim(const char *text);

/* A table: its header, then its rows; cells up to a NULL. What is right of the first column is
 * numbers, or text. */
void report_header_cells(const char *const *cells);
void report_text_header_cells(const char *const *cells);
void report_row_cells(const char *const *cells);
void report_table_end(void);
#define report_header(...) report_header_cells((const char *const[]){__VA_ARGS__, NULL})
#define report_text_header(...) report_text_header_cells((const char *const[]){__VA_ARGS__, NULL})
#define report_row(...) report_row_cells((const char *const[]){__VA_ARGS__, NULL})

/* A line on the standard output alone, with the time since the start. */
void report_progress(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Notes down one thing that was asked for and what came out; report_goals tells them all. */
void report_goal(const char *what, const char *asked, const char *measured, bool is_met);
void report_goals(void);

/* For charts: whether there is a report to draw for, where a chart's file goes, and its place in
 * the text. */
bool report_is_open(void);
void report_chart_path(char *path, size_t room, const char *name);
void report_chart(const char *name, const char *title);

#endif
