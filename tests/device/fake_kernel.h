/* What a launch computes in the fake: the tables of a program, task by task, by ordinary arithmetic.  Knows gemm, copy,
 * reduce, put, nop, and attention whose keys are all in one task. */
#ifndef TESTS_DEVICE_FAKE_KERNEL_H
#define TESTS_DEVICE_FAKE_KERNEL_H

#include <stdint.h>

#include "backends/cuda/gpu.h"

/* Until all workers have come to their end, or the abort word is set and they have noted what they wait for. */
void fake_kernel_run(const struct gpu_program *p, uint32_t worker_count);

#endif
