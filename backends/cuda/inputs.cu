/* Inputs, generated where they are needed: the values of core/check.h's tensor_row(), which a test
 * compares with these, or noise for timed runs.  And the gate that aligns devices before a timed
 * launch. */
#include <cuda_runtime_api.h>

#include "backends/cuda/gpu.h"
#include "backends/cuda/ptx.cuh"

#define LANES 4
#define LANE_BITS 16
#define LANE_ONE (1u << (LANE_BITS - 1))
#define GOLDEN 0x9e3779b97f4a7c15ull

static __host__ __device__ uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ x >> 27) * 0x94d049bb133111ebull;
    return x ^ x >> 31;
}

static uint64_t integer_sqrt(uint64_t x)
{
    uint64_t root = 0;

    for (uint64_t bit = 1ull << 31; bit > 0; bit >>= 1)
        if ((root + bit) * (root + bit) <= x)
            root += bit;
    return root;
}

static uint32_t density(uint64_t depth)
{
    uint64_t root = depth <= 64 ? LANE_ONE : integer_sqrt(64ull * LANE_ONE * LANE_ONE / depth);

    return root > 0 ? (uint32_t)root : 1;
}

static __device__ float exact_value(uint32_t bits, uint32_t threshold)
{
    return bits >> 1 < threshold ? 1.0f - 2.0f * (bits & 1) : 0.0f;
}

static __device__ float noise_value(uint32_t bits, float spread)
{
    return ((float)bits / (1u << LANE_BITS) - 0.5f) * spread;
}

static __device__ void write_value(const gpu_input &in, uint64_t at, float value)
{
    if (in.is_f32)
        ((float *)in.address)[at] = value;
    else
        ((unsigned short *)in.address)[at] = (unsigned short)pair_of(value, 0);
}

/* A block a row, a thread for every four columns that share a hash. */
static __global__ void write_input(const __grid_constant__ gpu_input in, uint64_t key,
                                   uint32_t threshold)
{
    uint64_t first_group = in.tensor_col / LANES;
    uint64_t groups = (in.tensor_col + in.cols - 1) / LANES - first_group + 1;

    for (uint64_t row = blockIdx.x; row < in.rows; row += gridDim.x) {
        uint64_t row_key = mix(key ^ (in.tensor_row + row));

        for (uint64_t g = threadIdx.x; g < groups; g += blockDim.x) {
            uint64_t hash = mix(row_key + (first_group + g) * GOLDEN);

            for (uint32_t lane = 0; lane < LANES; lane++) {
                uint64_t col = (first_group + g) * LANES + lane;
                uint32_t bits = hash >> lane * LANE_BITS & ((1u << LANE_BITS) - 1);

                if (col >= in.tensor_col && col < in.tensor_col + in.cols)
                    write_value(in, row * in.ld + (col - in.tensor_col),
                                in.depth ? exact_value(bits, threshold) : noise_value(bits, in.spread));
            }
        }
    }
}

#define BLOCKS_MAX 4096
#define THREADS 256

extern "C" cudaError_t gpu_write_input(const struct gpu_input *in, cudaStream_t stream)
{
    uint64_t key = mix(mix(mix(in->seed + GOLDEN) ^ in->epoch) + in->tensor);
    unsigned blocks = in->rows < BLOCKS_MAX ? (unsigned)in->rows : BLOCKS_MAX;

    if (in->rows == 0 || in->cols == 0)
        return cudaSuccess;
    write_input<<<blocks, THREADS, 0, stream>>>(*in, key, density(in->depth));
    return cudaGetLastError();
}

static __global__ void gate(const uint32_t *word, uint32_t value)
{
    while ((int32_t)(load_relaxed(word) - value) < 0)
        __nanosleep(100);
}

extern "C" cudaError_t gpu_gate_launch(const uint32_t *word, uint32_t value, cudaStream_t stream)
{
    gate<<<1, 1, 0, stream>>>(word, value);
    return cudaGetLastError();
}
