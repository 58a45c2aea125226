/* Commands are not prepared for replication while nobody hears them; whoever comes must not miss one. */
#include "harness.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void create(test_server *server, int count) {
    for (int i = 0; i < count; i++) {
        server_do(server, "FF.CREATE", "*", "default", "job", "PAYLOAD", "p", "TAGS", "1", "a.b",
                  "c");
    }
}

static bool is_linked(test_server *replica) {
    const char *status = server_info(replica, "replication", "master_link_status");
    return status && strcmp(status, "up") == 0;
}

/* Writes while the replica connects, asks for a snapshot, gets it and loads it. */
static void create_until_linked(test_server *primary, test_server *replica) {
    for (int i = 0; i < 5000 && !is_linked(replica); i++) {
        create(primary, 2);
        usleep(2000);
    }
    cr_assert(is_linked(replica), "the replica did not sync");
    create(primary, 50);
}

Test(audience, a_replica_that_comes_while_writing) {
    test_server *primary = server_start(NULL);
    create(primary, 500);
    test_server *replica = server_start(&(server_options){.replica_of = primary});
    create_until_linked(primary, replica);
    server_expect_same_data(primary, replica);
}

Test(audience, a_snapshot_over_the_socket_that_waits_for_more_replicas) {
    test_server *primary = server_start(
        &(server_options){.config = "repl-diskless-sync yes\nrepl-diskless-sync-delay 1"});
    create(primary, 500);
    test_server *replica = server_start(&(server_options){.replica_of = primary});
    create_until_linked(primary, replica);
    server_expect_same_data(primary, replica);
}

Test(audience, a_replica_that_goes_and_comes_back) {
    test_server *primary = server_start(NULL);
    test_server *replica = server_start_replica(primary, NULL);
    create(primary, 20);
    server_stop(replica);
    create(primary, 20);
    server_restart(replica, false);
    create_until_linked(primary, replica);
    server_expect_same_data(primary, replica);
}

/* A restarted primary may have a backlog from which a replica goes on without a snapshot. */
Test(audience, a_primary_that_restarts) {
    test_server *primary = server_start(NULL);
    test_server *replica = server_start_replica(primary, NULL);
    create(primary, 20);
    server_restart(primary, true);
    create_until_linked(primary, replica);
    server_expect_same_data(primary, replica);
}

Test(audience, an_append_only_file_that_is_switched_on) {
    test_server *server = server_start(NULL);
    create(server, 200);
    server_do(server, "CONFIG", "SET", "appendonly", "yes");
    create(server, 200);
    server_do(server, "CONFIG", "REWRITE");
    for (int i = 0; i < 500 && atoi(server_info(server, "persistence", "aof_rewrite_in_progress"));
         i++) {
        create(server, 5);
    }
    create(server, 50);
    const char *before = server_digest(server);
    server_restart(server, false);
    cr_assert_str_eq(server_digest(server), before);
}

Test(audience, save_points_see_changes_that_nobody_hears) {
    test_server *server = server_start(NULL);
    int before = atoi(server_info(server, "persistence", "rdb_changes_since_last_save"));
    create(server, 1);
    int after = atoi(server_info(server, "persistence", "rdb_changes_since_last_save"));
    cr_assert_geq(after - before, 4);
}
