/* What a layer of experts takes beside its GEMMs and the moving of rows, for the baselines: the activation, and the sums
 * of what has come back. */
#include <cuda_bf16.h>
#include <cuda_runtime_api.h>

#include "backends/cuda/gpu.h"

#define THREADS 256
#define BLOCKS_MAX 1056
#define PACK 8 /* columns of 16 bytes */

template <int width> struct alignas(2 * width) columns {
    __nv_bfloat16 values[width];
};

static __device__ __nv_bfloat16 activated(__nv_bfloat16 gate_in, __nv_bfloat16 up)
{
    float gate = __bfloat162float(gate_in);

    return __float2bfloat16_rn(gate / (1 + __expf(-gate)) * __bfloat162float(up));
}

/* An element's gate stands in a group of gates, its up as far behind as the group is wide. */
static __global__ void activate_elements(const __grid_constant__ gpu_activation a)
{
    uint64_t step = (uint64_t)gridDim.x * THREADS;

    for (uint64_t i = (uint64_t)blockIdx.x * THREADS + threadIdx.x; i < a.rows * a.cols; i += step) {
        uint64_t row = i / a.cols, col = i % a.cols, group = col - col % SWIGLU_GROUP, left = a.cols - group;
        const __nv_bfloat16 *gate = (const __nv_bfloat16 *)a.sums + row * 2 * a.cols + group + col;

        ((__nv_bfloat16 *)a.out)[i] = activated(gate[0], gate[left < SWIGLU_GROUP ? left : SWIGLU_GROUP]);
    }
}

/* Where all groups are whole. */
static __global__ void activate_groups(const __grid_constant__ gpu_activation a)
{
    uint64_t step = (uint64_t)gridDim.x * THREADS;

    for (uint64_t i = (uint64_t)blockIdx.x * THREADS + threadIdx.x; i < a.rows * a.cols / PACK; i += step) {
        columns<PACK> gate = ((const columns<PACK> *)a.sums)[2 * i], up = ((const columns<PACK> *)a.sums)[2 * i + 1];
        columns<PACK> result;

        for (int k = 0; k < PACK; k++)
            result.values[k] = activated(gate.values[k], up.values[k]);
        ((columns<PACK> *)a.out)[i] = result;
    }
}

static unsigned blocks_for(uint64_t count)
{
    return (unsigned)(count < BLOCKS_MAX ? count : BLOCKS_MAX);
}

extern "C" cudaError_t gpu_activation_launch(const struct gpu_activation *a, cudaStream_t stream)
{
    bool groups = (a->out | a->sums | a->cols * 2) % sizeof(columns<PACK>) == 0;
    unsigned grid = blocks_for((a->rows * a->cols / (groups ? PACK : 1) + THREADS - 1) / THREADS);

    static_assert(PACK == SWIGLU_GROUP, "a pack is a group");
    if (grid == 0)
        return cudaSuccess;
    if (groups)
        activate_groups<<<grid, THREADS, 0, stream>>>(*a);
    else
        activate_elements<<<grid, THREADS, 0, stream>>>(*a);
    return cudaGetLastError();
}

/* Some columns of a row's sum. */
template <int width> static __device__ columns<width> combined(const gpu_combination &c, uint64_t row, uint64_t part)
{
    float sums[width] = {};
    columns<width> result;

    for (uint64_t j = row * c.terms; j < (row + 1) * c.terms; j++) {
        int32_t index = ((const int32_t *)c.index)[j];
        float weight = ((const float *)c.weight)[j];

        if (index == INDEX_DROPPED)
            continue;
        columns<width> x = ((const columns<width> *)c.from)[(uint64_t)index * (c.cols / width) + part];

        for (int k = 0; k < width; k++)
            sums[k] += weight * __bfloat162float(x.values[k]);
    }
    for (int k = 0; k < width; k++)
        result.values[k] = __float2bfloat16_rn(sums[k]);
    return result;
}

/* A block a row at a time. */
template <int width> static __global__ void combine(const __grid_constant__ gpu_combination c)
{
    uint64_t parts = c.cols / width;

    for (uint64_t row = blockIdx.x; row < c.rows; row += gridDim.x)
        for (uint64_t part = threadIdx.x; part < parts; part += THREADS)
            ((columns<width> *)c.out)[row * parts + part] = combined<width>(c, row, part);
}

extern "C" cudaError_t gpu_combination_launch(const struct gpu_combination *c, cudaStream_t stream)
{
    if (c->rows == 0)
        return cudaSuccess;
    if ((c->out | c->from | c->cols * 2) % sizeof(columns<PACK>) == 0)
        combine<PACK><<<blocks_for(c->rows), THREADS, 0, stream>>>(*c);
    else
        combine<1><<<blocks_for(c->rows), THREADS, 0, stream>>>(*c);
    return cudaGetLastError();
}
