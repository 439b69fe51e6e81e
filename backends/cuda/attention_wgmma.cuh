/* The matrix instructions of attention: the left operand in registers, four a thread for 16 columns. */
#ifndef BACKENDS_CUDA_ATTENTION_WGMMA_CUH
#define BACKENDS_CUDA_ATTENTION_WGMMA_CUH

#include "backends/cuda/wgmma.cuh"

#define REG32(mode, d) REG16(mode, d, 0), REG16(mode, d, 16)

/* `scale`: 0 to start the sums afresh, 1 to add to them.  `transpose`: 1 if b is N-major. */
#define WGMMA_M64N128K16(scale, transpose, regs, a, b)                                                                 \
    asm volatile("wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {"                                             \
                 "%0, %1, %2, %3, %4, %5, %6, %7, "                                                                    \
                 "%8, %9, %10, %11, %12, %13, %14, %15, "                                                              \
                 "%16, %17, %18, %19, %20, %21, %22, %23, "                                                            \
                 "%24, %25, %26, %27, %28, %29, %30, %31, "                                                            \
                 "%32, %33, %34, %35, %36, %37, %38, %39, "                                                            \
                 "%40, %41, %42, %43, %44, %45, %46, %47, "                                                            \
                 "%48, %49, %50, %51, %52, %53, %54, %55, "                                                            \
                 "%56, %57, %58, %59, %60, %61, %62, %63"                                                              \
                 "}, {%64, %65, %66, %67}, %68, " scale ", 1, 1, " transpose ";"                                       \
                 : regs                                                                                                \
                 : "r"((a)[0]), "r"((a)[1]), "r"((a)[2]), "r"((a)[3]), "l"(b))

#define WGMMA_M64N64K16(scale, transpose, regs, a, b)                                                                  \
    asm volatile("wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {"                                              \
                 "%0, %1, %2, %3, %4, %5, %6, %7, "                                                                    \
                 "%8, %9, %10, %11, %12, %13, %14, %15, "                                                              \
                 "%16, %17, %18, %19, %20, %21, %22, %23, "                                                            \
                 "%24, %25, %26, %27, %28, %29, %30, %31"                                                              \
                 "}, {%32, %33, %34, %35}, %36, " scale ", 1, 1, " transpose ";"                                       \
                 : regs                                                                                                \
                 : "r"((a)[0]), "r"((a)[1]), "r"((a)[2]), "r"((a)[3]), "l"(b))

/* d[64, 128] = a[64, 16] x b[128, 16]^T */
PTX void wgmma_keys_start(float (&d)[64], const uint32_t *a, uint64_t b)
{
    WGMMA_M64N128K16("0", "0", REG64(REG_NEW, d, 0), a, b);
}

/* d[64, 128] += a[64, 16] x b[128, 16]^T */
PTX void wgmma_keys_add(float (&d)[64], const uint32_t *a, uint64_t b)
{
    WGMMA_M64N128K16("1", "0", REG64(REG_ADDED, d, 0), a, b);
}

/* d[64, 128] += a[64, 16] x b[16, 128] */
PTX void wgmma_values_add(float (&d)[64], const uint32_t *a, uint64_t b)
{
    WGMMA_M64N128K16("1", "1", REG64(REG_ADDED, d, 0), a, b);
}

/* d[64, 64] += a[64, 16] x b[16, 64] */
PTX void wgmma_values_add(float (&d)[32], const uint32_t *a, uint64_t b)
{
    WGMMA_M64N64K16("1", "1", REG32(REG_ADDED, d), a, b);
}

/* An N-major operand in shared memory: panels of 64 columns, `panel_bytes` apart, rows of 128 bytes,
 * swizzled, groups of 8 rows 1024 bytes apart. */
PTX uint64_t wgmma_operand_rows(uint32_t address, uint32_t panel_bytes)
{
    return (uint64_t)((address & 0x3ffff) >> 4) | (uint64_t)(panel_bytes >> 4) << 16 | 64ull << 32 | 1ull << 62;
}

#endif
