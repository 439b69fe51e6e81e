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

/* Once per device, before the first launch there. */
cudaError_t gpu_interpreter_prepare(void);
/* `attends`: by the kernel that has attention, and no routes or gathers. */
cudaError_t gpu_interpreter_launch(const struct gpu_program *p, bool attends, uint32_t workers,
                                   cudaStream_t stream);

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

#ifdef __cplusplus
}
#endif

#endif
