#include "backends/cuda/maps.h"

#include <cuda_runtime_api.h>
#include <stdlib.h>
#include <string.h>

typedef CUresult encode_fn(CUtensorMap *, CUtensorMapDataType, cuuint32_t, void *, const cuuint64_t *,
                           const cuuint64_t *, const cuuint32_t *, const cuuint32_t *, CUtensorMapInterleave,
                           CUtensorMapSwizzle, CUtensorMapL2promotion, CUtensorMapFloatOOBfill);

static encode_fn *find_encode(void)
{
    enum cudaDriverEntryPointQueryResult found;
    void *entry = NULL;
    encode_fn *encode;

    if (cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &entry, 12000, cudaEnableDefault, &found) !=
        cudaSuccess)
        return NULL;
    memcpy(&encode, &entry, sizeof encode);
    return encode;
}

/* Boxes of 128 bytes, the width of the swizzle, in a row: 64 columns of bf16 or 32 of f32.  What lies
 * outside the matrix reads as 0 and is not written. */
static bool encode_map(encode_fn *encode, const struct view_map *m, CUtensorMap *out)
{
    cuuint32_t bytes = m->is_f32 ? 4 : 2;
    cuuint64_t extent[2] = {m->cols, m->rows}, stride[1] = {m->cols * bytes};
    cuuint32_t box[2] = {128 / bytes, m->box_rows}, step[2] = {1, 1};

    return encode(out, m->is_f32 ? CU_TENSOR_MAP_DATA_TYPE_FLOAT32 : CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2,
                  (void *)(uintptr_t)m->address, extent, stride, box, step, CU_TENSOR_MAP_INTERLEAVE_NONE,
                  CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
                  CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS;
}

CUtensorMap *maps_encode(const struct lowered *l)
{
    const struct view_map *maps = l->maps.items;
    encode_fn *encode = find_encode();
    CUtensorMap *out = aligned_alloc(64, (l->maps.count + 1) * sizeof *out);
    bool ok = encode && out;

    for (size_t i = 0; ok && i < l->maps.count; i++)
        ok = encode_map(encode, &maps[i], &out[i]);
    if (ok)
        return out;
    free(out);
    return NULL;
}
