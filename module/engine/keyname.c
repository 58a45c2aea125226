#include "engine/keyname.h"

ff_text ff_tag_of(const ff_str *key) { return ff_text_tag(ff_str_text(key)); }

ff_str *ff_keyname_attempt(ff_txn *t, ff_text tag, ff_text execution_id, ff_text index,
                           const char *suffix) {
    return FF_CONCAT(t, FF_TEXT("ff:attempt:"), tag, FF_TEXT(":"), execution_id, FF_TEXT(":"),
                     index, ff_text_of(suffix));
}

ff_str *ff_keyname_stream_meta(ff_txn *t, ff_text tag, ff_text execution_id, ff_text index) {
    return FF_CONCAT(t, FF_TEXT("ff:stream:"), tag, FF_TEXT(":"), execution_id, FF_TEXT(":"), index,
                     FF_TEXT(":meta"));
}

ff_str *ff_keyname_execution(ff_txn *t, ff_text tag, ff_text execution_id, const char *suffix) {
    return FF_CONCAT(t, FF_TEXT("ff:exec:"), tag, FF_TEXT(":"), execution_id, FF_TEXT(":"),
                     ff_text_of(suffix));
}

ff_str *ff_keyname_index(ff_txn *t, ff_text tag, const char *suffix) {
    return FF_CONCAT(t, FF_TEXT("ff:idx:"), tag, FF_TEXT(":"), ff_text_of(suffix));
}

ff_str *ff_keyname_lane(ff_txn *t, ff_text tag, ff_text lane, const char *suffix) {
    return FF_CONCAT(t, FF_TEXT("ff:idx:"), tag, FF_TEXT(":lane:"), lane, FF_TEXT(":"),
                     ff_text_of(suffix));
}

ff_str *ff_keyname_worker_leases(ff_txn *t, ff_text tag, ff_text instance) {
    return FF_CONCAT(t, FF_TEXT("ff:idx:"), tag, FF_TEXT(":worker:"), instance, FF_TEXT(":leases"));
}

ff_str *ff_keyname_waitpoint(ff_txn *t, ff_text tag, ff_text waitpoint_id, const char *suffix) {
    return FF_CONCAT(t, FF_TEXT("ff:wp:"), tag, FF_TEXT(":"), waitpoint_id, ff_text_of(suffix));
}

ff_str *ff_keyname_flow(ff_txn *t, ff_text tag, ff_text flow_id, const char *kind, ff_text id) {
    return FF_CONCAT(t, FF_TEXT("ff:flow:"), tag, FF_TEXT(":"), flow_id, FF_TEXT(":"),
                     ff_text_of(kind), id);
}

ff_str *ff_keyname_beside_core(ff_txn *t, const ff_str *core, const char *suffix) {
    ff_text name = ff_str_text(core);
    const ff_text ending = FF_TEXT(":core");
    if (name.len >= ending.len) {
        ff_text stem = ff_text_slice(name, 0, name.len - ending.len);
        ff_text last = ff_text_slice(name, stem.len, name.len);
        if (ff_text_equal(last, ending)) return FF_CONCAT(t, stem, ff_text_of(suffix));
    }
    return ff_str_make(t, name);
}
