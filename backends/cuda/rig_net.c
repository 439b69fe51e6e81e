/* The way between the nodes of a rig, which are all in this process: a proxy a rank, near its GPU. */
#include <inttypes.h>
#include <stdio.h>

#include "backends/cuda/loopback.h"
#include "backends/cuda/rig.h"
#include "backends/net/proxy.h"

#define PUTS_UNDER_WAY 256 /* of a rank */

static enum status open_endpoint(struct rig *r, struct rig_rank *rank)
{
    struct endpoint_config c = {
        .index = rank->index,
        .peers = r->rank_count,
        .window = {rank->window, program_window_bytes(r->program), true, -1, 0},
        .flags = {.base = rank->put_flags,
                  .bytes = r->program->flag_count * sizeof *rank->put_flags,
                  .dmabuf = -1},
        .depth = PUTS_UNDER_WAY,
        .timeout_ps = r->options->timeout_ps,
    };
    char why[512];
    enum status st;

    snprintf(c.name, sizeof c.name, "rank %" PRIu32, rank->index);
    TRY_CUDA(r, cudaSetDevice(rank->device->index));
    st = endpoint_open(&cuda_loopback_transport, &c, &rank->endpoint, why, sizeof why);
    return st < 0 ? rig_fail(r, st, "cuda: rank %" PRIu32 ": %s", rank->index, why) : ST_OK;
}

static enum status connect(struct rig *r, uint32_t index, uint32_t peer)
{
    struct endpoint *from = r->ranks[index].endpoint, *to = r->ranks[peer].endpoint;
    struct endpoint_address a;
    enum status st = endpoint_address(to, index, &a);

    if (st < 0)
        return rig_fail(r, st, "cuda: rank %" PRIu32 ": %s", peer, endpoint_error(to));
    st = endpoint_connect(from, peer, &a);
    return st < 0 ? rig_fail(r, st, "cuda: rank %" PRIu32 ": %s", index, endpoint_error(from)) : st;
}

static enum status connect_nodes(struct rig *r)
{
    for (uint32_t i = 0; i < r->rank_count; i++)
        for (uint32_t peer = 0; peer < r->rank_count; peer++)
            if (!world_same_node(r->program->world, i, peer))
                TRY(connect(r, i, peer));
    return ST_OK;
}

static int numa_node(const struct device *d)
{
    char address[32];

    return cudaDeviceGetPCIBusId(address, sizeof address, d->index) == cudaSuccess
               ? proxy_numa_of_pci(address)
               : -1;
}

static enum status start(struct rig *r, struct rig_rank *rank)
{
    struct proxy_lane_config lane = {rank->endpoint, &put_fifo_source, &rank->fifo};

    rank->fifo.program = r->program;
    rank->fifo.rank = rank->index;
    rank->fifo.puts = r->lowered.puts[rank->index].items;
    rank->fifo.put_flags = rank->put_flags;
    rank->proxy = proxy_start(&(struct proxy_config){
        .lanes = &lane,
        .lane_count = 1,
        .depth = PUTS_UNDER_WAY,
        .numa_node = numa_node(rank->device),
        .alone = true,
    });
    if (!rank->proxy)
        return rig_fail(r, ST_ENVIRONMENT, "cuda: the system refused to start a proxy thread");
    return ST_OK;
}

enum status rig_start_proxies(struct rig *r)
{
    if (r->program->world.nodes == 1)
        return ST_OK;
    for (uint32_t i = 0; i < r->rank_count; i++)
        TRY(open_endpoint(r, &r->ranks[i]));
    TRY(connect_nodes(r));
    for (uint32_t i = 0; i < r->rank_count; i++)
        TRY(start(r, &r->ranks[i]));
    return ST_OK;
}

enum status rig_check_proxies(struct rig *r)
{
    uint32_t lane;

    for (uint32_t i = 0; i < r->rank_count; i++) {
        struct rig_rank *rank = &r->ranks[i];
        enum status st = rank->proxy ? proxy_failed(rank->proxy, &lane) : ST_OK;

        if (st < 0)
            return rig_fail(r, st, "cuda: rank %" PRIu32 ": %s", i, endpoint_error(rank->endpoint));
    }
    return ST_OK;
}

void rig_stop_proxies(struct rig *r, bool now, struct proxy_result *sum)
{
    for (uint32_t i = 0; r->ranks && i < r->rank_count; i++) {
        struct proxy_counters c = {0};

        proxy_stop(r->ranks[i].proxy, now, &c);
        r->ranks[i].proxy = NULL;
        sum->depth_sum += c.depth_sum;
        sum->depth_max = max_u64(sum->depth_max, c.depth_max);
        histogram_merge(&sum->latency, &c.latency);
    }
}

void rig_close_endpoints(struct rig *r)
{
    for (uint32_t i = 0; r->ranks && i < r->rank_count; i++) {
        endpoint_close(r->ranks[i].endpoint);
        put_fifo_close(&r->ranks[i].fifo);
    }
}
