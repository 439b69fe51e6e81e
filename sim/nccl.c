/* The formulas of NCCL's ncclTopoTuneModel and ncclTopoGetAlgoTime, version 2.30, for GPUs joined
 * by NVLink and nodes joined by host-driven networks.  CollNet (SHARP in the network) is left out.
 */
#include "sim/nccl.h"

#include <assert.h>
#include <stdio.h>

#define US_PS 1e6
#define TIME_MAX_PS 1e15 /* a thousand seconds stand for "for ever" */

static uint32_t floor_log2(uint64_t x)
{
    assert(x > 0);
    return 63 - (uint32_t)__builtin_clzll(x);
}

static double min(double a, double b)
{
    return a < b ? a : b;
}

static double max(double a, double b)
{
    return a > b ? a : b;
}

static uint32_t scale_of(const struct nccl_comm *c)
{
    return c->nodes < NCCL_SCALES ? c->nodes - 1 : NCCL_SCALES - 1;
}

static double ll_max(const struct nccl_comm *c)
{
    uint32_t row = c->nodes == 1 ? (uint32_t)c->generation : c->cpu == NCCL_CPU_AMD ? 1 : 0;

    return c->constants->ll_max[row][scale_of(c)];
}

static uint32_t step_count(const struct nccl_comm *c, enum collective what)
{
    return (c->ranks - 1) * (what == COLLECTIVE_ALL_REDUCE ? 2 : 1);
}

static bool allowed(const struct nccl_comm *c, enum collective what, enum nccl_algorithm algorithm,
                    enum nccl_protocol protocol)
{
    bool all_reduce = what == COLLECTIVE_ALL_REDUCE;

    switch (algorithm) {
    case NCCL_RING: return true;
    case NCCL_TREE: return all_reduce;
    case NCCL_NVLS: return protocol == NCCL_SIMPLE && c->nvls && c->nodes == 1;
    case NCCL_NVLS_TREE: return protocol == NCCL_SIMPLE && c->nvls && c->nodes > 1 && all_reduce;
    case NCCL_PAT: return protocol == NCCL_SIMPLE && c->gpus_per_node == 1 && !all_reduce;
    }
    return false;
}

static double ring_bus(const struct nccl_comm *c, enum nccl_protocol protocol)
{
    const struct nccl_graph *g = &c->ring_graph;
    double bus = g->channels * (c->nodes <= 2 ? g->intra : g->inter);

    if (protocol == NCCL_LL)
        return min(ll_max(c), bus * 0.5);
    if (protocol == NCCL_LL128)
        return min(bus * 0.92, g->channels * c->constants->ring_ll128_max[c->generation][scale_of(c)]);
    return bus;
}

static double tree_bus(const struct nccl_comm *c, enum nccl_protocol protocol)
{
    const struct nccl_graph *g = &c->tree_graph;
    double bus = g->channels * (c->nodes <= 2 ? g->intra : g->inter);

    bus = min(bus * 0.92, g->channels * c->constants->tree_max[c->generation][scale_of(c)]);
    if (protocol == NCCL_LL)
        return min(bus / 3.8, ll_max(c));
    if (protocol == NCCL_LL128)
        return min(bus * (c->nodes == 1 ? 7.0 / 9.0 : 120.0 / 128.0),
                   g->channels * c->constants->tree_ll128_max[c->generation][scale_of(c)]);
    return bus;
}

/* Of NVLS on one node and NVLSTree on several. */
static double nvls_bus(const struct nccl_comm *c, enum collective what)
{
    const struct nccl_graph *g = &c->nvls_graph;

    if (g->channels < 2)
        return 0;
    double intra = g->intra * c->constants->nvls_efficiency[c->generation] * (g->channels - 1) / g->channels;
    if (what == COLLECTIVE_ALL_REDUCE)
        intra *= 2;
    else
        intra *= (c->gpus_per_node - 1.0) / c->gpus_per_node;
    if (c->nodes == 1)
        return g->channels * intra;
    double inter = c->nodes == 2 ? 2 * g->inter : g->inter;
    double most = c->constants->nvls_tree_max[c->generation][scale_of(c)];
    return g->channels * min(min(intra, inter), most);
}

static double bandwidth(const struct nccl_comm *c, enum collective what, enum nccl_algorithm algorithm,
                        enum nccl_protocol protocol)
{
    double per_step = (double)c->ranks / step_count(c, what);

    switch (algorithm) {
    case NCCL_RING: return ring_bus(c, protocol) * per_step;
    case NCCL_TREE: return tree_bus(c, protocol) * 0.5;
    case NCCL_NVLS:
    case NCCL_NVLS_TREE: return nvls_bus(c, what) * (what == COLLECTIVE_ALL_REDUCE ? per_step : 1);
    case NCCL_PAT: return c->tree_graph.channels * (c->nodes <= 2 ? c->tree_graph.intra : c->tree_graph.inter) * 0.75;
    }
    return 0;
}

/* One hop between nodes; Simple pays the NIC's latency twice, for the flush of received data. */
static double net_hop_us(const struct nccl_comm *c, enum nccl_algorithm algorithm, enum nccl_protocol protocol)
{
    enum nccl_algorithm row = c->gpus_per_node == 1 ? NCCL_TREE : algorithm;

    return c->constants->hop_latency_us[NCCL_LINK_NET][row][protocol] +
           c->net_latency_us * (protocol == NCCL_SIMPLE ? 2 : 1);
}

static double ring_latency_us(const struct nccl_comm *c, enum collective what, enum nccl_protocol protocol,
                              double intra, double inter)
{
    uint32_t net_steps = (c->nodes - 1) * (what == COLLECTIVE_ALL_REDUCE ? 2 : 1);
    double overhead = 0;

    if (c->nodes > 1)
        overhead = c->constants->net_overhead_us[c->cpu] * (protocol == NCCL_SIMPLE ? 3 : 1);
    return (step_count(c, what) - net_steps) * max(intra, overhead) + net_steps * inter;
}

static double latency_us(const struct nccl_comm *c, enum collective what, enum nccl_algorithm algorithm,
                         enum nccl_protocol protocol)
{
    double base = c->constants->base_latency_us[algorithm][protocol];
    double intra = c->constants->hop_latency_us[NCCL_LINK_NVLINK][algorithm][protocol];
    double inter = net_hop_us(c, algorithm, protocol);
    uint32_t levels = floor_log2(c->nodes);

    switch (algorithm) {
    case NCCL_RING: return base + ring_latency_us(c, what, protocol, intra, inter);
    case NCCL_TREE: return base + 2 * ((c->gpus_per_node - 1) * intra + levels * inter);
    case NCCL_NVLS: return intra;
    case NCCL_NVLS_TREE: return intra + 2 * levels * inter;
    case NCCL_PAT: return base + levels * inter / 3.5 + 2.8 * c->ranks;
    }
    return 0;
}

static void fill_costs(struct nccl_comm *c)
{
    for (uint32_t what = 0; what < NCCL_COLLECTIVES; what++)
        for (uint32_t a = 0; a < NCCL_ALGORITHMS; a++)
            for (uint32_t p = 0; p < NCCL_PROTOCOLS; p++) {
                if (c->ranks < 2 || !allowed(c, what, a, p))
                    continue;
                c->costs[what][a][p].bandwidth = bandwidth(c, what, a, p);
                c->costs[what][a][p].latency_us = latency_us(c, what, a, p);
            }
}

/* What of the full node's graph is left when a world uses fewer GPUs of each node.  Inside a node
 * the switch gives every GPU its full rate whatever their number; between nodes a GPU brings its
 * NIC. */
static void fill_graphs(struct nccl_comm *c, const struct machine *m)
{
    uint32_t gpus = c->gpus_per_node;

    c->ring_graph.intra = (c->nodes == 1 ? m->nccl.ring_intra_1node : m->nccl.ring_intra) / 1e9;
    c->ring_graph.inter = m->nccl.ring_inter / 1e9;
    if (c->nodes == 1)
        c->ring_graph.channels = (uint32_t)m->nccl.ring_channels_1node;
    else
        c->ring_graph.channels = (uint32_t)ceil_div(m->nccl.ring_channels * gpus, max_u64(m->gpus_per_node, 1));

    c->tree_graph = c->ring_graph;
    /* A chain of two GPUs uses each direction once where a ring uses it twice. */
    if (c->nodes == 1 && gpus == 2)
        c->tree_graph.intra *= 2;

    c->nvls_graph.channels = (uint32_t)min_u64(m->nccl.nvls_heads, gpus);
    c->nvls_graph.intra = m->nccl.nvls_intra / 1e9;
    c->nvls_graph.inter = m->nccl.nvls_inter / 1e9;
}

void nccl_comm_init(struct nccl_comm *c, const struct machine *m, struct world w)
{
    assert(w.nodes > 0 && w.gpus_per_node > 0);
    assert(m->nccl.generation < NCCL_GENERATIONS && m->nccl.cpu < NCCL_CPUS);
    *c = (struct nccl_comm){
        .constants = &nccl_constants_2_30_7,
        .nodes = w.nodes,
        .ranks = world_ranks(w),
        .gpus_per_node = w.gpus_per_node,
        .generation = (enum nccl_generation)m->nccl.generation,
        .cpu = (enum nccl_cpu)m->nccl.cpu,
        .net_latency_us = (double)m->nccl.net_latency_ps / US_PS,
        .nvls = m->nccl.nvls,
    };
    fill_graphs(c, m);
    c->channels = 2 * c->ring_graph.channels;
    if (c->generation >= NCCL_HOPPER && c->nodes > 1 && c->ring_graph.inter > 45 && c->channels < 16)
        c->channels *= 2;
    c->nvls_channels = c->generation < NCCL_BLACKWELL ? 16 : c->nodes == 1 ? 24 : 32;
    fill_costs(c);
}

static uint64_t time_ps(double us)
{
    return (uint64_t)(min(us * US_PS, TIME_MAX_PS) + 0.5);
}

uint64_t nccl_time_of(const struct nccl_comm *c, enum collective what, enum nccl_algorithm algorithm,
                      enum nccl_protocol protocol, uint64_t bytes)
{
    struct nccl_cost cost = c->costs[what][algorithm][protocol];
    bool all_reduce = what == COLLECTIVE_ALL_REDUCE;

    if (cost.bandwidth <= 0)
        return 0;
    if (all_reduce && bytes >= 64 && floor_log2(bytes / 64) < NCCL_TREE_SIZES - 1 && algorithm == NCCL_TREE)
        cost.bandwidth *= c->constants->tree_correction[protocol][floor_log2(bytes / 64)];
    if (all_reduce && algorithm == NCCL_RING && protocol == NCCL_SIMPLE && c->nodes > 1 &&
        bytes / ((uint64_t)c->channels * c->ranks) >= 64)
        cost.latency_us *= c->generation < NCCL_AMPERE ? 1.9 : 1.4;
    return time_ps(cost.latency_us + (double)bytes / (1000 * cost.bandwidth));
}

/* All channels at full width, fewer while a thread would have too little to do. */
static uint32_t channels_for(const struct nccl_comm *c, const struct nccl_choice *choice, uint64_t bytes)
{
    if (choice->algorithm == NCCL_NVLS || choice->algorithm == NCCL_NVLS_TREE)
        return c->nvls_channels;
    uint64_t per_channel = c->constants->threads_max[choice->protocol] * c->constants->thread_bytes[choice->protocol];
    if (choice->algorithm == NCCL_RING && choice->protocol == NCCL_LL)
        per_channel *= c->ranks;
    return (uint32_t)max_u64(1, min_u64(c->channels, bytes / per_channel));
}

struct nccl_choice nccl_predict(const struct nccl_comm *c, enum collective what, uint64_t bytes)
{
    struct nccl_choice best = {.found = false};

    for (uint32_t a = 0; a < NCCL_ALGORITHMS; a++)
        for (uint32_t p = 0; p < NCCL_PROTOCOLS; p++) {
            uint64_t t = nccl_time_of(c, what, a, p, bytes);
            if (t > 0 && (!best.found || t < best.time_ps))
                best = (struct nccl_choice){.found = true, .algorithm = a, .protocol = p, .time_ps = t};
        }
    if (best.found)
        best.channels = channels_for(c, &best, bytes);
    return best;
}
