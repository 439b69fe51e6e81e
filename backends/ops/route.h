/* The one implementation of OP_ROUTE (core/route.h) and of selections, for backends that run on the host. */
#ifndef BACKENDS_OPS_ROUTE_H
#define BACKENDS_OPS_ROUTE_H

#include <stdbool.h>
#include <stddef.h>

#include "backends/ops/tile_ops.h"

/* Narrows the task to what this epoch's control buffers select for it; its entry waits must be met. */
void tile_select(const struct memory *m, uint32_t rank, uint64_t epoch, struct task *task);

/* Value (i, j) of a task's index list; false where it is INDEX_DROPPED, as only COMBINE_ROWS may find it. */
bool tile_index(const struct memory *m, uint32_t rank, uint64_t epoch, const struct task *task, uint64_t i, uint64_t j,
                uint64_t *value_out);

/* Where row `value` of the source of such a task stands; o_out describes that one row. */
void tile_gather_source(const struct program *p, uint32_t rank, const struct task *task, uint64_t value,
                        struct operand *o_out);

/* Asserts that what it places partitions the range: each kept pair stands in one row, each row in one entry
 * of the work list.  Returns how many pairs it dropped. */
uint64_t tile_route(const struct memory *m, uint32_t rank, uint64_t epoch, const struct task *task);

/* "rank 3, epoch 2: 5 more rows than the 64 that ..." */
void tile_route_refusal(const struct task *task, uint32_t rank, uint64_t epoch, uint64_t dropped, char *out,
                        size_t out_bytes);

#endif
