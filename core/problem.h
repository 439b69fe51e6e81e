/* What is to be computed.  m, n and k are the extents of the GEMM that each rank runs:
 *
 *   ag_gemm   C_r[m, n] = A[m, k] x B_r[n, k]^T           A arrives row-sharded, m / ranks rows each
 *   gemm_rs   C[m, n]   = sum_r A_r[m, k] x B_r[n, k]^T   rank r keeps m / ranks rows of C
 *   gemm_ar   the same sum, all of it on every rank
 *
 * bf16 operands, f32 accumulation, bf16 results; B is stored [n, k], as linear layers keep weights. */
#ifndef CORE_PROBLEM_H
#define CORE_PROBLEM_H

#include <stdint.h>

struct problem {
    uint64_t m, n, k;
};

#endif
