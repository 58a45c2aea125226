/* The summary of an attempt: a rolling JSON document, made by merging patches.
 *
 * The merge is close to RFC 7396, with departures that clients rely on: an empty object in a patch wipes
 * what it meets, and an array that starts with false is taken for an object whose members are its
 * positions. A string value `__ff_null__` becomes a null of the document, which a null in a patch cannot
 * write. */
#ifndef FF_ENGINE_SUMMARY_H
#define FF_ENGINE_SUMMARY_H

#include "engine/result.h"

/* Rule SUMMARY: merges a patch into the summary and stages the result. True when it was applied, with the
 * new version; else `out` and `verdict` hold the answer. Its refusals are kept, so that what the caller
 * staged before stays; faults are not. */
bool ff_summary_patch(ff_txn *t, ff_str *summary, const ff_str *patch_kind, ff_str *patch,
                      ff_str **version, ff_result *out, ff_verdict *verdict);

/* ff_read_summary */
typedef struct ff_summary_read_keys {
    ff_str *summary;
} ff_summary_read_keys;

typedef struct ff_summary_read_args {
    ff_str *unused;
} ff_summary_read_args;

ff_verdict ff_summary_read(ff_txn *t, const ff_summary_read_keys *k, const ff_summary_read_args *a,
                           ff_result *out);

#endif
