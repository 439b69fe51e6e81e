#include "core/scenario/scenario.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/log.h"
#include "core/results/published.h"
#include "core/scenario/scenario_keys.h"
#include "core/scenario/scenario_set.h"
#include "core/scenario/scenario_sweep.h"
#include "core/parse/yaml.h"
#include "core/parse/yaml_file.h"

static enum status out_of_memory(const struct scenario *s)
{
    log_error("%s: out of memory", s->path);
    return ST_MEMORY;
}

static enum status check_top(const struct yaml_node *root, const struct registry *registry)
{
    const char *sections[SECTIONS_MAX];
    const struct keys keys = {.section = "", .table = top_options, .more = sections};

    scenario_sections(registry, sections);
    return keys_check(&keys, root);
}

/* A key of the top level, or its initial value. */
static enum status read_top(const struct yaml_node *root, const char *name, struct top_keys *keys,
                            struct place *place_out)
{
    const struct option *o = option_row(top_options, name);
    const struct yaml_node *node = yaml_get(root, name);
    const struct yaml_node initial = {.kind = YAML_SCALAR, .text = o->initial};

    if (place_out)
        *place_out = node ? node->place : root->place;
    return keys_read_value("", o, node ? node : &initial, NULL, keys);
}

/* "scenarios" for "scenarios/quickstart.yaml", "." for a bare name */
static void folder_of(const char *path, char *out, size_t out_bytes)
{
    const char *slash = strrchr(path, '/');

    if (!slash)
        snprintf(out, out_bytes, ".");
    else
        snprintf(out, out_bytes, "%.*s", slash == path ? 1 : (int)(slash - path), path);
}

static enum status read_machine(struct scenario *s)
{
    const struct yaml_node *root = s->source->root, *node = yaml_get(root, "machine");
    char near[sizeof s->path], path[2048], why[900];

    if (!node)
        return keys_missing("", option_row(top_options, "machine"), root->place);
    if (node->kind != YAML_SCALAR) {
        place_error(&node->place, "machine is %s; expected a single name", yaml_kind_name(node->kind));
        return ST_INPUT;
    }
    folder_of(s->path, near, sizeof near);
    if (machine_find(node->text, near, path, sizeof path, why, sizeof why) != ST_OK) {
        place_error(&node->place, "machine: %s", why);
        return ST_INPUT;
    }
    return machine_load_file(path, &s->machine);
}

static enum status read_backend(struct scenario *s, const struct registry *registry)
{
    struct top_keys keys = {.seed = 0};
    struct place place;

    TRY(read_top(s->source->root, "threshold", &keys, NULL));
    TRY(read_top(s->source->root, "backend", &keys, &place));
    s->threshold = keys.threshold;
    return find_backend(registry, keys.backend, place, "backend", &s->backend);
}

static enum status check_backend_options(const struct backend *b, const struct yaml_node *map, struct place place,
                                         const void *options)
{
    const struct yaml_node *node;
    struct complaint c;

    if (!b->check_options || b->check_options(options, &c) >= 0)
        return ST_OK;
    node = yaml_get(map, c.key);
    place_error(node ? &node->place : &place, "%s.%s: %s", b->name, c.key, c.text);
    return ST_INPUT;
}

/* The options of backend `b` from its section, in memory of their own. */
static enum status read_options(const struct scenario *s, const struct backend *b, void **out)
{
    const struct yaml_node *root = s->source->root, *map = yaml_get(root, b->name);
    char section[OPTION_TEXT_BYTES];
    const struct keys keys = {.section = section, .table = b->options};

    snprintf(section, sizeof section, "%s.", b->name);
    *out = calloc(1, b->options_size ? b->options_size : 1);
    if (!*out)
        return out_of_memory(s);
    TRY(keys_read(&keys, map, map ? map->place : root->place, *out));
    return check_backend_options(b, map, root->place, *out);
}

/* Per row of the table the node in the map, or one of the row's initial value. */
static void find_values(const struct yaml_node *map, const struct option *table, struct yaml_node *initials,
                        const struct yaml_node **nodes)
{
    for (int i = 0; table[i].name; i++) {
        initials[i] = (struct yaml_node){.kind = YAML_SCALAR, .place = map->place, .text = table[i].initial};
        nodes[i] = yaml_get(map, table[i].name);
        if (!nodes[i])
            nodes[i] = &initials[i];
    }
}

static enum status read_check(struct scenario *s, const struct registry *registry)
{
    const struct yaml_node *root = s->source->root, *map = yaml_get(root, "check");
    struct option rows[PROBLEM_TABLE_MAX], problem_rows[PROBLEM_KEYS_MAX + 1];
    const struct keys keys = {.section = "check.", .table = rows};
    struct yaml_node initials[PROBLEM_TABLE_MAX];
    const struct yaml_node *nodes[PROBLEM_TABLE_MAX];
    struct check_keys check;

    if (!map)
        return ST_OK;
    problem_merge_keys(check_options, s->family, rows);
    TRY(keys_check(&keys, map));
    problem_check_keys(s->family, problem_rows);
    find_values(map, problem_rows, initials, nodes);
    TRY(resolve_problem("check.", s->family, nodes, NULL, (struct world){1, 1}, &s->check.problem));
    find_values(map, check_options, initials, nodes);
    for (int i = 0; check_options[i].name; i++)
        TRY(keys_read_value("check.", &check_options[i], nodes[i], NULL, &check));
    TRY(find_backend(registry, check.backend, nodes[0]->place, "check.backend", &s->check.backend));
    s->check.epochs = (uint32_t)check.epochs;
    s->check.wanted = true;
    return read_options(s, s->check.backend, &s->check_options);
}

/* Sections of backends that this run does not use are read too: a mistake there is one. */
static enum status read_backend_options(struct scenario *s, const struct registry *registry)
{
    for (const struct backend *const *b = registry->backends; *b; b++) {
        void *unused = NULL;
        enum status st = *b == s->backend ? read_options(s, *b, &s->backend_options) : read_options(s, *b, &unused);

        free(unused);
        TRY(st);
    }
    return ST_OK;
}

static enum status apply_overrides(struct scenario *s, const char *backend_override, const char *const *sets,
                                   uint32_t set_count)
{
    char origin[100];

    if (!keys_is_map(s->source->root))
        return ST_OK; /* check_top() says what is wrong */
    for (uint32_t i = 0; i < set_count; i++)
        TRY(scenario_apply_set(s->source, sets[i]));
    if (!backend_override)
        return ST_OK;
    snprintf(origin, sizeof origin, "--backend %.80s", backend_override);
    return scenario_override(s->source, "backend", origin, backend_override);
}

static enum status read_scenario(struct scenario *s, const struct registry *registry)
{
    TRY(check_top(s->source->root, registry));
    TRY(read_backend(s, registry));
    TRY(read_backend_options(s, registry));
    TRY(read_machine(s));
    TRY(scenario_find_family(s, registry, &s->family));
    TRY(read_check(s, registry));
    TRY(published_read(s));
    return scenario_sweep(s, registry);
}

static enum status name_scenario(struct scenario *s, const char *path)
{
    const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
    const char *dot = strrchr(base, '.');

    if (strlen(path) >= sizeof s->path) {
        log_error("%.80s...: the path is too long; expected at most %zu bytes", path, sizeof s->path - 1);
        return ST_INPUT;
    }
    memcpy(s->path, path, strlen(path) + 1);
    snprintf(s->name, sizeof s->name, "%.*s", (int)(dot ? (size_t)(dot - base) : strlen(base)), base);
    return ST_OK;
}

enum status scenario_parse(const char *path, const char *text, size_t text_bytes, const struct registry *registry,
                           const char *backend_override, const char *const *sets, uint32_t set_count,
                           struct scenario *out)
{
    enum status st;

    *out = (struct scenario){.source = NULL};
    TRY(name_scenario(out, path));
    out->source = calloc(1, sizeof *out->source);
    out->text = strndup(text, text_bytes);
    st = out->source && out->text ? yaml_parse(path, text, text_bytes, out->source) : out_of_memory(out);
    if (st == ST_OK)
        st = apply_overrides(out, backend_override, sets, set_count);
    if (st == ST_OK)
        st = read_scenario(out, registry);
    if (st != ST_OK)
        scenario_fini(out);
    return st;
}

enum status scenario_load(const char *path, const struct registry *registry, const char *backend_override,
                          const char *const *sets, uint32_t set_count, struct scenario *out)
{
    char *text;
    size_t text_bytes;
    enum status st;

    *out = (struct scenario){.source = NULL};
    TRY(yaml_read_file(path, &text, &text_bytes));
    st = scenario_parse(path, text, text_bytes, registry, backend_override, sets, set_count, out);
    free(text);
    return st;
}

void scenario_fini(struct scenario *s)
{
    for (uint64_t i = 0; i < s->point_count; i++)
        free(s->points[i].params);
    free(s->points);
    free(s->backend_options);
    free(s->check_options);
    published_destroy(s->published);
    if (s->source)
        yaml_fini(s->source);
    free(s->source);
    free(s->text);
    *s = (struct scenario){.source = NULL};
}

/* Where the scenario says `key` for this point: its variant, then problem, then world. */
static const struct yaml_node *find_said(const struct scenario *s, const struct point *p, const char *key)
{
    const struct yaml_node *root = s->source->root, *node;

    node = yaml_get(yaml_get(yaml_get(root, "variants"), p->variant), key);
    if (!node)
        node = yaml_get(yaml_get(root, "problem"), key);
    return node ? node : yaml_get(yaml_get(root, "world"), key);
}

void scenario_complain(const struct scenario *s, const struct point *p, const struct complaint *c)
{
    const struct yaml_node *node = c->key[0] ? find_said(s, p, c->key) : NULL;
    struct place place = node ? node->place : p->variant_place;

    if (c->key[0])
        place_error(&place, "%s: %s", c->key, c->text);
    else
        place_error(&place, "%s", c->text);
}
