/* The sum of rows that other ranks computed, for the baselines. */
#include <cuda_bf16.h>
#include <cuda_runtime_api.h>

#include "backends/cuda/gpu.h"

#define THREADS 256
#define BLOCKS_MAX 1056
#define PACK 8

struct pack {
    uint4 words;
};

static __device__ void add_pack(float sums[PACK], const pack &x)
{
    const __nv_bfloat162 *pairs = (const __nv_bfloat162 *)&x;

    for (int i = 0; i < PACK / 2; i++) {
        float2 pair = __bfloat1622float2(pairs[i]);

        sums[2 * i] += pair.x;
        sums[2 * i + 1] += pair.y;
    }
}

static __device__ pack round_pack(const float sums[PACK])
{
    pack x;
    __nv_bfloat162 *pairs = (__nv_bfloat162 *)&x;

    for (int i = 0; i < PACK / 2; i++)
        pairs[i] = __floats2bfloat162_rn(sums[2 * i], sums[2 * i + 1]);
    return x;
}

static __global__ void sum_packs(const __grid_constant__ gpu_sum s)
{
    uint64_t step = (uint64_t)gridDim.x * THREADS;

    for (uint64_t i = (uint64_t)blockIdx.x * THREADS + threadIdx.x; i < s.elements / PACK; i += step) {
        float sums[PACK] = {};

        add_pack(sums, ((const pack *)s.first)[i]);
        for (uint64_t k = 0; k < s.count; k++)
            add_pack(sums, ((const pack *)(s.rest + k * s.stride * sizeof(__nv_bfloat16)))[i]);
        ((pack *)s.out)[i] = round_pack(sums);
    }
}

static __global__ void sum_elements(const __grid_constant__ gpu_sum s)
{
    uint64_t step = (uint64_t)gridDim.x * THREADS;

    for (uint64_t i = (uint64_t)blockIdx.x * THREADS + threadIdx.x; i < s.elements; i += step) {
        float sum = __bfloat162float(((const __nv_bfloat16 *)s.first)[i]);

        for (uint64_t k = 0; k < s.count; k++)
            sum += __bfloat162float(((const __nv_bfloat16 *)s.rest)[k * s.stride + i]);
        ((__nv_bfloat16 *)s.out)[i] = __float2bfloat16_rn(sum);
    }
}

extern "C" cudaError_t gpu_sum_launch(const struct gpu_sum *s, cudaStream_t stream)
{
    bool packs = (s->out | s->first | s->rest | s->stride * 2 | s->elements * 2) % sizeof(pack) == 0;
    uint64_t work = packs ? s->elements / PACK : s->elements, blocks = (work + THREADS - 1) / THREADS;
    unsigned grid = blocks < BLOCKS_MAX ? (unsigned)blocks : BLOCKS_MAX;

    if (work == 0)
        return cudaSuccess;
    if (packs)
        sum_packs<<<grid, THREADS, 0, stream>>>(*s);
    else
        sum_elements<<<grid, THREADS, 0, stream>>>(*s);
    return cudaGetLastError();
}
