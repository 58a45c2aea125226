/* Calls of wire functions, and the records they work on. */
#ifndef FF_TESTS_SERVER_WIRE_H
#define FF_TESTS_SERVER_WIRE_H

#include "harness.h"

#define WIRE_MAX_KEYS 20
#define WIRE_MAX_ARGUMENTS 40

#define TAG "{fp:7}"
#define EID TAG ":f10f0001-0000-4000-8000-000000000001"
#define EXEC_KEY(suffix) "ff:exec:" TAG ":" EID ":" suffix
#define INDEX_KEY(suffix) "ff:idx:" TAG ":" suffix

/* A call of one function, to be altered and sent. */
typedef struct wire_call {
    const char *function;
    size_t key_count;
    bytes keys[WIRE_MAX_KEYS];
    size_t argument_count;
    bytes arguments[WIRE_MAX_ARGUMENTS];
} wire_call;

/* Positions of the arguments of ff_create_execution. */
enum create_argument {
    CREATE_ID,
    CREATE_NAMESPACE,
    CREATE_LANE,
    CREATE_KIND,
    CREATE_PRIORITY,
    CREATE_CREATOR,
    CREATE_POLICY,
    CREATE_PAYLOAD,
    CREATE_DELAY_UNTIL,
    CREATE_DEDUP_TTL,
    CREATE_TAGS,
    CREATE_DEADLINE,
    CREATE_PARTITION,
    CREATE_ARGUMENTS
};

enum create_key {
    CREATE_CORE_KEY,
    CREATE_PAYLOAD_KEY,
    CREATE_POLICY_KEY,
    CREATE_TAGS_KEY,
    CREATE_SCHEDULE_KEY,
    CREATE_IDEMPOTENCY_KEY,
    CREATE_DEADLINE_KEY,
    CREATE_ALL_KEY,
    CREATE_KEYS
};

/* Positions of the arguments of ff_renew_lease. */
enum renew_argument {
    RENEW_ID,
    RENEW_ATTEMPT_INDEX,
    RENEW_ATTEMPT_ID,
    RENEW_LEASE_ID,
    RENEW_EPOCH,
    RENEW_TTL,
    RENEW_GRACE,
    RENEW_ARGUMENTS
};

enum renew_key { RENEW_CORE_KEY, RENEW_LEASE_KEY, RENEW_HISTORY_KEY, RENEW_EXPIRY_KEY, RENEW_KEYS };

/* A creation that succeeds on an empty server and uses every key: payload, policy, tags, an
 * idempotency key with a TTL and a deadline. */
wire_call wire_create(void);

/* A renewal that succeeds after wire_write_lease. */
wire_call wire_renew(void);

/* Writes an active execution with its lease, as a claim would at the frozen start. */
void wire_write_lease(test_server *server);

redisReply *wire_send(test_server *server, const wire_call *call);

/* Sends the call and fails the test unless the reply is [1, status, …]. */
void wire_expect(test_server *server, const wire_call *call, const char *status);

/* Fail the test unless the call is refused, the data is what it was, and the server is up. The
 * refusal is [0, code, detail…], with the detail beginning as given unless it is NULL; or an error that
 * begins with the prefix. */
void wire_expect_refusal(test_server *server, const wire_call *call, const char *code,
                         const char *detail);
void wire_expect_error(test_server *server, const wire_call *call, const char *prefix);

/* Fails the test unless the call leaves the server up, and the data as it was if it is refused in
 * whatever way. True if it was refused. */
bool wire_refused_cleanly(test_server *server, const wire_call *call);

/* Values that no argument or field is prepared for, with a name each, up to a NULL name. */
typedef struct hostile_value {
    const char *name;
    bytes value;
} hostile_value;

const hostile_value *hostile_values(void);

/* Makes the key hold a value of the given type: string, hash, list, set, zset or stream. */
void wire_write_type(test_server *server, bytes key, const char *type);
extern const char *const wire_types[];

#endif
