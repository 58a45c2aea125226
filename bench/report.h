/* What was measured, told twice: on the standard output as it comes, and, when a report is open, in
 * REPORT.md with charts beside it. */
#ifndef FF_BENCH_REPORT_H
#define FF_BENCH_REPORT_H

#include "figures.h"

#include <stddef.h>

void report_open(const char *directory);
void report_close(void);

void report_heading(const char *title);
void report_text(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Text that is shown as it is: the output of another program. */
void report_verbatim(const char *text);

/* A table: its header, then its rows; cells up to a NULL. */
void report_header_cells(const char *const *cells);
void report_row_cells(const char *const *cells);
void report_table_end(void);
#define report_header(...) report_header_cells((const char *const[]){__VA_ARGS__, NULL})
#define report_row(...) report_row_cells((const char *const[]){__VA_ARGS__, NULL})

/* One bar for each label, a whisker from the least to the greatest; `file` is without suffix. */
typedef struct report_bar {
    const char *label;
    series figure;
} report_bar;

void report_bars(const char *file, const char *title, const report_bar *bars, size_t count);

/* One line for each name through the medians at the same points, which are spread evenly. */
enum { REPORT_POINTS = 8 };

typedef struct report_line {
    const char *label;
    series figures[REPORT_POINTS];
} report_line;

void report_lines(const char *file, const char *title, const char *point_name, const double *points,
                  size_t point_count, const report_line *lines, size_t count);

#endif
