/* Whether the nodes of a program do the same: whether node d's ranks have the tasks of node 0's,
 * with every rank that a task names moved by d nodes, and flags that play the same part.
 *
 * Flags have numbers of their own on each rank: which flag of node d is which of node 0 follows
 * from who signals them, and every wait must then agree.  What only data depends on (offsets,
 * tensors) may differ. */
#ifndef BACKENDS_SIM_SYMMETRY_H
#define BACKENDS_SIM_SYMMETRY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/program.h"

/* Looks at every task of the last node and of nodes 1, 2, 4, 8 ..., where what counts around the
 * ring of nodes and what is dealt out in unequal parts shows; of the others at the lengths of
 * queues and a few tasks.  To look at all of them would take longer than to simulate them.  false:
 * `why` says what differs, in one line without its end. */
bool symmetry_of_nodes(const struct program *p, char *why, size_t why_bytes);

/* Memory that it takes meanwhile. */
uint64_t symmetry_bytes(const struct program *p);

/* The rank `rank` seen from `nodes` nodes further on, around the ring of nodes. */
uint32_t symmetry_move(struct world w, uint32_t rank, uint32_t nodes);

#endif
