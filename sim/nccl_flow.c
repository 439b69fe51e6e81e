#include "sim/nccl_flow.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "sim/nccl_flow_build.h"

/* LL128 passes its flags by the warp, with synchronisation inside the CTA: hops of LL that it
 * takes. */
#define LL128_HOP 4.0

/* Between nodes NCCL's own table has 8.5 us for it where LL takes 5. */
#define LL128_NET 1.7

/* Channels start in step: all move data at once, then all copy what they end with, and the links
 * idle.  With every loop they come more out of step, until one copies while others move: the time
 * that links idle falls by a factor of e in so many loops (8 x H100, all-gather of 0.5 to 16 GiB,
 * results/reference). */
#define DRIFT_LOOPS 4.0

const uint8_t nccl_flow_take[1] = {PIPELINE_TAKE};
const uint8_t nccl_flow_give[1] = {PIPELINE_GIVE};
const uint8_t nccl_flow_pass[1] = {PIPELINE_TAKE | PIPELINE_GIVE};

static const struct nccl_flow_ops *const algorithms[NCCL_ALGORITHMS] = {
    [NCCL_TREE] = &nccl_flow_tree,           [NCCL_RING] = &nccl_flow_ring, [NCCL_NVLS] = &nccl_flow_nvls,
    [NCCL_NVLS_TREE] = &nccl_flow_nvls_tree, [NCCL_PAT] = &nccl_flow_pat,
};

static double smaller(double a, double b)
{
    return a < b ? a : b;
}

static double larger(double a, double b)
{
    return a > b ? a : b;
}

/* Bytes on the wire for each byte of data: flags between the words, or in each line. */
static const double wire_factor[NCCL_PROTOCOLS] = {[NCCL_LL] = 2, [NCCL_LL128] = 16.0 / 15, [NCCL_SIMPLE] = 1};

struct nccl_flow_cut nccl_flow_cut_make(double channel_bytes, uint32_t parts, uint64_t chunk_bytes, uint32_t slices,
                                        uint32_t slots)
{
    return (struct nccl_flow_cut){.loops = channel_bytes / ((double)chunk_bytes * parts),
                                  .slice_bytes = max_u64(1, chunk_bytes / slices),
                                  .slices = slices,
                                  .slots = slots};
}

uint32_t nccl_flow_nvlink_port(const struct nccl_flow *f, uint32_t node, uint32_t gpu)
{
    return node * f->comm->gpus_per_node + gpu;
}

uint32_t nccl_flow_nic_port(const struct nccl_flow *f, uint32_t node, uint32_t gpu)
{
    return (f->nodes_here + node) * f->comm->gpus_per_node + gpu;
}

static bool uses_nvls(const struct nccl_flow *f)
{
    return f->algorithm == NCCL_NVLS || f->algorithm == NCCL_NVLS_TREE;
}

static uint64_t hop_ps(const struct nccl_flow *f)
{
    switch (f->protocol) {
    case NCCL_LL: return f->machine->nccl_flow.hop_ll_ps;
    case NCCL_LL128: return (uint64_t)(LL128_HOP * (double)f->machine->nccl_flow.hop_ll_ps);
    case NCCL_SIMPLE: return f->machine->nccl_flow.hop_ps;
    }
    return 0;
}

/* Through proxy, NIC and wire. */
static uint64_t net_hop_ps(const struct nccl_flow *f)
{
    const struct machine *m = f->machine;

    switch (f->protocol) {
    case NCCL_LL: return m->nccl_flow.net_ll_ps;
    case NCCL_LL128: return (uint64_t)(LL128_NET * (double)m->nccl_flow.net_ll_ps);
    case NCCL_SIMPLE: return m->nccl_flow.net_ps;
    }
    return 0;
}

/* A copy reads and writes.  Beside that, a reduce-scatter ends with a sum, which reads once more,
 * and an all-gather starts with a copy to the own output, which is counted here as well. */
static double take_share(const struct nccl_flow *f)
{
    return f->what == COLLECTIVE_ALL_REDUCE || f->what == COLLECTIVE_ALL_TO_ALL ? 1 : 2.0 / 3;
}

uint32_t nccl_flow_add_cta(struct nccl_flow *f, const uint8_t *pattern, uint32_t period, double share)
{
    return pipeline_add_stage(
        f->pipeline, &(struct pipeline_stage){.pattern = pattern,
                                              .length = period,
                                              .period = period,
                                              .step_ps = f->protocol == NCCL_SIMPLE ? f->machine->nccl_flow.step_ps : 0,
                                              .rate = take_share(f) * share * f->machine->nccl_flow.copy_rate /
                                                      wire_factor[f->protocol]});
}

void nccl_flow_add_nvlink(struct nccl_flow *f, uint32_t from, uint32_t to, uint32_t node, uint32_t from_gpu,
                          uint32_t to_gpu, double share)
{
    pipeline_add_edge(
        f->pipeline,
        &(struct pipeline_edge){.from = from,
                                .to = to,
                                .out_port = nccl_flow_nvlink_port(f, node, from_gpu),
                                .in_port = from_gpu == to_gpu ? ENGINE_NO_PORT : nccl_flow_nvlink_port(f, node, to_gpu),
                                .factor = wire_factor[f->protocol],
                                .rate_bound = share * f->machine->nccl_flow.copy_rate,
                                .latency_ps = hop_ps(f),
                                .slots = f->cut.slots});
}

void nccl_flow_add_inside(struct nccl_flow *f, uint32_t from, uint32_t to, double share)
{
    pipeline_add_edge(f->pipeline, &(struct pipeline_edge){.from = from,
                                                           .to = to,
                                                           .out_port = ENGINE_NO_PORT,
                                                           .in_port = ENGINE_NO_PORT,
                                                           .factor = wire_factor[f->protocol],
                                                           .rate_bound = share * f->machine->nccl_flow.copy_rate,
                                                           .slots = f->cut.slots});
}

/* The CTA copies into the proxy's buffer; the proxy posts a slice at a time.  A ring of one
 * simulated node comes back to the port that it left. */
void nccl_flow_add_net(struct nccl_flow *f, uint32_t from, uint32_t to, uint32_t from_node, uint32_t to_node,
                       uint32_t gpu, double share, uint32_t channels)
{
    const struct machine *m = f->machine;
    uint32_t slices = (uint32_t)max_u64(1, f->gives);
    double rate = channels * m->nccl_flow.net_rate;
    uint32_t proxy = pipeline_add_stage(
        f->pipeline, &(struct pipeline_stage){
                         .pattern = nccl_flow_pass, .length = 1, .period = slices, .step_ps = m->nic.message_ps});
    uint32_t in = nccl_flow_nic_port(f, to_node, gpu);

    nccl_flow_add_inside(f, from, proxy, share);
    pipeline_add_edge(f->pipeline, &(struct pipeline_edge){.from = proxy,
                                                           .to = to,
                                                           .out_port = nccl_flow_nic_port(f, from_node, gpu),
                                                           .in_port = from_node == to_node ? ENGINE_NO_PORT : in,
                                                           .factor = wire_factor[f->protocol],
                                                           .rate_bound = rate,
                                                           .latency_ps = net_hop_ps(f),
                                                           .slots = f->cut.slots});
    f->connection_ps =
        larger(f->connection_ps, slices * wire_factor[f->protocol] * (double)f->cut.slice_bytes * 1e12 / rate);
}

/* Folded, a port has the share that the simulated channels have of all.  The simulated ones are on
 * one rail, whose NIC they have for themselves as far as there are rails enough. */
static double port_rate(const struct nccl_flow *f, bool nic, double nvlink_share)
{
    const struct machine *m = f->machine;
    double share = (double)f->channels_here / f->channels;
    double gpus = f->comm->gpus_per_node;
    double nvlink = uses_nvls(f) ? m->nccl_flow.nvls_rate : m->nccl_flow.link_rate;

    if (!nic && f->channels_here < f->channels && f->comm->nodes > 1 && gpus > 1 && !uses_nvls(f))
        share *= gpus / (gpus - 1); /* each channel leaves one GPU of the node by its NIC */
    if (!nic)
        return nvlink * nvlink_share * share;
    if (f->channels_here < f->channels && f->algorithm != NCCL_NVLS_TREE)
        share = smaller(1, share * gpus); /* the others have NICs of their own */
    return m->nic.rate * (double)m->nic.per_gpu * share;
}

static struct engine *make_engine(const struct nccl_flow *f, double nvlink_share)
{
    uint32_t half = f->nodes_here * f->comm->gpus_per_node;
    uint32_t count = f->comm->nodes > 1 ? 2 * half : half;
    struct engine_port *ports = calloc(count, sizeof(ports[0]));
    struct engine_config config = {.api = ENGINE_FLUID, .ports = ports, .port_count = count};
    struct engine *engine;

    assert(ports != NULL);
    for (uint32_t i = 0; i < count; i++)
        ports[i].rate = port_rate(f, i >= half, nvlink_share);
    enum status st = engine_create(&config, &engine);
    assert(st == ST_OK); /* no library is involved */
    free(ports);
    return engine;
}

static double busiest_link_ps(const struct nccl_flow *f, const struct engine *engine)
{
    uint32_t half = f->nodes_here * f->comm->gpus_per_node;
    uint32_t count = f->comm->nodes > 1 ? 2 * half : half;
    double most = 0;

    for (uint32_t i = 0; i < count; i++)
        most = larger(most, (double)engine_port_bytes_out(engine, i) * 1e12 / port_rate(f, i >= half, 1));
    return most;
}

/* The loops that are simulated, and the bytes of a slice in the last of them. */
static struct pipeline *make_pipeline(const struct nccl_flow *f, const struct nccl_flow_ops *ops, struct engine *engine,
                                      uint32_t *loops_out)
{
    double loops = smaller(f->cut.loops, ops->loops), last = loops - (uint32_t)loops;
    uint64_t last_bytes = f->cut.slice_bytes;

    *loops_out = (uint32_t)loops;
    if (last > 0) {
        last_bytes = max_u64(1, (uint64_t)((double)f->cut.slice_bytes * last + 0.5));
        ++*loops_out;
    }
    return pipeline_create(engine, *loops_out, f->cut.slice_bytes, last_bytes);
}

/* Loops after the simulated ones go at the pace of the last half of these, though not faster than
 * the busiest link or connection allows: buffers may have been filling.  Or they drift from there
 * towards the pace at which that link or connection would never idle. */
static double more_ps(const struct nccl_flow *f, const struct nccl_flow_ops *ops, const struct engine *engine,
                      uint32_t loops)
{
    uint32_t last = loops - 1, middle = last / 2;
    double more = f->cut.loops - loops;
    double end = (double)pipeline_loop_end_ps(f->pipeline, last);

    if (more <= 0)
        return 0;
    double pace = (end - (double)pipeline_loop_end_ps(f->pipeline, middle)) / (last - middle);
    double busy = larger(busiest_link_ps(f, engine) / loops, f->connection_ps);
    if (!ops->drifts)
        return more * larger(pace, busy);
    return more * busy + (pace - busy) * DRIFT_LOOPS * (1 - exp(-more / DRIFT_LOOPS));
}

bool nccl_flow_fits(const struct nccl_comm *comm, const struct nccl_choice *choice)
{
    return choice->found && comm->ranks > 1 && comm->ranks <= NCCL_FLOW_RANKS_MAX;
}

/* Which part of the world is simulated. */
static void set_extent(struct nccl_flow *f, const struct nccl_flow_ops *ops, enum nccl_flow_extent extent)
{
    bool whole = extent == NCCL_FLOW_WHOLE;

    f->channels_here = whole ? f->channels : (uint32_t)min_u64(ops->channels, f->channels);
    f->nodes_here = ops->nodes_alike && !whole ? 1 : f->comm->nodes;
}

static uint64_t simulate(struct nccl_flow *f, const struct nccl_flow_ops *ops)
{
    struct engine *engine = make_engine(f, ops->nvlink_share > 0 ? ops->nvlink_share : 1);
    uint32_t loops;

    f->pipeline = make_pipeline(f, ops, engine, &loops);
    ops->build(f);
    pipeline_run(f->pipeline);
    uint64_t time_ps = pipeline_loop_end_ps(f->pipeline, loops - 1) + (uint64_t)(more_ps(f, ops, engine, loops) + 0.5);
    pipeline_destroy(f->pipeline);
    engine_destroy(engine);
    free(f->pattern);
    return time_ps;
}

uint64_t nccl_flow_time_ps(const struct nccl_comm *comm, const struct machine *m, enum collective what,
                           const struct nccl_choice *choice, uint64_t bytes, enum nccl_flow_extent extent)
{
    bool pairs = what == COLLECTIVE_ALL_TO_ALL;
    const struct nccl_flow_ops *ops = pairs ? &nccl_flow_p2p : algorithms[choice->algorithm];
    struct nccl_flow f = {
        .machine = m,
        .comm = comm,
        .what = what,
        .algorithm = choice->algorithm,
        .protocol = pairs ? NCCL_SIMPLE : choice->protocol,
        .bytes = bytes,
        .channels = pairs ? 1 : choice->channels,
    };

    assert(nccl_flow_fits(comm, choice) && bytes > 0);
    set_extent(&f, ops, extent);
    f.cut = ops->cut(&f);
    uint64_t time_ps = m->nccl_flow.start_ps + (ops->setup_ps ? ops->setup_ps(&f) : 0) + simulate(&f, ops);
    return max_u64(m->nccl_flow.call_ps, time_ps);
}
