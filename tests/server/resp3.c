#include "resp3.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct resp3_connection {
    redisContext *context; /* for the socket only */
    FILE *input;
};

static void read_value(FILE *input, resp3_value *value);

static char *read_line(FILE *input) {
    char *line = NULL;
    size_t room = 0;
    ssize_t size = getline(&line, &room, input);
    cr_assert(size >= 3, "connection lost");
    line[size - 2] = '\0';
    return server_keep(line);
}

static void read_bulk(FILE *input, resp3_value *value, const char *size) {
    value->size = strtoul(size, NULL, 10);
    value->text = calloc(1, value->size + 3);
    cr_assert(fread(value->text, 1, value->size + 2, input) == value->size + 2);
    value->text[value->size] = '\0';
}

static void read_items(FILE *input, resp3_value *value, size_t count) {
    value->count = count;
    value->items = calloc(count + 1, sizeof *value->items);
    for (size_t i = 0; i < count; i++) read_value(input, &value->items[i]);
}

static void read_value(FILE *input, resp3_value *value) {
    char *line = read_line(input);
    value->kind = line[0];
    char *rest = line + 1;
    switch (line[0]) {
    case ':': value->integer = strtoll(rest, NULL, 10); break;
    case '#': value->integer = rest[0] == 't'; break;
    case ',': value->number = strtod(rest, NULL); break;
    case '_': break;
    case '+':
    case '-':
    case '(':
        value->text = rest;
        value->size = strlen(rest);
        break;
    case '$':
    case '=': read_bulk(input, value, rest); break;
    case '*':
    case '~':
    case '>': read_items(input, value, strtoul(rest, NULL, 10)); break;
    case '%': read_items(input, value, 2 * strtoul(rest, NULL, 10)); break;
    default: cr_assert_fail("an unknown kind of reply: %s", line);
    }
}

resp3_connection *resp3_connect(const test_server *server) {
    resp3_connection *connection = server_keep(calloc(1, sizeof *connection));
    connection->context = server_connect(server);
    connection->input = fdopen(dup(connection->context->fd), "r");
    resp3_value *hello = resp3_call(connection, "HELLO", "3");
    cr_assert_eq(hello->kind, '%');
    return connection;
}

resp3_value *resp3_call_words(resp3_connection *connection, command_words words) {
    int count = 0;
    while (words[count]) count++;
    char *command = NULL;
    long long size = redisFormatCommandArgv(&command, count, (const char **)words, NULL);
    cr_assert(size > 0 && write(connection->context->fd, command, (size_t)size) == size);
    redisFreeCommand(command);
    resp3_value *value = server_keep(calloc(1, sizeof *value));
    read_value(connection->input, value);
    return value;
}

const resp3_value *resp3_member(const resp3_value *map, const char *name) {
    for (size_t i = 0; i + 1 < map->count; i += 2) {
        const char *key = map->items[i].text;
        if (key && strcmp(key, name) == 0) return &map->items[i + 1];
    }
    return NULL;
}
