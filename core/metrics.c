#include "core/metrics.h"

#define OPERAND_BYTES 2 /* bf16 */

double metrics_tflops(const struct problem *problem, uint64_t time_ps)
{
    double flops = 2.0 * (double)problem->m * (double)problem->n * (double)problem->k;

    return time_ps ? flops / (double)time_ps : 0; /* 1e12 flop/s is one flop per picosecond */
}

double metrics_collective_bytes(const struct kernel *kernel, const struct problem *problem)
{
    uint64_t cols = kernel->collective == COLLECTIVE_ALL_GATHER ? problem->k : problem->n;

    return OPERAND_BYTES * (double)problem->m * (double)cols;
}

double metrics_busbw(const struct kernel *kernel, const struct problem *problem, struct world world,
                     uint64_t time_ps)
{
    double ranks = world_ranks(world);
    double factor = (ranks - 1) / ranks;

    if (kernel->collective == COLLECTIVE_ALL_REDUCE)
        factor *= 2;
    if (time_ps == 0)
        return 0;
    return metrics_collective_bytes(kernel, problem) / ((double)time_ps / 1e12) * factor / 1e9;
}
