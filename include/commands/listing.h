/* Paging through what the partitions of this node have in one of their sets.
 *
 * A page is what about COUNT members give, so it may be empty before the end; the cursor says in which partition,
 * and where in its set, to go on. */
#ifndef FF_COMMANDS_LISTING_H
#define FF_COMMANDS_LISTING_H

#include "commands/request.h"
#include "presence.h"

enum { FF_LISTING_COUNT = 100, FF_LISTING_MOST = 10000 };

typedef struct ff_listing_options {
    ff_text partition, cursor;
    int64_t count;
} ff_listing_options;

/* The options that every listing has; they go to `member` of `type`, an ff_listing_options. */
#define FF_LISTING_ROWS(type, member) \
    FF_OPTION("PARTITION", FF_OPTION_NONEMPTY, type, member.partition), \
        FF_OPTION("CURSOR", FF_OPTION_NONEMPTY, type, member.cursor), \
        FF_OPTION("COUNT", FF_OPTION_INTEGER, type, member.count, .min = 1, \
                  .max = FF_LISTING_MOST)

/* Their documentation; the key of the command is FF_PARTITION_KEY. */
#define FF_LISTING_ARGS \
    FF_PARTITION_ARG, FF_OPTION_ARG("cursor", "CURSOR", STRING), \
        FF_OPTION_ARG("count", "COUNT", INTEGER)

/* Adds what there is to say about a member to the list, or nothing. */
typedef void ff_listing_entry(ff_txn *t, ff_answer *list, ff_text tag, ff_str *member, void *data);

/* Answers a page of the members of the index: `cursor`, and the list under `name`. */
ff_verdict ff_listing_answer(ff_request *r, ff_index index, const ff_listing_options *o,
                             const char *name, ff_listing_entry *entry, void *data);

/* The server's command function for a listing, whose key is the value of PARTITION. */
#define FF_NATIVE_LISTING(function, names, handler) \
    int function(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) { \
        if (ValkeyModule_IsKeysPositionRequest(ctx)) { \
            return ff_listing_report_key(ctx, argv, argc, names); \
        } \
        return ff_request_serve(ctx, argv, argc, names, handler, true); \
    }
int ff_listing_report_key(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc, int names);

#endif
