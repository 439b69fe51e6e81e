/* The one call into OpenBLAS. */
#ifndef BACKENDS_OPS_BLAS_H
#define BACKENDS_OPS_BLAS_H

#include <stdint.h>

/* sum[m, n] += a[m, k] x b[n, k]^T, all row-major without gaps.  Any number of threads may call. */
void blas_add_product(uint64_t m, uint64_t n, uint64_t k, const float *a, const float *b, float *sum);

#endif
