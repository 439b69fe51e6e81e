/* The dispatch, task by task: who does what in which order, behind which flags. */
#include "kernels/moe_dispatch.h"

static struct operand rows_of(const struct moe_dispatch *g, uint32_t rank, uint32_t buffer, uint64_t row)
{
    return moe_rows(rank, buffer, row, g->problem.hidden);
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
    uint32_t owner = moe_rail_mate(g, rank, node);

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
    return g->ready + (uint32_t)((world_gpu(g->world, rank) * g->world.nodes + node) * g->chunks + chunk);
}

/* The own tokens are ready when the epoch begins. */
static void own_ready_task(const struct moe_dispatch *g, uint32_t rank, uint64_t chunk, struct task *t)
{
    t->op = OP_NOP;
    task_signal(t, RANK_NODE, ready_flag(g, rank, world_node(g->world, rank), chunk), 1);
}

static uint64_t control_length(const struct moe_dispatch *g)
{
    return 1 + 1 + g->chunks + moe_others(g) + 1;
}

static void control_task(const struct moe_dispatch *g, uint32_t rank, uint64_t i, struct task *t)
{
    if (i == 0)
        route_task(g, rank, ROUTE_SEND, t);
    else if (i == 1)
        know_task(g, rank, world_node(g->world, rank), t);
    else if (i < 2 + g->chunks)
        own_ready_task(g, rank, i - 2, t);
    else if (i < 2 + g->chunks + moe_others(g)) /* in the order in which they come */
        know_task(g, rank, moe_node_after(g, rank, g->world.nodes - (i - 1 - g->chunks)), t);
    else
        route_task(g, rank, ROUTE_RECEIVE, t);
}

/* ---- pack and send: chunk by chunk, to the next node first ---- */

/* Of the rows that go there, from `skip` on. */
static void select_rows(const struct moe_dispatch *g, uint32_t node, uint64_t skip, uint64_t rows, uint64_t cols,
                        struct task *t)
{
    t->m = rows;
    t->n = cols;
    t->select = (struct selection){SELECT_COUNT, g->counts, node, skip, 0};
}

static void pack_rows(const struct moe_dispatch *g, uint32_t rank, uint32_t node, uint32_t from, uint32_t to,
                      uint64_t row, struct task *t)
{
    uint64_t cols = t->n;

    t->op = OP_GATHER_ROWS;
    t->index_limit = g->shard;
    t->a = moe_rows(rank, from, world_node(g->world, rank) * g->slot_rows, cols);
    t->index = moe_rows(rank, g->send_index, node * g->slot_rows + row, 1);
    task_store_to(t, moe_rows(rank, to, node * g->slot_rows + row, cols));
    task_wait(t, g->routed + ROUTE_SEND, 1, FLAG_TOTAL);
}

static void pack_chunk(const struct moe_dispatch *g, uint32_t rank, uint32_t node, uint64_t chunk, struct task *t)
{
    select_rows(g, node, chunk * g->chunk_rows, g->chunk_rows, g->problem.hidden, t);
    pack_rows(g, rank, node, g->held, g->outbox, chunk * g->chunk_rows, t);
    task_signal(t, rank, g->packed + (uint32_t)(node * g->chunks + chunk), 1);
}

/* The weights of all tokens that go there at once: they are few bytes. */
static void pack_scores(const struct moe_dispatch *g, uint32_t rank, uint32_t node, struct task *t)
{
    select_rows(g, node, 0, g->slot_rows, g->problem.top_k, t);
    pack_rows(g, rank, node, g->scores, g->score_outbox, 0, t);
    task_signal(t, rank, g->scores_packed + node, 1);
}

static uint64_t pack_length(const struct moe_dispatch *g)
{
    return moe_others(g) * (g->chunks + g->returns);
}

static void pack_task(const struct moe_dispatch *g, uint32_t rank, uint64_t i, struct task *t)
{
    uint32_t node = moe_node_after(g, rank, 1 + i % moe_others(g));
    uint64_t chunk = i / moe_others(g);

    if (chunk < g->chunks)
        pack_chunk(g, rank, node, chunk, t);
    else
        pack_scores(g, rank, node, t);
}

void moe_put_to(const struct moe_dispatch *g, uint32_t rank, uint32_t node, uint32_t flag, struct task *t)
{
    t->op = OP_PUT;
    task_signal(t, moe_rail_mate(g, rank, node), flag, 1);
    task_signal(t, rank, g->gate.sent, 1);
}

static void tell_task(const struct moe_dispatch *g, uint32_t rank, uint32_t node, struct task *t)
{
    struct operand to;

    moe_put_to(g, rank, node, g->told + world_node(g->world, rank), t);
    t->m = tell_size(g, rank, &t->a);
    t->n = g->problem.top_k;
    to = t->a;
    to.rank = moe_rail_mate(g, rank, node);
    task_store_to(t, to);
}

static void put_rows(const struct moe_dispatch *g, uint32_t rank, uint32_t node, uint32_t from, uint32_t to,
                     uint64_t row, struct task *t)
{
    uint64_t cols = t->n;

    t->a = moe_rows(rank, from, node * g->slot_rows + row, cols);
    task_store_to(t, moe_rows(moe_rail_mate(g, rank, node), to, world_node(g->world, rank) * g->slot_rows + row, cols));
}

static void send_chunk(const struct moe_dispatch *g, uint32_t rank, uint32_t node, uint64_t chunk, struct task *t)
{
    uint32_t own = world_node(g->world, rank);

    task_wait(t, g->packed + (uint32_t)(node * g->chunks + chunk), 1, FLAG_TOTAL);
    moe_put_to(g, rank, node, g->landed + (uint32_t)(own * g->chunks + chunk), t);
    select_rows(g, node, chunk * g->chunk_rows, g->chunk_rows, g->problem.hidden, t);
    put_rows(g, rank, node, g->outbox, g->held, chunk * g->chunk_rows, t);
}

static void send_scores(const struct moe_dispatch *g, uint32_t rank, uint32_t node, struct task *t)
{
    task_wait(t, g->scores_packed + node, 1, FLAG_TOTAL);
    moe_put_to(g, rank, node, g->scores_landed + world_node(g->world, rank), t);
    select_rows(g, node, 0, g->slot_rows, g->problem.top_k, t);
    put_rows(g, rank, node, g->score_outbox, g->scores, 0, t);
}

static uint64_t send_length(const struct moe_dispatch *g)
{
    return moe_others(g) * (1 + g->chunks + g->returns);
}

static void send_task(const struct moe_dispatch *g, uint32_t rank, uint64_t i, struct task *t)
{
    uint32_t node = moe_node_after(g, rank, 1 + i % moe_others(g));
    uint64_t turn = i / moe_others(g);

    if (turn == 0)
        tell_task(g, rank, node, t);
    else if (turn <= g->chunks)
        send_chunk(g, rank, node, turn - 1, t);
    else
        send_scores(g, rank, node, t);
}

/* ---- relay: what has landed; and the end of the epoch ---- */

static uint64_t relay_length(const struct moe_dispatch *g)
{
    return moe_others(g) * g->chunks + 1;
}

static void relay_task(const struct moe_dispatch *g, uint32_t rank, uint64_t i, struct task *t)
{
    t->op = OP_NOP;
    if (i < moe_others(g) * g->chunks) {
        uint32_t node = moe_node_after(g, rank, g->world.nodes - 1 - i % moe_others(g));
        uint64_t chunk = i / moe_others(g);

        task_wait(t, g->landed + (uint32_t)(node * g->chunks + chunk), 1, FLAG_TOTAL);
        task_signal(t, RANK_NODE, ready_flag(g, rank, node, chunk), 1);
        return;
    }
    gate_wait_sent(&g->gate, t);
    task_wait(t, g->pulled, g->world.gpus_per_node, FLAG_TOTAL);
}

/* ---- gather: rows of the node's stack, each once or entry by entry ---- */

static uint64_t stack_chunks(const struct moe_dispatch *g)
{
    return g->world.gpus_per_node * g->world.nodes * g->chunks;
}

/* Reads from the node's stacked tokens, each behind the flag of its chunk; what is held may be overwritten when all
 * such tasks are done. */
static void pull_rows(const struct moe_dispatch *g, uint32_t rank, struct task *t)
{
    t->a = rows_of(g, RANK_NODE, g->held, 0);
    t->index_limit = stack_chunks(g) * g->chunk_rows;
    t->indexed = (struct indexed_wait){g->ready, (uint32_t)stack_chunks(g), g->chunk_rows};
    task_signal(t, RANK_NODE, g->pulled + world_gpu(g->world, rank), 1);
}

static void gather_part(const struct moe_dispatch *g, uint32_t rank, uint64_t part, struct task *t)
{
    uint64_t row = part * g->gather_rows;

    t->m = min_u64(g->gather_rows, route_pulls_max(&g->receive) - row);
    t->select = (struct selection){SELECT_COUNT, g->pull_count, 0, row, 0};
    t->index = moe_rows(rank, g->pulls, row, 1);
    task_store_to(t, rows_of(g, rank, g->rows, row));
    task_signal(t, rank, g->gathered + (uint32_t)part, 1);
}

static void gather_entry(const struct moe_dispatch *g, uint32_t rank, uint64_t entry, uint64_t skip, struct task *t)
{
    uint64_t place = g->returns ? entry * g->tile_m + skip : 0;

    t->m = min_u64(g->gather_rows, g->tile_m - skip);
    t->select = (struct selection){g->returns ? SELECT_GROUP : SELECT_ENTRY, g->list, entry, skip, 0};
    t->index = moe_rows(rank, g->index, place, 1);
    task_store_to(t, rows_of(g, rank, g->rows, place));
    task_signal(t, rank, g->gathered + (uint32_t)entry, 1);
}

static void gather_task(const struct moe_dispatch *g, uint32_t rank, uint64_t i, struct task *t)
{
    t->op = OP_GATHER_ROWS;
    t->n = g->problem.hidden;
    task_wait(t, g->routed + ROUTE_RECEIVE, 1, FLAG_TOTAL);
    if (g->source == MOE_SOURCE_ONCE)
        gather_part(g, rank, i, t);
    else
        gather_entry(g, rank, i / g->parts, i % g->parts * g->gather_rows, t);
    pull_rows(g, rank, t);
}

/* ---- what an entry's first GEMM reads ---- */

void moe_dispatch_take(const struct moe_dispatch *g, uint32_t rank, uint64_t entry, bool here, struct task *t)
{
    uint64_t place = g->returns ? entry * g->tile_m : 0;

    if (g->source == MOE_SOURCE_EXPANDED) {
        t->a = rows_of(g, rank, g->rows, place);
        if (!here)
            task_wait(t, g->gathered + (uint32_t)entry, 1, FLAG_TOTAL);
        return;
    }
    t->by_index = true;
    t->index = moe_rows(rank, g->index, place, 1);
    if (g->source == MOE_SOURCE_IN_PLACE) {
        pull_rows(g, rank, t);
    } else {
        t->a = rows_of(g, rank, g->rows, 0);
        t->index_limit = route_pulls_max(&g->receive);
        t->indexed = (struct indexed_wait){g->gathered, (uint32_t)g->gathers, g->gather_rows};
    }
    if (here)
        t->indexed.count = 0;
    else
        task_wait(t, g->routed + ROUTE_RECEIVE, 1, FLAG_TOTAL);
}

void moe_dispatch_wait_all(const struct moe_dispatch *g, struct task *t)
{
    if (g->source == MOE_SOURCE_IN_PLACE) {
        task_wait(t, g->routed + ROUTE_RECEIVE, 1, FLAG_TOTAL);
        task_wait(t, g->ready, (uint32_t)stack_chunks(g), FLAG_TOTAL);
    } else {
        task_wait(t, g->gathered, (uint32_t)moe_gathered_flags(g), FLAG_TOTAL);
    }
}

/* ---- all queues and flags ---- */

bool moe_dispatch_length(const struct moe_dispatch *g, uint32_t queue, uint64_t *length_out)
{
    if (queue == g->control_queue)
        *length_out = control_length(g);
    else if (queue == g->pack_queue)
        *length_out = pack_length(g);
    else if (queue == g->send_queue)
        *length_out = send_length(g);
    else if (queue == g->relay_queue)
        *length_out = relay_length(g);
    else if (queue == g->lead_queue)
        *length_out = g->lead;
    else if (queue == g->gather_queue)
        *length_out = g->gathers - g->lead;
    else
        return false;
    return true;
}

bool moe_dispatch_task(const struct moe_dispatch *g, uint32_t rank, uint32_t queue, uint64_t i, struct task *t)
{
    if (queue == g->control_queue)
        control_task(g, rank, i, t);
    else if (queue == g->pack_queue)
        pack_task(g, rank, i, t);
    else if (queue == g->send_queue)
        send_task(g, rank, i, t);
    else if (queue == g->relay_queue)
        relay_task(g, rank, i, t);
    else if (queue == g->lead_queue)
        gather_task(g, rank, i, t);
    else if (queue == g->gather_queue)
        gather_task(g, rank, g->lead + i, t);
    else
        return false;
    return true;
}

/* Flags of a kind follow each other in the order in which they were added. */
bool moe_dispatch_total(const struct moe_dispatch *g, uint32_t rank, uint32_t flag, uint64_t *total_out)
{
    uint32_t own = world_node(g->world, rank);

    if (flag == g->gate.sent)
        *total_out = send_length(g) + g->puts_beside;
    else if (flag - g->told < g->world.nodes)
        *total_out = flag - g->told != own;
    else if (flag >= g->known && flag < g->packed) /* and the routes */
        *total_out = 1;
    else if (flag >= g->packed && flag < g->ready) /* and landed, of as many */
        *total_out = (flag - g->packed) / g->chunks % g->world.nodes != own;
    else if (flag - g->ready < stack_chunks(g))
        *total_out = 1;
    else if (g->gathers > 0 && flag - g->gathered < moe_gathered_flags(g))
        *total_out = g->gathers / moe_gathered_flags(g);
    else if (flag - g->pulled < g->world.gpus_per_node)
        *total_out = g->gathers + g->pulls_beside;
    else if (g->scores_packed != NO_FLAG && flag - g->scores_packed < 2 * g->world.nodes)
        *total_out = (flag - g->scores_packed) % g->world.nodes != own;
    else
        return false;
    return true;
}
