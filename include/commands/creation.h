/* A new execution as the native commands make one: keys derived, and what no wire function writes. */
#ifndef FF_COMMANDS_CREATION_H
#define FF_COMMANDS_CREATION_H

#include "commands/request.h"
#include "engine/subject.h"

enum { FF_CREATION_PRIORITY_MOST = 9000 };

/* What is NULL was not given. */
typedef struct ff_creation {
    ff_str *namespace, *lane, *kind;
    ff_str *creator, *policy, *payload;
    ff_str *capabilities; /* required beside what the policy says, in byte order */
    ff_str *budget_ids;   /* bare ids between commas */
    ff_str *quota_id;
    ff_str *idempotency; /* key of the record that remembers the creation */
    int64_t remember_ms;
    int64_t priority;
    int64_t due_at; /* 0, or not after now: eligible at once */
    int64_t deadline_at;
    bool has_deadline;
    ff_strs tags; /* pairs */
} ff_creation;

/* Stages the creation of the subject's execution. FF_DUPLICATE when it, or what the idempotency record names,
 * exists. */
ff_verdict ff_creation_stage(ff_subject *s, const ff_creation *c, ff_result *out);

/* The capabilities that a policy and a shorthand (a CSV, absent when not given) require together; only one of
 * them may name some. False after a refusal. */
bool ff_request_capabilities(ff_request *r, ff_str *policy, ff_text csv, ff_str **capabilities);

/* The bare ids of budget references between commas, NULL for none; that of a quota policy's. False after a
 * refusal. */
bool ff_request_budget_ids(ff_request *r, ff_text_list references, ff_str **ids);
bool ff_request_quota_id(ff_request *r, ff_text reference, ff_str **id);

#endif
