#include "core/scenario/scenario_set.h"

#include <stdio.h>
#include <string.h>

#include "core/parse/nearest.h"
#include "core/parse/option.h"

#define SET_BYTES_MAX 1024

static enum status refuse(struct place place, const char *what)
{
    place_error(&place, "%s; expected --set key=value, for example --set problem.m=4096", what);
    return ST_INPUT;
}

/* A variant that the file does not have is a slip, not a new variant. */
static enum status unknown_variant(const struct yaml_node *variants, const char *label, struct place place)
{
    struct nearest near;
    char guess[100];

    nearest_begin(&near, label);
    for (const struct yaml_node *n = variants->first; n; n = n->next)
        nearest_offer(&near, n->key);
    place_error(&place,
                "the scenario has no variant \"%.60s\"; expected --set "
                "variants.LABEL.KEY=VALUE%s",
                label, nearest_text(&near, guess, sizeof guess));
    return ST_INPUT;
}

/* The map at `key` of `map`, made where it is absent or empty. */
static enum status enter(struct yaml *source, struct yaml_node *map, const char *key, bool is_variant,
                         struct place place, struct yaml_node **out)
{
    struct yaml_node *child = yaml_get(map, key);

    if (!child && is_variant)
        return unknown_variant(map, key, place);
    if (child && child->kind == YAML_SCALAR && child->text[0] == '\0')
        child->kind = YAML_MAP;
    if (!child) {
        child = yaml_new_map(source, place);
        yaml_set(source, map, key, child);
    }
    if (child->kind != YAML_MAP)
        return refuse(place, "a part of the key before a dot is not a map");
    *out = child;
    return ST_OK;
}

static enum status put(struct yaml *source, char *path, const char *value, struct place place)
{
    struct yaml_node *map = source->root, *node;
    bool in_variants = false;

    for (char *dot; (dot = strchr(path, '.')) != NULL; path = dot + 1) {
        bool variant = in_variants;

        *dot = '\0';
        in_variants = map == source->root && strcmp(path, "variants") == 0;
        TRY(enter(source, map, path, variant, place, &map));
    }
    if (path[0] == '\0')
        return refuse(place, "the key is empty");
    if (in_variants && !yaml_get(map, path))
        return unknown_variant(map, path, place);
    TRY(yaml_parse_into(source, place.file, value, &node));
    yaml_set(source, map, path, node);
    return ST_OK;
}

enum status scenario_apply_set(struct yaml *source, const char *set)
{
    char origin[SET_BYTES_MAX + 8], path[SET_BYTES_MAX];
    const char *equals = strchr(set, '=');
    struct place place = {.file = origin};
    size_t size = strlen(set);

    snprintf(origin, sizeof origin, "--set %.80s%s", set, size > 80 ? "..." : "");
    if (size >= SET_BYTES_MAX)
        return refuse(place, "is too long");
    if (!equals || equals == set || equals[1] == '\0')
        return refuse(place, "lacks a key or a value");
    snprintf(path, sizeof path, "%.*s", (int)(equals - set), set);
    place.file = yaml_keep_text(source, origin);
    return put(source, path, equals + 1, place);
}

enum status scenario_override(struct yaml *source, const char *key, const char *origin, const char *value)
{
    struct yaml_node *node;

    TRY(yaml_parse_into(source, origin, value, &node));
    yaml_set(source, source->root, key, node);
    return ST_OK;
}
