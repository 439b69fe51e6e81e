/* Constants as in NCCL's public source, src/graph/tuning.cc and src/include, tag v2.30.7-1. */
#include "sim/nccl_constants.h"

#include "core/kernel.h"

#define KIB (UINT64_C(1) << 10)
#define MIB (UINT64_C(1) << 20)
#define GIB (UINT64_C(1) << 30)

/* clang-format off */
const struct nccl_constants nccl_constants_2_30_7 = {
    .version = "2.30.7",
    .base_latency_us = {      /*  LL  LL128  Simple */
        [NCCL_TREE]           = { 6.8, 14.0,  8.4 },
        [NCCL_RING]           = { 6.6, 14.0,  8.4 },
        [NCCL_PAT]            = { 8.0,  8.0,  8.0 },
    },
    .hop_latency_us = {
        [NCCL_LINK_NVLINK] = {
            [NCCL_TREE]       = { 0.6, 1.25,  4.0 },
            [NCCL_RING]       = { 0.6,  1.9,  3.4 },
            [NCCL_NVLS]       = { 0.0,  0.0, 25.0 },
            [NCCL_NVLS_TREE]  = { 0.0,  0.0, 25.0 },
            [NCCL_PAT]        = { 0.0,  0.0,  4.0 },
        },
        [NCCL_LINK_NET] = {
            [NCCL_TREE]       = { 5.0,  8.5, 14.0 },
            [NCCL_RING]       = { 2.7,  4.0, 14.0 },
            [NCCL_NVLS]       = { 0.0,  0.0, 18.0 },
            [NCCL_NVLS_TREE]  = { 0.0,  0.0, 20.9 },
            [NCCL_PAT]        = { 0.0,  0.0, 14.0 },
        },
    },
    .net_overhead_us = { [NCCL_CPU_INTEL] = 1.0, [NCCL_CPU_AMD] = 2.0, [NCCL_CPU_OTHER] = 1.0 },
    .ring_ll128_max = { /* 1 node  2 nodes  more */
        [NCCL_VOLTA]     = { 20.0, 20.0, 20.0 },
        [NCCL_AMPERE]    = { 20.0, 20.0, 20.0 },
        [NCCL_HOPPER]    = { 36.7, 36.7, 36.7 },
        [NCCL_BLACKWELL] = { 40.0, 40.0, 40.0 },
    },
    .tree_ll128_max = {
        [NCCL_VOLTA]     = { 20.0, 20.0, 20.0 },
        [NCCL_AMPERE]    = { 20.0, 20.0, 20.0 },
        [NCCL_HOPPER]    = { 36.7, 36.7, 29.0 },
        [NCCL_BLACKWELL] = { 55.6, 31.67, 20.0 },
    },
    .tree_max = {
        [NCCL_VOLTA]     = { 26.5, 18.5, 10.0 },
        [NCCL_AMPERE]    = { 24.0, 23.6, 17.8 },
        [NCCL_HOPPER]    = { 38.7, 41.4, 36.0 },
        [NCCL_BLACKWELL] = { 70.0, 42.8, 24.0 },
    },
    .nvls_tree_max = {
        [NCCL_VOLTA]     = { 26.5, 18.5, 10.0 },
        [NCCL_AMPERE]    = { 24.0, 23.6, 17.8 },
        [NCCL_HOPPER]    = { 0.0, 57.7, 45.5 },
        [NCCL_BLACKWELL] = { 0.0, 96.0, 80.0 },
    },
    .ll_max = {
        [NCCL_VOLTA]     = { 39.0, 39.0, 20.4 },
        [NCCL_AMPERE]    = { 87.7, 22.5, 19.0 },
        [NCCL_HOPPER]    = { 141.0, 45.0, 35.0 },
        [NCCL_BLACKWELL] = { 282.0, 90.0, 70.0 },
    },
    .nvls_efficiency = { [NCCL_HOPPER] = 0.85, [NCCL_BLACKWELL] = 0.74 },
    .tree_correction = {
        [NCCL_LL]     = { 1, 1, 1, 1, .9, .8, .7, .7, .7, .7, .6, .5,
                          .4, .4, .5, .6, .7, .8, .9, 1, 1, 1, 1, 1 },
        [NCCL_LL128]  = { 1, 1, 1, 1, 1, .9, .8, .8, .8, .7, .6, .6,
                          .6, .6, .6, .6, .8, .9, .9, .9, .9, 1, 1, 1 },
        [NCCL_SIMPLE] = { .9, .9, .9, .9, .9, .9, .9, .8, .7, .6, .6, .5,
                          .5, .5, .5, .6, .7, .8, .7, .7, .8, .9, .9, .9 },
    },
    .threads_max  = { 512, 640, 512 },
    .thread_bytes = { 8, 8, 64 },
};

#define AG     (1u << COLLECTIVE_ALL_GATHER)
#define RS     (1u << COLLECTIVE_REDUCE_SCATTER)
#define AR     (1u << COLLECTIVE_ALL_REDUCE)
#define LL     (1u << NCCL_LL)
#define LL128  (1u << NCCL_LL128)
#define SIMPLE (1u << NCCL_SIMPLE)
#define ANY    UINT32_MAX

/* Each factor is a published or recorded time (docs/nccl-model.md) over the bare model's time for
 * the same machine and size.  Nodes of one to three GPUs have no curve: a factor from full nodes
 * makes them 18 to 39 % too slow (10 x 2 H100), the bare model is within 11 %.  Ring Simple over
 * two GPUs has curves of its own: there a ring has one step only, nothing overlaps the local copy,
 * and it reaches 270 GB/s where eight GPUs reach 360. */
const struct nccl_correction nccl_corrections[] = {
    { .source = "8 x H100, aws-samples nccl-tests README",
      .collectives = AR, .algorithm = NCCL_NVLS, .protocols = SIMPLE,
      .ranks_min = 2, .ranks_max = ANY, .gpus_min = 2,
      .points = { { 4 * MIB, 1.37 }, { 16 * MIB, 1.43 }, { 64 * MIB, 1.20 }, { 256 * MIB, 1.11 },
                  { 1 * GIB, 1.07 }, { 8 * GIB, 0.99 } } },
    { .source = "8 x H100, aws-samples nccl-tests README",
      .collectives = AR, .algorithm = NCCL_RING, .protocols = LL,
      .ranks_min = 3, .ranks_max = ANY, .gpus_min = 3,
      .points = { { 256, 1.05 }, { 8 * KIB, 1.12 }, { 64 * KIB, 1.21 }, { 256 * KIB, 1.11 },
                  { 1 * MIB, 1.02 } } },
    { .source = "2 x H200, results/reference/h200",
      .collectives = AG | RS, .algorithm = NCCL_RING, .protocols = SIMPLE,
      .ranks_min = 2, .ranks_max = 2, .gpus_min = 2,
      .points = { { 4 * MIB, 1.41 }, { 16 * MIB, 1.49 }, { 64 * MIB, 1.53 }, { 256 * MIB, 1.47 },
                  { 1 * GIB, 1.32 } } },
    { .source = "2 x H200, results/reference/h200",
      .collectives = AR, .algorithm = NCCL_RING, .protocols = SIMPLE,
      .ranks_min = 2, .ranks_max = 2, .gpus_min = 2,
      .points = { { 4 * MIB, 1.22 }, { 16 * MIB, 1.24 }, { 64 * MIB, 1.22 }, { 256 * MIB, 1.16 },
                  { 1 * GIB, 1.07 } } },
    { .source = "8 x H100, xxrjun/nccl-tests-cluster",
      .collectives = AG | RS, .algorithm = NCCL_RING, .protocols = LL128 | SIMPLE,
      .ranks_min = 3, .ranks_max = ANY, .gpus_min = 3,
      .points = { { 32 * MIB, 1.03 }, { 128 * MIB, 1.06 }, { 256 * MIB, 1.05 }, { 1 * GIB, 1.03 } } },
    { .source = "2 x 8 H200, RoCE, Google A3 Ultra",
      .collectives = AG | RS, .algorithm = NCCL_RING, .protocols = LL128 | SIMPLE,
      .across_nodes = true, .ranks_min = 8, .ranks_max = ANY, .gpus_min = 4,
      .points = { { 16 * MIB, 1.25 }, { 64 * MIB, 1.26 }, { 256 * MIB, 1.21 }, { 1 * GIB, 1.15 },
                  { 8 * GIB, 1.16 } } },
    { .source = "2 and 4 x 8 H100, nccl-tests issue 309",
      .collectives = AR, .algorithm = NCCL_NVLS_TREE, .protocols = SIMPLE,
      .across_nodes = true, .ranks_min = 8, .ranks_max = ANY, .gpus_min = 4,
      .points = { { 4 * MIB, 1.13 }, { 16 * MIB, 1.34 }, { 64 * MIB, 1.31 }, { 256 * MIB, 1.13 },
                  { 1 * GIB, 1.01 } } },
    { .source = "2 and 4 x 8 H100, nccl-tests issue 309",
      .collectives = AR, .algorithm = NCCL_TREE, .protocols = LL128,
      .across_nodes = true, .ranks_min = 8, .ranks_max = ANY, .gpus_min = 4,
      .points = { { 1 * MIB, 1.10 }, { 4 * MIB, 1.36 } } },
    { .source = NULL },
};
