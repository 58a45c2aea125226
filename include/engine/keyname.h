/* Names of the keys that are built inside operations, and the rule TAG. */
#ifndef FF_ENGINE_KEYNAME_H
#define FF_ENGINE_KEYNAME_H

#include "store/txn.h"

/* Rule TAG: the first balanced {…} of a key, braces included; absent when there is none. */
ff_text ff_tag_of(const ff_str *key);

/* ff:attempt:<tag>:<eid>:<index><suffix>; the suffix may be "", ":usage", ":policy", ":summary". */
ff_str *ff_keyname_attempt(ff_txn *t, ff_text tag, ff_text execution_id, ff_text index,
                           const char *suffix);

/* ff:stream:<tag>:<eid>:<index>:meta */
ff_str *ff_keyname_stream_meta(ff_txn *t, ff_text tag, ff_text execution_id, ff_text index);

/* ff:exec:<tag>:<eid>:<suffix> */
ff_str *ff_keyname_execution(ff_txn *t, ff_text tag, ff_text execution_id, const char *suffix);

/* ff:idx:<tag>:<suffix> */
ff_str *ff_keyname_index(ff_txn *t, ff_text tag, const char *suffix);

/* ff:idx:<tag>:lane:<lane>:<suffix> */
ff_str *ff_keyname_lane(ff_txn *t, ff_text tag, ff_text lane, const char *suffix);

/* ff:idx:<tag>:worker:<instance>:leases */
ff_str *ff_keyname_worker_leases(ff_txn *t, ff_text tag, ff_text instance);

/* ff:wp:<tag>:<waitpoint><suffix>; the suffix may be "", ":signals", ":condition". */
ff_str *ff_keyname_waitpoint(ff_txn *t, ff_text tag, ff_text waitpoint_id, const char *suffix);

/* ff:flow:<tag>:<flow>:<kind><id>; e.g. kind "edge:" with an edge id, kind "members" without. */
ff_str *ff_keyname_flow(ff_txn *t, ff_text tag, ff_text flow_id, const char *kind, ff_text id);

/* A key with its final ":core" replaced by `suffix`; a key that ends otherwise is left as it is. */
ff_str *ff_keyname_beside_core(ff_txn *t, const ff_str *core, const char *suffix);

#endif
