#include "kernels/ring.h"

#include <stdlib.h>

uint32_t ring_stripe(const struct ring *r, uint32_t rank, uint32_t slot)
{
    if (r->layout == LAYOUT_RUN)
        return RING_SLOTS * rank + slot;
    return slot ? RING_SLOTS * world_ranks(r->world) - 1 - rank : rank;
}

uint32_t ring_owner(const struct ring *r, uint32_t stripe)
{
    uint32_t ranks = world_ranks(r->world);

    if (r->layout == LAYOUT_RUN)
        return stripe / RING_SLOTS;
    return stripe < ranks ? stripe : RING_SLOTS * ranks - 1 - stripe;
}

/* Whether the queries of a stripe see keys of another. */
static bool sees(const struct ring *r, uint32_t queries, uint32_t keys)
{
    return attention_stripe_size(&r->problem, queries) > 0 && attention_stripe_size(&r->problem, keys) > 0 &&
           (!r->problem.causal || keys <= queries);
}

static bool needs(const struct ring *r, uint32_t rank, uint32_t stripe)
{
    return sees(r, ring_stripe(r, rank, 0), stripe) || sees(r, ring_stripe(r, rank, 1), stripe);
}

/* A stripe enters every node at the GPU of its owner's rail and goes from GPU to GPU from there, no further
 * than somebody needs it. */
static bool reaches(const struct ring *r, uint32_t rank, uint32_t stripe)
{
    uint32_t gpus = r->world.gpus_per_node, entry = world_gpu(r->world, ring_owner(r, stripe));
    uint32_t hop = (world_gpu(r->world, rank) + gpus - entry) % gpus;

    for (; hop < gpus; hop++)
        if (needs(r, world_rank(r->world, world_node(r->world, rank), (entry + hop) % gpus), stripe))
            return true;
    return false;
}

bool ring_arrives(const struct ring *r, uint32_t rank, uint32_t stripe)
{
    return ring_owner(r, stripe) != rank && reaches(r, rank, stripe);
}

/* The owner whose stripes come as number `i`: the own ones, those of the GPUs behind in the ring, nearest
 * first, then the same of the nodes behind. */
static uint32_t owner_at(const struct ring *r, uint32_t rank, uint32_t i)
{
    uint32_t gpus = r->world.gpus_per_node, nodes = r->world.nodes;
    uint32_t node = (world_node(r->world, rank) + nodes - i / gpus) % nodes;

    return world_rank(r->world, node, (world_gpu(r->world, rank) + gpus - i % gpus) % gpus);
}

static void add_lane(struct ring_lanes *lanes, uint32_t stripe, uint32_t to)
{
    lanes->list[lanes->count++] = (struct ring_lane){stripe, to};
}

static void plan_copies(struct ring *r, uint32_t rank)
{
    uint32_t gpus = r->world.gpus_per_node, node = world_node(r->world, rank);
    uint32_t next = world_rank(r->world, node, (world_gpu(r->world, rank) + 1) % gpus);

    for (uint32_t i = 0; i < world_ranks(r->world); i++) {
        uint32_t owner = owner_at(r, rank, i);

        if (world_gpu(r->world, owner) == world_gpu(r->world, next))
            continue; /* the round is over */
        for (uint32_t slot = 0; slot < RING_SLOTS; slot++)
            if (reaches(r, next, ring_stripe(r, owner, slot)))
                add_lane(&r->copies[rank], ring_stripe(r, owner, slot), next);
    }
}

static void plan_puts(struct ring *r, uint32_t rank)
{
    uint32_t nodes = r->world.nodes, node = world_node(r->world, rank);

    for (uint32_t step = 1; step < nodes; step++) {
        uint32_t to = world_rank(r->world, (node + step) % nodes, world_gpu(r->world, rank));

        for (uint32_t slot = 0; slot < RING_SLOTS; slot++)
            if (reaches(r, to, ring_stripe(r, rank, slot)))
                add_lane(&r->puts[rank], ring_stripe(r, rank, slot), to);
    }
}

/* Of each owner the stripe in the queries' own slot comes first, so that of the own two the walk begins with
 * the one in which every query sees a key. */
static void plan_walk(struct ring *r, uint32_t rank, uint32_t slot)
{
    uint32_t ranks = world_ranks(r->world), queries = ring_stripe(r, rank, slot);
    uint32_t *size = &r->walk_sizes[rank * RING_SLOTS + slot];
    uint32_t *walk = &r->walks[(uint64_t)(rank * RING_SLOTS + slot) * RING_SLOTS * ranks];

    for (uint32_t i = 0; i < ranks; i++)
        for (uint32_t other = 0; other < RING_SLOTS; other++) {
            uint32_t keys = ring_stripe(r, owner_at(r, rank, i), slot ^ other);

            if (sees(r, queries, keys))
                walk[(*size)++] = keys;
        }
}

static bool make_lanes(struct ring_lanes *lanes, uint64_t room)
{
    lanes->list = calloc(room + 1, sizeof *lanes->list);
    return lanes->list != NULL;
}

bool ring_create(struct ring *r, struct world world, const struct attention_problem *problem, enum ring_layout layout)
{
    uint64_t ranks = world_ranks(world);

    *r = (struct ring){.world = world, .problem = *problem, .layout = layout};
    r->copies = calloc(ranks, sizeof *r->copies);
    r->puts = calloc(ranks, sizeof *r->puts);
    r->walks = calloc(ranks * RING_SLOTS * RING_SLOTS * ranks, sizeof *r->walks);
    r->walk_sizes = calloc(ranks * RING_SLOTS, sizeof *r->walk_sizes);
    if (!r->copies || !r->puts || !r->walks || !r->walk_sizes)
        return false;
    for (uint32_t rank = 0; rank < ranks; rank++) {
        if (!make_lanes(&r->copies[rank], RING_SLOTS * ranks) || !make_lanes(&r->puts[rank], RING_SLOTS * world.nodes))
            return false;
        plan_copies(r, rank);
        plan_puts(r, rank);
        plan_walk(r, rank, 0);
        plan_walk(r, rank, 1);
    }
    return true;
}

void ring_destroy(struct ring *r)
{
    for (uint32_t rank = 0; rank < world_ranks(r->world); rank++) {
        if (r->copies)
            free(r->copies[rank].list);
        if (r->puts)
            free(r->puts[rank].list);
    }
    free(r->copies);
    free(r->puts);
    free(r->walks);
    free(r->walk_sizes);
}

uint32_t ring_walk(const struct ring *r, uint32_t rank, uint32_t slot, uint32_t index)
{
    return r->walks[(uint64_t)(rank * RING_SLOTS + slot) * RING_SLOTS * world_ranks(r->world) + index];
}

uint32_t ring_walk_size(const struct ring *r, uint32_t rank, uint32_t slot)
{
    return r->walk_sizes[rank * RING_SLOTS + slot];
}
