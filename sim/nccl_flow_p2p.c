/* All-to-all as grouped send and receive: to every peer at once, each pair on channels of its own,
 * half of a CTA sending and half receiving.  Peers on the node are reached over NVLink, others
 * through the proxy and the NIC.  Before its bytes move, each pair is set up by the one thread that
 * serves them all. */
#include <assert.h>

#include "core/world.h"
#include "sim/nccl_flow_build.h"

#define KIB UINT64_C(1024)
#define CHANNELS 32 /* of point-to-point, for all pairs */

/* Of 366 GB/s that one peer's channels reach, pairs with all seven peers reach 350 (8 x H100,
 * results/reference, 8 to 16 GiB). */
#define CROWDED 0.955

/* To set up a pair inside a node and between nodes (all-to-all of 32 to 128 MiB on 1 and 10 x 8
 * H100). */
#define PAIR_PS UINT64_C(1700000)
#define NET_PAIR_PS UINT64_C(4500000)

static uint32_t channels_per_peer(const struct nccl_flow *f)
{
    uint32_t channels = CHANNELS;

    while (channels > 1 && channels * f->comm->ranks > CHANNELS)
        channels /= 2;
    return channels;
}

/* Two ranks of two nodes reach what two connections carry (2 x 1 H100, results/reference). */
static uint32_t net_channels(const struct nccl_flow *f)
{
    return (uint32_t)min_u64(2, channels_per_peer(f));
}

static struct nccl_flow_cut cut_p2p(const struct nccl_flow *f)
{
    uint64_t chunk = (f->comm->nodes > 1 ? 128 : 512) * KIB * channels_per_peer(f);

    return nccl_flow_cut_make((double)f->bytes / f->comm->ranks, 1, chunk, 1, 8);
}

static void add_pair(struct nccl_flow *f, bool net)
{
    double share = 0.5 * channels_per_peer(f);
    uint32_t from = nccl_flow_add_cta(f, nccl_flow_give, 1, share);
    uint32_t to = nccl_flow_add_cta(f, nccl_flow_take, 1, share);

    if (net)
        nccl_flow_add_net(f, from, to, 0, 0, 0, share, net_channels(f));
    else
        nccl_flow_add_nvlink(f, from, to, 0, 0, 0, share);
}

/* All ranks do the same: one stands for all. */
static void build_p2p(struct nccl_flow *f)
{
    uint32_t near = f->comm->gpus_per_node - 1;

    for (uint32_t i = 0; i + 1 < f->comm->ranks; i++)
        add_pair(f, i >= near);
}

static uint64_t setup_ps(const struct nccl_flow *f)
{
    uint64_t near = f->comm->gpus_per_node - 1;

    return near * PAIR_PS + (f->comm->ranks - 1 - near) * NET_PAIR_PS;
}

const struct nccl_flow_ops nccl_flow_p2p = {.channels = 1,
                                            .nodes_alike = true,
                                            .nvlink_share = CROWDED,
                                            .loops = 16,
                                            .cut = cut_p2p,
                                            .build = build_p2p,
                                            .setup_ps = setup_ps};
