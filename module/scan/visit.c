#include "scan/scanner.h"

#include <string.h>

#include "base/fnv.h"
#include "scan/dispatch.h"

static const char *const names[] = {
#define NAME(id, text, setting, interval) text,
    FF_SCANNERS(NAME)
#undef NAME
};

ff_scanner_id ff_scanner_id_of(const ff_scanner *scanner) {
    return (ff_scanner_id)(scanner - ff_scanners);
}

const char *ff_scanner_name(ff_scanner_id id) { return names[id]; }

bool ff_scanner_find(ff_text name, ff_scanner_id *id) {
    for (ff_scanner_id i = 0; i < FF_SCANNER_COUNT; i++) {
        if (ff_text_equal_ignoring_case(name, ff_text_of(names[i]))) {
            *id = i;
            return true;
        }
    }
    return false;
}

ff_visit_outcome ff_visit_settle(ff_visit *v, ff_verdict verdict) {
    v->verdict = verdict;
    if (v->result.code == FF_INVALID_INPUT || v->result.code == FF_CORRUPTION) {
        return ff_visit_complain(v, "holds a value that cannot be read");
    }
    return v->result.code < FF_FIRST_REFUSAL ? FF_VISIT_PROCESSED : FF_VISIT_REFUSED;
}

ff_visit_outcome ff_visit_settle_unless(ff_visit *v, ff_verdict verdict, const ff_word *word) {
    ff_visit_outcome outcome = ff_visit_settle(v, verdict);
    bool is_word = v->result.count && ff_str_is(v->result.values[0].str, word);
    return outcome == FF_VISIT_PROCESSED && is_word ? FF_VISIT_SKIPPED : outcome;
}

ff_visit_outcome ff_visit_done(ff_visit *v) {
    v->verdict = FF_COMMIT;
    return FF_VISIT_PROCESSED;
}

ff_visit_outcome ff_visit_drop(ff_visit *v) {
    if (v->scanner->kind == FF_SCAN_SET) {
        ff_set_remove(ff_set_open(v->txn, v->index_name), v->member);
    } else {
        ff_zset_remove(ff_zset_open(v->txn, v->index_name), v->member);
    }
    v->verdict = FF_COMMIT;
    return FF_VISIT_DROPPED;
}

/* What was complained about, by hash: a second time says nothing new. */
enum { COMPLAINTS_SIZE = 8192, COMPLAINTS_MOST = 4096 };
static uint64_t complaints[COMPLAINTS_SIZE];
static size_t complaint_count;

/* True the first time, as long as there is room to remember. */
static bool is_news(uint64_t hash) {
    if (hash == 0) hash = 1;
    size_t at = hash % COMPLAINTS_SIZE;
    while (complaints[at]) {
        if (complaints[at] == hash) return false;
        at = (at + 1) % COMPLAINTS_SIZE;
    }
    if (complaint_count == COMPLAINTS_MOST) return false;
    complaints[at] = hash;
    complaint_count++;
    return true;
}

ff_visit_outcome ff_visit_complain(ff_visit *v, const char *problem) {
    ff_text member = ff_str_text(v->member);
    const char *name = names[ff_scanner_id_of(v->scanner)];
    uint64_t hash =
        ff_fnv1a(member) ^ ff_fnv1a(ff_text_of(problem)) * 31 ^ ff_fnv1a(ff_text_of(name)) * 37;
    if (is_news(hash)) {
        char room[512];
        ff_arena arena;
        ff_arena_init(&arena, room, sizeof room);
        ff_text shown = ff_arena_printable(&arena, member);
        ValkeyModule_Log(v->ctx, "warning", "scanner %s: %.*s in %.*s %s%s", name,
                         FF_TEXT_ARGS(shown), FF_TEXT_ARGS(v->tag), problem,
                         complaint_count == COMPLAINTS_MOST
                             ? " (what else is wrong will be counted, but not logged)"
                             : "");
        ff_arena_release(&arena);
    }
    return FF_VISIT_ERROR;
}

void ff_visit_let_go(ff_visit *v) {
    ff_txn_discard(v->txn);
    v->let_go = true;
}

bool ff_visit_is_late(const ff_visit *v) {
    return (v->deadline && ValkeyModule_MonotonicMicroseconds() >= v->deadline) ||
           (v->limit && v->tally->scanned >= v->limit);
}

void ff_unit_begin(ff_visit *v, ff_txn *t, ff_result *result) {
    ff_txn_begin(t, v->ctx, false);
    *result = (ff_result){.txn = t};
}

bool ff_unit_end(ff_visit *v, ff_txn *t, ff_verdict verdict) {
    bool kept = true;
    if (verdict == FF_COMMIT) {
        kept = ff_txn_commit(t);
        if (kept) ff_dispatch_now(v->ctx, t);
    } else {
        ff_txn_discard(t);
    }
    ff_txn_end(t);
    return kept;
}
