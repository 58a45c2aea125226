/* What the server tells about every command of the module. */
#include "native.h"

#include <criterion/criterion.h>
#include <string.h>

enum trait {
    READS = 1,
    WRITES = 2,
    GROWS = 4, /* may need memory */
    OPERATES = 8,
    BLOCKS = 16,
    KEYED = 32,
    ARGUED = 64, /* takes arguments */
    CONTAINS = 128,
};

typedef struct row {
    const char *name;
    int traits;
} row;

#define READ (READS | KEYED | ARGUED)
#define WRITE (WRITES | GROWS | KEYED | ARGUED)

static const row rows[] = {
    {"ff.append", WRITE},
    {"ff.block", WRITE | OPERATES},
    {"ff.budget", CONTAINS},
    {"ff.budget|create", WRITE},
    {"ff.budget|get", READ},
    {"ff.budget|release", WRITE},
    {"ff.budget|report", WRITE},
    {"ff.budget|reset", WRITE | OPERATES},
    {"ff.budget|spend", WRITE},
    {"ff.call", WRITE},
    {"ff.call_ro", READ},
    {"ff.cancel", WRITE},
    {"ff.claim", WRITE | BLOCKS},
    {"ff.complete", WRITE | BLOCKS},
    {"ff.create", WRITE},
    {"ff.delay", WRITE},
    {"ff.expire", WRITE | OPERATES},
    {"ff.fail", WRITE},
    {"ff.flow", CONTAINS},
    {"ff.flow|add", WRITE},
    {"ff.flow|cancel", WRITE},
    {"ff.flow|create", WRITE},
    {"ff.flow|edge", WRITE},
    {"ff.flow|get", READ},
    {"ff.flow|list", READ},
    {"ff.flow|submit", WRITE},
    {"ff.flow|tag", WRITE},
    {"ff.get", READ},
    {"ff.info", READS},
    {"ff.list", READ},
    {"ff.priority", WRITE},
    {"ff.progress", WRITE},
    {"ff.quota", CONTAINS},
    {"ff.quota|admit", WRITE},
    {"ff.quota|create", WRITE},
    {"ff.quota|get", READ},
    {"ff.quota|release", WRITE & ~GROWS},
    {"ff.read", READ | BLOCKS},
    {"ff.reconcile", (WRITE & ~GROWS) | OPERATES},
    {"ff.renew", WRITE},
    {"ff.replay", WRITE},
    {"ff.resume", WRITE},
    {"ff.revoke", WRITE | OPERATES},
    {"ff.scanner", CONTAINS},
    {"ff.scanner|list", READS | OPERATES},
    {"ff.scanner|pause", READS | ARGUED | OPERATES},
    {"ff.scanner|resume", READS | ARGUED | OPERATES},
    {"ff.scanner|run", WRITES | ARGUED | OPERATES},
    {"ff.secret", CONTAINS},
    {"ff.secret|list", READS | OPERATES},
    {"ff.secret|rotate", WRITES | GROWS | ARGUED | OPERATES},
    {"ff.signal", WRITE},
    {"ff.summary", READ},
    {"ff.suspend", WRITE},
    {"ff.tag", WRITE},
    {"ff.unblock", WRITE | OPERATES},
    {"ff.waitchildren", WRITE},
    {"ff.waitpoint", CONTAINS},
    {"ff.waitpoint|close", WRITE},
    {"ff.waitpoint|create", WRITE},
    {"ff.waitpoint|list", READ},
    {"ff.waitpoint|token", READ},
    {"ff.worker", CONTAINS},
    {"ff.worker|dead", WRITES | ARGUED},
    {"ff.worker|heartbeat", WRITES | GROWS | ARGUED},
    {"ff.worker|list", READS | ARGUED},
    {"ff.worker|register", WRITES | GROWS | ARGUED},
};

enum { ROWS = sizeof rows / sizeof *rows };

static bool has_word(const redisReply *list, const char *word) {
    for (size_t i = 0; i < list->elements; i++) {
        if (strcmp(list->element[i]->str, word) == 0) return true;
    }
    return false;
}

Test(native_table, has_every_command) {
    test_server *server = native_start();
    redisReply *list = server_call(server, "COMMAND", "LIST", "FILTERBY", "MODULE", "ff");
    cr_assert_eq(list->elements, ROWS);
    for (size_t i = 0; i < ROWS; i++) cr_assert(has_word(list, rows[i].name), "%s", rows[i].name);
}

Test(native_table, flags_and_categories) {
    static const struct {
        int trait;
        const char *flag, *category;
    } words[] = {
        {READS, "readonly", "@read"}, {WRITES, "write", "@write"},
        {GROWS, "denyoom", NULL},     {BLOCKS, "blocking", "@blocking"},
        {OPERATES, NULL, "@admin"},   {OPERATES, NULL, "@dangerous"},
    };
    test_server *server = native_start();
    for (size_t i = 0; i < ROWS; i++) {
        const char *name = rows[i].name;
        const redisReply *info = server_call(server, "COMMAND", "INFO", name)->element[0];
        for (size_t j = 0; j < sizeof words / sizeof *words; j++) {
            bool wanted = rows[i].traits & words[j].trait;
            if (words[j].flag) {
                cr_expect_eq(has_word(info->element[2], words[j].flag), wanted, "%s: %s", name,
                             words[j].flag);
            }
            if (words[j].category) {
                cr_expect_eq(has_word(info->element[6], words[j].category), wanted, "%s: %s", name,
                             words[j].category);
            }
        }
        cr_expect(has_word(info->element[6], "@flowfabric"), "%s", name);
        cr_expect_not(has_word(info->element[2], "loading"), "%s", name);
        cr_expect_not(has_word(info->element[2], "stale"), "%s", name);
        cr_expect_eq(info->element[8]->elements, rows[i].traits & KEYED ? 1 : 0, "%s", name);
        cr_expect_eq(info->element[9]->elements > 0, !!(rows[i].traits & CONTAINS), "%s", name);
    }
}

Test(native_table, documentation) {
    test_server *server = native_start();
    resp3_connection *connection = resp3_connect(server);
    for (size_t i = 0; i < ROWS; i++) {
        const char *name = rows[i].name;
        const resp3_value *docs = resp3_call(connection, "COMMAND", "DOCS", name);
        cr_assert_eq(docs->count, 2, "%s", name);
        const resp3_value *map = &docs->items[1];
        cr_expect_gt(resp3_member(map, "summary")->size, 10, "%s", name);
        cr_expect_str_eq(resp3_member(map, "since")->text, "0.1.0", "%s", name);
        if (!(rows[i].traits & CONTAINS)) {
            cr_expect_gt(resp3_member(map, "complexity")->size, 3, "%s", name);
        }
        cr_expect_eq(resp3_member(map, "arguments") != NULL, !!(rows[i].traits & ARGUED), "%s",
                     name);
    }
}

/* A reader has the reads, a worker all that is not for operators. */
Test(native_table, readers_and_workers) {
    test_server *server = native_start();
    server_do(server, "ACL", "SETUSER", "reader", "on", "nopass", "~*", "-@all", "+@flowfabric",
              "-@write", "-@dangerous");
    server_do(server, "ACL", "SETUSER", "worker", "on", "nopass", "~*", "-@all", "+@flowfabric",
              "-@admin");
    for (size_t i = 0; i < ROWS; i++) {
        if (rows[i].traits & CONTAINS) continue;
        char command[64];
        strcpy(command, rows[i].name);
        char *bar = strchr(command, '|');
        if (bar) *bar = '\0';
        const char *words[16] = {"ACL", "DRYRUN", "reader", command};
        size_t count = 4;
        if (bar) words[count++] = bar + 1;
        while (count < 14) words[count++] = "0";
        /* Those with a fixed number of arguments are asked with that many. */
        long long arity =
            server_call(server, "COMMAND", "INFO", rows[i].name)->element[0]->element[1]->integer;
        if (arity > 0) words[3 + arity] = NULL;
        bool may_read = strcmp(server_call_words(server, words)->str, "OK") == 0;
        words[2] = "worker";
        bool may_work = strcmp(server_call_words(server, words)->str, "OK") == 0;
        bool operates = rows[i].traits & OPERATES;
        cr_expect_eq(may_read, (rows[i].traits & READS) && !operates, "%s", rows[i].name);
        cr_expect_eq(may_work, !operates, "%s", rows[i].name);
    }
}
