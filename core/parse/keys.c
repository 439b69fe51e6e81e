#include "core/parse/keys.h"

#include <stdio.h>
#include <string.h>

#include "core/parse/nearest.h"

bool keys_is_map(const struct yaml_node *node)
{
    return node->kind == YAML_MAP || (node->kind == YAML_SCALAR && node->text[0] == '\0');
}

/* The part of `name` behind "prefix.", or all of it without a prefix; NULL: another section. */
static const char *inside(const char *name, const char *prefix)
{
    size_t size = strlen(prefix);

    if (size == 0)
        return name;
    return strncmp(name, prefix, size) == 0 && name[size] == '.' ? name + size + 1 : NULL;
}

/* Offers and collects, as "a, b, c", the keys that may stand directly in section `prefix`. */
static void list_keys(const struct keys *k, const char *prefix, struct nearest *near, char *names, size_t names_bytes)
{
    size_t used = 0;
    char key[OPTION_TEXT_BYTES], before[OPTION_TEXT_BYTES] = "";

    names[0] = '\0';
    for (const struct option *o = k->table; o && o->name; o++) {
        const char *rest = inside(o->name, prefix);

        if (!rest)
            continue;
        snprintf(key, sizeof key, "%.*s", (int)strcspn(rest, "."), rest);
        nearest_offer(near, key);
        nearest_offer(near, rest); /* "nvlink.rate", where that stands at the top */
        if (strcmp(key, before) != 0 && used < names_bytes)
            used += (size_t)snprintf(names + used, names_bytes - used, "%s%s", used ? ", " : "", key);
        memcpy(before, key, sizeof before);
    }
    for (size_t i = 0; k->more && k->more[i]; i++) {
        const char *rest = inside(k->more[i], prefix);

        if (!rest || strchr(rest, '.'))
            continue;
        nearest_offer(near, rest);
        if (used < names_bytes)
            used += (size_t)snprintf(names + used, names_bytes - used, "%s%s", used ? ", " : "", rest);
    }
}

static enum status unknown_key(const struct keys *k, const char *prefix, const struct yaml_node *node)
{
    struct nearest near;
    char names[600], guess[100];

    nearest_begin(&near, node->key);
    list_keys(k, prefix, &near, names, sizeof names);
    place_error(&node->key_place, "unknown key \"%s%s%s%.64s\"%s%s; expected %s%s", k->section, prefix,
                prefix[0] ? "." : "", node->key, k->owner ? " for " : "", k->owner ? k->owner : "",
                names[0] ? names : "no keys here", nearest_text(&near, guess, sizeof guess));
    return ST_INPUT;
}

enum match { MATCH_NONE, MATCH_KEY, MATCH_SECTION };

static enum match match_name(const char *name, const char *full)
{
    if (strcmp(name, full) == 0)
        return MATCH_KEY;
    return full[0] && inside(name, full) ? MATCH_SECTION : MATCH_NONE;
}

static enum match match_key(const struct keys *k, const char *full)
{
    enum match best = MATCH_NONE;

    for (const struct option *o = k->table; o && o->name && best == MATCH_NONE; o++)
        best = match_name(o->name, full);
    for (size_t i = 0; k->more && k->more[i] && best != MATCH_KEY; i++)
        if (match_name(k->more[i], full) == MATCH_KEY)
            best = MATCH_KEY;
    return best;
}

static enum status not_a_map(const struct keys *k, const char *prefix, const struct yaml_node *node)
{
    size_t size = strlen(k->section);
    char name[2 * OPTION_TEXT_BYTES];

    snprintf(name, sizeof name, "%.*s", (int)(size ? size - 1 : 0), k->section); /* less its dot */
    if (prefix[0])
        snprintf(name, sizeof name, "%s%.80s", k->section, prefix);
    place_error(&node->place, "%s is %s; expected a map of keys", name[0] ? name : "the file",
                yaml_kind_name(node->kind));
    return ST_INPUT;
}

static enum status check_map(const struct keys *k, const struct yaml_node *map, const char *prefix)
{
    char full[2 * YAML_SCALAR_BYTES_MAX + 4];

    if (!keys_is_map(map))
        return not_a_map(k, prefix, map);
    for (const struct yaml_node *n = map->first; n; n = n->next) {
        snprintf(full, sizeof full, "%s%s%s", prefix, prefix[0] ? "." : "", n->key);
        switch (match_key(k, full)) {
        case MATCH_NONE: return unknown_key(k, prefix, n);
        case MATCH_SECTION: TRY(check_map(k, n, full)); break;
        case MATCH_KEY: break;
        }
    }
    return ST_OK;
}

enum status keys_check(const struct keys *k, const struct yaml_node *map)
{
    return map ? check_map(k, map, "") : ST_OK;
}

enum status keys_read_value(const char *section, const struct option *o, const struct yaml_node *node,
                            const struct option_scope *scope, void *base)
{
    char why[400];
    enum status st;

    if (node->kind != YAML_SCALAR) {
        place_error(&node->place, "%s%s is %s; expected a single value", section, o->name, yaml_kind_name(node->kind));
        return ST_INPUT;
    }
    st = option_parse(o, base, node->text, scope, why, sizeof why);
    if (st != ST_OK)
        place_error(&node->place, "%s%s: %s", section, o->name, why);
    return st;
}

enum status keys_missing(const char *section, const struct option *o, struct place origin)
{
    place_error(&origin, "%s%s is missing; expected %s", section, o->name, o->help);
    return ST_INPUT;
}

/* map["a"]["b"] for "a.b"; NULL: absent. */
static const struct yaml_node *find_node(const struct yaml_node *map, const char *name)
{
    char key[OPTION_TEXT_BYTES];
    size_t size = strcspn(name, ".");
    const struct yaml_node *node;

    snprintf(key, sizeof key, "%.*s", (int)size, name);
    node = yaml_get(map, key);
    return node && name[size] == '.' ? find_node(node, name + size + 1) : node;
}

enum status keys_read(const struct keys *k, const struct yaml_node *map, struct place origin, void *base)
{
    TRY(keys_check(k, map));
    if (!k->partial)
        option_defaults(k->table, base);
    for (const struct option *o = k->table; o && o->name; o++) {
        const struct yaml_node *node = find_node(map, o->name);

        if (node)
            TRY(keys_read_value(k->section, o, node, NULL, base));
        else if (!o->initial && !k->partial)
            return keys_missing(k->section, o, origin);
    }
    return ST_OK;
}
