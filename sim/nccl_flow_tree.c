/* Trees between nodes, each channel's on one rail: two binary trees that alternate over the
 * channels, so that a node is a leaf in one and inner in the other.
 *
 * Tree.      In a node a chain over its GPUs; one half of a CTA sums upwards, the other hands down.
 * NVLSTree.  In a node the switch (nccl_flow_nvls.c) on the GPU whose part and rail it is. */
#include <assert.h>
#include <stdlib.h>

#include "core/world.h"
#include "sim/nccl_flow_build.h"

#define KIB UINT64_C(1024)
#define NO_NODE UINT32_MAX
#define TREES 2

/* In-order binary tree: a node's level is the number of its trailing zeros, node 0 is the root. */
static uint32_t parent_in_first(uint32_t node, uint32_t nodes)
{
    if (node == 0)
        return NO_NODE;
    uint32_t bit = node & -node, below = node ^ bit, up = below | bit << 1;
    return up < nodes ? up : below;
}

/* The second tree is the first one's mirror, or for an odd number of nodes shifted by one. */
static uint32_t parent_of(uint32_t tree, uint32_t node, uint32_t nodes)
{
    if (tree == 0)
        return parent_in_first(node, nodes);
    bool mirror = nodes % 2 == 0;
    uint32_t as = mirror ? nodes - 1 - node : (node + nodes - 1) % nodes;
    uint32_t up = parent_in_first(as, nodes);
    if (up == NO_NODE)
        return NO_NODE;
    return mirror ? nodes - 1 - up : (up + 1) % nodes;
}

static uint32_t depth(const struct nccl_flow *f)
{
    uint32_t levels = 0;

    while (1u << (levels + 1) <= f->comm->nodes)
        levels++;
    return levels + f->comm->gpus_per_node;
}

/* Chunks shrink while there are too few of them to fill the tree's stages. */
static struct nccl_flow_cut cut_tree(const struct nccl_flow *f)
{
    static const uint64_t most[NCCL_PROTOCOLS] = {
        [NCCL_LL] = 32 * KIB, [NCCL_LL128] = 576000, [NCCL_SIMPLE] = 512 * KIB};
    uint64_t chunk = most[f->protocol], each = f->bytes / f->channels;

    while (chunk > 32 * KIB && each / chunk < 4 * (uint64_t)depth(f))
        chunk /= 2;
    return nccl_flow_cut_make((double)each, 1, chunk, 1, 8);
}

static void add_tree(struct nccl_flow *f, uint32_t channel)
{
    uint32_t gpus = f->comm->gpus_per_node, nodes = f->nodes_here, rail = channel / TREES % gpus;
    uint32_t *up = calloc(2 * (size_t)nodes * gpus, sizeof(up[0])), *down = up + nodes * gpus;

    assert(up != NULL);
    for (uint32_t node = 0; node < nodes; node++) {
        bool root = parent_of(channel % TREES, node, nodes) == NO_NODE;
        bool leaf = true;
        for (uint32_t other = 0; other < nodes; other++)
            leaf = leaf && parent_of(channel % TREES, other, nodes) != node;
        for (uint32_t i = 0; i < gpus; i++) {
            bool last = i + 1 == gpus && (i > 0 || leaf);
            up[node * gpus + i] = nccl_flow_add_cta(f, last ? nccl_flow_give : nccl_flow_pass, 1, 0.5);
            down[node * gpus + i] = nccl_flow_add_cta(f, last ? nccl_flow_take : nccl_flow_pass, 1, 0.5);
        }
        for (uint32_t i = 1; i < gpus; i++) {
            uint32_t near = (rail + i - 1) % gpus, far = (rail + i) % gpus;
            uint32_t at = node * gpus + i;
            nccl_flow_add_nvlink(f, up[at], up[at - 1], node, far, near, 0.5);
            nccl_flow_add_nvlink(f, down[at - 1], down[at], node, near, far, 0.5);
        }
        if (root)
            nccl_flow_add_inside(f, up[node * gpus], down[node * gpus], 0.5);
    }
    for (uint32_t node = 0; node < nodes; node++) {
        uint32_t above = parent_of(channel % TREES, node, nodes);
        if (above == NO_NODE)
            continue;
        nccl_flow_add_net(f, up[node * gpus], up[above * gpus], node, above, rail, 0.5, 1);
        nccl_flow_add_net(f, down[above * gpus], down[node * gpus], above, node, rail, 0.5, 1);
    }
    free(up);
}

static void build_tree(struct nccl_flow *f)
{
    for (uint32_t i = 0; i < f->channels_here; i++)
        add_tree(f, i);
}

const struct nccl_flow_ops nccl_flow_tree = {
    .channels = TREES, .nodes_alike = false, .loops = 40, .cut = cut_tree, .build = build_tree};

/* ---- NVLSTree ---- */

static struct nccl_flow_cut cut_nvls_tree(const struct nccl_flow *f)
{
    uint32_t heads = f->comm->nvls_graph.channels;
    uint64_t chunk = f->comm->nodes >= 4 ? 64 * KIB : 128 * KIB;
    uint64_t at_once = (uint64_t)f->channels * heads;

    if (f->bytes < 4 * at_once * chunk && chunk > 64 * KIB)
        chunk = 64 * KIB;
    if (f->bytes < at_once * chunk)
        chunk = 32 * KIB;
    return nccl_flow_cut_make((double)f->bytes / f->channels, heads, chunk, 1, 8);
}

static void add_nvls_tree(struct nccl_flow *f, uint32_t channel, uint32_t gpu)
{
    uint32_t nodes = f->nodes_here;
    uint32_t *up = calloc(2 * (size_t)nodes, sizeof(up[0])), *down = up + nodes;

    assert(up != NULL);
    for (uint32_t node = 0; node < nodes; node++)
        nccl_flow_nvls_gpu(f, node, gpu, &up[node], &down[node]);
    for (uint32_t node = 0; node < nodes; node++) {
        uint32_t above = parent_of(channel % TREES, node, nodes);
        if (above == NO_NODE) {
            nccl_flow_add_inside(f, up[node], down[node], 0);
            continue;
        }
        nccl_flow_add_net(f, up[node], up[above], node, above, gpu, 0, 1);
        nccl_flow_add_net(f, down[above], down[node], above, node, gpu, 0, 1);
    }
    free(up);
}

static void build_nvls_tree(struct nccl_flow *f)
{
    uint32_t gpus = f->channels_here == f->channels ? f->comm->gpus_per_node : 1;

    for (uint32_t channel = 0; channel < f->channels_here; channel++)
        for (uint32_t gpu = 0; gpu < gpus; gpu++)
            add_nvls_tree(f, channel, gpu);
}

const struct nccl_flow_ops nccl_flow_nvls_tree = {.channels = TREES,
                                                  .nodes_alike = false,
                                                  .loops = 40,
                                                  .cut = cut_nvls_tree,
                                                  .build = build_nvls_tree,
                                                  .setup_ps = nccl_flow_nvls_setup_ps};
