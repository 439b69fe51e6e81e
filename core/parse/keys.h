/* Reads the keys of a table of options out of a YAML map; a fault is one message at its place. */
#ifndef CORE_PARSE_KEYS_H
#define CORE_PARSE_KEYS_H

#include <stdbool.h>

#include "core/parse/option.h"
#include "core/parse/yaml.h"

/* What a map may hold.  A dotted name ("nvlink.rate") is a key of a map within. */
struct keys {
    const char *section;        /* stands before names in messages: "timing."; "" at the top */
    const struct option *table; /* may be NULL */
    const char *const *more;    /* names that others read, ends with NULL; may be NULL */
    const char *owner;          /* "kernel ag_gemm", for unknown keys; may be NULL */
    bool partial;               /* what the map does not hold stays as it is */
};

/* `map` may be NULL: all keys absent.  Refuses unknown keys, then fills every field of `base` from
 * the map or from its initial value.  `origin` stands for the map where a key is missing. */
enum status keys_read(const struct keys *k, const struct yaml_node *map, struct place origin, void *base);

/* Only the first half: is `map` a map, and does it hold known keys only? */
enum status keys_check(const struct keys *k, const struct yaml_node *map);

/* One value; `o->name` is printed behind `section`. */
enum status keys_read_value(const char *section, const struct option *o, const struct yaml_node *node,
                            const struct option_scope *scope, void *base);

/* Logs that a required key is absent; returns ST_INPUT. */
enum status keys_missing(const char *section, const struct option *o, struct place origin);

/* A map, or nothing at all ("nccl:"), which stands for an empty one. */
bool keys_is_map(const struct yaml_node *node);

#endif
