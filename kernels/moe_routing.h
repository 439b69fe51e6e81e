/* Who chooses which expert, and what that costs to move: what kernels of mixtures of experts share. */
#ifndef KERNELS_MOE_ROUTING_H
#define KERNELS_MOE_ROUTING_H

#include <stdint.h>

#include "core/kernel.h"
#include "core/problem.h"

#define MOE_TOP_K_MAX 64

/* The choices of one token, all different: a pure function of its arguments, other ones each epoch. */
void moe_choices(const struct moe_problem *p, uint64_t seed, uint64_t epoch, uint64_t token, int32_t *out);

/* struct kernel's `control` and `traffic`; of a whole feed-forward layer what crosses between nodes is counted there
 * and back: a token once to each node that needs it with its weights, and as many sums. */
void moe_control(const struct problem *problem, uint64_t seed, uint64_t epoch, uint64_t row, uint64_t rows,
                 int32_t *out);
void moe_traffic(const struct problem *problem, struct world world, uint64_t seed, uint64_t epoch, uint64_t tile_rows,
                 struct traffic *out);
void moe_ffn_traffic(const struct problem *problem, struct world world, uint64_t seed, uint64_t epoch,
                     uint64_t tile_rows, struct traffic *out);

#endif
