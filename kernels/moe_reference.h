/* Mixtures of experts once more, serial and obvious. */
#ifndef KERNELS_MOE_REFERENCE_H
#define KERNELS_MOE_REFERENCE_H

#include <stdint.h>

#include "core/problem.h"

/* struct kernel's `reference` for dispatch + GEMM.  `global` has capacity rows for each rank, one rank behind
 * the other: its (token, expert) pairs by expert, then by the distance of the token's node (counted backwards
 * from the own one), then by the token's place in its rank's shard, then by GPU; then unwritten rows.  Row i
 * holds X[token, hidden] x W_expert[inter, hidden]^T.  Of each rank's pairs only the first, in order of tokens
 * and choices, as many as there is room for, are kept. */
void reference_moe_dispatch(const struct problem *global, uint64_t seed, uint64_t epoch, uint64_t row, uint64_t rows,
                            uint64_t col, uint64_t cols, int16_t *out);

#endif
