/* m, n and k of a problem: expressions that may refer to each other. */
#include "core/scenario_sweep.h"

#include <string.h>

#include "core/expression.h"

static const char *const extent_names[3] = {"m", "n", "k"};

#define SCOPE_MAX 12

struct extents {
    struct option_scope scope[SCOPE_MAX];
    size_t              scope_count;
    uint64_t            values[3];
    bool                known[3];
};

static bool depends_on_unknown(const struct extents *e, const char *text)
{
    for (int i = 0; i < 3; i++)
        if (!e->known[i] && expression_uses(text, extent_names[i]))
            return true;
    return false;
}

/* Evaluates extent `i` once everything it mentions is known. */
static enum status resolve_one(struct extents *e, int i, const char *section,
                               const struct option *table, const struct yaml_node *node, void *base)
{
    const struct option *o = option_row(table, extent_names[i]);

    if (node->kind == YAML_SCALAR && depends_on_unknown(e, node->text))
        return ST_OK;
    TRY(keys_read_value(section, o, node, e->scope, base));
    memcpy(&e->values[i], (const char *)base + o->offset, sizeof e->values[i]);
    e->known[i] = true;
    e->scope[e->scope_count++] = (struct option_scope){extent_names[i], e->values[i]};
    return ST_OK;
}

enum status resolve_extents(const char *section, const struct option *table,
                            const struct yaml_node *const nodes[3],
                            const struct option_scope *scope, void *base, struct problem *out)
{
    struct extents e = {.scope_count = 0};

    for (; scope && scope->name && e.scope_count < SCOPE_MAX - 4; scope++)
        e.scope[e.scope_count++] = *scope;
    for (int round = 0; round < 3; round++) /* each round settles at least one, or none ever will */
        for (int i = 0; i < 3; i++)
            if (!e.known[i])
                TRY(resolve_one(&e, i, section, table, nodes[i], base));
    for (int i = 0; i < 3; i++) {
        if (e.known[i])
            continue;
        place_error(&nodes[i]->place, "%s%s: \"%s\" refers back to itself; expected a number in at "
                                      "least one of m, n, k", section, extent_names[i],
                    nodes[i]->text);
        return ST_INPUT;
    }
    *out = (struct problem){.m = e.values[0], .n = e.values[1], .k = e.values[2]};
    return ST_OK;
}

enum status problem_fits(const struct problem *p, struct world w, struct place place)
{
    const unsigned __int128 limit = (unsigned __int128)1 << 62;
    unsigned __int128 product = (unsigned __int128)p->m * p->n;

    if (product < limit)
        product *= p->k;
    if (product < limit)
        product *= (uint64_t)w.nodes * w.gpus_per_node;
    if (product < limit)
        return ST_OK;
    place_error(&place, "m = %llu, n = %llu, k = %llu on %u ranks is too large; expected "
                        "m * n * k * ranks below 2^62",
                (unsigned long long)p->m, (unsigned long long)p->n, (unsigned long long)p->k,
                world_ranks(w));
    return ST_INPUT;
}
