/* --set key=value: changes to a scenario's tree before it is read. */
#ifndef CORE_SCENARIO_SCENARIO_SET_H
#define CORE_SCENARIO_SCENARIO_SET_H

#include "core/parse/yaml.h"

/* `set` is "problem.m=4096" or "variants.fused.comm_sms=[8, 16]".  Unknown keys are found, under
 * the name "--set problem.m=4096", by whoever reads the tree afterwards. */
enum status scenario_apply_set(struct yaml *source, const char *set);

/* Puts `value` at the top-level key; `origin` stands for its place ("--backend cpu"). */
enum status scenario_override(struct yaml *source, const char *key, const char *origin, const char *value);

#endif
