#include "backends/cuda/cublas.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "backends/cuda/symbol.h"

/* Values of its enumerations, which are part of its binary interface. */
#define OP_N 0
#define OP_T 1
#define TYPE_BF16 14
#define COMPUTE_F32 68
#define ALGORITHM_DEFAULT (-1)

bool cublas_open(struct cublas *c, char *why, size_t why_bytes)
{
    static const char *const names[] = {"libcublas.so.13", "libcublas.so.12", "libcublas.so"};
    int (*create)(void **handle);

    memset(c, 0, sizeof *c);
    for (size_t i = 0; !c->library && i < sizeof names / sizeof *names; i++)
        c->library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    if (!c->library) {
        snprintf(why, why_bytes, "cuBLAS was not found: %s", dlerror());
        return false;
    }
    if (!symbol_find(c->library, "cublasCreate_v2", &create) || !symbol_find(c->library, "cublasGemmEx", &c->gemm) ||
        !symbol_find(c->library, "cublasGemmStridedBatchedEx", &c->gemm_batched) ||
        !symbol_find(c->library, "cublasSetStream_v2", &c->set_stream) ||
        !symbol_find(c->library, "cublasDestroy_v2", &c->destroy) || create(&c->handle) != 0) {
        snprintf(why, why_bytes, "cuBLAS could not be opened on this device");
        return false;
    }
    return true;
}

void cublas_close(struct cublas *c)
{
    if (c->handle)
        c->destroy(c->handle);
    if (c->library)
        dlclose(c->library);
    memset(c, 0, sizeof *c);
}

/* cuBLAS thinks in columns: what it calls C is our result transposed. */
bool cublas_multiply(struct cublas *c, cudaStream_t stream, uint64_t m, uint64_t n, uint64_t k, const void *a,
                     const void *b, void *out)
{
    const float one = 1, zero = 0;

    return c->set_stream(c->handle, stream) == 0 &&
           c->gemm(c->handle, OP_T, OP_N, (int)n, (int)m, (int)k, &one, b, TYPE_BF16, (int)k, a, TYPE_BF16, (int)k,
                   &zero, out, TYPE_BF16, (int)n, COMPUTE_F32, ALGORITHM_DEFAULT) == 0;
}

bool cublas_multiply_batched(struct cublas *c, cudaStream_t stream, uint64_t count, uint64_t m, uint64_t n, uint64_t k,
                             const void *a, const void *b, void *out)
{
    const float one = 1, zero = 0;

    return c->set_stream(c->handle, stream) == 0 &&
           c->gemm_batched(c->handle, OP_T, OP_N, (int)n, (int)m, (int)k, &one, b, TYPE_BF16, (int)k,
                           (long long)(n * k), a, TYPE_BF16, (int)k, (long long)(m * k), &zero, out, TYPE_BF16, (int)n,
                           (long long)(m * n), (int)count, COMPUTE_F32, ALGORITHM_DEFAULT) == 0;
}
