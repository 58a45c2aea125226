/* JSON texts in arguments and stored values. */
#ifndef FF_ENGINE_DOCUMENT_H
#define FF_ENGINE_DOCUMENT_H

#include "base/json.h"
#include "store/txn.h"

/* Reads a text by JSON-IN; NULL when it is absent or malformed. Freed with the transaction. */
ff_json *ff_document_read(ff_txn *t, const ff_str *text);

/* Hands a value made by the caller to the transaction. */
ff_json *ff_document_own(ff_txn *t, ff_json *value);

/* Rule FLATTEN: stages one field per member (of an array: per position, from 1). False, with nothing
 * staged, when it is neither object nor array, or a value in it cannot be written. */
bool ff_document_flatten(ff_key *hash, const ff_json *document);

#endif
