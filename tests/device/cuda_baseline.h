/* NCCL, copy engines and cuBLAS by the cuda backend: every GEMM kernel's baselines, exact. */
#ifndef TESTS_DEVICE_CUDA_BASELINE_H
#define TESTS_DEVICE_CUDA_BASELINE_H

#include <check.h>

/* Each combination runs `variations` times; `vary` is told which time it is.  NULL: nothing varies. */
TCase *cuda_baseline_tests(int variations, void (*vary)(int i));

#endif
