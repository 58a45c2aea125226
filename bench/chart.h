/* Charts beside the report: SVG, written by hand, drawn only while a report is open. `file` is a
 * name without suffix; a label has the same colour in all charts of a run. */
#ifndef FF_BENCH_CHART_H
#define FF_BENCH_CHART_H

#include "figures.h"

/* One bar for each label, with a whisker from the least to the greatest; the note, which may be "",
 * stands behind the number, and `meaning` below the title says what the notes are. */
typedef struct chart_bar {
    const char *label;
    series figure;
    char note[40];
} chart_bar;

void chart_bars(const char *file, const char *title, const char *meaning, const chart_bar *bars,
                size_t count);

/* One line for each name through the medians at the same points, which are spread evenly. The scale
 * is logarithmic where the figures differ much. */
enum { CHART_POINTS = 8 };

typedef struct chart_line {
    const char *label;
    series figures[CHART_POINTS];
} chart_line;

void chart_lines(const char *file, const char *title, const char *point_name, const double *points,
                 size_t point_count, const chart_line *lines, size_t count);

#endif
