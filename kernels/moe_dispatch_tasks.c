/* MoE dispatch + GEMM, task by task: who does what in which order, behind which flags. */
#include "kernels/moe_dispatch.h"

static uint64_t others(const struct moe_dispatch *g)
{
    return g->world.nodes - 1;
}

/* The node that stands `step` (1 ..) behind the rank's own; the first to be sent to. */
static uint32_t node_after(const struct moe_dispatch *g, uint32_t rank, uint64_t step)
{
    return (uint32_t)((world_node(g->world, rank) + step) % g->world.nodes);
}

static uint32_t rail_mate(const struct moe_dispatch *g, uint32_t rank, uint32_t node)
{
    return world_rank(g->world, node, world_gpu(g->world, rank));
}

static struct operand rows_of(const struct moe_dispatch *g, uint32_t rank, uint32_t buffer, uint64_t row)
{
    return (struct operand){rank, buffer, row * g->problem.hidden, g->problem.hidden};
}

static struct operand entries_of(uint32_t rank, uint32_t buffer, uint64_t row)
{
    return (struct operand){rank, buffer, row, 1};
}

/* ---- control: the table, routes ---- */

static uint64_t tell_size(const struct moe_dispatch *g, uint32_t owner, struct operand *at_out)
{
    uint64_t row = part_begin(g->problem.tokens, world_ranks(g->world), owner), width = g->problem.top_k;

    *at_out = (struct operand){owner, g->table, row * width, width};
    return part_size(g->problem.tokens, world_ranks(g->world), owner);
}

/* The rail mate's rows, or the own ones, to the whole node. */
static void know_task(const struct moe_dispatch *g, uint32_t rank, uint32_t node, struct task *t)
{
    uint32_t owner = rail_mate(g, rank, node);

    t->m = tell_size(g, owner, &t->a);
    t->n = g->problem.top_k;
    t->a.rank = rank;
    t->op = t->m > 0 ? OP_COPY : OP_NOP;
    if (owner != rank)
        task_wait(t, g->told + node, 1, FLAG_TOTAL);
    if (t->m > 0)
        task_store_to(t, (struct operand){RANK_NODE, g->table, t->a.offset, t->a.ld});
    task_signal(t, RANK_NODE, g->known + world_gpu(g->world, rank) * g->world.nodes + node, 1);
}

static void route_task(const struct moe_dispatch *g, uint32_t rank, enum route_kind kind, struct task *t)
{
    t->op = OP_ROUTE;
    t->route = kind == ROUTE_SEND ? &g->send : &g->receive;
    if (kind == ROUTE_RECEIVE)
        task_wait(t, g->known, world_ranks(g->world), FLAG_TOTAL);
    task_signal(t, rank, g->routed + kind, 1);
}

static uint32_t ready_flag(const struct moe_dispatch *g, uint32_t rank, uint32_t node, uint64_t chunk)
{
    return g->ready +
           (uint32_t)((world_gpu(g->world, rank) * g->world.nodes + node) * g->chunks + chunk);
}

/* The own tokens are ready when the epoch begins. */
static void own_ready_task(const struct moe_dispatch *g, uint32_t rank, uint64_t chunk, struct task *t)
{
    t->op = OP_NOP;
    task_signal(t, RANK_NODE, ready_flag(g, rank, world_node(g->world, rank), chunk), 1);
}

static uint64_t control_length(const struct moe_dispatch *g)
{
    return 1 + 1 + g->chunks + others(g) + 1;
}

static void control_task(const struct moe_dispatch *g, uint32_t rank, uint64_t i, struct task *t)
{
    if (i == 0)
        route_task(g, rank, ROUTE_SEND, t);
    else if (i == 1)
        know_task(g, rank, world_node(g->world, rank), t);
    else if (i < 2 + g->chunks)
        own_ready_task(g, rank, i - 2, t);
    else if (i < 2 + g->chunks + others(g)) /* in the order in which they come */
        know_task(g, rank, node_after(g, rank, g->world.nodes - (i - 1 - g->chunks)), t);
    else
        route_task(g, rank, ROUTE_RECEIVE, t);
}

/* ---- pack and send: chunk by chunk, to the next node first ---- */

static void select_chunk(const struct moe_dispatch *g, uint32_t node, uint64_t chunk, struct task *t)
{
    t->m = g->chunk_rows;
    t->n = g->problem.hidden;
    t->select = (struct selection){SELECT_COUNT, g->counts, node, chunk * g->chunk_rows, 0};
}

static void pack_task(const struct moe_dispatch *g, uint32_t rank, uint64_t i, struct task *t)
{
    uint32_t node = node_after(g, rank, 1 + i % others(g));
    uint64_t chunk = i / others(g), row = node * g->slot_rows + chunk * g->chunk_rows;

    t->op = OP_GATHER_ROWS;
    select_chunk(g, node, chunk, t);
    t->k = g->shard;
    t->a = rows_of(g, rank, g->held, world_node(g->world, rank) * g->slot_rows);
    t->index = entries_of(rank, g->send_index, row);
    task_store_to(t, rows_of(g, rank, g->outbox, row));
    task_wait(t, g->routed + ROUTE_SEND, 1, FLAG_TOTAL);
    task_signal(t, rank, g->packed + (uint32_t)(node * g->chunks + chunk), 1);
}

static void put_to(const struct moe_dispatch *g, uint32_t rank, uint32_t node, uint32_t flag, struct task *t)
{
    t->op = OP_PUT;
    task_signal(t, rail_mate(g, rank, node), flag, 1);
    task_signal(t, rank, g->gate.sent, 1);
}

static void tell_task(const struct moe_dispatch *g, uint32_t rank, uint32_t node, struct task *t)
{
    struct operand to;

    put_to(g, rank, node, g->told + world_node(g->world, rank), t);
    t->m = tell_size(g, rank, &t->a);
    t->n = g->problem.top_k;
    to = t->a;
    to.rank = rail_mate(g, rank, node);
    task_store_to(t, to);
}

static void chunk_task(const struct moe_dispatch *g, uint32_t rank, uint32_t node, uint64_t chunk, struct task *t)
{
    uint32_t own = world_node(g->world, rank);
    uint64_t row = chunk * g->chunk_rows;

    task_wait(t, g->packed + (uint32_t)(node * g->chunks + chunk), 1, FLAG_TOTAL);
    put_to(g, rank, node, g->landed + (uint32_t)(own * g->chunks + chunk), t);
    select_chunk(g, node, chunk, t);
    t->a = rows_of(g, rank, g->outbox, node * g->slot_rows + row);
    task_store_to(t, rows_of(g, rail_mate(g, rank, node), g->held, own * g->slot_rows + row));
}

static uint64_t send_length(const struct moe_dispatch *g)
{
    return others(g) * (1 + g->chunks);
}

static void send_task(const struct moe_dispatch *g, uint32_t rank, uint64_t i, struct task *t)
{
    if (i < others(g))
        tell_task(g, rank, node_after(g, rank, 1 + i), t);
    else
        chunk_task(g, rank, node_after(g, rank, 1 + i % others(g)), i / others(g) - 1, t);
}

/* ---- relay: what has landed; and the end of the epoch ---- */

static uint64_t relay_length(const struct moe_dispatch *g)
{
    return others(g) * g->chunks + 1;
}

static void relay_task(const struct moe_dispatch *g, uint32_t rank, uint64_t i, struct task *t)
{
    t->op = OP_NOP;
    if (i < others(g) * g->chunks) {
        uint32_t node = node_after(g, rank, g->world.nodes - 1 - i % others(g));
        uint64_t chunk = i / others(g);

        task_wait(t, g->landed + (uint32_t)(node * g->chunks + chunk), 1, FLAG_TOTAL);
        task_signal(t, RANK_NODE, ready_flag(g, rank, node, chunk), 1);
        return;
    }
    gate_wait_sent(&g->gate, t);
    task_wait(t, g->pulled, g->world.gpus_per_node, FLAG_TOTAL);
}

/* ---- gather and compute: work-list entries ---- */

static void gather_task(const struct moe_dispatch *g, uint32_t rank, uint64_t i, struct task *t)
{
    uint64_t entry = i / g->parts, skip = i % g->parts * g->gather_rows;
    uint64_t stack = g->world.gpus_per_node * g->world.nodes;

    t->op = OP_GATHER_ROWS;
    t->m = min_u64(g->gather_rows, g->tile_m - skip);
    t->n = g->problem.hidden;
    t->k = stack * g->slot_rows;
    t->a = rows_of(g, RANK_NODE, g->held, 0);
    t->index = entries_of(rank, g->index, 0);
    t->select = (struct selection){SELECT_ENTRY, g->list, entry, skip, 0};
    t->indexed = (struct indexed_wait){g->ready, (uint32_t)(stack * g->chunks), g->chunk_rows};
    task_store_to(t, rows_of(g, rank, g->rows, 0));
    task_wait(t, g->routed + ROUTE_RECEIVE, 1, FLAG_TOTAL);
    task_signal(t, rank, g->gathered + (uint32_t)entry, 1);
    task_signal(t, RANK_NODE, g->pulled + world_gpu(g->world, rank), 1);
}

static void barrier_task(const struct moe_dispatch *g, uint32_t rank, struct task *t)
{
    t->op = OP_NOP;
    task_wait(t, g->gathered, (uint32_t)g->entries, FLAG_TOTAL);
    task_signal(t, rank, g->go, 1);
}

static void tile_task(const struct moe_dispatch *g, uint32_t rank, uint64_t i, struct task *t)
{
    uint64_t entry = i / g->columns, col = i % g->columns * g->tile_n;
    const struct moe_problem *p = &g->problem;

    t->op = OP_GEMM;
    t->m = g->tile_m;
    t->n = min_u64(g->tile_n, p->inter - col);
    t->k = p->hidden;
    t->a = rows_of(g, rank, g->rows, 0);
    t->b = rows_of(g, rank, g->weights, col);
    t->select = (struct selection){SELECT_ENTRY, g->list, entry, 0, p->inter * p->hidden};
    task_store_to(t, (struct operand){rank, g->result, col, p->inter});
    if (g->barrier)
        task_wait(t, g->go, 1, FLAG_TOTAL);
    else
        task_wait(t, g->gathered + (uint32_t)entry, 1, FLAG_TOTAL);
}

static void compute_task(const struct moe_dispatch *g, uint32_t rank, uint64_t i, struct task *t)
{
    if (i < g->barrier)
        barrier_task(g, rank, t);
    else
        tile_task(g, rank, i - g->barrier, t);
}

/* ---- all queues and flags ---- */

uint64_t moe_dispatch_queue_length(const struct program *p, uint32_t rank, uint32_t queue)
{
    const struct moe_dispatch *g = p->state;

    (void)rank;
    if (queue == g->control_queue)
        return control_length(g);
    if (queue == g->pack_queue)
        return others(g) * g->chunks;
    if (queue == g->send_queue)
        return send_length(g);
    if (queue == g->relay_queue)
        return relay_length(g);
    return queue == g->gather_queue ? g->entries * g->parts : g->barrier + g->entries * g->columns;
}

void moe_dispatch_task(const struct program *p, uint32_t rank, uint32_t queue, uint64_t index,
                       struct task *t)
{
    const struct moe_dispatch *g = p->state;

    if (queue == g->control_queue)
        control_task(g, rank, index, t);
    else if (queue == g->pack_queue)
        pack_task(g, rank, index, t);
    else if (queue == g->send_queue)
        send_task(g, rank, index, t);
    else if (queue == g->relay_queue)
        relay_task(g, rank, index, t);
    else if (queue == g->gather_queue)
        gather_task(g, rank, index, t);
    else
        compute_task(g, rank, index, t);
}

uint64_t moe_dispatch_flag_total(const struct program *p, uint32_t rank, uint32_t flag)
{
    const struct moe_dispatch *g = p->state;
    uint32_t own = world_node(g->world, rank);

    if (flag == g->gate.sent)
        return send_length(g);
    if (flag >= g->go)
        return g->barrier;
    if (flag >= g->pulled)
        return g->entries * g->parts;
    if (flag >= g->gathered)
        return g->parts;
    if (flag >= g->ready)
        return 1;
    if (flag >= g->landed)
        return (flag - g->landed) / g->chunks != own;
    if (flag >= g->packed)
        return (flag - g->packed) / g->chunks != own;
    if (flag >= g->known) /* and the routes */
        return 1;
    return flag - g->told != own;
}
