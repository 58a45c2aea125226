/* Waitpoint tokens: what a caller must show to signal a waitpoint.
 *
 * A token is <kid>:<40 hex digits>, an HMAC over the waitpoint's id, key and creation time. The secrets
 * are in one hash per partition, the keystore: `current_kid` names the one that signs, `secret:<kid>`
 * holds each, `expires_at:<kid>` says how long a former one still verifies. */
#ifndef FF_ENGINE_TOKEN_H
#define FF_ENGINE_TOKEN_H

#include "base/hmac.h"
#include "engine/code.h"
#include "store/txn.h"

/* The fields of a kid in the keystore. */
const ff_word *ff_token_secret_field(ff_txn *t, ff_text kid);
const ff_word *ff_token_expiry_field(ff_txn *t, ff_text kid);

/* Whether a former kid with that stored expiry, NULL when there is none, still verifies: through the very
 * millisecond of its expiry. */
bool ff_token_in_grace(const ff_txn *t, const ff_str *expires_at);

/* The secret that signs, ready for use. */
typedef struct ff_token_signer {
    ff_str *kid;
    ff_hmac_key key;
} ff_token_signer;

/* Rule TOKEN, mint, its checks: reads the signing secret. FF_OK or the refusal. The keystore may be NULL. */
ff_code ff_token_signer_open(ff_txn *t, ff_str *keystore, ff_token_signer *signer);

/* The token of a waitpoint that is created now. */
ff_str *ff_token_mint(ff_txn *t, const ff_token_signer *signer, const ff_str *waitpoint_id,
                      const ff_str *waitpoint_key);

/* Rule TOKEN, validate: FF_OK when the token is good for that id and the stored `waitpoint_key` and
 * `created_at` of the waitpoint record, else the refusal. Keystore and token may be NULL. Writes
 * nothing. */
ff_code ff_token_validate(ff_txn *t, ff_str *keystore, const ff_str *token,
                          const ff_str *waitpoint_id, ff_key *waitpoint);

#endif
