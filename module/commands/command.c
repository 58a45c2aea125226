#include "commands/command.h"

#include <errno.h>
#include <stdio.h>

#include "compat/call.h"
#include "info.h"

#define ARG(...)                                                                                   \
    (ValkeyModuleCommandArg[]) { __VA_ARGS__, {0} }

#define KEYS_BY_NUMBER(access)                                                                     \
    (ValkeyModuleCommandKeySpec[]) {                                                               \
        {.flags = (access), .begin_search_type = VALKEYMODULE_KSPEC_BS_INDEX,                      \
         .bs.index = {.pos = 2}, .find_keys_type = VALKEYMODULE_KSPEC_FK_KEYNUM,                   \
         .fk.keynum = {.keynumidx = 0, .firstkey = 1, .keystep = 1}},                              \
        {0}                                                                                        \
    }

#define CALL_ARGS                                                                                  \
    ARG({.name = "function", .type = VALKEYMODULE_ARG_TYPE_STRING},                                \
        {.name = "numkeys", .type = VALKEYMODULE_ARG_TYPE_INTEGER},                                \
        {.name = "key", .type = VALKEYMODULE_ARG_TYPE_KEY, .key_spec_index = 0,                    \
         .flags = VALKEYMODULE_CMD_ARG_OPTIONAL | VALKEYMODULE_CMD_ARG_MULTIPLE},                  \
        {.name = "arg", .type = VALKEYMODULE_ARG_TYPE_STRING,                                      \
         .flags = VALKEYMODULE_CMD_ARG_OPTIONAL | VALKEYMODULE_CMD_ARG_MULTIPLE})

#define DOCUMENTED .version = VALKEYMODULE_COMMAND_INFO_VERSION, .since = "0.1.0"

static const ff_command commands[] = {
    {
        .name = "ff.call",
        .handler = ff_call_command,
        .flags = "write deny-oom getkeys-api",
        .categories = "write",
        .info = {DOCUMENTED, .summary = "Runs a wire function, as FCALL would.",
                 .complexity = "Depends on the function.", .arity = -3,
                 .key_specs = KEYS_BY_NUMBER(VALKEYMODULE_CMD_KEY_RW | VALKEYMODULE_CMD_KEY_ACCESS |
                                             VALKEYMODULE_CMD_KEY_UPDATE),
                 .args = CALL_ARGS},
    },
    {
        .name = "ff.call_ro",
        .handler = ff_call_ro_command,
        .flags = "readonly getkeys-api",
        .categories = "read",
        .info = {DOCUMENTED, .summary = "Runs a wire function that only reads, as FCALL_RO would.",
                 .complexity = "Depends on the function.", .arity = -3,
                 .key_specs = KEYS_BY_NUMBER(VALKEYMODULE_CMD_KEY_RO | VALKEYMODULE_CMD_KEY_ACCESS),
                 .args = CALL_ARGS},
    },
    {
        .name = "ff.info",
        .handler = ff_info_command,
        .flags = "readonly fast",
        .categories = "read fast",
        .info = {DOCUMENTED, .summary = "Returns counters and settings of the module.",
                 .complexity = "O(1)", .arity = 1},
    },
};

static int create(ValkeyModuleCtx *ctx, const ff_command *command) {
    char categories[128];
    if (ValkeyModule_CreateCommand(ctx, command->name, command->handler, command->flags, 0, 0, 0) !=
        VALKEYMODULE_OK) {
        ValkeyModule_Log(ctx, "warning", "the server refuses the command %s", command->name);
        return VALKEYMODULE_ERR;
    }
    ValkeyModuleCommand *made = ValkeyModule_GetCommand(ctx, command->name);
    snprintf(categories, sizeof categories, "flowfabric %s", command->categories);
    if (ValkeyModule_SetCommandInfo(made, &command->info) != VALKEYMODULE_OK ||
        ValkeyModule_SetCommandACLCategories(made, categories) != VALKEYMODULE_OK) {
        ValkeyModule_Log(ctx, "warning", "the server refuses what is said about %s", command->name);
        return VALKEYMODULE_ERR;
    }
    return VALKEYMODULE_OK;
}

int ff_commands_load(ValkeyModuleCtx *ctx) {
    /* The server keeps the category when a module is unloaded: finding it there is fine. */
    if (ValkeyModule_AddACLCategory(ctx, "flowfabric") != VALKEYMODULE_OK && errno != EBUSY) {
        ValkeyModule_Log(ctx, "warning", "the server refuses the ACL category flowfabric");
        return VALKEYMODULE_ERR;
    }
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        if (create(ctx, &commands[i]) != VALKEYMODULE_OK) return VALKEYMODULE_ERR;
    }
    return VALKEYMODULE_OK;
}
