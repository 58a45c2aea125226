/* The command tables: everything that the server and its users are told about a command.
 *
 * Each file of commands ends with a table of rows. The row of a subcommand is named `parent|name`
 * and stands behind the row of its parent, which has no handler of its own:
 *
 *     static const ff_command rows[] = {
 *         {"ff.flow", FF_CONTAINER_OF("flows")},
 *         {"ff.flow|get", get_command, FF_READS,
 *          .info = {FF_DOCUMENTED, .summary = "Returns a flow.", .complexity = "O(1)",
 *                   .arity = -3, .key_specs = FF_KEY_READ(2),
 *                   .args = FF_ARGS(FF_KEY_ARG("flow"), FF_FLAG_ARG("members", "MEMBERS"))}},
 *     };
 *     const ff_command_table ff_flow_commands = FF_COMMAND_TABLE(rows); */
#ifndef FF_COMMANDS_COMMAND_H
#define FF_COMMANDS_COMMAND_H

#include <stddef.h>

#include "valkeymodule.h"

typedef struct ff_command {
    const char *name;
    ValkeyModuleCmdFunc handler; /* NULL: has subcommands instead */
    const char *flags;           /* of CreateCommand */
    const char *categories;      /* ACL categories beside flowfabric */
    ValkeyModuleCommandInfo info;
} ff_command;

typedef struct ff_command_table {
    const ff_command *rows;
    size_t count;
} ff_command_table;

#define FF_COMMAND_TABLE(array) \
    { (array), sizeof(array) / sizeof((array)[0]) }

/* Creates every command, with its documentation and ACL categories. On failure the reason is
 * logged. */
int ff_commands_load(ValkeyModuleCtx *ctx);

/* The tables. */
extern const ff_command_table ff_admission_commands, ff_attribute_commands, ff_claim_commands,
    ff_create_commands, ff_ending_commands, ff_frame_commands, ff_lease_commands,
    ff_lookup_commands, ff_module_commands, ff_pause_commands, ff_scanner_commands,
    ff_signal_commands, ff_suspension_commands, ff_waitpoint_commands;
extern const ff_command_table ff_budget_commands, ff_flow_commands, ff_flowview_commands,
    ff_quota_commands, ff_secret_commands, ff_submission_commands, ff_worker_commands;

/* ---- Flags and categories of a row ---- */

#define FF_CONTAINER .flags = "", .categories = ""
#define FF_CONTAINER_OF(what) \
    FF_CONTAINER, .info = {FF_DOCUMENTED, .summary = "A container for commands about " what ".", \
                           .complexity = "Depends on the subcommand.", .arity = -2}
#define FF_READS .flags = "readonly getkeys-api", .categories = "read"
#define FF_WRITES .flags = "write deny-oom getkeys-api", .categories = "write"

/* Writes that keep memory as it is, or free some. */
#define FF_FREES .flags = "write getkeys-api", .categories = "write"

/* The same for operators. */
#define FF_OPERATOR_READS .flags = "readonly getkeys-api", .categories = "read admin dangerous"
#define FF_OPERATOR_WRITES \
    .flags = "write deny-oom getkeys-api", .categories = "write admin dangerous"
#define FF_OPERATOR_FREES .flags = "write getkeys-api", .categories = "write admin dangerous"

/* ---- Documentation of a row ---- */

#define FF_DOCUMENTED .version = VALKEYMODULE_COMMAND_INFO_VERSION, .since = "0.1.0"

/* The key at that position. An argument that is no key, such as `*`, may stand there: "variable
 * flags" makes the server ask the command itself (getkeys-api), and take this for display only. */
#define FF_KEY_AT(position, access) \
    (ValkeyModuleCommandKeySpec[]) { \
        {.flags = (access) | VALKEYMODULE_CMD_KEY_VARIABLE_FLAGS, \
         .begin_search_type = VALKEYMODULE_KSPEC_BS_INDEX, \
         .bs.index = {.pos = (position)}, \
         .find_keys_type = VALKEYMODULE_KSPEC_FK_RANGE, \
         .fk.range = {.keystep = 1}}, \
        { \
            0 \
        } \
    }
#define FF_KEY_WRITE(position) \
    FF_KEY_AT(position, \
              VALKEYMODULE_CMD_KEY_RW | VALKEYMODULE_CMD_KEY_ACCESS | VALKEYMODULE_CMD_KEY_UPDATE)
#define FF_KEY_READ(position) \
    FF_KEY_AT(position, VALKEYMODULE_CMD_KEY_RO | VALKEYMODULE_CMD_KEY_ACCESS)

/* The value of the option PARTITION, which may stand anywhere from `start` on. */
#define FF_PARTITION_KEY(start, access) \
    (ValkeyModuleCommandKeySpec[]) { \
        {.flags = (access) | VALKEYMODULE_CMD_KEY_VARIABLE_FLAGS, \
         .begin_search_type = VALKEYMODULE_KSPEC_BS_KEYWORD, \
         .bs.keyword = {.keyword = "PARTITION", .startfrom = (start)}, \
         .find_keys_type = VALKEYMODULE_KSPEC_FK_RANGE, \
         .fk.range = {.keystep = 1}}, \
        { \
            0 \
        } \
    }
#define FF_PARTITION_READ(start) \
    FF_PARTITION_KEY(start, VALKEYMODULE_CMD_KEY_RO | VALKEYMODULE_CMD_KEY_ACCESS)
#define FF_PARTITION_ARG \
    FF_ARG("partition", KEY, .key_spec_index = 0, .token = "PARTITION", \
           .flags = VALKEYMODULE_CMD_ARG_OPTIONAL)

/* Arguments; `type` is the end of a VALKEYMODULE_ARG_TYPE_ name. Further fields are designated
 * initializers. */
#define FF_ARGS(...) \
    (ValkeyModuleCommandArg[]) { \
        __VA_ARGS__, { 0 } \
    }
#define FF_ARG(name_, type_, ...) \
    { .name = (name_), .type = VALKEYMODULE_ARG_TYPE_##type_, __VA_ARGS__ }
#define FF_KEY_ARG(name) FF_ARG(name, KEY, .key_spec_index = 0)

/* What the holder of a lease shows. */
#define FF_LEASE_ARGS FF_ARG("lease", STRING), FF_ARG("epoch", INTEGER), FF_ARG("attempt", STRING)
#define FF_MANY_ARG(name, type) FF_ARG(name, type, .flags = VALKEYMODULE_CMD_ARG_MULTIPLE)

/* An option `TOKEN value`, one `TOKEN`, one `TOKEN several values`. */
#define FF_OPTION_ARG(name, token_, type) \
    FF_ARG(name, type, .token = (token_), .flags = VALKEYMODULE_CMD_ARG_OPTIONAL)
#define FF_FLAG_ARG(name, token_) \
    FF_ARG(name, PURE_TOKEN, .token = (token_), .flags = VALKEYMODULE_CMD_ARG_OPTIONAL)
#define FF_BLOCK_ARG(name, token_, ...) \
    FF_ARG(name, BLOCK, .token = (token_), .flags = VALKEYMODULE_CMD_ARG_OPTIONAL, \
           .subargs = FF_ARGS(__VA_ARGS__))

/* A choice that must be made, and one that may be left out. */
#define FF_ONE_ARG(name, ...) FF_ARG(name, ONEOF, .subargs = FF_ARGS(__VA_ARGS__))
#define FF_ONE_OPTION_ARG(name, token_, ...) \
    FF_ARG(name, ONEOF, .token = (token_), .flags = VALKEYMODULE_CMD_ARG_OPTIONAL, \
           .subargs = FF_ARGS(__VA_ARGS__))
#define FF_WORD_ARG(name, token_) FF_ARG(name, PURE_TOKEN, .token = (token_))

#endif
