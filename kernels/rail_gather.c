#include "kernels/rail_gather.h"

/* The rank of `rank`'s rail that stands `back` nodes before it. */
static uint32_t before(const struct rail_gather *g, uint32_t rank, uint32_t back)
{
    uint32_t nodes = g->world.nodes;
    uint32_t node = (world_node(g->world, rank) + nodes - back) % nodes;

    return world_rank(g->world, node, world_gpu(g->world, rank));
}

/* Step 1..N-1 of a rank's sends: whose chunks go where. */
static struct rail_item send_of_step(const struct rail_gather *g, uint32_t rank, uint32_t step)
{
    uint32_t nodes = g->world.nodes;

    if (g->algorithm == RAIL_RING)
        return (struct rail_item){
            .owner = before(g, rank, step - 1), .to = before(g, rank, nodes - 1), .forwarded = step > 1};
    return (struct rail_item){.owner = rank, .to = before(g, rank, nodes - step)};
}

static struct rail_item arrival_of_step(const struct rail_gather *g, uint32_t rank, uint32_t step)
{
    return (struct rail_item){.owner = before(g, rank, step), .to = rank};
}

typedef struct rail_item step_fn(const struct rail_gather *g, uint32_t rank, uint32_t step);

static uint64_t count(const struct rail_gather *g, uint32_t rank, step_fn *of_step)
{
    uint64_t items = 0;

    for (uint32_t step = 1; step < g->world.nodes; step++)
        items += g->chunks(g->layout, of_step(g, rank, step).owner);
    return items;
}

static void find(const struct rail_gather *g, uint32_t rank, uint64_t i, step_fn *of_step, struct rail_item *out)
{
    uint64_t chunks;

    for (uint32_t step = 1;; step++) {
        *out = of_step(g, rank, step);
        chunks = g->chunks(g->layout, out->owner);
        if (i < chunks)
            break;
        i -= chunks;
    }
    out->chunk = i;
}

uint64_t rail_gather_sends(const struct rail_gather *g, uint32_t rank)
{
    return count(g, rank, send_of_step);
}

void rail_gather_send(const struct rail_gather *g, uint32_t rank, uint64_t i, struct rail_item *out)
{
    find(g, rank, i, send_of_step, out);
}

uint64_t rail_gather_arrivals(const struct rail_gather *g, uint32_t rank)
{
    return count(g, rank, arrival_of_step);
}

void rail_gather_arrival(const struct rail_gather *g, uint32_t rank, uint64_t i, struct rail_item *out)
{
    find(g, rank, i, arrival_of_step, out);
}
