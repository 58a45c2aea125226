#ifndef FF_BASE_JSON_H
#define FF_BASE_JSON_H

#include "base/arena.h"
#include "base/text.h"

#include <stdbool.h>
#include <stddef.h>

/* A JSON value: a whole document or any node of it. NULL is the absent value, which every reader
 * below takes and answers with "absent"; JSON null is a value of its own.
 *
 * Ownership: a value that was parsed or made belongs to the caller until it is freed or put into
 * a container. What is read out of a container stays the container's. */
typedef struct ff_json ff_json;

typedef enum ff_json_type {
    FF_JSON_ABSENT,
    FF_JSON_NULL,
    FF_JSON_FALSE,
    FF_JSON_TRUE,
    FF_JSON_NUMBER,
    FF_JSON_STRING,
    FF_JSON_ARRAY,
    FF_JSON_OBJECT
} ff_json_type;

enum { FF_JSON_DEPTH_MAX = 1000 };

/* Rule JSON-IN. NULL when the text is malformed or absent. A NaN loses its sign. */
ff_json *ff_json_parse(ff_text text);

/* Frees a value the caller owns. NULL is fine. */
void ff_json_free(ff_json *value);

ff_json_type ff_json_kind(const ff_json *value);

static inline bool ff_json_is_object(const ff_json *value) {
    return ff_json_kind(value) == FF_JSON_OBJECT;
}

static inline bool ff_json_is_array(const ff_json *value) {
    return ff_json_kind(value) == FF_JSON_ARRAY;
}

/* An object or an array. */
static inline bool ff_json_is_container(const ff_json *value) {
    return ff_json_kind(value) >= FF_JSON_ARRAY;
}

/* The switch rule of suspensions: everything but false and absent. */
static inline bool ff_json_is_on(const ff_json *value) {
    return ff_json_kind(value) != FF_JSON_ABSENT && ff_json_kind(value) != FF_JSON_FALSE;
}

/* 0 unless it is a number. */
double ff_json_number(const ff_json *value);

/* Absent unless it is a string. Valid as long as the value is. */
ff_text ff_json_string(const ff_json *value);

/* A number, or a string that is one by rule NUM. */
bool ff_json_to_number(const ff_json *value, double *number);

/* Elements of an array, 0 for anything else. */
size_t ff_json_array_length(const ff_json *value);

/* Element by 0-based position; absent beyond the end and for anything but an array. */
ff_json *ff_json_at(const ff_json *array, size_t index);

/* Members of an object, 0 for anything else. */
size_t ff_json_object_length(const ff_json *value);

/* Member by name; absent when there is none and for anything but an object. */
ff_json *ff_json_member(const ff_json *object, const char *name);
ff_json *ff_json_member_text(const ff_json *object, ff_text name);

/* Walks the members of an object in input order (anything else has none):
 *
 *     ff_json_walk walk = ff_json_members(object);
 *     while (ff_json_next(&walk, arena)) use(walk.name, walk.value);
 *
 * The name is valid as long as the member is, or, for a name with NUL or 0x01 in it, as long as
 * the arena. During a walk the object must not change, but the member at hand may be replaced or
 * removed. */
typedef struct ff_json_walk {
    ff_text name;
    ff_json *value;
    void *next;
} ff_json_walk;

ff_json_walk ff_json_members(const ff_json *object);
bool ff_json_next(ff_json_walk *walk, ff_arena *arena);

/* New values, owned by the caller. */
ff_json *ff_json_new_null(void);
ff_json *ff_json_new_boolean(bool value);
ff_json *ff_json_new_number(double value);
ff_json *ff_json_new_string(ff_text text);
ff_json *ff_json_new_array(void);
ff_json *ff_json_new_object(void);

/* A second owner of the same value, to put it into another container. Edits are seen through
 * both. */
ff_json *ff_json_share(ff_json *value);

/* Sets or replaces a member; takes over `value`. `object` must be an object. */
void ff_json_set(ff_json *object, ff_text name, ff_json *value);

/* Removes a member, if it is there. */
void ff_json_remove(ff_json *object, ff_text name);

/* Sets an element by 0-based position, filling a gap before it with nulls; takes over `value`. */
void ff_json_array_set(ff_json *array, size_t index, ff_json *value);

/* Appends an element; takes over `value`. */
void ff_json_array_append(ff_json *array, ff_json *value);

/* Rule JSON-OUT. Absent when a number inside is not finite. */
ff_text ff_json_write(ff_arena *arena, const ff_json *value);

/* Appends one string by JSON-OUT, quotes included; an absent text is written as empty. */
void ff_json_write_string(ff_buffer *buffer, ff_text text);

/* Rule FLATTEN for one member value: the text to store. Absent when it cannot be written (a number
 * inside an object or array that is not finite), or when the value is absent. */
ff_text ff_json_flat_text(ff_arena *arena, const ff_json *value);

#endif
