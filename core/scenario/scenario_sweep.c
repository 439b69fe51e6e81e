#include "core/scenario/scenario_sweep.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/log.h"

/* One key that may hold a list: the value it stands at, and how many there are. */
struct axis {
    const char *section;
    const struct option *option;
    struct yaml_node initial; /* stands in for an absent key */
    const struct yaml_node *first, *at;
    uint64_t count, index;
};

enum base_axis {
    AXIS_KERNEL,
    AXIS_NODES,
    AXIS_GPUS,
    AXIS_PROBLEM, /* the family's keys; what it leaves over stands at nothing */
    AXIS_DTYPE = AXIS_PROBLEM + PROBLEM_KEYS_MAX,
    AXIS_MODE,
    AXIS_WARMUP,
    AXIS_ITERATIONS,
    AXIS_LAUNCH,
    AXIS_SEED,
    AXIS_COUNT
};

static const struct {
    const char *map, *section, *name; /* map NULL: a key of the top level */
    const struct option *table;
} base_axes[AXIS_COUNT] = {
    [AXIS_KERNEL] = {"problem", "problem.", "kernel", problem_options},
    [AXIS_NODES] = {"world", "world.", "nodes", world_options},
    [AXIS_GPUS] = {"world", "world.", "gpus_per_node", world_options},
    [AXIS_DTYPE] = {"problem", "problem.", "dtype", problem_options},
    [AXIS_MODE] = {"timing", "timing.", "mode", timing_options},
    [AXIS_WARMUP] = {"timing", "timing.", "warmup", timing_options},
    [AXIS_ITERATIONS] = {"timing", "timing.", "iterations", timing_options},
    [AXIS_LAUNCH] = {"timing", "timing.", "launch", timing_options},
    [AXIS_SEED] = {NULL, "", "seed", top_options},
};

#define PARAMS_MAX 64

struct sweep {
    struct scenario *scenario;
    const struct registry *registry;
    struct axis base[AXIS_COUNT];
    struct point model; /* what the base axes stand at */
    struct option_scope scope[PROBLEM_SCOPE_MAX];
    struct axis params[PARAMS_MAX];
    uint32_t param_count;
    char param_section[OPTION_TEXT_BYTES + 16];
};

/* ---- axes ---- */

static enum status axis_begin(struct axis *a, const char *section, const struct option *o, const struct yaml_node *map,
                              struct place origin)
{
    const struct yaml_node *node = yaml_get(map, o->name);

    *a = (struct axis){.section = section, .option = o, .count = 1};
    if (!node && !o->initial)
        return keys_missing(section, o, origin);
    if (!node) {
        a->initial = (struct yaml_node){.kind = YAML_SCALAR, .text = o->initial};
        a->first = NULL; /* axis_value() hands out `initial`, wherever the axis was copied to */
        return ST_OK;
    }
    a->first = node;
    if (node->kind == YAML_LIST) {
        if (node->count == 0) {
            place_error(&node->place, "%s%s is an empty list; expected at least one value", section, o->name);
            return ST_INPUT;
        }
        a->first = node->first;
        a->count = node->count;
    }
    a->at = a->first;
    return ST_OK;
}

static const struct yaml_node *axis_value(const struct axis *a)
{
    return a->first ? a->at : &a->initial;
}

/* The next combination, the last axis fastest; false: all are through, the first stands again. */
static bool axes_step(struct axis *axes, uint32_t count)
{
    while (count-- > 0) {
        struct axis *a = &axes[count];

        if (++a->index < a->count) {
            a->at = a->at->next;
            return true;
        }
        a->index = 0;
        a->at = a->first;
    }
    return false;
}

/* A parameter's table, {4096: 8, 8192: 16}: the row of the problem's first key; NULL: it has none. */
static const struct yaml_node *table_row(const struct yaml_node *table, const struct point *p)
{
    char size[OPTION_TEXT_BYTES];

    option_print(p->kernel->family->keys, &p->problem, size, sizeof size);
    return yaml_get(table, size);
}

static enum status table_read(const struct axis *a, const struct point *p, void *base)
{
    const struct option *key = p->kernel->family->keys;
    const struct yaml_node *table = axis_value(a), *row = table_row(table, p);
    char size[OPTION_TEXT_BYTES];

    if (!row) {
        option_print(key, &p->problem, size, sizeof size);
        place_error(&table->place, "%s%s has no row for %s %s; expected one for every problem of the scenario",
                    a->section, a->option->name, key->name, size);
        return ST_INPUT;
    }
    return keys_read_value(a->section, a->option, row, NULL, base);
}

static enum status axis_read(const struct axis *a, const struct option_scope *scope, void *base)
{
    return keys_read_value(a->section, a->option, axis_value(a), scope, base);
}

/* ---- values that stand twice ---- */

struct listed {
    const struct yaml_node *node;
    const char *said;              /* in the file: "m/16" */
    char value[OPTION_TEXT_BYTES]; /* what that is here: "256" */
};

static int compare_listed(const void *a, const void *b)
{
    const struct listed *x = a, *y = b;
    int by_value = strcmp(x->value, y->value);

    if (by_value != 0)
        return by_value;
    if (x->node->place.line != y->node->place.line)
        return x->node->place.line < y->node->place.line ? -1 : 1;
    return x->node->place.column < y->node->place.column ? -1 : x->node->place.column > y->node->place.column;
}

/* False: not to be compared, since whoever reads it will refuse it. */
static bool read_listed(const struct sweep *w, const struct axis *a, const struct yaml_node *node, struct listed *out)
{
    const struct yaml_node *one = node->kind == YAML_MAP ? table_row(node, &w->model) : node;
    _Alignas(max_align_t) char field[OPTION_TEXT_BYTES];
    struct option o = *a->option;
    char why[400];

    o.offset = 0;
    if (!one || one->kind != YAML_SCALAR || option_parse(&o, field, one->text, w->scope, why, sizeof why) != ST_OK)
        return false;
    *out = (struct listed){.node = node, .said = one->text};
    option_print(&o, field, out->value, sizeof out->value);
    return true;
}

static enum status refuse_twin(const struct axis *a, const struct listed *first, const struct listed *twin)
{
    char also[150] = "";

    if (strcmp(first->said, twin->said) != 0)
        snprintf(also, sizeof also, ", as %.60s and as %.60s", first->said, twin->said);
    place_error(&twin->node->place, "%s%s lists %.60s twice%s; expected every value once", a->section, a->option->name,
                twin->value, also);
    return ST_INPUT;
}

/* A value that stands twice would give points that nothing tells apart.  Asked where a walk through the list begins:
 * what m/16 is depends on where the other lists stand. */
static enum status refuse_repetition(const struct sweep *w, const struct axis *a)
{
    struct listed *values;
    uint64_t count = 0;
    enum status st = ST_OK;

    if (a->count < 2 || a->index > 0)
        return ST_OK;
    values = calloc(a->count, sizeof *values);
    if (!values)
        return ST_MEMORY;
    for (const struct yaml_node *n = a->first; n; n = n->next)
        count += read_listed(w, a, n, &values[count]);
    qsort(values, count, sizeof *values, compare_listed);
    for (uint64_t i = 1; i < count && st == ST_OK; i++)
        if (strcmp(values[i - 1].value, values[i].value) == 0)
            st = refuse_twin(a, &values[i - 1], &values[i]);
    free(values);
    return st;
}

static enum status refuse_repetitions(const struct sweep *w, const struct axis *axes, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        TRY(refuse_repetition(w, &axes[i]));
    return ST_OK;
}

/* ---- counting before allocating ---- */

static uint64_t saturating_product(uint64_t a, uint64_t b)
{
    uint64_t product;

    return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

static uint64_t variant_points(const struct yaml_node *variant)
{
    uint64_t count = 1;

    for (const struct yaml_node *n = variant->first; n; n = n->next)
        if (n->kind == YAML_LIST)
            count = saturating_product(count, n->count);
    return count;
}

static enum status count_points(const struct sweep *w, const struct yaml_node *variants, uint64_t *out)
{
    uint64_t base = 1, each = 0;

    for (int i = 0; i < AXIS_COUNT; i++)
        base = saturating_product(base, w->base[i].count);
    for (const struct yaml_node *v = variants->first; v; v = v->next)
        if (__builtin_add_overflow(each, variant_points(v), &each))
            each = UINT64_MAX;
    *out = saturating_product(base, each);
    if (*out > SCENARIO_POINTS_MAX) {
        char many[32] = "more than 2^64";

        if (*out != UINT64_MAX)
            snprintf(many, sizeof many, "%llu", (unsigned long long)*out);
        place_error(&w->scenario->source->root->place, "the lists multiply to %s points; expected at most %d", many,
                    SCENARIO_POINTS_MAX);
        return ST_INPUT;
    }
    return ST_OK;
}

/* ---- one combination of the base axes ---- */

static enum status read_world(struct sweep *w)
{
    struct point *p = &w->model;
    struct world_keys world;
    struct place place = axis_value(&w->base[AXIS_GPUS])->place;
    char why[300];

    TRY(axis_read(&w->base[AXIS_NODES], NULL, &world));
    TRY(axis_read(&w->base[AXIS_GPUS], NULL, &world));
    p->world = (struct world){(uint32_t)world.nodes, (uint32_t)world.gpus_per_node};
    if (p->world.nodes > p->machine->nodes_max)
        place = axis_value(&w->base[AXIS_NODES])->place;
    p->world_place = place;
    if (machine_holds(p->machine, p->world, why, sizeof why) != ST_OK) {
        place_error(&place, "world: %s", why);
        return ST_INPUT;
    }
    w->scope[0] = (struct option_scope){"nodes", p->world.nodes};
    w->scope[1] = (struct option_scope){"gpus_per_node", p->world.gpus_per_node};
    w->scope[2] = (struct option_scope){"ranks", world_ranks(p->world)};
    w->scope[3].name = NULL;
    return ST_OK;
}

static enum status read_problem(struct sweep *w)
{
    const struct problem_family *family = w->scenario->family;
    const struct yaml_node *kernel = axis_value(&w->base[AXIS_KERNEL]);
    const struct yaml_node *nodes[PROBLEM_KEYS_MAX];
    struct point *p = &w->model;
    struct problem_keys keys;
    uint32_t scoped = 3;

    TRY(axis_read(&w->base[AXIS_KERNEL], NULL, &keys));
    TRY(axis_read(&w->base[AXIS_DTYPE], NULL, &keys));
    TRY(find_kernel(w->registry, keys.kernel, kernel->place, &p->kernel));
    for (uint32_t i = 0; family->keys[i].name; i++)
        nodes[i] = axis_value(&w->base[AXIS_PROBLEM + i]);
    p->problem_place = nodes[0]->place;
    TRY(resolve_problem("problem.", family, nodes, w->scope, p->world, &p->problem));
    for (const struct option *o = family->keys; o->name; o++) {
        if (o->type != OPTION_COUNT)
            continue;
        w->scope[scoped].name = o->name;
        memcpy(&w->scope[scoped++].value, (const char *)&p->problem + o->offset, sizeof(uint64_t));
    }
    w->scope[scoped].name = NULL;
    return ST_OK;
}

static enum status read_timing(struct sweep *w)
{
    struct timing_keys t;
    struct top_keys top;

    for (int i = AXIS_MODE; i <= AXIS_LAUNCH; i++)
        TRY(axis_read(&w->base[i], NULL, &t));
    TRY(axis_read(&w->base[AXIS_SEED], NULL, &top));
    w->model.timing = (struct timing){.mode = (enum timing_mode)t.mode,
                                      .warmup = (uint32_t)t.warmup,
                                      .iterations = (uint32_t)t.iterations,
                                      .launch = t.launch == LAUNCH_INCLUDED};
    w->model.seed = top.seed;
    return ST_OK;
}

/* ---- variants ---- */

static enum status read_program(const struct yaml_node *variant, const char *section, enum program_choice *out)
{
    const struct option *o = option_row(variant_options, "program");
    const struct yaml_node *node = yaml_get(variant, "program");
    struct variant_keys keys = {0};
    char why[300];

    if (node)
        TRY(keys_read_value(section, o, node, NULL, &keys));
    else if (option_parse(o, &keys, variant->key, NULL, why, sizeof why) != ST_OK) {
        place_error(&variant->key_place, "variant \"%.60s\" does not say its program; expected a key program: %s",
                    variant->key, o->choices);
        return ST_INPUT;
    }
    *out = (enum program_choice)keys.program;
    return ST_OK;
}

static enum status begin_variant(struct sweep *w, const struct yaml_node *variant)
{
    static const char *const more[] = {"program", NULL};
    struct point *p = &w->model;
    bool has_params;
    char owner[OPTION_TEXT_BYTES + 16];
    struct keys keys = {.section = w->param_section, .more = more, .owner = owner};

    if (strlen(variant->key) >= OPTION_TEXT_BYTES || variant->key[0] == '\0') {
        place_error(&variant->key_place,
                    "a variant's label is empty or too long; expected at most "
                    "%d characters",
                    OPTION_TEXT_BYTES - 1);
        return ST_INPUT;
    }
    snprintf(p->variant, sizeof p->variant, "%s", variant->key);
    snprintf(w->param_section, sizeof w->param_section, "variants.%s.", variant->key);
    p->variant_place = variant->key_place;
    if (keys_is_map(variant))
        TRY(read_program(variant, w->param_section, &p->program));
    has_params = p->program == PROGRAM_FUSED || p->program == PROGRAM_UNFUSED;
    keys.table = has_params ? p->kernel->options : NULL;
    if (has_params)
        snprintf(owner, sizeof owner, "kernel %s", p->kernel->name);
    else
        snprintf(owner, sizeof owner, "a baseline");
    TRY(keys_check(&keys, variant));
    w->param_count = 0;
    for (const struct option *o = p->kernel->options; o && o->name; o++) {
        if (w->param_count == PARAMS_MAX)
            abort(); /* a kernel of ours has a table longer than this file foresees */
        TRY(axis_begin(&w->params[w->param_count++], w->param_section, o, variant, variant->key_place));
    }
    return ST_OK;
}

static enum status add_point(struct sweep *w, uint64_t capacity)
{
    struct scenario *s = w->scenario;
    struct point *p = &s->points[s->point_count];

    if (s->point_count == capacity)
        abort(); /* count_points() and this walk disagree */
    *p = w->model;
    p->params = calloc(1, p->kernel->params_size ? p->kernel->params_size : 1);
    if (!p->params) {
        log_error("%s: out of memory", s->path);
        return ST_MEMORY;
    }
    s->point_count++; /* from here on scenario_fini() frees it */
    for (uint32_t i = 0; i < w->param_count; i++)
        if (axis_value(&w->params[i])->kind == YAML_MAP)
            TRY(table_read(&w->params[i], p, p->params));
        else
            TRY(axis_read(&w->params[i], w->scope, p->params));
    return ST_OK;
}

static enum status sweep_variants(struct sweep *w, const struct yaml_node *variants, uint64_t capacity)
{
    for (const struct yaml_node *v = variants->first; v; v = v->next) {
        TRY(begin_variant(w, v));
        TRY(refuse_repetitions(w, w->params, w->param_count));
        do
            TRY(add_point(w, capacity));
        while (axes_step(w->params, w->param_count));
    }
    return ST_OK;
}

/* ---- all of it ---- */

static enum status begin_base_axes(struct sweep *w)
{
    const struct yaml_node *root = w->scenario->source->root, *problem = yaml_get(root, "problem");
    const struct option *keys = w->scenario->family->keys;

    for (int i = 0; i < AXIS_COUNT; i++) {
        const struct yaml_node *map = base_axes[i].map ? yaml_get(root, base_axes[i].map) : root;

        w->base[i].count = 1;
        if (base_axes[i].name)
            TRY(axis_begin(&w->base[i], base_axes[i].section, option_row(base_axes[i].table, base_axes[i].name), map,
                           map ? map->place : root->place));
    }
    for (int i = 0; keys[i].name; i++)
        TRY(axis_begin(&w->base[AXIS_PROBLEM + i], "problem.", &keys[i], problem, problem->place));
    return ST_OK;
}

enum status scenario_find_family(const struct scenario *s, const struct registry *registry,
                                 const struct problem_family **out)
{
    const struct yaml_node *root = s->source->root, *problem = yaml_get(root, "problem");
    const struct option *row = option_row(problem_options, "kernel");
    const struct kernel *kernel, *first = NULL;
    struct problem_keys keys;
    struct axis axis;

    if (problem && !keys_is_map(problem)) {
        place_error(&problem->place, "problem is %s; expected a map of keys", yaml_kind_name(problem->kind));
        return ST_INPUT;
    }
    TRY(axis_begin(&axis, "problem.", row, problem, problem ? problem->place : root->place));
    do {
        struct place place = axis_value(&axis)->place;

        TRY(axis_read(&axis, NULL, &keys));
        TRY(find_kernel(registry, keys.kernel, place, &kernel));
        first = first ? first : kernel;
        if (kernel->family == first->family)
            continue;
        place_error(&place,
                    "problem.kernel: %s and %s solve problems of different kinds; expected kernels "
                    "of one kind",
                    first->name, kernel->name);
        return ST_INPUT;
    } while (axes_step(&axis, 1));
    *out = first->family;
    return ST_OK;
}

static enum status check_sections(const struct scenario *s)
{
    const struct yaml_node *root = s->source->root;
    struct option problem_rows[PROBLEM_TABLE_MAX];
    const struct keys sections[] = {{.section = "problem.", .table = problem_rows},
                                    {.section = "world.", .table = world_options},
                                    {.section = "timing.", .table = timing_options}};

    problem_merge_keys(problem_options, s->family, problem_rows);
    TRY(keys_check(&sections[0], yaml_get(root, "problem")));
    TRY(keys_check(&sections[1], yaml_get(root, "world")));
    return keys_check(&sections[2], yaml_get(root, "timing"));
}

static enum status find_variants(const struct yaml_node *root, const struct yaml_node **out)
{
    const struct yaml_node *variants = yaml_get(root, "variants");

    if (!variants || variants->kind != YAML_MAP || variants->count == 0) {
        place_error(variants ? &variants->place : &root->place,
                    "variants is %s; expected a map of at least one, for example {fused: {}}",
                    variants ? (variants->kind == YAML_MAP ? "empty" : yaml_kind_name(variants->kind)) : "missing");
        return ST_INPUT;
    }
    *out = variants;
    return ST_OK;
}

static enum status walk(struct sweep *w)
{
    struct scenario *s = w->scenario;
    const struct yaml_node *variants;
    uint64_t capacity;

    TRY(check_sections(s));
    TRY(find_variants(s->source->root, &variants));
    TRY(begin_base_axes(w));
    TRY(count_points(w, variants, &capacity));
    s->points = calloc(capacity, sizeof *s->points);
    if (!s->points) {
        log_error("%s: out of memory for %llu points", s->path, (unsigned long long)capacity);
        return ST_MEMORY;
    }
    do {
        TRY(read_world(w));
        TRY(read_problem(w));
        TRY(read_timing(w));
        TRY(refuse_repetitions(w, w->base, AXIS_COUNT));
        TRY(sweep_variants(w, variants, capacity));
    } while (axes_step(w->base, AXIS_COUNT));
    return ST_OK;
}

enum status scenario_sweep(struct scenario *s, const struct registry *registry)
{
    struct sweep *w = calloc(1, sizeof *w);
    enum status st;

    if (!w)
        return ST_MEMORY;
    w->scenario = s;
    w->registry = registry;
    w->model.machine = &s->machine;
    st = walk(w);
    free(w);
    return st;
}
