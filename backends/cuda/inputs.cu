/* Inputs, generated where they are needed: the values of core/check.h's tensor_row(), which a test
 * compares with these, or noise for timed runs.  And the gate that aligns devices before a timed
 * launch, and what compares their clocks with the host's. */
#include <cuda_runtime_api.h>

#include "backends/cuda/gpu.h"
#include "backends/cuda/ptx.cuh"
#include "core/input_hash.h"

static __device__ float noise_value(uint32_t bits, float spread)
{
    return ((float)bits / (1u << INPUT_LANE_BITS) - 0.5f) * spread;
}

static __device__ void write_value(const gpu_input &in, uint64_t at, float value)
{
    if (in.is_f32)
        ((float *)in.address)[at] = value;
    else
        ((unsigned short *)in.address)[at] = (unsigned short)pair_of(value, 0);
}

/* A block a row, a thread for every four columns that share a hash. */
static __global__ void write_input(const __grid_constant__ gpu_input in, uint64_t key, uint32_t threshold)
{
    uint64_t first_group = in.tensor_col / INPUT_LANES;
    uint64_t groups = (in.tensor_col + in.cols - 1) / INPUT_LANES - first_group + 1;

    for (uint64_t row = blockIdx.x; row < in.rows; row += gridDim.x) {
        uint64_t row_key = input_row_key(key, in.tensor_row + row);

        for (uint64_t g = threadIdx.x; g < groups; g += blockDim.x) {
            uint64_t hash = input_hash(row_key, first_group + g);

            for (uint32_t lane = 0; lane < INPUT_LANES; lane++) {
                uint64_t col = (first_group + g) * INPUT_LANES + lane;
                uint32_t bits = input_lane(hash, lane);

                if (col >= in.tensor_col && col < in.tensor_col + in.cols)
                    write_value(in, row * in.ld + (col - in.tensor_col),
                                in.depth ? (float)input_value(bits, threshold) : noise_value(bits, in.spread));
            }
        }
    }
}

#define BLOCKS_MAX 4096
#define THREADS 256

extern "C" cudaError_t gpu_write_input(const struct gpu_input *in, cudaStream_t stream)
{
    uint64_t key = input_tensor_key(in->seed, in->epoch, in->tensor);
    unsigned blocks = in->rows < BLOCKS_MAX ? (unsigned)in->rows : BLOCKS_MAX;

    if (in->rows == 0 || in->cols == 0)
        return cudaSuccess;
    write_input<<<blocks, THREADS, 0, stream>>>(*in, key, input_threshold(in->depth));
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

#define PING_NS 2000000000

static __global__ void answer(gpu_ping *p, uint32_t rounds)
{
    for (uint32_t i = 1; i <= rounds; i++) {
        uint64_t begun_ns = clock_ns();

        while (load_relaxed(&p->asked) != i)
            if (clock_ns() - begun_ns > PING_NS)
                return;
        p->ns = clock_ns();
        store_release_system((uint64_t)&p->answered, i);
    }
}

extern "C" cudaError_t gpu_ping_launch(struct gpu_ping *p, uint32_t rounds, cudaStream_t stream)
{
    answer<<<1, 1, 0, stream>>>(p, rounds);
    return cudaGetLastError();
}
