#include "engine/tree.h"

#include "base/number.h"
#include "engine/satisfied.h"

typedef enum { KIND_OTHER, KIND_SINGLE, KIND_COUNT, KIND_ALL_OF } node_kind;

static bool member_is(const ff_json *object, const char *name, const char *text) {
    return ff_text_equal_cstr(ff_json_string(ff_json_member(object, name)), text);
}

static node_kind kind_of(const ff_json *node) {
    if (member_is(node, "kind", "Single")) return KIND_SINGLE;
    if (member_is(node, "kind", "Count")) return KIND_COUNT;
    if (member_is(node, "kind", "AllOf")) return KIND_ALL_OF;
    return KIND_OTHER;
}

/* A list that is not there, false or an object has no elements. */
static bool serves_as_list(const ff_json *value) {
    return !ff_json_is_on(value) || ff_json_is_container(value);
}

static bool serves_as_path(const ff_json *value) {
    ff_json_type type = ff_json_kind(value);
    return type == FF_JSON_ABSENT || type == FF_JSON_STRING || type == FF_JSON_NUMBER;
}

/* What is wrong with a node itself; text and arrays are nodes of no kind. */
static const char *node_fault(const ff_json *node) {
    if (!ff_json_is_container(node) && ff_json_kind(node) != FF_JSON_STRING) {
        return "a node of the condition's tree must be an object";
    }
    if (!serves_as_path(ff_json_member(node, "path"))) {
        return "path of a node of the condition's tree must be a text";
    }
    node_kind kind = kind_of(node);
    if (kind == KIND_ALL_OF && !serves_as_list(ff_json_member(node, "members"))) {
        return "members of an AllOf in the condition's tree must be a list";
    }
    if (kind == KIND_COUNT && !serves_as_list(ff_json_member(node, "waitpoints"))) {
        return "waitpoints of a Count in the condition's tree must be a list";
    }
    return NULL;
}

static const char *fault_from(const ff_json *node) {
    const char *fault = node_fault(node);
    if (fault || kind_of(node) != KIND_ALL_OF) return fault;
    const ff_json *members = ff_json_member(node, "members");
    for (size_t i = 0; !fault && i < ff_json_array_length(members); i++) {
        fault = fault_from(ff_json_at(members, i));
    }
    return fault;
}

const char *ff_tree_fault(const ff_json *root) { return root ? fault_from(root) : NULL; }

static ff_text path_of(ff_arena *arena, const ff_json *node) {
    const ff_json *path = ff_json_member(node, "path");
    if (ff_json_kind(path) == FF_JSON_NUMBER) return ff_number_text(arena, ff_json_number(path));
    return ff_text_or_empty(ff_json_string(path));
}

static bool holds_text(const ff_json *list, ff_text text) {
    for (size_t i = 0; i < ff_json_array_length(list); i++) {
        if (ff_text_equal(ff_json_string(ff_json_at(list, i)), text)) return true;
    }
    return false;
}

/* A node with its path, the empty one when it has none. */
typedef struct tree_node {
    const ff_json *json;
    ff_text path;
} tree_node;

typedef struct tree_nodes {
    tree_node *items;
    size_t count;
    size_t capacity;
} tree_nodes;

static void append_node(ff_txn *t, tree_nodes *nodes, const ff_json *node) {
    nodes->items =
        ff_txn_grow(t, nodes->items, nodes->count, &nodes->capacity, sizeof *nodes->items);
    nodes->items[nodes->count++] = (tree_node){node, path_of(&t->arena, node)};
}

static void collect(ff_txn *t, const ff_json *node, ff_text key, tree_nodes *nodes) {
    if (node_fault(node)) return;
    switch (kind_of(node)) {
    case KIND_OTHER: break;
    case KIND_SINGLE:
        if (ff_text_equal(ff_json_string(ff_json_member(node, "waitpoint_key")), key)) {
            append_node(t, nodes, node);
        }
        break;
    case KIND_COUNT:
        if (holds_text(ff_json_member(node, "waitpoints"), key)) append_node(t, nodes, node);
        break;
    case KIND_ALL_OF: {
        const ff_json *members = ff_json_member(node, "members");
        for (size_t i = 0; i < ff_json_array_length(members); i++) {
            collect(t, ff_json_at(members, i), key, nodes);
        }
    }
    }
}

/* The nodes that take part for a waitpoint key, in document order. Nodes that ff_tree_fault would name are left
 * out, and so is what is below them. */
static tree_nodes taking_part(ff_txn *t, const ff_json *root, ff_text waitpoint_key) {
    tree_nodes nodes = {0};
    collect(t, root, waitpoint_key, &nodes);
    return nodes;
}

/* The member map being written, and the waitpoint keys it is about. */
typedef struct mapping {
    ff_txn *t;
    const ff_table *keys;
    ff_str *name;
} mapping;

static void map_node(const mapping *m, const ff_json *node, const ff_json *waitpoint_key) {
    ff_text key = ff_json_string(waitpoint_key);
    if (ff_text_is_absent(key) || !ff_table_has(m->keys, key)) return;
    ff_text path = path_of(&m->t->arena, node);
    ff_text field = ff_arena_concat(&m->t->arena, FF_TEXT("wp:"), key, FF_TEXT(":"), path);
    ff_hash_set(ff_hash_open(m->t, m->name), ff_field(m->t, field), ff_str_make(m->t, path));
}

/* One pass for all keys: with as many waitpoints as nodes, one for each would be quadratic. */
static void map_from(const mapping *m, const ff_json *node) {
    node_kind kind = kind_of(node);
    if (kind == KIND_SINGLE) map_node(m, node, ff_json_member(node, "waitpoint_key"));
    if (kind != KIND_COUNT && kind != KIND_ALL_OF) return;
    const ff_json *items = ff_json_member(node, kind == KIND_COUNT ? "waitpoints" : "members");
    for (size_t i = 0; i < ff_json_array_length(items); i++) {
        const ff_json *item = ff_json_at(items, i);
        if (kind == KIND_COUNT) {
            map_node(m, node, item);
        } else {
            map_from(m, item);
        }
    }
}

void ff_tree_map_members(ff_txn *t, const ff_json *root, const ff_table *keys, ff_str *map) {
    const mapping m = {t, keys, map};
    if (root) map_from(&m, root);
}

static bool accepts(const ff_json *matcher, ff_text name) {
    const ff_json *kind = ff_json_member(matcher, "kind");
    if (kind == NULL || member_is(matcher, "kind", "Wildcard")) return true;
    return member_is(matcher, "kind", "ByName") &&
           ff_text_equal(ff_json_string(ff_json_member(matcher, "name")), name);
}

static ff_text leaf_token(const ff_satisfied *satisfied, ff_text path) {
    return ff_arena_concat(&satisfied->txn->arena, FF_TEXT("leaf:"), path);
}

static ff_text node_token(const ff_satisfied *satisfied, ff_text path) {
    return ff_arena_concat(&satisfied->txn->arena, FF_TEXT("node:"), path);
}

static ff_text token_for(const ff_satisfied *satisfied, const tree_node *node,
                         const ff_tree_signal *signal) {
    ff_arena *arena = &satisfied->txn->arena;
    if (kind_of(node->json) == KIND_SINGLE) return leaf_token(satisfied, node->path);
    if (member_is(node->json, "count_kind", "DistinctSignals")) {
        return ff_arena_concat(arena, FF_TEXT("sig:"), ff_str_text(signal->signal_id));
    }
    if (member_is(node->json, "count_kind", "DistinctSources")) {
        return ff_arena_concat(arena, FF_TEXT("src:"), ff_str_text(signal->source_type),
                               FF_TEXT(":"), ff_str_text(signal->source_identity));
    }
    return ff_arena_concat(arena, FF_TEXT("wp:"), ff_str_text(signal->waitpoint_id));
}

/* Not the kind of token that the Count adds: one of an unknown kind adds wp: and counts src:. */
static ff_tokens_kind counted_by(const ff_json *count) {
    if (ff_json_member(count, "count_kind") == NULL ||
        member_is(count, "count_kind", "DistinctWaitpoints")) {
        return FF_TOKENS_OF_WAITPOINTS;
    }
    return member_is(count, "count_kind", "DistinctSignals") ? FF_TOKENS_OF_SIGNALS
                                                             : FF_TOKENS_OF_SOURCES;
}

static bool count_is_reached(const ff_satisfied *satisfied, const ff_json *count) {
    double n;
    if (ff_satisfied_has(satisfied, FF_TEXT("timeout:*"))) return true;
    if (!ff_json_to_number(ff_json_member(count, "n"), &n)) n = 1;
    return (double)satisfied->counts[counted_by(count)] >= n;
}

static bool has_all_members(const ff_satisfied *satisfied, const ff_json *all_of) {
    const ff_json *members = ff_json_member(all_of, "members");
    for (size_t i = 0; i < ff_json_array_length(members); i++) {
        const ff_json *member = ff_json_at(members, i);
        if (node_fault(member)) return false;
        ff_text path = path_of(&satisfied->txn->arena, member);
        ff_text token = kind_of(member) == KIND_SINGLE ? leaf_token(satisfied, path)
                                                       : node_token(satisfied, path);
        if (!ff_satisfied_has(satisfied, token)) return false;
    }
    return true;
}

/* By tokens alone: a member that is complete by now but not yet marked does not count. */
static bool is_satisfied(const ff_satisfied *satisfied, const ff_json *node) {
    if (node_fault(node)) return false;
    switch (kind_of(node)) {
    case KIND_OTHER: break;
    case KIND_SINGLE:
        return ff_satisfied_has(satisfied,
                                leaf_token(satisfied, path_of(&satisfied->txn->arena, node)));
    case KIND_COUNT: return count_is_reached(satisfied, node);
    case KIND_ALL_OF: return has_all_members(satisfied, node);
    }
    return false;
}

/* Marks the complete members of an AllOf and only then looks into them. So an AllOf that is not the
 * root and has a member other than a Single never gets complete: clients rely on what is recorded. */
static void propagate(ff_satisfied *satisfied, const ff_json *node) {
    if (node_fault(node) || kind_of(node) != KIND_ALL_OF) return;
    const ff_json *members = ff_json_member(node, "members");
    for (size_t i = 0; i < ff_json_array_length(members); i++) {
        const ff_json *member = ff_json_at(members, i);
        if (kind_of(member) == KIND_SINGLE || !is_satisfied(satisfied, member)) continue;
        ff_satisfied_add(satisfied, node_token(satisfied, path_of(&satisfied->txn->arena, member)));
        propagate(satisfied, member);
    }
}

const ff_word *ff_tree_deliver(ff_txn *t, const ff_json *root, ff_str *suspension,
                               const ff_tree_signal *signal, ff_strs *satisfiers) {
    const tree_nodes nodes = taking_part(t, root, signal->waitpoint_key);
    ff_satisfied satisfied = {0};
    bool added = false;
    if (nodes.count == 0) return W(signal_ignored_not_in_condition);
    for (size_t i = 0; i < nodes.count; i++) {
        const tree_node *node = &nodes.items[i];
        if (!accepts(ff_json_member(node->json, "matcher"), ff_str_text(signal->name))) continue;
        if (satisfied.set == NULL) {
            ff_satisfied_open(t, FF_CONCAT(t, ff_str_text(suspension), FF_TEXT(":satisfied_set")),
                              &satisfied);
        }
        if (ff_satisfied_add(&satisfied, token_for(&satisfied, node, signal))) added = true;
    }
    if (satisfied.set == NULL) return W(signal_ignored_matcher_failed);
    if (!added) return W(appended_to_waitpoint_duplicate);

    ff_key *signals =
        ff_set_open(t, FF_CONCAT(t, ff_str_text(suspension), FF_TEXT(":satisfied_set:signals")));
    ff_set_add(signals, signal->signal_id);
    propagate(&satisfied, root);
    if (!is_satisfied(&satisfied, root)) return W(appended_to_waitpoint);
    *satisfiers = ff_set_members(signals);
    return W(resume_condition_satisfied);
}
