/* The tasks of gemm_rs and gemm_ar, queue by queue. */
#include "kernels/gemm_reduce.h"

static uint32_t node_of(const struct gemm_reduce *g, uint32_t rank)
{
    return world_node(g->world, rank);
}

static uint32_t gpu_of(const struct gemm_reduce *g, uint32_t rank)
{
    return world_gpu(g->world, rank);
}

/* The index-th tile of a buffer that is stored tile by tile. */
static struct operand tile_at(const struct gemm_reduce *g, uint32_t rank, uint32_t buffer, uint64_t index)
{
    uint64_t elements = g->grid.tile_m * g->grid.tile_n;

    return (struct operand){rank, buffer, index * elements, g->grid.tile_n};
}

static struct operand inbox_at(const struct gemm_reduce *g, uint32_t rank, uint64_t source, uint64_t node,
                               uint64_t slot)
{
    return tile_at(g, rank, g->inbox, (source * g->world.nodes + node) * g->slots + slot);
}

/* Which of the inbox's sources GPU `from` is for GPU `to`: in rank order, without the receiver itself in
 * the epilogue form. */
static uint32_t source_of(const struct gemm_reduce *g, uint32_t from, uint32_t to)
{
    return !g->crew_form && from > to ? from - 1 : from;
}

static uint32_t tile_in_flag(const struct gemm_reduce *g, uint64_t node, uint64_t slot, uint64_t source)
{
    return g->tile_in + (uint32_t)((node * g->slots + slot) * g->sources + source);
}

/* ---- where results go ---- */

/* The sum over all ranks of an own tile.  It holds something of every rank, so every rank has begun this
 * epoch and read the last one's C: no credit is needed here, nor for anything that follows from it. */
static void store_final(const struct gemm_reduce *g, uint32_t rank, const struct tile *tile, struct task *t)
{
    uint64_t row = g->all_reduce ? tile->row
                                 : tile->row - part_begin(g->problem.m, world_ranks(g->world), tile->owner) +
                                       gemm_reduce_kept_row(g, rank, tile->owner);
    uint32_t target = g->all_reduce ? RANK_NODE : rank;

    task_store_to(t, (struct operand){target, g->c, row * g->problem.n + tile->col, g->problem.n});
    if (!g->all_reduce)
        return;
    task_signal(t, RANK_NODE, g->done + rank, 1);
    if (g->world.nodes > 1) {
        task_store_to(t, tile_at(g, rank, g->result, tile->slot));
        task_signal(t, rank, g->shared + (uint32_t)(tile->slot / g->chunk_tiles), 1);
    }
}

/* Node x's sums of the tiles of the index-th owner that a rank keeps. */
static struct operand landing_at(const struct gemm_reduce *g, uint32_t rank, uint32_t index, uint32_t node,
                                 uint64_t slot)
{
    return tile_at(g, rank, g->landing, (index * g->world.nodes + node) * g->slots + slot);
}

static uint32_t landed_flag(const struct gemm_reduce *g, uint32_t index, uint64_t chunk, uint32_t node)
{
    return g->landed + (uint32_t)((index * g->chunks + chunk) * g->world.nodes + node);
}

/* Which of its kept owners this one is for the ranks of its rail. */
static uint32_t kept_index(const struct gemm_reduce *g, uint32_t owner)
{
    return g->replicate ? node_of(g, owner) : 0;
}

/* The sum over this node's ranks of a tile whose owner is on my rail. */
static void store_node_sum(const struct gemm_reduce *g, uint32_t rank, const struct tile *tile, struct task *t)
{
    uint32_t node = node_of(g, tile->owner);
    uint64_t chunk = tile->slot / g->chunk_tiles;

    if (g->world.nodes == 1) {
        store_final(g, rank, tile, t);
    } else if (tile->owner == rank || g->replicate) {
        task_store_to(t, landing_at(g, rank, kept_index(g, tile->owner), node_of(g, rank), tile->slot));
        task_signal(t, rank, landed_flag(g, kept_index(g, tile->owner), chunk, node_of(g, rank)), 1);
    } else {
        task_store_to(t, tile_at(g, rank, g->outbox, node * g->slots + tile->slot));
        task_signal(t, rank, g->summed + (uint32_t)(node * g->chunks + chunk), 1);
    }
}

/* A tile of mine into the inbox of the owner's rail mate in this node, or into mine for it to load from there: either
 * way that mate's credit says that it has read the last one. */
static void store_in_inbox(const struct gemm_reduce *g, uint32_t rank, const struct tile *tile, enum wait_phase phase,
                           struct task *t)
{
    uint32_t node = node_of(g, tile->owner), gpu = gpu_of(g, tile->owner);
    uint32_t mate = world_rank(g->world, node_of(g, rank), gpu);
    uint32_t source = source_of(g, gpu_of(g, rank), gpu);

    if (g->in_place)
        task_store_to(t, inbox_at(g, rank, gpu, node, tile->slot));
    else
        task_store_to(t, inbox_at(g, mate, source, node, tile->slot));
    if (mate != rank)
        gate_wait_peer(&g->gate, t, gpu, g->depth, phase);
    task_signal(t, mate, tile_in_flag(g, node, tile->slot, source), 1);
}

static void add_inbox(const struct gemm_reduce *g, uint32_t rank, const struct tile *tile, enum wait_phase phase,
                      struct task *t)
{
    uint32_t node = node_of(g, tile->owner);

    if (g->sources == 0)
        return;
    task_wait_as(
        t, (struct wait){
               .flag = tile_in_flag(g, node, tile->slot, 0), .count = g->sources, .phase = phase, .value = FLAG_TOTAL});
    t->addend_count = g->sources;
    if (g->in_place) {
        t->addend = inbox_at(g, RANK_NODE, gpu_of(g, rank), node, tile->slot);
        return;
    }
    t->addend = inbox_at(g, rank, 0, node, tile->slot);
    t->addend_stride = g->world.nodes * g->slots * g->grid.tile_m * g->grid.tile_n;
}

/* ---- compute ---- */

static void tile_extents(const struct tile *tile, struct task *t)
{
    t->m = tile->rows;
    t->n = tile->cols;
}

static void tile_task(const struct gemm_reduce *g, uint32_t rank, uint64_t i, struct task *t)
{
    struct tile tile;

    tile_grid_at(&g->grid, rank, i, &tile);
    tile_extents(&tile, t);
    t->op = OP_GEMM;
    t->k = g->problem.k;
    t->a = (struct operand){rank, g->a, tile.row * t->k, t->k};
    t->b = (struct operand){rank, g->b, tile.col * t->k, t->k};
    if (g->unfused) {
        task_store_to(t, tile_at(g, rank, g->partial, tile.owner * g->slots + tile.slot));
        task_signal(t, rank, g->computed, 1);
    } else if (g->crew_form || gpu_of(g, tile.owner) != gpu_of(g, rank)) {
        store_in_inbox(g, rank, &tile, WAIT_LATE, t);
    } else {
        add_inbox(g, rank, &tile, WAIT_LATE, t);
        store_node_sum(g, rank, &tile, t);
    }
}

/* Everything that others read of me or write to me is over. */
static void close_task(const struct gemm_reduce *g, struct task *t)
{
    t->op = OP_NOP;
    gate_wait_sent(&g->gate, t);
    if (g->all_reduce)
        task_wait(t, g->done, world_ranks(g->world), FLAG_TOTAL);
}

/* The queue that holds the epoch's last task: the last one that stores final tiles, or puts them. */
static uint32_t closing_queue(const struct gemm_reduce *g)
{
    if (g->world.nodes > 1)
        return g->all_reduce ? g->share_queue : g->send_queue;
    if (!g->all_reduce)
        return NO_QUEUE; /* nobody writes or reads here but tasks that own tiles wait for */
    return g->crew_form ? g->reduce_queue : g->compute_queue;
}

static void compute_task(const struct gemm_reduce *g, uint32_t rank, uint64_t i, struct task *t)
{
    uint64_t head = gate_node_tasks(&g->gate);

    if (i < head)
        gate_node_task(&g->gate, rank, t);
    else
        tile_task(g, rank, i - head, t);
}

/* ---- scatter (unfused): a barrier, then every tile to its rail mate ---- */

static void scatter_task(const struct gemm_reduce *g, uint32_t rank, uint64_t i, struct task *t)
{
    struct tile tile;

    if (i == 0) {
        t->op = OP_NOP;
        task_wait(t, g->computed, 1, FLAG_TOTAL);
        task_signal(t, rank, g->go, 1);
        return;
    }
    tile_grid_at(&g->grid, rank, i - 1, &tile);
    tile_extents(&tile, t);
    t->op = OP_COPY;
    t->a = tile_at(g, rank, g->partial, tile.owner * g->slots + tile.slot);
    task_wait(t, g->go, 1, FLAG_TOTAL);
    store_in_inbox(g, rank, &tile, WAIT_ENTRY, t);
}

/* ---- queues over (node, slot or chunk): node by node, or all nodes in step ---- */

/* The i-th pair of a node of the rail, `skip` of them left out, and one of `items` things. */
static void pair_at(const struct gemm_reduce *g, uint32_t rank, uint64_t i, uint64_t items, uint32_t skip,
                    uint32_t *owner_out, uint64_t *item_out)
{
    uint32_t nodes = g->world.nodes, others = nodes - skip;
    bool in_step = g->grid.order == ORDER_ALL;
    uint32_t turn = (uint32_t)(in_step ? i % others : i / items);

    *item_out = in_step ? i / others : i % items;
    *owner_out = world_rank(g->world, (node_of(g, rank) + 1 + turn) % nodes, gpu_of(g, rank));
}

/* Adds the node's tiles; the owners on my rail in the order in which their tiles are computed.  Owners have
 * up to one row of tiles less than `slots`: what is missing is an empty task. */
static void reduce_task(const struct gemm_reduce *g, uint32_t rank, uint64_t i, struct task *t)
{
    struct tile tile;
    uint32_t owner;
    uint64_t slot;

    pair_at(g, rank, i, g->slots, 0, &owner, &slot);
    t->op = OP_NOP;
    if (slot >= tile_grid_owner_tiles(&g->grid, owner))
        return;
    tile_grid_slot(&g->grid, owner, slot, &tile);
    tile_extents(&tile, t);
    t->op = OP_REDUCE;
    add_inbox(g, rank, &tile, WAIT_ENTRY, t);
    store_node_sum(g, rank, &tile, t);
}

/* Fills the put of a chunk of tiles; the caller has set t->a and stored to one target. */
static void put_chunk(const struct gemm_reduce *g, uint32_t rank, uint32_t owner, uint64_t chunk, struct task *t)
{
    t->op = OP_PUT;
    t->m = gemm_reduce_chunk_size(g, owner, chunk) * g->grid.tile_m;
    t->n = g->grid.tile_n;
    task_signal(t, rank, g->gate.sent, 1);
}

/* ---- send: credits, then this node's sums to their owners ---- */

static uint64_t send_length(const struct gemm_reduce *g)
{
    return gate_rail_tasks(&g->gate) + (g->world.nodes - 1) * g->kept * g->chunks;
}

/* The i-th chunk of the own node's sums to another node, which keeps it too; nearest successor first. */
static void send_copy(const struct gemm_reduce *g, uint32_t rank, uint64_t i, struct task *t)
{
    uint32_t others = g->world.nodes - 1, node = node_of(g, rank), owner;
    uint32_t to = world_rank(g->world, (node + 1 + (uint32_t)(i % others)) % g->world.nodes, gpu_of(g, rank));
    uint64_t chunk, slot;

    pair_at(g, rank, i / others, g->chunks, 0, &owner, &chunk);
    t->op = OP_NOP;
    if (chunk >= gemm_reduce_chunk_count(g, owner))
        return;
    slot = chunk * g->chunk_tiles;
    task_wait(t, landed_flag(g, kept_index(g, owner), chunk, node), 1, FLAG_TOTAL);
    gate_wait_rail(&g->gate, t, node_of(g, to), g->depth);
    t->a = landing_at(g, rank, kept_index(g, owner), node, slot);
    task_store_to(t, landing_at(g, to, kept_index(g, owner), node, slot));
    task_signal(t, to, landed_flag(g, kept_index(g, owner), chunk, node), 1);
    put_chunk(g, rank, owner, chunk, t);
}

static void send_task(const struct gemm_reduce *g, uint32_t rank, uint64_t i, struct task *t)
{
    uint64_t opens = gate_rail_tasks(&g->gate), chunk, slot;
    uint32_t node = node_of(g, rank), owner;

    if (i < opens) {
        gate_rail_task(&g->gate, rank, i, t);
        return;
    }
    if (g->replicate) {
        send_copy(g, rank, i - opens, t);
        return;
    }
    pair_at(g, rank, i - opens, g->chunks, 1, &owner, &chunk);
    t->op = OP_NOP;
    if (chunk >= gemm_reduce_chunk_count(g, owner))
        return;
    slot = chunk * g->chunk_tiles;
    task_wait(t, g->summed + (uint32_t)(node_of(g, owner) * g->chunks + chunk), 1, FLAG_TOTAL);
    gate_wait_rail(&g->gate, t, node_of(g, owner), g->depth);
    t->a = tile_at(g, rank, g->outbox, node_of(g, owner) * g->slots + slot);
    task_store_to(t, landing_at(g, owner, 0, node, slot));
    task_signal(t, owner, landed_flag(g, 0, chunk, node), 1);
    put_chunk(g, rank, owner, chunk, t);
}

/* ---- combine: the nodes' sums of a tile that stays here, in the order in which they come ---- */

static uint64_t combine_length(const struct gemm_reduce *g, uint32_t rank)
{
    return g->replicate ? g->kept * g->slots : tile_grid_owner_tiles(&g->grid, rank);
}

static void combine_task(const struct gemm_reduce *g, uint32_t rank, uint64_t i, struct task *t)
{
    uint64_t slot = i;
    uint32_t owner = rank;
    struct tile tile;

    if (g->replicate)
        pair_at(g, rank, i, g->slots, 0, &owner, &slot);
    t->op = OP_NOP;
    if (slot >= tile_grid_owner_tiles(&g->grid, owner))
        return;
    tile_grid_slot(&g->grid, owner, slot, &tile);
    tile_extents(&tile, t);
    t->op = OP_REDUCE;
    task_wait(t, landed_flag(g, kept_index(g, owner), slot / g->chunk_tiles, 0), g->world.nodes, FLAG_TOTAL);
    t->addend = landing_at(g, rank, kept_index(g, owner), 0, slot);
    t->addend_stride = g->slots * g->grid.tile_m * g->grid.tile_n;
    t->addend_count = g->world.nodes;
    store_final(g, rank, &tile, t);
}

/* ---- share and publish (all-reduce): final tiles to the other nodes, and there to every rank ---- */

static uint32_t arrived_flag(const struct gemm_reduce *g, uint32_t owner, uint64_t chunk)
{
    return g->arrived + (uint32_t)(node_of(g, owner) * g->chunks + chunk);
}

static void share_task(const struct gemm_reduce *g, uint32_t rank, uint64_t i, struct task *t)
{
    struct rail_item item;
    uint64_t slot;

    rail_gather_send(&g->share, rank, i, &item);
    slot = item.chunk * g->chunk_tiles;
    if (item.forwarded) {
        task_wait(t, arrived_flag(g, item.owner, item.chunk), 1, FLAG_TOTAL);
        t->a = tile_at(g, rank, g->gathered, node_of(g, item.owner) * g->slots + slot);
    } else {
        task_wait(t, g->shared + (uint32_t)item.chunk, 1, FLAG_TOTAL);
        t->a = tile_at(g, rank, g->result, slot);
    }
    task_store_to(t, tile_at(g, item.to, g->gathered, node_of(g, item.owner) * g->slots + slot));
    task_signal(t, item.to, arrived_flag(g, item.owner, item.chunk), 1);
    put_chunk(g, rank, item.owner, item.chunk, t);
}

static void publish_task(const struct gemm_reduce *g, uint32_t rank, uint64_t i, struct task *t)
{
    struct rail_item item;
    struct tile tile;

    rail_gather_arrival(&g->publish, rank, i, &item);
    tile_grid_slot(&g->grid, item.owner, item.chunk, &tile);
    tile_extents(&tile, t);
    t->op = OP_COPY;
    task_wait(t, arrived_flag(g, item.owner, tile.slot / g->chunk_tiles), 1, FLAG_TOTAL);
    t->a = tile_at(g, rank, g->gathered, node_of(g, item.owner) * g->slots + tile.slot);
    task_store_to(t, (struct operand){RANK_NODE, g->c, tile.row * g->problem.n + tile.col, g->problem.n});
    task_signal(t, RANK_NODE, g->done + item.owner, 1);
}

/* ---- all queues ---- */

/* Without the closing task. */
static uint64_t queue_length(const struct gemm_reduce *g, uint32_t rank, uint32_t queue)
{
    if (queue == g->compute_queue)
        return gate_node_tasks(&g->gate) + tile_grid_tiles(&g->grid);
    if (queue == g->scatter_queue)
        return 1 + tile_grid_tiles(&g->grid);
    if (queue == g->reduce_queue)
        return g->world.nodes * g->slots;
    if (queue == g->send_queue)
        return send_length(g);
    if (queue == g->combine_queue)
        return combine_length(g, rank);
    if (queue == g->share_queue)
        return rail_gather_sends(&g->share, rank);
    return rail_gather_arrivals(&g->publish, rank);
}

uint64_t gemm_reduce_queue_length(const struct program *p, uint32_t rank, uint32_t queue)
{
    const struct gemm_reduce *g = p->state;

    return queue_length(g, rank, queue) + (queue == closing_queue(g));
}

void gemm_reduce_task(const struct program *p, uint32_t rank, uint32_t queue, uint64_t index, struct task *t)
{
    const struct gemm_reduce *g = p->state;

    if (queue == closing_queue(g) && index == queue_length(g, rank, queue))
        close_task(g, t);
    else if (queue == g->compute_queue)
        compute_task(g, rank, index, t);
    else if (queue == g->scatter_queue)
        scatter_task(g, rank, index, t);
    else if (queue == g->reduce_queue)
        reduce_task(g, rank, index, t);
    else if (queue == g->send_queue)
        send_task(g, rank, index, t);
    else if (queue == g->combine_queue)
        combine_task(g, rank, index, t);
    else if (queue == g->share_queue)
        share_task(g, rank, index, t);
    else
        publish_task(g, rank, index, t);
}
