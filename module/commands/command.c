#include "commands/command.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static const ff_command_table *const tables[] = {
    &ff_module_commands,   &ff_create_commands,     &ff_lease_commands,     &ff_ending_commands,
    &ff_pause_commands,    &ff_suspension_commands, &ff_signal_commands,    &ff_waitpoint_commands,
    &ff_frame_commands,    &ff_attribute_commands,  &ff_admission_commands, &ff_lookup_commands,
    &ff_scanner_commands,  &ff_claim_commands,      &ff_flow_commands,      &ff_submission_commands,
    &ff_flowview_commands, &ff_budget_commands,     &ff_quota_commands,     &ff_worker_commands,
    &ff_secret_commands,
};

static int refused(ValkeyModuleCtx *ctx, const ff_command *command) {
    ValkeyModule_Log(ctx, "warning", "the server refuses the command %s", command->name);
    return VALKEYMODULE_ERR;
}

/* `parent|name` becomes the subcommand `name` of a command created before. */
static int create_subcommand(ValkeyModuleCtx *ctx, const ff_command *command, const char *bar) {
    char parent_name[64];
    snprintf(parent_name, sizeof parent_name, "%.*s", (int)(bar - command->name), command->name);
    ValkeyModuleCommand *parent = ValkeyModule_GetCommand(ctx, parent_name);
    if (parent == NULL) return VALKEYMODULE_ERR;
    return ValkeyModule_CreateSubcommand(parent, bar + 1, command->handler, command->flags, 0, 0,
                                         0);
}

static int create(ValkeyModuleCtx *ctx, const ff_command *command) {
    const char *bar = strchr(command->name, '|');
    int made = bar ? create_subcommand(ctx, command, bar)
                   : ValkeyModule_CreateCommand(ctx, command->name, command->handler,
                                                command->flags, 0, 0, 0);
    return made == VALKEYMODULE_OK ? VALKEYMODULE_OK : refused(ctx, command);
}

static int describe(ValkeyModuleCtx *ctx, const ff_command *command) {
    char categories[128];
    ValkeyModuleCommand *made = ValkeyModule_GetCommand(ctx, command->name);
    snprintf(categories, sizeof categories, "flowfabric%s%s", *command->categories ? " " : "",
             command->categories);
    if (ValkeyModule_SetCommandInfo(made, &command->info) != VALKEYMODULE_OK ||
        ValkeyModule_SetCommandACLCategories(made, categories) != VALKEYMODULE_OK) {
        return refused(ctx, command);
    }
    return VALKEYMODULE_OK;
}

static int load(ValkeyModuleCtx *ctx, const ff_command_table *table) {
    for (size_t i = 0; i < table->count; i++) {
        const ff_command *command = &table->rows[i];
        if (create(ctx, command) != VALKEYMODULE_OK || describe(ctx, command) != VALKEYMODULE_OK) {
            return VALKEYMODULE_ERR;
        }
    }
    return VALKEYMODULE_OK;
}

int ff_commands_load(ValkeyModuleCtx *ctx) {
    /* The server keeps the category when a module is unloaded: finding it there is fine. */
    if (ValkeyModule_AddACLCategory(ctx, "flowfabric") != VALKEYMODULE_OK && errno != EBUSY) {
        ValkeyModule_Log(ctx, "warning", "the server refuses the ACL category flowfabric");
        return VALKEYMODULE_ERR;
    }
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        if (load(ctx, tables[i]) != VALKEYMODULE_OK) return VALKEYMODULE_ERR;
    }
    return VALKEYMODULE_OK;
}
