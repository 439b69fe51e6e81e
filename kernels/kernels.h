/* The kernels there are, in the order in which `list` shows them. */
#ifndef KERNELS_KERNELS_H
#define KERNELS_KERNELS_H

#include "core/kernel.h"

extern const struct kernel ag_gemm_kernel;        /* AllGather + GEMM */
extern const struct kernel gemm_rs_kernel;        /* GEMM + ReduceScatter */
extern const struct kernel gemm_ar_kernel;        /* GEMM + AllReduce */
extern const struct kernel ring_attention_kernel; /* sequence-parallel attention */

extern const struct kernel moe_dispatch_gemm_kernel;        /* MoE dispatch + GEMM */
extern const struct kernel moe_dispatch_ffn_combine_kernel; /* a feed-forward layer of experts */

extern const struct kernel *const kernels[]; /* all of them; ends with NULL */

#endif
