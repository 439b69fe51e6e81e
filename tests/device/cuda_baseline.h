/* Baselines of the cuda backend, by NCCL, copy engines, cuBLAS and the interpreter: exact, or within the bound. */
#ifndef TESTS_DEVICE_CUDA_BASELINE_H
#define TESTS_DEVICE_CUDA_BASELINE_H

#include <check.h>

/* Each combination of GEMMs runs `variations` times; `vary` is told which time it is, and `variations` where the other
 * kernels run, whose ranks want a GPU each.  NULL: nothing varies. */
TCase *cuda_baseline_tests(int variations, void (*vary)(int i));

#endif
