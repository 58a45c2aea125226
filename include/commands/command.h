/* The command table: everything that the server and its users are told about a command. */
#ifndef FF_COMMANDS_COMMAND_H
#define FF_COMMANDS_COMMAND_H

#include "valkeymodule.h"

typedef struct ff_command {
    const char *name;
    ValkeyModuleCmdFunc handler;
    const char *flags;      /* of CreateCommand */
    const char *categories; /* ACL categories beside flowfabric */
    ValkeyModuleCommandInfo info;
} ff_command;

/* Creates every command, with its documentation and ACL categories. On failure the reason is logged. */
int ff_commands_load(ValkeyModuleCtx *ctx);

#endif
