/* The keys of a problem: which there are follows from the kernels, counts may refer to each other. */
#include "core/scenario/scenario_sweep.h"

#include <string.h>

#include "core/parse/expression.h"

void problem_merge_keys(const struct option *table, const struct problem_family *family,
                        struct option out[PROBLEM_TABLE_MAX])
{
    uint32_t count = 0;

    out[count++] = table[0];
    for (const struct option *o = family->keys; o->name; o++)
        out[count++] = *o;
    for (const struct option *o = table + 1; o->name; o++)
        out[count++] = *o;
    out[count] = (struct option){.name = NULL};
}

void problem_check_keys(const struct problem_family *family, struct option out[PROBLEM_KEYS_MAX + 1])
{
    uint32_t count = problem_key_count(family);

    for (uint32_t i = 0; i < count; i++) {
        out[i] = family->keys[i];
        out[i].initial = family->check[i];
    }
    out[count] = (struct option){.name = NULL};
}

struct resolution {
    const struct problem_family *family;
    struct option_scope scope[PROBLEM_SCOPE_MAX];
    uint32_t scope_count;
    bool known[PROBLEM_KEYS_MAX];
};

static bool depends_on_unknown(const struct resolution *r, const char *text)
{
    for (uint32_t i = 0; r->family->keys[i].name; i++)
        if (!r->known[i] && expression_uses(text, r->family->keys[i].name))
            return true;
    return false;
}

/* Evaluates key `i` once everything it mentions is known. */
static enum status resolve_one(struct resolution *r, uint32_t i, const char *section, const struct yaml_node *node,
                               struct problem *p)
{
    const struct option *o = &r->family->keys[i];
    uint64_t value;

    if (o->type == OPTION_COUNT && node->kind == YAML_SCALAR && depends_on_unknown(r, node->text))
        return ST_OK;
    TRY(keys_read_value(section, o, node, r->scope, p));
    r->known[i] = true;
    if (o->type == OPTION_COUNT) {
        memcpy(&value, (const char *)p + o->offset, sizeof value);
        r->scope[r->scope_count++] = (struct option_scope){o->name, value};
    }
    return ST_OK;
}

enum status resolve_problem(const char *section, const struct problem_family *family,
                            const struct yaml_node *const *nodes, const struct option_scope *scope, struct world world,
                            struct problem *out)
{
    struct resolution r = {.family = family};
    struct problem p = {.m = 0};
    uint32_t count = problem_key_count(family);
    char why[300];

    for (; scope && scope->name; scope++)
        r.scope[r.scope_count++] = *scope;
    for (uint32_t round = 0; round < count; round++) /* each settles at least one, or none ever will */
        for (uint32_t i = 0; i < count; i++)
            if (!r.known[i])
                TRY(resolve_one(&r, i, section, nodes[i], &p));
    for (uint32_t i = 0; i < count; i++) {
        if (r.known[i])
            continue;
        place_error(&nodes[i]->place,
                    "%s%s: \"%s\" refers back to itself; expected a number in at "
                    "least one of the keys it names",
                    section, family->keys[i].name, nodes[i]->text);
        return ST_INPUT;
    }
    if (!family->fits(&p, world, why, sizeof why)) {
        place_error(&nodes[0]->place, "%s", why);
        return ST_INPUT;
    }
    *out = p;
    return ST_OK;
}
