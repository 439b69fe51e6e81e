/* A scenario against the processes that were started for it, one a node. */
#ifndef CORE_CLI_RUN_NODES_H
#define CORE_CLI_RUN_NODES_H

#include "core/run/nodes.h"
#include "core/scenario/scenario.h"

/* Whether they fit each other: as many nodes, and backends that can run so.  ST_INPUT: logged. */
enum status run_nodes_check(const struct scenario *s, const struct nodes *n);

/* Collective: whether all nodes have read the same.  ST_INPUT: logged. */
enum status run_nodes_compare(const struct scenario *s, struct nodes *n);

#endif
