/* MoE dispatch + FFN + combine, task by task, but for the dispatch. */
#include "kernels/moe_ffn.h"

/* ---- compute: the first GEMM of an entry, some entries later the second one ---- */

/* Unfused: for the barrier before the phase. */
static void wait_or_go(const struct moe_ffn *g, struct task *t, uint32_t phase, uint32_t flag)
{
    if (g->barrier)
        task_wait(t, g->go + phase, 1, FLAG_TOTAL);
    else
        task_wait(t, flag, 1, FLAG_TOTAL);
}

static void gemm_of_entry(const struct moe_ffn *g, uint64_t entry, uint64_t b_step, struct task *t)
{
    t->op = OP_GEMM;
    t->m = g->dispatch.tile_m;
    t->select = (struct selection){SELECT_GROUP, g->dispatch.list, entry, 0, b_step};
}

static void gate_task(const struct moe_ffn *g, uint32_t rank, uint64_t entry, uint64_t tile, struct task *t)
{
    const struct moe_problem *p = &g->dispatch.problem;
    uint64_t row = entry * g->dispatch.tile_m, col = tile * g->gate_cols;

    gemm_of_entry(g, entry, 2 * p->inter * p->hidden, t);
    t->n = min_u64(g->gate_cols, p->inter - col);
    t->k = p->hidden;
    t->epilogue = EPILOGUE_SWIGLU;
    t->b = moe_rows(rank, g->gate_up, 2 * col, p->hidden);
    task_store_to(t, (struct operand){rank, g->active, row * p->inter + col, p->inter});
    moe_dispatch_take(&g->dispatch, rank, entry, g->barrier, t);
    if (g->barrier)
        task_wait(t, g->go, 1, FLAG_TOTAL);
    task_signal(t, rank, g->activated + (uint32_t)entry, 1);
}

static void down_task(const struct moe_ffn *g, uint32_t rank, uint64_t entry, uint64_t tile, struct task *t)
{
    const struct moe_problem *p = &g->dispatch.problem;
    uint64_t row = entry * g->dispatch.tile_m, col = tile * g->down_cols;

    gemm_of_entry(g, entry, p->hidden * p->inter, t);
    t->n = min_u64(g->down_cols, p->hidden - col);
    t->k = p->inter;
    t->a = moe_rows(rank, g->active, row, p->inter);
    t->b = moe_rows(rank, g->down, col, p->inter);
    task_store_to(t, (struct operand){rank, g->expert, row * p->hidden + col, p->hidden});
    task_wait(t, g->activated + (uint32_t)entry, 1, FLAG_TOTAL);
    task_signal(t, RANK_NODE,
                g->computed + (uint32_t)(world_gpu(g->dispatch.world, rank) * g->dispatch.entries + entry), 1);
}

static void gathered_task(const struct moe_ffn *g, uint32_t rank, struct task *t)
{
    t->op = OP_NOP;
    moe_dispatch_wait_all(&g->dispatch, t);
    task_signal(t, rank, g->go, 1);
}

static uint64_t compute_length(const struct moe_ffn *g)
{
    return g->barrier + g->dispatch.entries * (g->gate_tiles + g->down_tiles);
}

/* `ahead` entries' first GEMM; then of one entry the first and of an earlier one the second; then what is left. */
static void tile_task(const struct moe_ffn *g, uint32_t rank, uint64_t i, struct task *t)
{
    uint64_t both = g->gate_tiles + g->down_tiles, entries = g->dispatch.entries;
    uint64_t head = g->ahead * g->gate_tiles, turns = entries - g->ahead, turn;

    if (i < head) {
        gate_task(g, rank, i / g->gate_tiles, i % g->gate_tiles, t);
        return;
    }
    i -= head;
    turn = i / both;
    if (turn >= turns) {
        i -= turns * both;
        down_task(g, rank, turns + i / g->down_tiles, i % g->down_tiles, t);
    } else if (i % both < g->gate_tiles) {
        gate_task(g, rank, g->ahead + turn, i % both, t);
    } else {
        down_task(g, rank, turn, i % both - g->gate_tiles, t);
    }
}

static void compute_task(const struct moe_ffn *g, uint32_t rank, uint64_t i, struct task *t)
{
    if (i < g->barrier)
        gathered_task(g, rank, t);
    else
        tile_task(g, rank, i - g->barrier, t);
}

/* ---- combine: the node's rows of each token that is held here, own ones first, then as tokens arrive ---- */

uint64_t moe_ffn_combine_tasks(const struct moe_ffn *g)
{
    return g->dispatch.world.nodes * g->dispatch.chunks * g->chunk_parts;
}

static void computed_task(const struct moe_ffn *g, uint32_t rank, struct task *t)
{
    uint64_t entries = g->dispatch.world.gpus_per_node * g->dispatch.entries;

    t->op = OP_NOP;
    task_wait(t, g->computed, (uint32_t)entries, FLAG_TOTAL);
    task_signal(t, rank, g->go + 1, 1);
}

/* On one node the sums are the result; else they wait for those of other nodes, or go there. */
static void store_sums(const struct moe_ffn *g, uint32_t rank, uint32_t node, uint64_t chunk, uint64_t row,
                       struct task *t)
{
    const struct moe_dispatch *d = &g->dispatch;
    bool own = node == world_node(d->world, rank), alone = d->world.nodes == 1;
    uint32_t flag = (own ? g->came_back : g->combined) + (uint32_t)(node * d->chunks + chunk);

    task_store_to(t, moe_rows(rank,
                              alone ? g->result
                              : own ? g->returned
                                    : g->sums,
                              node * d->slot_rows + row, d->problem.hidden));
    if (!alone)
        task_signal(t, rank, flag, 1);
}

static void sum_task(const struct moe_ffn *g, uint32_t rank, uint64_t i, struct task *t)
{
    const struct moe_dispatch *d = &g->dispatch;
    uint64_t chunk = i / g->chunk_parts % d->chunks, part = i % g->chunk_parts;
    uint64_t row = chunk * d->chunk_rows + part * g->combine_rows, stacked = d->entries * d->tile_m;
    uint32_t node = moe_node_after(d, rank, d->world.nodes - i / (g->chunk_parts * d->chunks));
    uint64_t top_k = d->problem.top_k, entries = d->world.gpus_per_node * d->entries;

    t->op = OP_COMBINE_ROWS;
    t->m = min_u64(g->combine_rows, d->chunk_rows - part * g->combine_rows);
    t->n = d->problem.hidden;
    t->index_limit = d->world.gpus_per_node * stacked;
    t->a = moe_rows(RANK_NODE, g->expert, 0, t->n);
    t->select = (struct selection){SELECT_COUNT, d->came, node, row, 0};
    t->index = moe_rows(rank, d->back, node * d->slot_rows + row, top_k);
    t->combine = (struct combine){top_k, true, moe_rows(rank, d->scores, node * d->slot_rows + row, top_k)};
    wait_or_go(g, t, 1, d->routed + ROUTE_RECEIVE);
    if (!g->barrier)
        t->indexed = (struct indexed_wait){g->computed, (uint32_t)entries, d->tile_m};
    if (node != world_node(d->world, rank))
        task_wait(t, d->scores_landed + node, 1, FLAG_TOTAL);
    store_sums(g, rank, node, chunk, row, t);
    task_signal(t, RANK_NODE, d->pulled + world_gpu(d->world, rank), 1);
}

static void combine_task(const struct moe_ffn *g, uint32_t rank, uint64_t i, struct task *t)
{
    if (i < g->barrier)
        computed_task(g, rank, t);
    else
        sum_task(g, rank, i - g->barrier, t);
}

/* ---- return and finish: sums go home, and are added there ---- */

static void return_task(const struct moe_ffn *g, uint32_t rank, uint64_t i, struct task *t)
{
    const struct moe_dispatch *d = &g->dispatch;
    uint32_t own = world_node(d->world, rank);
    uint32_t node = moe_node_after(d, rank, d->world.nodes - 1 - i / d->chunks);
    uint64_t chunk = i % d->chunks, row = chunk * d->chunk_rows;

    moe_put_to(d, rank, node, g->came_back + (uint32_t)(own * d->chunks + chunk), t);
    task_wait(t, g->combined + (uint32_t)(node * d->chunks + chunk), 1, FLAG_TOTAL);
    t->m = d->chunk_rows;
    t->n = d->problem.hidden;
    t->select = (struct selection){SELECT_COUNT, d->came, node, row, 0};
    t->a = moe_rows(rank, g->sums, node * d->slot_rows + row, t->n);
    task_store_to(t, moe_rows(moe_rail_mate(d, rank, node), g->returned, own * d->slot_rows + row, t->n));
}

static uint64_t finish_length(const struct moe_ffn *g, uint32_t rank)
{
    const struct moe_dispatch *d = &g->dispatch;

    return ceil_div(part_size(d->problem.tokens, world_ranks(d->world), rank), g->combine_rows);
}

static void finish_task(const struct moe_ffn *g, uint32_t rank, uint64_t i, struct task *t)
{
    const struct moe_dispatch *d = &g->dispatch;
    uint64_t tokens = part_size(d->problem.tokens, world_ranks(d->world), rank), row = i * g->combine_rows;

    t->op = OP_COMBINE_ROWS;
    t->m = min_u64(g->combine_rows, tokens - row);
    t->n = d->problem.hidden;
    t->index_limit = d->world.nodes * d->slot_rows;
    t->a = moe_rows(rank, g->returned, 0, t->n);
    t->index = moe_rows(rank, d->send_back, row, d->world.nodes);
    t->combine.terms = d->world.nodes;
    t->indexed = (struct indexed_wait){g->came_back, (uint32_t)(d->world.nodes * d->chunks), d->chunk_rows};
    task_wait(t, d->routed + ROUTE_SEND, 1, FLAG_TOTAL);
    task_store_to(t, moe_rows(rank, g->result, row, t->n));
}

/* ---- all queues and flags ---- */

uint64_t moe_ffn_queue_length(const struct program *p, uint32_t rank, uint32_t queue)
{
    const struct moe_ffn *g = p->state;
    uint64_t length;

    if (moe_dispatch_length(&g->dispatch, queue, &length))
        return length;
    if (queue == g->compute_queue)
        return compute_length(g);
    if (queue == g->combine_queue)
        return g->barrier + moe_ffn_combine_tasks(g);
    return queue == g->return_queue ? g->dispatch.puts_beside : finish_length(g, rank);
}

void moe_ffn_task(const struct program *p, uint32_t rank, uint32_t queue, uint64_t index, struct task *t)
{
    const struct moe_ffn *g = p->state;

    if (moe_dispatch_task(&g->dispatch, rank, queue, index, t))
        return;
    if (queue == g->compute_queue)
        compute_task(g, rank, index, t);
    else if (queue == g->combine_queue)
        combine_task(g, rank, index, t);
    else if (queue == g->return_queue)
        return_task(g, rank, index, t);
    else
        finish_task(g, rank, index, t);
}

uint64_t moe_ffn_flag_total(const struct program *p, uint32_t rank, uint32_t flag)
{
    const struct moe_ffn *g = p->state;
    const struct moe_dispatch *d = &g->dispatch;
    uint64_t chunks = d->world.nodes * d->chunks, own = world_node(d->world, rank), total;

    if (moe_dispatch_total(d, rank, flag, &total))
        return total;
    if (flag - g->activated < d->entries)
        return g->gate_tiles;
    if (flag - g->computed < d->world.gpus_per_node * d->entries)
        return g->down_tiles;
    if (g->combined != NO_FLAG && flag - g->combined < chunks)
        return (flag - g->combined) / d->chunks == own ? 0 : g->chunk_parts;
    if (g->came_back != NO_FLAG && flag - g->came_back < chunks)
        return (flag - g->came_back) / d->chunks == own ? g->chunk_parts : 1;
    return 1; /* go */
}
