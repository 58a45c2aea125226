#include "commands/request.h"

#include "counters.h"
#include "presence.h"
#include "scan/dispatch.h"

int ff_request_report_key(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc, int names,
                          int flags) {
    if (argc > names) {
        ff_text first = ff_str_text(argv[names]);
        if (first.len && first.ptr[0] == '{') {
            ValkeyModule_KeyAtPosWithFlags(ctx, names, flags);
        }
    }
    return VALKEYMODULE_OK;
}

void ff_request_begin(ff_request *r, ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc,
                      int names, bool readonly) {
    *r = (ff_request){.ctx = ctx};
    ff_txn_begin(&r->txn, ctx, readonly);
    r->txn.strict = true;
    r->result.txn = &r->txn;
    r->answer.txn = &r->txn;
    r->argv = argv + names;
    r->argc = (size_t)(argc - names);
    r->args = ff_arena_array(&r->txn.arena, r->argc, sizeof *r->args);
    for (size_t i = 0; i < r->argc; i++) r->args[i] = ff_str_text(r->argv[i]);
}

static void reply_error(ff_request *r, ff_text line) {
    ff_text text = ff_arena_dup(&r->txn.arena, line);
    ff_count(FF_COUNT_NATIVE_ERRORS);
    ValkeyModule_ReplyWithError(r->ctx, text.ptr);
}

void ff_request_reply(ff_request *r) {
    const char *failure = ff_txn_error(&r->txn);
    if (failure) {
        reply_error(r, ff_text_of(failure));
    } else if (!ff_text_is_absent(r->error)) {
        reply_error(r, r->error);
    } else if (r->result.code >= FF_FIRST_REFUSAL) {
        reply_error(r, ff_refusal_text(&r->txn, &r->result));
    } else {
        ff_count(FF_COUNT_NATIVE_SUCCESSES);
        ff_answer_send(r->ctx, &r->answer);
    }
}

int ff_request_serve(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc, int names,
                     ff_handler *handler, bool readonly) {
    ff_request r;
    ff_request_begin(&r, ctx, argv, argc, names, readonly);
    if (handler(&r) == FF_COMMIT) {
        if (ff_txn_commit(&r.txn)) {
            ff_dispatch_now(ctx, &r.txn);
            if (r.then) r.then(&r);
        }
    } else {
        ff_txn_discard(&r.txn);
    }
    if (!r.deferred) ff_request_reply(&r);
    ff_txn_end(&r.txn);
    return VALKEYMODULE_OK;
}

ff_verdict ff_request_refuse_with(ff_request *r, const char *word, ff_text sentence) {
    r->error = ff_arena_concat(&r->txn.arena, ff_text_of(word), FF_TEXT(" "), sentence);
    return FF_DISCARD;
}

ff_verdict ff_request_refuse(ff_request *r, ff_text sentence) {
    return ff_request_refuse_with(r, "ERR", sentence);
}

ff_verdict ff_request_wrong_arity(ff_request *r) {
    return ff_request_refuse(r, FF_TEXT("wrong number of arguments"));
}

bool ff_request_options(ff_request *r, size_t from, ff_option_table table, void *destination,
                        uint64_t *given) {
    ff_text error;
    size_t start = from < r->argc ? from : r->argc;
    if (ff_options_parse(table, r->args + start, r->argc - start, destination, given, &r->txn.arena,
                         &error)) {
        return true;
    }
    ff_request_refuse(r, error);
    return false;
}

static bool refuse_id(ff_request *r, ff_text text, const char *expected) {
    ff_request_refuse(r, ff_arena_concat(&r->txn.arena, FF_TEXT("'"),
                                         ff_arena_printable(&r->txn.arena, text),
                                         FF_TEXT("' is not "), ff_text_of(expected)));
    return false;
}

bool ff_request_execution_id(ff_request *r, ff_text text, ff_reference *id) {
    if (!ff_execution_id_parse(text, id) || !id->shortest) {
        return refuse_id(r, text, "an execution id: expected {fp:N}:<uuid>");
    }
    if (id->partition.number >= ff_partition_count(FF_FAMILY_FLOW)) {
        return refuse_id(r, text, "of a partition below ff.flow-partitions");
    }
    return true;
}

bool ff_request_subject(ff_request *r, ff_subject *subject) {
    ff_reference id;
    if (!ff_request_execution_id(r, r->args[0], &id)) return false;
    ff_str *text = r->argv[0];
    if (!id.canonical) {
        text = ff_str_make(&r->txn, ff_reference_text(&r->txn.arena, id.partition, &id.uuid));
    }
    ff_subject_open(&r->txn, id.tag, text, subject);
    return true;
}

void ff_request_tell_state(ff_request *r, ff_subject *subject) {
    if (r->result.code != FF_EXECUTION_NOT_ELIGIBLE) return;
    ff_result_add(&r->result, ff_hash_get(subject->core, W(public_state)));
}

void ff_request_answer_state(ff_request *r, ff_subject *subject) {
    ff_answer_become_map(&r->answer);
    ff_answer_text(&r->answer, "state", ff_hash_get(subject->core, W(public_state)));
}

void ff_request_answer_status(ff_request *r) {
    ff_answer_become_map(&r->answer);
    ff_text word = ff_text_of(ff_code_word(r->result.code));
    ff_answer_text(&r->answer, "status", ff_str_make(&r->txn, word));
}

static const char *const expected_reference[FF_FAMILIES] = {
    [FF_FAMILY_FLOW] = "a flow: expected {fp:N}:<uuid>",
    [FF_FAMILY_BUDGET] = "a budget: expected {b:M}:<uuid>",
    [FF_FAMILY_QUOTA] = "a quota policy: expected {q:K}:<uuid>",
};

bool ff_request_in_cluster(const ff_request *r) {
    return ValkeyModule_GetContextFlags(r->ctx) & VALKEYMODULE_CTX_FLAGS_CLUSTER;
}

bool ff_request_in_transaction(const ff_request *r) {
    return ValkeyModule_GetContextFlags(r->ctx) &
           (VALKEYMODULE_CTX_FLAGS_MULTI | VALKEYMODULE_CTX_FLAGS_LUA);
}

/* The reference of an id that came without its tag. */
static bool complete_reference(ff_request *r, ff_text text, ff_family family,
                               ff_reference *reference) {
    ff_uuid uuid;
    if (!ff_uuid_parse(text, &uuid)) return refuse_id(r, text, expected_reference[family]);
    ff_partition partition = {family, ff_partition_of_uuid(&uuid, ff_partition_count(family))};
    ff_text whole = ff_reference_text(&r->txn.arena, partition, &uuid);
    if (ff_request_in_cluster(r)) {
        ff_request_refuse(r, ff_arena_concat(&r->txn.arena,
                                             FF_TEXT("in a cluster an id needs its tag: use "),
                                             whole));
        return false;
    }
    return ff_reference_parse(whole, family, reference);
}

bool ff_request_reference(ff_request *r, ff_text text, ff_family family, ff_reference *reference) {
    if (text.len == 0 || text.ptr[0] != '{') return complete_reference(r, text, family, reference);
    if (!ff_reference_parse(text, family, reference)) {
        return refuse_id(r, text, expected_reference[family]);
    }
    uint16_t own = ff_partition_of_uuid(&reference->uuid, ff_partition_count(family));
    if (!reference->shortest || reference->partition.number != own) {
        ff_text right =
            ff_reference_text(&r->txn.arena, (ff_partition){family, own}, &reference->uuid);
        ff_request_refuse(r, ff_arena_concat(&r->txn.arena, FF_TEXT("the tag of '"), text,
                                             FF_TEXT("' is not that of its id: use "), right));
        return false;
    }
    return true;
}

ff_str *ff_request_str(ff_request *r, ff_text text) {
    return ff_text_is_absent(text) ? NULL : ff_str_make(&r->txn, text);
}
