#include "core/run/metrics.h"

double metrics_tflops(const struct kernel *kernel, const struct problem *problem, struct world world, uint64_t time_ps)
{
    /* 1e12 flop/s is one flop per picosecond */
    return time_ps ? kernel->family->flops(problem, world) / (double)time_ps : 0;
}

double metrics_collective_bytes(const struct kernel *kernel, const struct problem *problem)
{
    return kernel->collective == COLLECTIVE_ALL_GATHER ? kernel->family->gathered_bytes(problem)
                                                       : kernel->family->reduced_bytes(problem);
}

double metrics_busbw(const struct kernel *kernel, const struct problem *problem, struct world world, uint64_t time_ps)
{
    double ranks = world_ranks(world);
    double factor = (ranks - 1) / ranks;

    if (kernel->collective == COLLECTIVE_ALL_REDUCE)
        factor *= 2;
    if (kernel->collective == COLLECTIVE_ALL_TO_ALL)
        factor /= ranks; /* nccl-tests takes what one rank sends */
    if (time_ps == 0)
        return 0;
    return metrics_collective_bytes(kernel, problem) / ((double)time_ps / 1e12) * factor / 1e9;
}
