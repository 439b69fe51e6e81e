/* Machines that the model tests are fitted to, filled by hand so that a changed machine file moves
 * no golden value. */
#ifndef TESTS_UNIT_MODEL_MACHINES_H
#define TESTS_UNIT_MODEL_MACHINES_H

#include "core/machine/machine.h"
#include "sim/nccl_constants.h"

/* One H200 that starts cool (results/reference/h200/single-gpu.txt). */
static inline struct machine model_machine_h200(void)
{
    return (struct machine){
        .name = "h200",
        .nodes_max = 1,
        .gpus_per_node = 1,
        .gpu = {.model = "H200", .sms = 132, .memory_rate = 3.99e12},
        .gemm = {.tile_m = 128,
                 .tile_n = 256,
                 .step_k = 64,
                 .fixed_ps = 2500000,
                 .step_count = 3,
                 .steps = {{1500000000, 670000}, {5000000000, 740000}, {11000000000, 760000}}},
        .attention = {.tile_queries = 128,
                      .step_keys = 128,
                      .fixed_ps = 1100000,
                      .carry_ps = 2700000,
                      .step_64_ps = 1106000,
                      .step_128_ps = 1660000},
        .copy = {.push_rate = 43.5e9, .pull_rate = 47.3e9, .reduce_rate = 90e9},
        .program = {.gemm = 1, .attention = 1, .attention_64 = 1},
        .library = {.attention = 1, .exchange = 1, .dedup = true},
        .host = {.launch_ps = 9400000, .issue_ps = 4390000, .event_ps = 5130000},
        .nccl_flow = {.start_ps = 7000000,
                      .hop_ll_ps = 660000,
                      .hop_ps = 1700000,
                      .step_ps = 2100000,
                      .copy_rate = 47.3e9,
                      .link_rate = 370e9,
                      .nvls_rate = 325e9,
                      .nvls_step_ps = 4000000,
                      .net_ll_ps = 5400000,
                      .net_ps = 15000000,
                      .net_rate = 21e9},
    };
}

/* Two of them joined by NVLink, under sustained load (results/reference/h200/nvlink-2gpu.txt). */
static inline struct machine model_machine_nvlink2(void)
{
    struct machine m = model_machine_h200();

    m.gpus_per_node = 2;
    m.gemm.step_count = 4;
    m.gemm.steps[0] = (struct step_cost){100000000, 690000};
    m.gemm.steps[1] = (struct step_cost){750000000, 790000};
    m.gemm.steps[2] = (struct step_cost){2600000000, 820000};
    m.gemm.steps[3] = (struct step_cost){6000000000, 850000};
    m.nvlink.rate = 370e9;
    m.nvlink.engine_rate = 364e9;
    m.nvlink.engine_ps = 2300000;
    m.nccl.generation = NCCL_HOPPER;
    m.nccl.cpu = NCCL_CPU_INTEL;
    m.nccl.ring_channels_1node = 12;
    m.nccl.ring_intra_1node = 30e9;
    return m;
}

/* HGX H100 / H200: NVSwitch, a 400 Gb/s NIC a GPU, no NIC latency of its own. */
static inline struct machine model_machine_hgx(void)
{
    struct machine m = model_machine_h200();

    m.nodes_max = 128;
    m.gpus_per_node = 8;
    m.nvlink.rate = 370e9;
    m.nvlink.engine_rate = 364e9;
    m.nvlink.engine_ps = 2300000;
    m.nvlink.multicast = true;
    m.nic.per_gpu = 1;
    m.nic.rate = 48e9;
    m.nic.latency_ps = 3000000;
    m.nccl.generation = NCCL_HOPPER;
    m.nccl.cpu = NCCL_CPU_INTEL;
    m.nccl.nvls = true;
    m.nccl.ring_channels_1node = 12;
    m.nccl.ring_intra_1node = 30e9;
    m.nccl.ring_channels = 8;
    m.nccl.ring_intra = 48e9;
    m.nccl.ring_inter = 48e9;
    m.nccl.nvls_heads = 8;
    m.nccl.nvls_intra = 40e9;
    m.nccl.nvls_inter = 48e9;
    return m;
}

#endif
