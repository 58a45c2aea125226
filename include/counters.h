/* What the module counts since it was loaded; INFO ff and FF.INFO show it. */
#ifndef FF_COUNTERS_H
#define FF_COUNTERS_H

#include <stdint.h>

/* name of the counter, section of INFO, name of the field there */
#define FF_COUNTERS(X)                                                                             \
    X(WIRE_SUCCESSES, "engine", "wire_successes")                                                  \
    X(WIRE_REFUSALS, "engine", "wire_refusals")                                                    \
    X(WIRE_ERRORS, "engine", "wire_errors")                                                        \
    X(NATIVE_SUCCESSES, "engine", "native_successes")                                              \
    X(NATIVE_ERRORS, "engine", "native_errors")

#define FF_COUNTER_ENUM(name, section, field) FF_COUNT_##name,
typedef enum ff_counter { FF_COUNTERS(FF_COUNTER_ENUM) FF_COUNTER_COUNT } ff_counter;
#undef FF_COUNTER_ENUM

extern uint64_t ff_counters[FF_COUNTER_COUNT];

static inline void ff_count(ff_counter counter) { ff_counters[counter]++; }

#endif
