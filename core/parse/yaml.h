/* A small YAML document as a tree in which every node knows where it stands.
 *
 * What scenario and machine files need and no more: maps, lists and one-line scalars in UTF-8.
 * Anchors, aliases, tags and several documents in one file are refused, and so is whatever is too
 * large, too deep or no text, each with one message. */
#ifndef CORE_PARSE_YAML_H
#define CORE_PARSE_YAML_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/parse/place.h"
#include "core/status.h"

#define YAML_FILE_BYTES_MAX (1u << 20)
#define YAML_SCALAR_BYTES_MAX 512
#define YAML_DEPTH_MAX 8
#define YAML_NODES_MAX 200000
#define YAML_KEYS_MAX 256 /* in one map */

enum yaml_kind { YAML_SCALAR, YAML_LIST, YAML_MAP };

struct yaml_node {
    enum yaml_kind kind;
    struct place place;
    const char *text; /* scalars */
    const char *key;  /* in a map: this node's key; elsewhere NULL */
    struct place key_place;
    uint32_t count; /* lists and maps: children */
    struct yaml_node *first, *last, *next;
};

struct yaml {
    struct yaml_node *root;
    struct yaml_block *blocks; /* the memory of all nodes and texts */
    size_t block_used;
    uint32_t node_count;
};

/* Errors are logged.  On failure *out is left zeroed. */
enum status yaml_load(const char *path, struct yaml *out);

/* `name` stands for the file in messages. */
enum status yaml_parse(const char *name, const char *text, size_t text_bytes, struct yaml *out);

/* Parses `text` into a node of `y` whose places are all {name, 0, 0}: a command line's value. */
enum status yaml_parse_into(struct yaml *y, const char *name, const char *text, struct yaml_node **out);

void yaml_fini(struct yaml *y); /* safe on a zeroed one */

struct yaml_node *yaml_get(const struct yaml_node *map, const char *key); /* NULL: absent */

/* Sets map[key], replacing what was there.  `key` is copied. */
void yaml_set(struct yaml *y, struct yaml_node *map, const char *key, struct yaml_node *value);

/* A copy that lives as long as `y`. */
const char *yaml_keep_text(struct yaml *y, const char *text);

/* An empty map that stands at `place`. */
struct yaml_node *yaml_new_map(struct yaml *y, struct place place);

/* "a map", "a list", "a single value" */
const char *yaml_kind_name(enum yaml_kind kind);

#endif
