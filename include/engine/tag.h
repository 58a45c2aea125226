/* Tags: pairs of text that callers put on executions and flows. */
#ifndef FF_ENGINE_TAG_H
#define FF_ENGINE_TAG_H

#include "engine/result.h"

/* Rule TAGNAME: a lower-case namespace, a dot, and something that does not begin with a dot. */
bool ff_tag_name_is_valid(ff_text name);

/* Whether these are pairs of name and value for a record that exists, all names valid. False after a
 * refusal was put into `out`; `missing` is the one for a record that is not there. */
bool ff_tags_check(const ff_strs *pairs, const ff_key *owner, ff_code missing, ff_result *out);

/* Sets the pairs, of which there are as many as is answered. */
void ff_tags_write(ff_key *tags, const ff_strs *pairs, ff_result *out);

/* ff_set_execution_tags */
typedef struct ff_execution_tag_keys {
    ff_str *core, *tags;
} ff_execution_tag_keys;

typedef struct ff_execution_tag_args {
    ff_strs pairs;
} ff_execution_tag_args;

ff_verdict ff_execution_tag(ff_txn *t, const ff_execution_tag_keys *k,
                            const ff_execution_tag_args *a, ff_result *out);

#endif
