/* A native command at work: parse the arguments, call the engine, answer.
 *
 * A handler gets its arguments, a transaction that has begun (strict: without the defects that
 * are kept for the wire functions), and an answer to fill in. It returns the verdict of the
 * engine's operation, or that of ff_request_refuse for bad arguments. What happens then is the
 * same for all: commit, reply with the answer or with a RESP error, and go on with the members
 * of flows that ended. */
#ifndef FF_COMMANDS_REQUEST_H
#define FF_COMMANDS_REQUEST_H

#include "base/id.h"
#include "base/options.h"
#include "commands/answer.h"
#include "engine/result.h"
#include "engine/subject.h"

typedef struct ff_request ff_request;

struct ff_request {
    ValkeyModuleCtx *ctx;
    ff_txn txn;
    ff_str **argv; /* what follows the names of command and subcommand */
    ff_text *args; /* the same as texts */
    size_t argc;
    ff_result result;
    ff_answer answer;
    ff_text error;               /* a whole error line; absent: none */
    bool deferred;               /* the client was blocked, and gets its reply later */
    void (*then)(ff_request *r); /* further work once the transaction is committed; NULL: none */
    void *then_data;
};

typedef ff_verdict ff_handler(ff_request *r);

/* Serves one call. `names` is how many leading words are names: 1, or 2 with a subcommand. */
int ff_request_serve(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc, int names,
                     ff_handler *handler, bool readonly);

/* The beginning of it, and the reply, for those who reply later: what ff_request_begin made is
 * ended with ff_txn_end, after a commit or discard of its transaction. */
void ff_request_begin(ff_request *r, ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc,
                      int names, bool readonly);
void ff_request_reply(ff_request *r);

/* Reports the first argument as the key if it begins with '{': ids and references route
 * themselves. */
int ff_request_report_key(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc, int names,
                          int flags);

/* The server's command function for a handler: FF_NATIVE_WRITE(ff_renew_command, 1, renew). */
#define FF_NATIVE(function, names, handler, readonly, flags) \
    int function(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) { \
        if (ValkeyModule_IsKeysPositionRequest(ctx)) { \
            return ff_request_report_key(ctx, argv, argc, names, flags); \
        } \
        return ff_request_serve(ctx, argv, argc, names, handler, readonly); \
    }
#define FF_NATIVE_WRITE(function, names, handler) \
    FF_NATIVE(function, names, handler, false, \
              VALKEYMODULE_CMD_KEY_RW | VALKEYMODULE_CMD_KEY_ACCESS | VALKEYMODULE_CMD_KEY_UPDATE)
#define FF_NATIVE_READ(function, names, handler) \
    FF_NATIVE(function, names, handler, true, VALKEYMODULE_CMD_KEY_RO | VALKEYMODULE_CMD_KEY_ACCESS)

/* Refuses what the parser does not take: "ERR <sentence>". */
ff_verdict ff_request_refuse(ff_request *r, ff_text sentence);
ff_verdict ff_request_wrong_arity(ff_request *r);

/* Refuses with another first word. */
ff_verdict ff_request_refuse_with(ff_request *r, const char *word, ff_text sentence);

/* Reads the options from argument `from` on; false after a refusal. */
bool ff_request_options(ff_request *r, size_t from, ff_option_table table, void *destination,
                        uint64_t *given);

/* Reads an execution id in its canonical form and of a partition that exists; false after a
 * refusal. */
bool ff_request_execution_id(ff_request *r, ff_text text, ff_reference *id);

/* The execution that the first argument names, its id brought into its usual form. Whether there
 * is such an execution is not looked at. False after a refusal. */
bool ff_request_subject(ff_request *r, ff_subject *subject);

/* Adds the public state of the execution to a refusal that says that it is not the right one. */
void ff_request_tell_state(ff_request *r, ff_subject *subject);

/* Makes the answer a map that begins with `state`, the public state of the execution as it is
 * after what was staged. */
void ff_request_answer_state(ff_request *r, ff_subject *subject);

/* Makes the answer a map that begins with `status`: OK, or the other word that the engine has
 * for a success. */
void ff_request_answer_status(ff_request *r);

/* Reads a reference of a flow, budget or quota policy: `{tag}:<uuid>` whose tag is the one that
 * the id gives, or outside a cluster a bare UUID. False after a refusal. */
bool ff_request_reference(ff_request *r, ff_text text, ff_family family, ff_reference *reference);

/* An option's text as a string; NULL when it was not given. */
ff_str *ff_request_str(ff_request *r, ff_text text);

/* Whether the server runs as a cluster, and whether the command is part of a transaction or
 * script. */
bool ff_request_in_cluster(const ff_request *r);
bool ff_request_in_transaction(const ff_request *r);

/* The RESP error of a refused result: its word in upper case, then a sentence. */
ff_text ff_refusal_text(ff_txn *t, const ff_result *result);

#endif
