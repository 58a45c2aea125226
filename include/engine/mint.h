/* New ids. */
#ifndef FF_ENGINE_MINT_H
#define FF_ENGINE_MINT_H

#include "base/id.h"
#include "base/uuid.h"
#include "store/txn.h"

/* A random UUID (version 4), and the same as text. */
ff_uuid ff_mint_uuid(void);
ff_str *ff_mint_id(ff_txn *t);

/* A random UUID that gives the partition, out of `count` of its family. */
ff_uuid ff_mint_uuid_in(ff_partition partition, uint16_t count);

#endif
