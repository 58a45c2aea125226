/* The commands that are about the module itself, and the way in for the wire functions. */

#include "commands/command.h"
#include "compat/call.h"
#include "info.h"

#define KEYS_BY_NUMBER(access) \
    (ValkeyModuleCommandKeySpec[]) { \
        {.flags = (access), \
         .begin_search_type = VALKEYMODULE_KSPEC_BS_INDEX, \
         .bs.index = {.pos = 2}, \
         .find_keys_type = VALKEYMODULE_KSPEC_FK_KEYNUM, \
         .fk.keynum = {.keynumidx = 0, .firstkey = 1, .keystep = 1}}, \
        { \
            0 \
        } \
    }

#define CALL_ARGS \
    FF_ARGS(FF_ARG("function", STRING), FF_ARG("numkeys", INTEGER), \
            FF_ARG("key", KEY, .key_spec_index = 0, \
                   .flags = VALKEYMODULE_CMD_ARG_OPTIONAL | VALKEYMODULE_CMD_ARG_MULTIPLE), \
            FF_ARG("arg", STRING, \
                   .flags = VALKEYMODULE_CMD_ARG_OPTIONAL | VALKEYMODULE_CMD_ARG_MULTIPLE))

static const ff_command rows[] = {
    {
        "ff.call",
        ff_call_command,
        FF_WRITES,
        .info = {FF_DOCUMENTED, .summary = "Runs a wire function, as FCALL would.",
                 .complexity = "Depends on the function.", .arity = -3,
                 .key_specs = KEYS_BY_NUMBER(VALKEYMODULE_CMD_KEY_RW | VALKEYMODULE_CMD_KEY_ACCESS |
                                             VALKEYMODULE_CMD_KEY_UPDATE),
                 .args = CALL_ARGS},
    },
    {
        "ff.call_ro",
        ff_call_ro_command,
        FF_READS,
        .info = {FF_DOCUMENTED,
                 .summary = "Runs a wire function that only reads, as FCALL_RO would.",
                 .complexity = "Depends on the function.", .arity = -3,
                 .key_specs = KEYS_BY_NUMBER(VALKEYMODULE_CMD_KEY_RO | VALKEYMODULE_CMD_KEY_ACCESS),
                 .args = CALL_ARGS},
    },
    {
        "ff.info",
        ff_info_command,
        .flags = "readonly fast",
        .categories = "read fast",
        .info = {FF_DOCUMENTED, .summary = "Returns counters and settings of the module.",
                 .complexity = "O(1)", .arity = 1},
    },
};

const ff_command_table ff_module_commands = FF_COMMAND_TABLE(rows);
