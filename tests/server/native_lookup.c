/* FF.GET, FF.LIST */
#include "native.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

Test(native_lookup, get) {
    test_server *server = native_start();
    server_do(server, "FF.CREATE", native_id(1), "default", "123", "NAMESPACE", "77", "PAYLOAD",
              "in", "TAGS", "2", "b", "2", "a", "1", "PRIORITY", "5", "POLICY", "{}");
    redisReply *map = server_call(server, "FF.GET", native_id(1));
    cr_assert_str_eq(map->element[0]->str, "state");
    cr_assert_str_eq(map_text(map, "state"), "waiting");
    cr_assert_str_eq(map_text(map, "execution_kind"), "123");
    cr_assert_str_eq(map_text(map, "namespace"), "77");
    cr_assert_eq(map_integer(map, "priority"), 5);
    cr_assert_eq(map_integer(map, "created_at"), FROZEN_START_MS);
    cr_assert_eq(map_integer(map, "partition_id"), 7);
    cr_assert(map_is_null(map, "current_lease_id"));
    cr_assert(map_is_null(map, "completed_at"));
    redisReply *tags = map_value(map, "tags");
    cr_assert_eq(tags->elements, 4);
    cr_assert_str_eq(tags->element[0]->str, "a");
    cr_assert(map_value(map, "payload") == NULL);

    held h = native_claim_next(server);
    map =
        server_call(server, "FF.GET", h.id, "WITH", "payload,RESULT,policy,attempts,lease,history",
                    "FIELDS", "3", "state", "current_lease_epoch", "nothing");
    cr_assert_eq(map->elements, 2 * (3 + 6));
    cr_assert_str_eq(map_text(map, "state"), "active");
    cr_assert_eq(map_integer(map, "current_lease_epoch"), 1);
    cr_assert(map_is_null(map, "nothing"));
    cr_assert_str_eq(map_text(map, "payload"), "in");
    cr_assert_str_eq(map_text(map, "policy"), "{}");
    cr_assert(map_is_null(map, "result"));
    cr_assert_str_eq(map_text(map_value(map, "lease"), "lease_id"), h.lease);
    redisReply *attempts = map_value(map, "attempts");
    cr_assert_eq(attempts->elements, 1);
    cr_assert_eq(map_integer(attempts->element[0], "attempt_index"), 0);
    redisReply *history = map_value(map, "history");
    cr_assert_eq(history->elements, 1);
    cr_assert_str_eq(map_text(history->element[0], "event"), "acquired");
    cr_assert_eq(map_integer(history->element[0], "ts"), FROZEN_START_MS);
    server_do(server, "FF.COMPLETE", FENCE(h), "RESULT", "out");
    map = server_call(server, "FF.GET", h.id, "WITH", "result,lease", "FIELDS", "0");
    cr_assert_str_eq(map_text(map, "result"), "out");
    cr_assert(map_is_null(map, "lease"));
}

Test(native_lookup, get_refusals) {
    test_server *server = native_start();
    native_create(server, 1);
    native_refused(server, "NOT_FOUND no such execution", "FF.GET", native_id(2));
    native_refused(server, "ERR 'x' is not an execution id", "FF.GET", "x");
    native_refused(server, "ERR WITH must be a list of", "FF.GET", native_id(1), "WITH", "all");
    native_refused(server, "ERR WITH must be a list of", "FF.GET", native_id(1), "WITH", "lease,");
    native_refused(server, "ERR FIELDS announces 2 values, but 1 follow", "FF.GET", native_id(1),
                   "FIELDS", "2", "a");
    native_refused(server, "ERR option WITH needs a value", "FF.GET", native_id(1), "WITH");
    server_do(server, "DEL", native_key(1, "core"));
    server_do(server, "SET", native_key(1, "core"), "text");
    native_refused(server, "WRONGTYPE ", "FF.GET", native_id(1));
}

/* All pages, until the cursor says that it is over. */
static size_t count_all(test_server *server, const char *option, const char *value) {
    const char *cursor = "0";
    size_t found = 0;
    size_t pages = 0;
    do {
        redisReply *page =
            server_call(server, "FF.LIST", "CURSOR", cursor, "COUNT", "10", option, value);
        cr_assert_eq(page->type, REDIS_REPLY_ARRAY, "%s", page->str);
        cursor = map_text(page, "cursor");
        found += map_value(page, "executions")->elements;
        cr_assert_lt(pages++, 1000);
    } while (strcmp(cursor, "0") != 0);
    return found;
}

Test(native_lookup, list) {
    test_server *server = native_start();
    redisReply *page = server_call(server, "FF.LIST");
    cr_assert_str_eq(map_text(page, "cursor"), "0");
    cr_assert_eq(map_value(page, "executions")->elements, 0);
    /* Enough in one partition for a set that is scanned in steps, and a few elsewhere. */
    for (int i = 0; i < 300; i++) {
        server_do(server, "FF.CREATE", native_id(i), i % 3 ? "default" : "slow", "job", "NAMESPACE",
                  i % 2 ? "odd" : "even");
    }
    for (int i = 0; i < 20; i++) {
        server_do(server, "FF.CREATE", spell("{fp:%d}", 50 + i), "default", "job");
    }
    native_claim_next(server);
    cr_assert_eq(count_all(server, "STATE", "waiting"), 319);
    cr_assert_eq(count_all(server, "STATE", "active"), 1);
    cr_assert_eq(count_all(server, "LANE", "slow"), 100);
    cr_assert_eq(count_all(server, "NAMESPACE", "odd"), 150);
    cr_assert_eq(count_all(server, "PARTITION", FP), 300);
    cr_assert_eq(count_all(server, "PARTITION", "{fp:51}"), 1);
    page = server_call(server, "FF.LIST", "PARTITION", "{fp:51}");
    redisReply *one = map_value(page, "executions")->element[0];
    cr_assert_str_eq(map_text(one, "lane"), "default");
    cr_assert_str_eq(map_text(one, "kind"), "job");
    cr_assert_str_eq(map_text(one, "namespace"), "default");
    cr_assert_str_eq(map_text(one, "state"), "waiting");
    cr_assert_eq(map_integer(one, "priority"), 0);
    cr_assert_eq(map_integer(one, "created_at"), FROZEN_START_MS);
    cr_assert(map_is_null(one, "flow_id"));
    /* An id without a record is passed over. */
    server_do(server, "SADD", "ff:idx:{fp:52}:all_executions", "stray");
    cr_assert_eq(count_all(server, "PARTITION", "{fp:52}"), 1);
}

Test(native_lookup, list_refusals) {
    test_server *server = native_start();
    static const char *const cursors[] = {"1", "x", "-", "0-", "-0", "256-0", "1-2-3", "1-x"};
    for (size_t i = 0; i < sizeof cursors / sizeof *cursors; i++) {
        native_refused(server, "ERR CURSOR must be 0 or what", "FF.LIST", "CURSOR", cursors[i]);
    }
    native_refused(server, "ERR CURSOR must be", "FF.LIST", "CURSOR", "8-0", "PARTITION", FP);
    native_refused(server, "ERR PARTITION must be {fp:N}", "FF.LIST", "PARTITION", "{fp:256}");
    native_refused(server, "ERR PARTITION must be {fp:N}", "FF.LIST", "PARTITION", "{b:1}");
    native_refused(server, "ERR STATE must be one of waiting", "FF.LIST", "STATE", "odd");
    native_refused(server, "ERR COUNT must be an integer between 1 and 10000", "FF.LIST", "COUNT",
                   "0");
    native_refused(server, "ERR unknown option 'ALL'", "FF.LIST", "ALL");
    server_do(server, "SET", "ff:idx:{fp:3}:all_executions", "text");
    native_refused(server, "WRONGTYPE ", "FF.LIST", "PARTITION", "{fp:3}");
}

Test(native_lookup, maps_on_resp3) {
    test_server *server = native_start();
    native_create(server, 1);
    resp3_connection *connection = resp3_connect(server);
    resp3_value *map = resp3_call(connection, "FF.GET", native_id(1), "WITH", "lease");
    cr_assert_eq(map->kind, '%');
    cr_assert_eq(resp3_member(map, "tags")->kind, '%');
    cr_assert_eq(resp3_member(map, "lease")->kind, '_');
    cr_assert_eq(resp3_member(map, "created_at")->kind, ':');
    map = resp3_call(connection, "FF.LIST");
    cr_assert_eq(map->kind, '%');
    cr_assert_eq(resp3_member(map, "executions")->items[0].kind, '%');
    map = resp3_call(connection, "FF.CREATE", "*", "default", "job");
    cr_assert_eq(map->kind, '%');
}
