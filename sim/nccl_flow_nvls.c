/* NVLS: the switch reduces and multicasts.  Each of a node's GPUs is the head of an equal part of
 * the buffer.  On each GPU and channel, a chunk for every head at a time,
 *
 *   scatter   copies the GPU's chunks into the buffer that the switch reads
 *   reduce    as a head: loads its chunk summed over the node, and stores it into all GPUs
 *   gather    copies what arrived to the output
 *
 * each by warps of its own.  Per chunk, a GPU's NVLinks carry the chunks of all heads and, as a
 * head, once more its own, in both directions.  For trees between nodes (nccl_flow_tree.c) loading
 * and storing are two stages, each of which meets the node's GPUs and the network. */
#include "sim/nccl_flow_build.h"

#define KIB UINT64_C(1024)

#define COPY_SHARE 0.5  /* of a CTA, whose warps are dealt out: what scatter has, and gather */
#define TREE_SHARE 0.93 /* of nvls_rate, beside the network's traffic: all-reduce on 2 x 8 H100 */

/* The GPUs meet before the first and after the last chunk. */
#define MEETINGS 1.6

static struct nccl_flow_cut cut_nvls(const struct nccl_flow *f)
{
    uint32_t heads = f->comm->nvls_graph.channels;
    uint64_t chunk = 128 * KIB;
    uint64_t at_once = (uint64_t)f->channels * heads;

    if (f->bytes < 64 * at_once * chunk)
        chunk = 64 * KIB;
    if (f->bytes < 8 * at_once * chunk)
        chunk = 32 * KIB;
    if (f->bytes < 2 * at_once * chunk)
        chunk = 16 * KIB;
    return nccl_flow_cut_make((double)f->bytes / f->channels, heads, chunk, 1, 2);
}

static double switch_rate(const struct nccl_flow *f)
{
    return f->machine->nccl_flow.nvls_rate * (f->algorithm == NCCL_NVLS_TREE ? TREE_SHARE : 1);
}

static double copy_rate(const struct nccl_flow *f)
{
    return f->machine->nccl_flow.copy_rate * COPY_SHARE;
}

/* A copy of all heads' chunks inside the GPU. */
static void add_local(struct nccl_flow *f, uint32_t from, uint32_t to)
{
    const struct machine *m = f->machine;

    pipeline_add_edge(f->pipeline, &(struct pipeline_edge){.from = from,
                                                           .to = to,
                                                           .out_port = ENGINE_NO_PORT,
                                                           .in_port = ENGINE_NO_PORT,
                                                           .factor = f->comm->nvls_graph.channels,
                                                           .rate_bound = copy_rate(f),
                                                           .latency_ps = m->nccl_flow.hop_ps,
                                                           .slots = f->cut.slots});
}

/* What the stage `from` moves through the switch, seen at the ports of its GPU.  A channel does not
 * take over what others leave idle between their chunks: measured times show that pause in full. */
static void add_switch(struct nccl_flow *f, uint32_t from, uint32_t to, uint32_t port)
{
    const struct machine *m = f->machine;

    pipeline_add_edge(f->pipeline, &(struct pipeline_edge){.from = from,
                                                           .to = to,
                                                           .out_port = port,
                                                           .in_port = ENGINE_NO_PORT,
                                                           .factor = f->comm->nvls_graph.channels + 1,
                                                           .rate_bound = switch_rate(f) / f->channels,
                                                           .latency_ps = m->nccl_flow.hop_ps,
                                                           .slots = f->cut.slots});
}

static uint32_t add_stage(struct nccl_flow *f, const uint8_t *pattern, uint64_t step_ps)
{
    return pipeline_add_stage(f->pipeline,
                              &(struct pipeline_stage){.pattern = pattern,
                                                       .length = 1,
                                                       .period = 1,
                                                       .step_ps = step_ps,
                                                       .rate = copy_rate(f) / f->comm->nvls_graph.channels});
}

void nccl_flow_nvls_gpu(struct nccl_flow *f, uint32_t node, uint32_t gpu, uint32_t *up_out, uint32_t *down_out)
{
    const struct machine *m = f->machine;
    uint32_t port = nccl_flow_nvlink_port(f, node, gpu);
    uint32_t scatter = add_stage(f, nccl_flow_give, m->nccl_flow.step_ps);
    uint64_t step_ps = m->nccl_flow.nvls_step_ps;
    uint32_t reduce = add_stage(f, nccl_flow_pass, step_ps);
    uint32_t gather = add_stage(f, nccl_flow_take, m->nccl_flow.step_ps);

    add_local(f, scatter, reduce);
    *up_out = reduce;
    *down_out = reduce;
    if (f->algorithm == NCCL_NVLS_TREE)
        *down_out = add_stage(f, nccl_flow_pass, step_ps);
    add_switch(f, *down_out, gather, port);
}

static void build_nvls(struct nccl_flow *f)
{
    uint32_t up, down;

    for (uint32_t channel = 0; channel < f->channels_here; channel++)
        for (uint32_t gpu = 0; gpu < (f->channels_here == f->channels ? f->comm->gpus_per_node : 1); gpu++)
            nccl_flow_nvls_gpu(f, 0, gpu, &up, &down);
}

uint64_t nccl_flow_nvls_setup_ps(const struct nccl_flow *f)
{
    return (uint64_t)(MEETINGS * (double)f->machine->nccl_flow.nvls_step_ps);
}

const struct nccl_flow_ops nccl_flow_nvls = {.channels = 1,
                                             .nodes_alike = true,
                                             .loops = 16,
                                             .cut = cut_nvls,
                                             .build = build_nvls,
                                             .setup_ps = nccl_flow_nvls_setup_ps};
