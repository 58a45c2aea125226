#include "commands/answer.h"

#include "base/number.h"

void ff_answer_become_map(ff_answer *answer) { answer->kind = FF_ANSWER_MAP; }

void ff_answer_become_list(ff_answer *answer) { answer->kind = FF_ANSWER_LIST; }

void ff_answer_become_text(ff_answer *answer, ff_str *text) {
    answer->kind = text ? FF_ANSWER_TEXT : FF_ANSWER_NULL;
    answer->text = text;
}

void ff_answer_become_integer(ff_answer *answer, int64_t value) {
    answer->kind = FF_ANSWER_INTEGER;
    answer->integer = value;
}

ff_answer *ff_answer_add(ff_answer *list) {
    ff_answer *item = ff_arena_alloc(&list->txn->arena, sizeof *item);
    *item = (ff_answer){.txn = list->txn};
    if (list->last) {
        list->last->next = item;
    } else {
        list->first = item;
    }
    list->last = item;
    list->count++;
    return item;
}

ff_answer *ff_answer_member(ff_answer *map, ff_text name) {
    ff_answer_become_text(ff_answer_add(map), ff_str_make(map->txn, name));
    return ff_answer_add(map);
}

void ff_answer_text(ff_answer *map, const char *name, ff_str *value) {
    ff_answer_become_text(ff_answer_member(map, ff_text_of(name)), value);
}

void ff_answer_word(ff_answer *map, const char *name, const ff_word *value) {
    ff_answer_text(map, name, value->str);
}

void ff_answer_integer(ff_answer *map, const char *name, int64_t value) {
    ff_answer_become_integer(ff_answer_member(map, ff_text_of(name)), value);
}

void ff_answer_null(ff_answer *map, const char *name) { ff_answer_text(map, name, NULL); }

void ff_answer_number(ff_answer *map, const char *name, ff_str *value) {
    double number;
    int64_t integer;
    if (!ff_str_is_set(value)) {
        ff_answer_null(map, name);
    } else if (ff_integer_parse(ff_str_text(value), &integer) ||
               (ff_str_to_number(value, &number) && ff_number_to_integer(number, &integer))) {
        ff_answer_integer(map, name, integer);
    } else {
        ff_answer_text(map, name, value);
    }
}

/* Answers nest a few levels only: they are made by commands, never read from input. */
void ff_answer_send(ValkeyModuleCtx *ctx, const ff_answer *answer) {
    switch (answer->kind) {
    case FF_ANSWER_NULL: ValkeyModule_ReplyWithNull(ctx); return;
    case FF_ANSWER_INTEGER: ValkeyModule_ReplyWithLongLong(ctx, answer->integer); return;
    case FF_ANSWER_TEXT: ValkeyModule_ReplyWithString(ctx, answer->text); return;
    case FF_ANSWER_LIST: ValkeyModule_ReplyWithArray(ctx, (long)answer->count); break;
    case FF_ANSWER_MAP: ValkeyModule_ReplyWithMap(ctx, (long)answer->count / 2); break;
    }
    for (const ff_answer *item = answer->first; item != NULL; item = item->next) {
        ff_answer_send(ctx, item);
    }
}
