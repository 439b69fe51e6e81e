/* The one matrix instruction the interpreter uses: m64n256k16, both operands K-major in shared memory,
 * bf16 in, f32 sums.  Register operands have to be written out one by one. */
#ifndef BACKENDS_CUDA_WGMMA_CUH
#define BACKENDS_CUDA_WGMMA_CUH

#include "backends/cuda/ptx.cuh"

#define REG4(mode, d, i) mode((d)[i]), mode((d)[(i) + 1]), mode((d)[(i) + 2]), mode((d)[(i) + 3])
#define REG16(mode, d, i) REG4(mode, d, i), REG4(mode, d, i + 4), REG4(mode, d, i + 8), REG4(mode, d, i + 12)
#define REG64(mode, d, i) REG16(mode, d, i), REG16(mode, d, i + 16), REG16(mode, d, i + 32), REG16(mode, d, i + 48)
#define REG128(mode, d) REG64(mode, d, 0), REG64(mode, d, 64)
#define REG_NEW "=f"
#define REG_ADDED "+f"

/* `scale`: 0 to start the sums afresh, 1 to add to them. */
#define WGMMA_M64N256K16(scale, mode, d, a, b)                                                                         \
    asm volatile("wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 {"                                             \
                 "%0, %1, %2, %3, %4, %5, %6, %7, "                                                                    \
                 "%8, %9, %10, %11, %12, %13, %14, %15, "                                                              \
                 "%16, %17, %18, %19, %20, %21, %22, %23, "                                                            \
                 "%24, %25, %26, %27, %28, %29, %30, %31, "                                                            \
                 "%32, %33, %34, %35, %36, %37, %38, %39, "                                                            \
                 "%40, %41, %42, %43, %44, %45, %46, %47, "                                                            \
                 "%48, %49, %50, %51, %52, %53, %54, %55, "                                                            \
                 "%56, %57, %58, %59, %60, %61, %62, %63, "                                                            \
                 "%64, %65, %66, %67, %68, %69, %70, %71, "                                                            \
                 "%72, %73, %74, %75, %76, %77, %78, %79, "                                                            \
                 "%80, %81, %82, %83, %84, %85, %86, %87, "                                                            \
                 "%88, %89, %90, %91, %92, %93, %94, %95, "                                                            \
                 "%96, %97, %98, %99, %100, %101, %102, %103, "                                                        \
                 "%104, %105, %106, %107, %108, %109, %110, %111, "                                                    \
                 "%112, %113, %114, %115, %116, %117, %118, %119, "                                                    \
                 "%120, %121, %122, %123, %124, %125, %126, %127"                                                      \
                 "}, %128, %129, " scale ", 1, 1, 0, 0;"                                                               \
                 : REG128(mode, d)                                                                                     \
                 : "l"(a), "l"(b))

/* d = a x b^T */
PTX void wgmma_start(float (&d)[128], uint64_t a, uint64_t b)
{
    WGMMA_M64N256K16("0", REG_NEW, d, a, b);
}

/* d += a x b^T */
PTX void wgmma_add(float (&d)[128], uint64_t a, uint64_t b)
{
    WGMMA_M64N256K16("1", REG_ADDED, d, a, b);
}

#endif
