/* cuBLAS, found at run time: the baselines' GEMM.  Building needs none. */
#ifndef BACKENDS_CUDA_CUBLAS_H
#define BACKENDS_CUDA_CUBLAS_H

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cublas {
    void *library;
    void *handle; /* of the device that was current when it was opened */
    int (*gemm)(void *handle, int transpose_a, int transpose_b, int m, int n, int k, const void *alpha, const void *a,
                int a_type, int lda, const void *b, int b_type, int ldb, const void *beta, void *c, int c_type, int ldc,
                int compute_type, int algorithm);
    int (*gemm_batched)(void *handle, int transpose_a, int transpose_b, int m, int n, int k, const void *alpha,
                        const void *a, int a_type, int lda, long long a_stride, const void *b, int b_type, int ldb,
                        long long b_stride, const void *beta, void *c, int c_type, int ldc, long long c_stride,
                        int count, int compute_type, int algorithm);
    int (*set_stream)(void *handle, cudaStream_t stream);
    int (*destroy)(void *handle);
};

bool cublas_open(struct cublas *c, char *why, size_t why_bytes);
void cublas_close(struct cublas *c); /* safe on a zeroed one */

/* out[m, n] = a[m, k] x b[n, k]^T, bf16, f32 sums, rows without gaps.  False: cuBLAS refused. */
bool cublas_multiply(struct cublas *c, cudaStream_t stream, uint64_t m, uint64_t n, uint64_t k, const void *a,
                     const void *b, void *out);
/* `count` of these, operands and results one behind the other. */
bool cublas_multiply_batched(struct cublas *c, cudaStream_t stream, uint64_t count, uint64_t m, uint64_t n, uint64_t k,
                             const void *a, const void *b, void *out);

#endif
