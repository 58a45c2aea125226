/* The filter: scanners may be restricted to the executions of one namespace, or with one tag. */
#ifndef FF_SCAN_FILTER_H
#define FF_SCAN_FILTER_H

#include "store/txn.h"

bool ff_filter_is_set(void);

/* Whether an execution may be worked on. What cannot be read, or is no execution id, may not. */
bool ff_filter_passes(ff_txn *t, ff_text execution_id);

/* Checks a value of ff.filter-tag: empty, or name=value. */
bool ff_filter_tag_is_valid(ff_text text);

#endif
