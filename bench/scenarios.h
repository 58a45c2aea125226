/* The scenarios beside the plain life (life.h): each prints and reports its own figures. */
#ifndef FF_BENCH_SCENARIOS_H
#define FF_BENCH_SCENARIOS_H

void scenario_pause(void);    /* suspend → signal → resume */
void scenario_steady(void);   /* arrivals, a hundred workers */
void scenario_wake(void);     /* a blocked claimer, an empty claim */
void scenario_flow(void);     /* linear flows, fans */
void scenario_arrivals(void); /* linear flows that come one after the other */
void scenario_quorum(void);   /* cancellation of siblings */
void scenario_routes(void);   /* claims by capability */
void scenario_unblock(void);  /* a budget that clears */
void scenario_idle(void);     /* what a server costs that has nothing to do */
void scenario_weight(void);   /* memory in each state */
void scenario_growth(void);   /* the same with more and more executions present */
void scenario_profile(void);  /* where the time goes */

#endif
