/* The satisfied set of a composite condition: tokens that say which nodes signals have reached.
 *
 *   leaf:<path>   a Single has its signal
 *   node:<path>   a member of an AllOf that is no Single is complete
 *   wp:<waitpoint id>, sig:<signal id>, src:<source type>:<source identity>   counted by Counts
 *   timeout:*     every Count is complete; written by others
 *
 * Tokens of Counts carry no path: Counts of one kind share them. */
#ifndef FF_ENGINE_SATISFIED_H
#define FF_ENGINE_SATISFIED_H

#include "base/table.h"
#include "store/txn.h"

typedef enum {
    FF_TOKENS_OF_WAITPOINTS,
    FF_TOKENS_OF_SIGNALS,
    FF_TOKENS_OF_SOURCES,
    FF_TOKENS_OTHER,
    FF_TOKENS_KINDS,
} ff_tokens_kind;

typedef struct ff_satisfied {
    ff_txn *txn;
    ff_key *set;
    ff_table tokens;
    size_t counts[FF_TOKENS_KINDS];
} ff_satisfied;

/* Reads the whole set, which need not exist. */
void ff_satisfied_open(ff_txn *t, ff_str *name, ff_satisfied *satisfied);

/* Stages a token, a text that lives as long as the transaction; whether it was new. */
bool ff_satisfied_add(ff_satisfied *satisfied, ff_text token);

bool ff_satisfied_has(const ff_satisfied *satisfied, ff_text token);

#endif
