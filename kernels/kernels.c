#include "kernels/kernels.h"

#include <stddef.h>

const struct kernel *const kernels[] = {
    &ag_gemm_kernel,
    &gemm_rs_kernel,
    &gemm_ar_kernel,
    &ring_attention_kernel,
    &moe_dispatch_gemm_kernel,
    &moe_dispatch_ffn_combine_kernel,
    NULL,
};
