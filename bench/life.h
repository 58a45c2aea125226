/* Scenario: submit → claim → complete. */
#ifndef FF_BENCH_LIFE_H
#define FF_BENCH_LIFE_H

#include "field.h"

typedef struct life_figures {
    double rate;        /* lives per second, all submitted first and then drained */
    double submit_rate; /* submissions per second */
    double drain_rate;  /* claims and completions per second */
    double cpu_us;      /* processor time of the server for one life; 0: not known */
    double claim_p50_us, claim_p99_us;
} life_figures;

/* Everything is verified: each job is handed out and completed exactly once. */
life_figures life_run(const entrant *on, size_t connections, size_t jobs);

void scenario_life(void);
/* The same with an append only file and a replica. */
void scenario_life_durable(void);
/* With other rests between the cycles of wire workers. */
void scenario_rest(void);
/* With a network between clients and server. */
void scenario_distance(void);
/* At 16 connections only; and native alone, with and without taking the next job along. */
void scenario_life_at_16(void);
void scenario_chain(void);

#endif
