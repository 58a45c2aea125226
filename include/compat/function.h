/* The wire functions: FF.CALL <function> <numkeys> <key…> <arg…>.
 *
 * An operation of the engine takes a struct of keys and a struct of arguments. Both are laid out in the
 * order of the wire function's KEYS and ARGV, one string pointer each, so that a call is filled in by
 * position, and NULL stands for what was not passed. A struct for a list of open length ends with an
 * ff_strs that takes what follows the named ones. */
#ifndef FF_COMPAT_FUNCTION_H
#define FF_COMPAT_FUNCTION_H

#include "engine/result.h"

typedef ff_verdict ff_operation(ff_txn *t, const void *keys, const void *args, ff_result *out);

typedef struct ff_function {
    const char *name;
    ff_operation *operation;
    size_t least_keys; /* fewer are refused before anything is looked at */
    size_t key_slots;
    size_t arg_slots;
    bool more_keys; /* the struct of keys ends with an ff_strs */
    bool more_args;
    bool readonly; /* writes nothing on any path: reachable by FF.CALL_RO */
} ff_function;

typedef struct ff_function_table {
    const ff_function *functions;
    size_t count;
} ff_function_table;

/* Makes an operation callable through pointers to its structs. */
#define FF_ADAPT(function) \
    static ff_verdict function##_adapted(ff_txn *t, const void *keys, const void *args, \
                                         ff_result *out) { \
        return function(t, keys, args, out); \
    }

/* A row of a function table; further members may follow as designated initialisers. */
#define FF_FUNCTION(wire, function, least, ...) \
    { \
        .name = (wire), .operation = function##_adapted, .least_keys = (least), \
        .key_slots = sizeof(function##_keys) / sizeof(ff_str *), \
        .arg_slots = sizeof(function##_args) / sizeof(ff_str *), __VA_ARGS__ \
    }

#define FF_FUNCTION_TABLE(array) \
    { (array), sizeof(array) / sizeof((array)[0]) }

/* One table per family, each in the file of its name. */
extern const ff_function_table ff_admission_functions;
extern const ff_function_table ff_budget_functions;
extern const ff_function_table ff_claim_functions;
extern const ff_function_table ff_execution_functions;
extern const ff_function_table ff_flow_functions;
extern const ff_function_table ff_frame_functions;
extern const ff_function_table ff_lease_functions;
extern const ff_function_table ff_quota_functions;
extern const ff_function_table ff_schedule_functions;
extern const ff_function_table ff_signal_functions;
extern const ff_function_table ff_suspension_functions;
extern const ff_function_table ff_worker_functions;

/* Sorts all tables into one. To be called once, when the module loads. */
void ff_functions_load(void);
void ff_functions_unload(void);

/* The function of that name, or NULL. */
const ff_function *ff_function_find(ff_text name);

#endif
