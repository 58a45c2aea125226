/* The secrets that sign waitpoint tokens, in one keystore per partition (engine/token.h tells what is in
 * it). A rotation makes a new secret the signing one and lets the former one verify for a grace time. */
#ifndef FF_ENGINE_SECRET_H
#define FF_ENGINE_SECRET_H

#include "engine/result.h"

/* ff_rotate_waitpoint_hmac_secret */
typedef struct ff_secret_rotate_keys {
    ff_str *keystore;
} ff_secret_rotate_keys;

typedef struct ff_secret_rotate_args {
    ff_str *new_kid, *new_secret_hex, *grace_ms;
} ff_secret_rotate_args;

ff_verdict ff_secret_rotate(ff_txn *t, const ff_secret_rotate_keys *k,
                            const ff_secret_rotate_args *a, ff_result *out);

/* ff_list_waitpoint_hmac_kids. Writes nothing. */
typedef struct ff_secret_list_keys {
    ff_str *keystore;
} ff_secret_list_keys;

typedef struct ff_secret_list_args {
    ff_str *ignored;
} ff_secret_list_args;

ff_verdict ff_secret_list(ff_txn *t, const ff_secret_list_keys *k, const ff_secret_list_args *a,
                          ff_result *out);

#endif
