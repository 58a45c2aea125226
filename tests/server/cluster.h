/* Clusters of two primaries, and what is where in them. */
#ifndef FF_TESTS_SERVER_CLUSTER_H
#define FF_TESTS_SERVER_CLUSTER_H

#include "harness.h"

enum { CLUSTER_NODES = 2 };

/* Starts the two nodes; `config` are further lines of their configuration, or NULL. */
void cluster_start(test_server **nodes, const char *config);

/* The first partition from `from` on that the node serves, with its tag: `{fp:N}`. */
const char *cluster_tag(test_server **nodes, const test_server *node, const char *family, int from);

/* An execution id of a partition. */
const char *cluster_id(const char *tag, int number);

/* Keys of the partition of a tag, and of an execution. */
const char *cluster_lane(const char *tag, const char *suffix);
const char *cluster_core(const char *id);

/* Whether a sorted set has the member. */
bool cluster_has(test_server *server, const char *key, const char *member);

/* Begins to move the slot of a tag from one node to the other, and ends it either way: with `moved`
 * all its keys go there first. */
void cluster_begin_move(test_server *from, test_server *to, const char *tag);
void cluster_end_move(test_server *from, test_server *to, const char *tag, bool moved);

/* Fails the test unless the condition comes to hold within ten seconds. */
#define cluster_eventually(condition) \
    do { \
        int tries_left = 1000; \
        while (!(condition) && tries_left-- > 0) usleep(10000); \
        cr_assert(tries_left > 0, "it never comes that " #condition); \
    } while (0)

#endif
