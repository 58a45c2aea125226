/* Scanners: what moves executions on when no caller does.
 *
 * A scanner is a row of a table. It says which indexes hold its candidates and how to visit one; everything
 * else (finding the indexes that hold something, walking them in slices without being held up by entries that stay,
 * filter, backoff, counting, permission) is the same for all and is done by scan/scan.h.
 *
 * A visit gets one candidate and a transaction that has begun. It reads, decides, stages, and says how it went;
 * the candidate's entry was read in that same transaction, so it is not stale. A visit that has much to do does a
 * part of it and asks to be called again for the same candidate: its `progress` is kept until then. */
#ifndef FF_SCAN_SCANNER_H
#define FF_SCAN_SCANNER_H

#include "engine/result.h"
#include "presence.h"
#include "scan/catalog.h"
#include "store/walk.h"

typedef enum ff_visit_outcome {
    FF_VISIT_PROCESSED,
    FF_VISIT_REFUSED,  /* the engine's operation answered with a refusal */
    FF_VISIT_SKIPPED,  /* nothing to do, for now or at all */
    FF_VISIT_UNKNOWN,  /* nothing done, because the verdict is another node's */
    FF_VISIT_FILTERED, /* another tenant's */
    FF_VISIT_DROPPED,  /* a stray entry was taken out of the index: counted as processed */
    FF_VISIT_ERROR,    /* bad data, or a failed write */
    FF_VISIT_COUNTED,  /* a visit to many subjects, which has counted them itself */
    FF_VISIT_AGAIN,    /* not finished */
} ff_visit_outcome;

enum { FF_PROGRESS_COUNTS = 16 };

/* What a visit remembers from call to call; all zero at the first. */
typedef struct ff_progress {
    bool begun;
    ff_walk walk;
    uint64_t at;
    uint64_t counts[FF_PROGRESS_COUNTS];
} ff_progress;

typedef struct ff_tally {
    uint64_t scanned, processed, refused, skipped, unknown, filtered, backed_off, errors;
} ff_tally;

typedef struct ff_visit {
    ValkeyModuleCtx *ctx;
    const struct ff_scanner *scanner;
    ff_txn *txn;
    ff_result result;
    ff_verdict verdict; /* FF_COMMIT: what is staged is kept */
    ff_partition partition;
    ff_text tag;
    ff_lane *lane; /* NULL when the index is not per lane */
    ff_index index;
    ff_str *index_name;
    ff_str *member;
    double score;
    ff_progress *progress;
    uint64_t slice;    /* number of the step: nothing but scanners runs within one */
    uint64_t deadline; /* monotonic, in µs: past it, ask to be called again */
    uint64_t limit;    /* on what is scanned; 0: none */
    bool let_go;
    bool one_slot;   /* keys of other slots cannot be read, whoever serves them */
    ff_tally *tally; /* for visits that work through many subjects of their own */
} ff_visit;

typedef ff_visit_outcome ff_visitor(ff_visit *v);

typedef enum ff_scan_kind {
    FF_SCAN_DUE,   /* entries of a zset whose score is a time not after now */
    FF_SCAN_WHOLE, /* all entries of a zset */
    FF_SCAN_SET,   /* all members of a set */
} ff_scan_kind;

typedef enum ff_scan_subject {
    FF_SUBJECT_EXECUTION, /* members are execution ids: those that do not parse are passed over; filtered */
    FF_SUBJECT_WAITPOINT, /* members are waitpoint ids, filtered by their owner */
    FF_SUBJECT_OTHER,     /* anything else: never filtered here */
} ff_scan_subject;

enum { FF_SCANNER_INDEXES = 3 };

typedef struct ff_scanner {
    ff_visitor *visit;
    ff_scan_kind kind;
    ff_scan_subject subject;
    ff_index indexes[FF_SCANNER_INDEXES]; /* of one family; all per lane or none */
    size_t index_count;
    long long *age_ms; /* due only when the score is that much in the past; NULL: at once */
    bool backs_off;
    bool prompt;    /* wakes when the first entry is due, or, of a set, when something is put in */
    bool by_change; /* a round leaves out partitions that were not written to since the last */
    bool counts_entries; /* for a gauge */
    bool frees;          /* goes on when the memory limit is reached */
} ff_scanner;

extern const ff_scanner ff_scanners[FF_SCANNER_COUNT];

ff_scanner_id ff_scanner_id_of(const ff_scanner *scanner);
const char *ff_scanner_name(ff_scanner_id id);

/* False when there is none of that name. */
bool ff_scanner_find(ff_text name, ff_scanner_id *id);

/* ---- For visits ---- */

/* What an operation's verdict means. Bad stored data makes operations refuse with invalid_input, which counts as
 * an error here. */
ff_visit_outcome ff_visit_settle(ff_visit *v, ff_verdict verdict);

/* The same, but an answer whose first value is `word` means that nothing was to be done. */
ff_visit_outcome ff_visit_settle_unless(ff_visit *v, ff_verdict verdict, const ff_word *word);

/* Takes the candidate out of its index. */
ff_visit_outcome ff_visit_drop(ff_visit *v);

/* What was staged is kept, and counts as done. */
ff_visit_outcome ff_visit_done(ff_visit *v);

/* Logs what is wrong with the candidate, the first time only; the outcome is an error. */
ff_visit_outcome ff_visit_complain(ff_visit *v, const char *problem);

/* Closes the keys of the visit's transaction, so that further ones can be used. What was read stays readable. */
void ff_visit_let_go(ff_visit *v);

/* Whether it is time to ask to be called again. */
bool ff_visit_is_late(const ff_visit *v);

/* A transaction of a visit that works through several subjects: begins, and ends with commit or discard and
 * what follows from it. False when what was to be committed was not. */
void ff_unit_begin(ff_visit *v, ff_txn *t, ff_result *result);
bool ff_unit_end(ff_visit *v, ff_txn *t, ff_verdict verdict);

#endif
