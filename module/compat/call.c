#include "compat/call.h"

#include <string.h>

#include "base/number.h"
#include "compat/function.h"
#include "counters.h"
#include "scan/dispatch.h"

enum {
    NAME_AT = 1,
    NUMKEYS_AT = 2,
    KEYS_AT = 3,
    SLOTS_MAX = 64,
};

typedef struct wire_call {
    const ff_function *function;
    ff_strs keys;
    ff_strs args;
} wire_call;

/* Reads numkeys; false when it is no number or claims more keys than there are arguments. */
static bool split(ValkeyModuleString **argv, int argc, wire_call *call) {
    int64_t numkeys;
    if (!ff_integer_parse(ff_str_text(argv[NUMKEYS_AT]), &numkeys)) return false;
    if (numkeys < 0 || numkeys > argc - KEYS_AT) return false;
    call->keys = (ff_strs){argv + KEYS_AT, (size_t)numkeys};
    call->args = (ff_strs){argv + KEYS_AT + numkeys, (size_t)(argc - KEYS_AT - (int)numkeys)};
    return true;
}

/* Lays strings out as a struct of the engine: by position, the rest as a list if the struct has one. */
static void lay_out(ff_str **slots, size_t slot_count, bool more, ff_strs given) {
    size_t named = more ? slot_count - sizeof(ff_strs) / sizeof *slots : slot_count;
    size_t filled = given.count < named ? given.count : named;
    memset(slots, 0, slot_count * sizeof *slots);
    memcpy(slots, given.items, filled * sizeof *slots);
    if (more) {
        ff_strs rest = {given.items + filled, given.count - filled};
        memcpy(slots + named, &rest, sizeof rest);
    }
}

static ff_verdict run(ff_txn *t, const wire_call *call, ff_result *out) {
    const ff_function *f = call->function;
    ff_str *keys[SLOTS_MAX];
    ff_str *args[SLOTS_MAX];
    if (call->keys.count < f->least_keys) {
        ff_text sentence = ff_arena_printf(&t->arena, "expected %zu keys, got %zu", f->least_keys,
                                           call->keys.count);
        return ff_bad_input(out, sentence.ptr);
    }
    lay_out(keys, f->key_slots, f->more_keys, call->keys);
    lay_out(args, f->arg_slots, f->more_args, call->args);
    return f->operation(t, keys, args, out);
}

static void reply_value(ValkeyModuleCtx *ctx, const ff_value *value) {
    if (value->str) {
        ValkeyModule_ReplyWithString(ctx, value->str);
        return;
    }
    ValkeyModule_ReplyWithArray(ctx, (long)value->count);
    for (size_t i = 0; i < value->count; i++) reply_value(ctx, &value->items[i]);
}

static void reply(ValkeyModuleCtx *ctx, const ff_result *out) {
    if (out->shape == FF_SHAPE_SCALAR) {
        reply_value(ctx, &out->values[0]);
        return;
    }
    bool wrapped = out->shape == FF_SHAPE_WRAPPED;
    ValkeyModule_ReplyWithArray(ctx, (long)out->count + (wrapped ? 2 : 1));
    if (wrapped) ValkeyModule_ReplyWithLongLong(ctx, out->code < FF_FIRST_REFUSAL);
    if (out->word) {
        ValkeyModule_ReplyWithString(ctx, out->word);
    } else {
        const char *word = ff_code_word(out->code);
        ValkeyModule_ReplyWithStringBuffer(ctx, word, strlen(word));
    }
    for (size_t i = 0; i < out->count; i++) reply_value(ctx, &out->values[i]);
}

static int serve(ValkeyModuleCtx *ctx, const wire_call *call, bool readonly) {
    ff_txn t;
    ff_txn_begin(&t, ctx, readonly);
    ff_result out = {.txn = &t};
    ff_verdict verdict = run(&t, call, &out);
    if (verdict == FF_COMMIT) {
        if (ff_txn_commit(&t)) ff_dispatch_later(&t);
    } else {
        ff_txn_discard(&t);
    }
    const char *error = ff_txn_error(&t);
    if (error) {
        ff_count(FF_COUNT_WIRE_ERRORS);
        ValkeyModule_ReplyWithError(ctx, error);
    } else {
        ff_count(out.code < FF_FIRST_REFUSAL ? FF_COUNT_WIRE_SUCCESSES : FF_COUNT_WIRE_REFUSALS);
        reply(ctx, &out);
    }
    ff_txn_end(&t);
    return VALKEYMODULE_OK;
}

static int report_keys(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc, int flags) {
    wire_call call = {0};
    if (argc < KEYS_AT || !split(argv, argc, &call)) return VALKEYMODULE_OK;
    for (size_t i = 0; i < call.keys.count; i++) {
        ValkeyModule_KeyAtPosWithFlags(ctx, KEYS_AT + (int)i, flags);
    }
    return VALKEYMODULE_OK;
}

static int reply_unknown(ValkeyModuleCtx *ctx, ValkeyModuleString *name) {
    char block[256];
    ff_arena arena;
    ff_arena_init(&arena, block, sizeof block);
    ff_text printable = ff_arena_printable(&arena, ff_str_text(name));
    ValkeyModule_ReplyWithErrorFormat(ctx, "ERR unknown function '%.*s'", FF_TEXT_ARGS(printable));
    ff_arena_release(&arena);
    return VALKEYMODULE_OK;
}

static int call_command(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc, bool readonly) {
    wire_call call = {0};
    if (argc < KEYS_AT) return ValkeyModule_WrongArity(ctx);
    call.function = ff_function_find(ff_str_text(argv[NAME_AT]));
    if (call.function == NULL) return reply_unknown(ctx, argv[NAME_AT]);
    if (readonly && !call.function->readonly) {
        return ValkeyModule_ReplyWithErrorFormat(ctx, "ERR '%s' may write: call it with FF.CALL",
                                                 call.function->name);
    }
    if (!split(argv, argc, &call)) {
        return ValkeyModule_ReplyWithError(
            ctx, "ERR numkeys must be an integer between 0 and the number of arguments after it");
    }
    return serve(ctx, &call, call.function->readonly);
}

int ff_call_command(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    if (ValkeyModule_IsKeysPositionRequest(ctx)) {
        return report_keys(ctx, argv, argc,
                           VALKEYMODULE_CMD_KEY_RW | VALKEYMODULE_CMD_KEY_ACCESS |
                               VALKEYMODULE_CMD_KEY_UPDATE);
    }
    return call_command(ctx, argv, argc, false);
}

int ff_call_ro_command(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    if (ValkeyModule_IsKeysPositionRequest(ctx)) {
        return report_keys(ctx, argv, argc, VALKEYMODULE_CMD_KEY_RO | VALKEYMODULE_CMD_KEY_ACCESS);
    }
    return call_command(ctx, argv, argc, true);
}
