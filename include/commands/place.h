/* Where something new goes: `*`, a partition `{fp:N}`, or the reference that it is to have. */
#ifndef FF_COMMANDS_PLACE_H
#define FF_COMMANDS_PLACE_H

#include "commands/request.h"

/* Reads `*` (this node picks one of its partitions, evenly) or a partition of the family. False after a
 * refusal. */
bool ff_request_partition(ff_request *r, ff_text text, ff_family family, ff_partition *partition);

/* Reads a place for a flow, budget or quota policy; an id is minted unless one is given. False after a
 * refusal. */
bool ff_request_place(ff_request *r, ff_text text, ff_family family, ff_reference *reference);

/* Whether a command without a key can reach all slots of this node: in a cluster a transaction or script may
 * have tied it to one. False after a refusal. */
bool ff_request_reaches_all_slots(ff_request *r);

/* The bare id and the whole reference, as they are stored and answered. */
ff_str *ff_reference_id(ff_txn *t, const ff_reference *reference);
ff_str *ff_reference_str(ff_txn *t, const ff_reference *reference);

#endif
