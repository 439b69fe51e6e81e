/* From the tree of a scenario file to its points: lists multiply. */
#ifndef CORE_SCENARIO_SWEEP_H
#define CORE_SCENARIO_SWEEP_H

#include "core/scenario_keys.h"
#include "core/yaml.h"

#define SCENARIO_POINTS_MAX 100000

/* Fills s->points; s->machine and s->source are set. */
enum status scenario_sweep(struct scenario *s, const struct registry *registry);

/* Evaluates m, n, k, which may refer to each other and to `scope`; `nodes` holds one scalar each,
 * `table` has rows of these names, and `base` receives them. */
enum status resolve_extents(const char *section, const struct option *table,
                            const struct yaml_node *const nodes[3],
                            const struct option_scope *scope, void *base, struct problem *out);

/* Refuses, at `place`, what 64-bit arithmetic on the problem could not hold. */
enum status problem_fits(const struct problem *p, struct world w, struct place place);

#endif
