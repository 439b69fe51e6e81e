/* The kernels, as C sees them. */
#ifndef BACKENDS_CUDA_GPU_H
#define BACKENDS_CUDA_GPU_H

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stdint.h>

#include "backends/cuda/words.h"

#ifdef __cplusplus
extern "C" {
#endif

struct gpu_interpreter {
    /* Once per device, before the first launch there. */
    cudaError_t (*prepare)(void);
    /* `needs`: GPU_NEEDS_*. */
    cudaError_t (*launch)(const struct gpu_program *p, unsigned needs, uint32_t workers, cudaStream_t stream);
};

extern const struct gpu_interpreter gpu_interpreter;
extern const struct gpu_interpreter gpu_interpreter_traced; /* needs p->logs and p->records, zeroed */

/* A rectangle of a tensor into memory: what tensor_row() gives, as bf16 or f32; with depth 0 noise,
 * spread evenly over [-spread / 2, spread / 2), whose products cost a GPU as much power as real data
 * do. */
struct gpu_input {
    uint64_t address, ld; /* elements */
    uint64_t rows, cols;
    uint64_t seed, epoch, depth;
    uint64_t tensor_row, tensor_col;
    uint32_t tensor, is_f32;
    float spread;
};

cudaError_t gpu_write_input(const struct gpu_input *in, cudaStream_t stream);

/* Spins until *word (pinned) has reached `value`, so that work can be enqueued behind it. */
cudaError_t gpu_gate_launch(const uint32_t *word, uint32_t value, cudaStream_t stream);

/* out[i] = first[i] + rest[i] + rest[stride + i] + ..., `count` of the latter; bf16, f32 sums in that order. */
struct gpu_sum {
    uint64_t out, first, rest; /* addresses */
    uint64_t stride, count, elements;
};

cudaError_t gpu_sum_launch(const struct gpu_sum *s, cudaStream_t stream);

/* Row i of `out` is the row of `from` that index[i] (32 bits) names. */
struct gpu_pick {
    uint64_t out, from, index; /* addresses */
    uint64_t rows, row_bytes;  /* an even number of these */
};

cudaError_t gpu_pick_launch(const struct gpu_pick *p, cudaStream_t stream);

/* out[i, j] = g / (1 + exp(-g)) * u of two sums of row i, in groups (core/program.h, EPILOGUE_SWIGLU); all bf16. */
struct gpu_activation {
    uint64_t out, sums;  /* addresses */
    uint64_t rows, cols; /* of `out` */
};

cudaError_t gpu_activation_launch(const struct gpu_activation *a, cudaStream_t stream);

/* Row i of `out` is the sum of weight[i, j] times the row of `from` that index[i, j] (32 bits) names, or INDEX_DROPPED;
 * f32 weights and sums, bf16 rows. */
struct gpu_combination {
    uint64_t out, from, index, weight; /* addresses */
    uint64_t rows, cols, terms;
};

cudaError_t gpu_combination_launch(const struct gpu_combination *c, cudaStream_t stream);

/* In pinned memory: the host asks by numbers from 1 on, the device answers with that number, and its time beside it. */
struct gpu_ping {
    uint64_t answered, ns;
    uint32_t asked, reserved;
};

/* Answers `rounds` times, or until nobody has asked for two seconds. */
cudaError_t gpu_ping_launch(struct gpu_ping *p, uint32_t rounds, cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
