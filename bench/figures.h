/* Measured figures: samples of a latency, series of rounds, and what is said about them. */
#ifndef FF_BENCH_FIGURES_H
#define FF_BENCH_FIGURES_H

#include <stddef.h>
#include <stdint.h>

/* Every single value, so that percentiles are exact. Starts zeroed. */
typedef struct samples {
    double *values;
    size_t count, room;
} samples;

void samples_add(samples *all, double value);
void samples_clear(samples *all);

/* The value below which `share` (0..1) of the samples are; 0 without samples. Sorts them. */
double samples_percentile(samples *all, double share);

/* One figure measured once in each round; told as its median, with the least and the greatest. */
enum { SERIES_ROUNDS = 32 };

typedef struct series {
    double values[SERIES_ROUNDS];
    size_t count;
} series;

void series_add(series *figure, double value);
double series_median(const series *figure);
double series_least(const series *figure);
double series_greatest(const series *figure);

/* "12.3 (11.9–13.0)", or "–" when nothing was measured. The text is good until the eighth call
 * after. */
const char *series_text(const series *figure);

/* A number in as many digits as are worth reading. Good until the sixteenth call after. */
const char *number_text(double value);

/* Round by round `above` / `below`: rounds are interleaved, so that neighbours saw the same
 * machine. */
series series_ratio(const series *above, const series *below);

#endif
