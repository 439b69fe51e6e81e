/* Every kernel's problem once more, serial and obvious. */
#ifndef KERNELS_REFERENCE_H
#define KERNELS_REFERENCE_H

#include <stdint.h>

#include "core/kernel.h"

/* struct kernel's `reference` for all kernels whose result is one GEMM. */
void reference_gemm(const struct problem *global, uint64_t seed, uint64_t epoch, uint64_t row, uint64_t rows,
                    uint64_t col, uint64_t cols, int16_t *out);

/* struct kernel's `bounded` for attention. */
extern const struct bounded_check reference_attention;

#endif
