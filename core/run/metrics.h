/* What a time means: the formulas of every TFLOP/s and GB/s this project prints. */
#ifndef CORE_RUN_METRICS_H
#define CORE_RUN_METRICS_H

#include <stdint.h>

#include "core/scenario/scenario.h"

/* Per GPU, by the formula of the problem's family: flops / time.  0 for no time. */
#define METRICS_TFLOPS_FORMULA "%s / time / 1e12" /* with the family's flops_formula */
double metrics_tflops(const struct kernel *kernel, const struct problem *problem, struct world world, uint64_t time_ps);

/* The collective's size in bytes as nccl-tests counts it: all-gather: what is gathered; reduce-scatter and
 * all-reduce: the whole result that each rank contributes. */
double metrics_collective_bytes(const struct kernel *kernel, const struct problem *problem);

/* Bus bandwidth in 1e9 bytes/s, nccl-tests' definition, over the whole time (GEMM included): bytes / time
 * times (ranks - 1) / ranks, twice that for all-reduce. */
double metrics_busbw(const struct kernel *kernel, const struct problem *problem, struct world world, uint64_t time_ps);

#endif
