/* Units that run on all nodes together, a child process on each. */
#ifndef CORE_RUN_RUN_ACROSS_H
#define CORE_RUN_RUN_ACROSS_H

#include "core/run/nodes.h"
#include "core/run/run.h"

/* Collective, as run_units(), one unit after the other; every node gets the same results: counts are sums, times
 * the maximum over nodes, and the report says which node it is from. */
enum status run_units_across(struct nodes *n, struct run_unit *units, uint64_t count, const struct run_config *config);

#endif
