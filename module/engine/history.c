#include "engine/history.h"

#include <string.h>

enum { PAIRS_MAX = 16 };

void ff_history_add(ff_key *history, int64_t maxlen, const ff_pair *pairs, size_t count) {
    ff_txn *t = ff_key_txn(history);
    ff_pair all[PAIRS_MAX + 1];
    if (count > PAIRS_MAX) count = PAIRS_MAX;
    memcpy(all, pairs, count * sizeof *pairs);
    all[count] = (ff_pair){W(ts), ff_str_now(t)};
    ff_stream_add(history, maxlen, all, count + 1);
}
