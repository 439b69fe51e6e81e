/* Rings, and PAT.
 *
 * Ring.  One CTA a channel and GPU: it gives its own chunk, passes on what comes, takes the last.
 *   Entry and exit of a node are on the channel's own NIC.
 * PAT, for one GPU a node: rounds of doubling distance; in round k a GPU sends the 2^k chunks that
 *   it holds (all-gather; a reduce-scatter is the same backwards). */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/world.h"
#include "sim/nccl_flow_build.h"

#define RING_SLICES 2
#define KIB 1024u

/* Of a slice, in bytes of data: Simple moves half a chunk of 2 MiB, LL and LL128 a buffer step. */
static uint64_t chunk_bytes(enum nccl_protocol protocol)
{
    static const uint64_t most[NCCL_PROTOCOLS] = {
        [NCCL_LL] = 32 * KIB, [NCCL_LL128] = 576000, [NCCL_SIMPLE] = 2048 * KIB};

    return most[protocol];
}

static uint32_t ring_steps(const struct nccl_flow *f)
{
    return (f->comm->ranks - 1) * (f->what == COLLECTIVE_ALL_REDUCE ? 2 : 1);
}

/* Give, pass on, take, each for every slice of a chunk. */
static void make_ring_pattern(struct nccl_flow *f)
{
    uint32_t slices = f->cut.slices, passes = (ring_steps(f) - 1) * slices;

    f->gives = passes + slices;
    f->pattern = malloc(passes + 2 * slices);
    assert(f->pattern != NULL);
    memset(f->pattern, PIPELINE_GIVE, slices);
    memset(f->pattern + slices, PIPELINE_TAKE | PIPELINE_GIVE, passes);
    memset(f->pattern + slices + passes, PIPELINE_TAKE, slices);
}

static void add_ring(struct nccl_flow *f, uint32_t channel)
{
    uint32_t gpus = f->comm->gpus_per_node, rail = channel % gpus;
    uint32_t period = (ring_steps(f) + 1) * f->cut.slices;
    uint32_t *cta = calloc((size_t)f->nodes_here * gpus, sizeof(cta[0]));

    assert(cta != NULL);
    for (uint32_t i = 0; i < f->nodes_here * gpus; i++)
        cta[i] = nccl_flow_add_cta(f, f->pattern, period, 1);
    for (uint32_t node = 0; node < f->nodes_here; node++) {
        uint32_t *here = cta + (size_t)node * gpus;
        for (uint32_t i = 0; i + 1 < gpus; i++)
            nccl_flow_add_nvlink(f, here[i], here[i + 1], node, (rail + i) % gpus, (rail + i + 1) % gpus, 1);
        if (f->comm->nodes == 1) {
            nccl_flow_add_nvlink(f, here[gpus - 1], here[0], node, (rail + gpus - 1) % gpus, rail, 1);
        } else {
            uint32_t next = (node + 1) % f->nodes_here;
            nccl_flow_add_net(f, here[gpus - 1], cta[(size_t)next * gpus], node, next, rail, 1, 1);
        }
    }
    free(cta);
}

static struct nccl_flow_cut cut_ring(const struct nccl_flow *f)
{
    bool simple = f->protocol == NCCL_SIMPLE;

    return nccl_flow_cut_make((double)f->bytes / f->channels, f->comm->ranks, chunk_bytes(f->protocol),
                              simple ? RING_SLICES : 1, simple ? 4 : 8);
}

static void build_ring(struct nccl_flow *f)
{
    make_ring_pattern(f);
    for (uint32_t i = 0; i < f->channels_here; i++)
        add_ring(f, i);
}

const struct nccl_flow_ops nccl_flow_ring = {
    .channels = 1, .nodes_alike = true, .loops = 2, .drifts = true, .cut = cut_ring, .build = build_ring};

/* ---- PAT ---- */

static void make_pat_pattern(struct nccl_flow *f)
{
    uint32_t ranks = f->comm->ranks, sent = 0, i = 0;

    f->gives = ranks - 1;
    f->pattern = malloc(2 * (size_t)ranks);
    assert(f->pattern != NULL);
    for (uint32_t held = 1; held < ranks; held *= 2) {
        uint32_t count = (uint32_t)min_u64(held, ranks - held);
        memset(f->pattern + i, PIPELINE_GIVE, count);
        memset(f->pattern + i + count, PIPELINE_TAKE, count);
        i += 2 * count;
        sent += count;
    }
    assert(sent == ranks - 1);
}

static struct nccl_flow_cut cut_pat(const struct nccl_flow *f)
{
    return nccl_flow_cut_make((double)f->bytes / f->channels, f->comm->ranks, 256 * KIB, 1, 8);
}

static void build_pat(struct nccl_flow *f)
{
    make_pat_pattern(f);
    for (uint32_t channel = 0; channel < f->channels_here; channel++)
        for (uint32_t node = 0, cta = 0; node < f->nodes_here; node++) {
            cta = nccl_flow_add_cta(f, f->pattern, 2 * (f->comm->ranks - 1), 1);
            nccl_flow_add_net(f, cta, cta, node, node, 0, 1, 1);
        }
}

const struct nccl_flow_ops nccl_flow_pat = {
    .channels = 1, .nodes_alike = true, .loops = 2, .drifts = true, .cut = cut_pat, .build = build_pat};
