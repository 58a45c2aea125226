/* The contestants of one scenario, each with a server of its own, and how their figures are told.
 */
#ifndef FF_BENCH_FIELD_H
#define FF_BENCH_FIELD_H

#include "contestant.h"
#include "figures.h"

typedef struct entrant {
    contestant who;
    load_server *server;
} entrant;

typedef struct field {
    entrant entrants[CONTESTANTS];
    size_t count;
} field;

/* Who may take part; NULL lets all. */
typedef bool field_filter(const contestant *who);

void field_start(field *all, bool durable, field_filter *wanted);
void field_stop(field *all);

/* A figure of each entrant; `figure` of the entrant's number. */
typedef struct field_figures {
    series of[CONTESTANTS];
} field_figures;

/* Whom the others are compared with: the reference when it is there, else FF.CALL, which is driven
 * the same way; else the first. */
size_t field_base(const field *all);

/* What makes a figure good. */
typedef enum { MORE_IS_BETTER, LESS_IS_BETTER } field_order;

/* How many times as good as the base's figure this entrant's is, round by round; and, as a column,
 * its title and its text: "4.2 (4.1–4.4)". */
series field_gain(const field *all, const field_figures *figures, size_t number, field_order order);
const char *field_gain_title(const field *all);
const char *field_gain_text(const field *all, const field_figures *figures, size_t number,
                            field_order order);

/* The entrant of that name; the count if there is none. */
size_t field_named(const field *all, const char *name);

/* Bars of one figure of everybody. */
void field_chart(const field *all, const char *file, const char *title,
                 const field_figures *figures, field_order order);

/* Runs the BullMQ script: mode, port and numbers; reads `count` numbers of what it prints. */
void bullmq_run(const entrant *who, double *results, size_t count, const char *mode,
                const char *numbers);
const char *bullmq_version(void);
bool is_bullmq(const contestant *who);

#endif
