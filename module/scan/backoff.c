#include "scan/backoff.h"

enum {
    THRESHOLD = 3,
    ROUNDS = 10,
    TIDY_EVERY = 50,
    TIDY_ABOVE = 500,
};

typedef struct failure {
    uint64_t count;
    uint64_t until; /* round in which it is tried again */
} failure;

static failure *find(ff_backoff *backoff, ff_text candidate) {
    if (backoff->failures == NULL) return NULL;
    int missing;
    return ValkeyModule_DictGetC(backoff->failures, (void *)(uintptr_t)candidate.ptr, candidate.len,
                                 &missing);
}

static bool is_held(const ff_backoff *backoff, const failure *f) {
    return f->count >= THRESHOLD && f->until > backoff->round;
}

bool ff_backoff_holds(ff_backoff *backoff, ff_text candidate) {
    failure *f = find(backoff, candidate);
    if (f == NULL || f->count < THRESHOLD) return false;
    if (is_held(backoff, f)) return true;
    f->count = 0;
    return false;
}

bool ff_backoff_failed(ff_backoff *backoff, ff_text candidate) {
    failure *f = find(backoff, candidate);
    if (f == NULL) {
        if (backoff->failures == NULL) backoff->failures = ValkeyModule_CreateDict(NULL);
        f = ValkeyModule_Calloc(1, sizeof *f);
        ValkeyModule_DictSetC(backoff->failures, (void *)(uintptr_t)candidate.ptr, candidate.len,
                              f);
    }
    if (++f->count != THRESHOLD) return false;
    f->until = backoff->round + ROUNDS;
    return true;
}

void ff_backoff_succeeded(ff_backoff *backoff, ff_text candidate) {
    failure *f = find(backoff, candidate);
    if (f == NULL) return;
    ValkeyModule_DictDelC(backoff->failures, (void *)(uintptr_t)candidate.ptr, candidate.len, NULL);
    ValkeyModule_Free(f);
}

/* Rebuilds the table: an iterator does not survive deletions. */
static void keep_held(ff_backoff *backoff) {
    ValkeyModuleDict *held = ValkeyModule_CreateDict(NULL);
    ValkeyModuleDictIter *iterator =
        ValkeyModule_DictIteratorStartC(backoff->failures, "^", NULL, 0);
    void *key;
    size_t length;
    void *f;
    while ((key = ValkeyModule_DictNextC(iterator, &length, &f))) {
        if (is_held(backoff, f)) {
            ValkeyModule_DictSetC(held, key, length, f);
        } else {
            ValkeyModule_Free(f);
        }
    }
    ValkeyModule_DictIteratorStop(iterator);
    ValkeyModule_FreeDict(NULL, backoff->failures);
    backoff->failures = held;
}

uint64_t ff_backoff_count(const ff_backoff *backoff) {
    return backoff->failures ? ValkeyModule_DictSize(backoff->failures) : 0;
}

void ff_backoff_next_round(ff_backoff *backoff) {
    backoff->round++;
    if (backoff->round % TIDY_EVERY == 0 && ff_backoff_count(backoff) > TIDY_ABOVE) {
        keep_held(backoff);
    }
}

void ff_backoff_reset(ff_backoff *backoff) {
    if (backoff->failures) {
        ValkeyModuleDictIter *iterator =
            ValkeyModule_DictIteratorStartC(backoff->failures, "^", NULL, 0);
        void *f;
        while (ValkeyModule_DictNextC(iterator, NULL, &f)) ValkeyModule_Free(f);
        ValkeyModule_DictIteratorStop(iterator);
        ValkeyModule_FreeDict(NULL, backoff->failures);
    }
    *backoff = (ff_backoff){0};
}
