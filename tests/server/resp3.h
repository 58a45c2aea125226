/* A RESP3 connection, which the packaged hiredis cannot make: maps, nulls, doubles, booleans. */
#ifndef FF_TESTS_SERVER_RESP3_H
#define FF_TESTS_SERVER_RESP3_H

#include "harness.h"

typedef struct resp3_connection resp3_connection;

/* `kind` is the first byte of the reply on the wire. A map has its keys and values in turn in
 * `items`, so twice as many as it has entries. */
typedef struct resp3_value {
    char kind;
    int64_t integer; /* ':' and '#' */
    double number;   /* ',' */
    char *text;      /* '$' '+' '-' '=' '(' ; always terminated */
    size_t size;
    struct resp3_value *items; /* '*' '%' '~' '>' */
    size_t count;
} resp3_value;

/* Connects and switches to RESP3. */
resp3_connection *resp3_connect(const test_server *server);

/* Sends a command and reads its reply: resp3_call(connection, "FF.INFO"). */
resp3_value *resp3_call_words(resp3_connection *connection, command_words words);
#define resp3_call(connection, ...) resp3_call_words(connection, WORDS(__VA_ARGS__))

/* The value of a map's text key, or NULL. */
const resp3_value *resp3_member(const resp3_value *map, const char *name);

#endif
