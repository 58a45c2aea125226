/* The reply of a native command, put together before the commit and sent after it.
 *
 * Maps on RESP3, flat arrays on RESP2; integers for numbers, bulk strings for text, null for nothing. */
#ifndef FF_COMMANDS_ANSWER_H
#define FF_COMMANDS_ANSWER_H

#include "store/txn.h"

typedef enum {
    FF_ANSWER_NULL,
    FF_ANSWER_INTEGER,
    FF_ANSWER_TEXT,
    FF_ANSWER_LIST,
    FF_ANSWER_MAP,
} ff_answer_kind;

typedef struct ff_answer {
    ff_txn *txn;
    ff_answer_kind kind;
    int64_t integer;
    ff_str *text;
    struct ff_answer *first; /* of a list its elements, of a map its names and values in turn */
    struct ff_answer *last;
    struct ff_answer *next;
    size_t count;
} ff_answer;

void ff_answer_become_map(ff_answer *answer);
void ff_answer_become_list(ff_answer *answer);
void ff_answer_become_text(ff_answer *answer, ff_str *text);
void ff_answer_become_integer(ff_answer *answer, int64_t value);

/* Append to a list. */
ff_answer *ff_answer_add(ff_answer *list);

/* Add a member to a map. Absent texts become null. */
ff_answer *ff_answer_member(ff_answer *map, ff_text name);
void ff_answer_text(ff_answer *map, const char *name, ff_str *value);
void ff_answer_word(ff_answer *map, const char *name, const ff_word *value);
void ff_answer_integer(ff_answer *map, const char *name, int64_t value);
void ff_answer_null(ff_answer *map, const char *name);

/* A number that the engine keeps as text: a whole one becomes an integer, the empty and the absent text null,
 * anything else stays text. */
void ff_answer_number(ff_answer *map, const char *name, ff_str *value);

void ff_answer_send(ValkeyModuleCtx *ctx, const ff_answer *answer);

#endif
