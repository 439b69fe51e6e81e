/* Rows by index, for the baselines: what a library does before and after tokens travel. */
#include <cuda_runtime_api.h>

#include "backends/cuda/gpu.h"

#define THREADS 256
#define BLOCKS_MAX 1056

/* A block a row at a time. */
template <typename unit> static __global__ void pick(const __grid_constant__ gpu_pick p)
{
    uint64_t units = p.row_bytes / sizeof(unit);

    for (uint64_t row = blockIdx.x; row < p.rows; row += gridDim.x) {
        uint64_t from = (uint64_t)((const int32_t *)p.index)[row] * p.row_bytes;

        for (uint64_t i = threadIdx.x; i < units; i += THREADS)
            ((unit *)(p.out + row * p.row_bytes))[i] = ((const unit *)(p.from + from))[i];
    }
}

extern "C" cudaError_t gpu_pick_launch(const struct gpu_pick *p, cudaStream_t stream)
{
    unsigned grid = p->rows < BLOCKS_MAX ? (unsigned)p->rows : BLOCKS_MAX;

    if (p->rows == 0)
        return cudaSuccess;
    if ((p->out | p->from | p->row_bytes) % sizeof(uint4) == 0)
        pick<uint4><<<grid, THREADS, 0, stream>>>(*p);
    else
        pick<uint16_t><<<grid, THREADS, 0, stream>>>(*p);
    return cudaGetLastError();
}
