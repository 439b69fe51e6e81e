/* From the tree of a scenario file to its points: lists multiply. */
#ifndef CORE_SCENARIO_SCENARIO_SWEEP_H
#define CORE_SCENARIO_SCENARIO_SWEEP_H

#include "core/scenario/scenario_keys.h"
#include "core/parse/yaml.h"

#define SCENARIO_POINTS_MAX 100000

/* Fills s->points; s->machine and s->source are set. */
enum status scenario_sweep(struct scenario *s, const struct registry *registry);

/* The family of the kernels that the scenario names, which must be the same for all of them. */
enum status scenario_find_family(const struct scenario *s, const struct registry *registry,
                                 const struct problem_family **out);

/* The rows of a section that holds a problem: the first of `table`, the family's keys, the rest of `table`. */
#define PROBLEM_TABLE_MAX (PROBLEM_KEYS_MAX + 8)
void problem_merge_keys(const struct option *table, const struct problem_family *family,
                        struct option out[PROBLEM_TABLE_MAX]);

/* The family's keys with the values of a check that does not state them. */
void problem_check_keys(const struct problem_family *family, struct option out[PROBLEM_KEYS_MAX + 1]);

/* Evaluates the family's keys, which may refer to each other and to `scope` (at most PROBLEM_SCOPE_MAX -
 * PROBLEM_KEYS_MAX - 1 names); `nodes` holds one scalar each.  Refuses what does not fit `world`. */
#define PROBLEM_SCOPE_MAX (PROBLEM_KEYS_MAX + 4)
enum status resolve_problem(const char *section, const struct problem_family *family,
                            const struct yaml_node *const *nodes, const struct option_scope *scope, struct world world,
                            struct problem *out);

#endif
