#include <stdlib.h>

#include "compat/function.h"

static const ff_function_table *const families[] = {
    &ff_admission_functions, &ff_budget_functions,     &ff_claim_functions,
    &ff_execution_functions, &ff_flow_functions,       &ff_frame_functions,
    &ff_lease_functions,     &ff_quota_functions,      &ff_schedule_functions,
    &ff_signal_functions,    &ff_suspension_functions, &ff_worker_functions,
};

static const ff_function **sorted;
static size_t sorted_count;

static int by_name(const void *a, const void *b) {
    const ff_function *const *left = a;
    const ff_function *const *right = b;
    return ff_text_compare(ff_text_of((*left)->name), ff_text_of((*right)->name));
}

void ff_functions_load(void) {
    sorted_count = 0;
    for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
        sorted_count += families[i]->count;
    }
    sorted = ValkeyModule_Alloc(sorted_count * sizeof *sorted);
    size_t next = 0;
    for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
        for (size_t j = 0; j < families[i]->count; j++) {
            sorted[next++] = &families[i]->functions[j];
        }
    }
    qsort(sorted, sorted_count, sizeof *sorted, by_name);
}

void ff_functions_unload(void) {
    ValkeyModule_Free(sorted);
    sorted = NULL;
    sorted_count = 0;
}

static int compare_name(const void *key, const void *element) {
    const ff_function *const *function = element;
    return ff_text_compare(*(const ff_text *)key, ff_text_of((*function)->name));
}

const ff_function *ff_function_find(ff_text name) {
    const ff_function **found = bsearch(&name, sorted, sorted_count, sizeof *sorted, compare_name);
    return found ? *found : NULL;
}
