/* AllGather + GEMM.  C_r[m, n] = A[m, k] x B_r[n, k]^T, bf16 in, f32 sums.  Rank r starts with rows
 * [r * m/W, (r+1) * m/W) of A, in place in the gathered buffer, as NCCL's in-place all-gather has it.
 *
 *   gather    copies own chunks into the A of every rank of the node, then, as they arrive from other
 *             nodes, the chunks of the own rail; signals ready[chunk] on the whole node
 *   send      puts chunks to the other nodes of the rail (ring or direct); each raises arrived[chunk]
 *   compute   tiles, own rows first, then in order of arrival; waits for the chunks a tile's rows lie in
 *
 * With `panels` > 1 a chunk is copied within the node in pieces along k with a flag each, and tiles wait
 * step by step.  The unfused form is the same program in which compute starts behind a barrier.
 *
 * Nobody pulls: peers only write rows that the own tiles wait for, under the credits of gate.h, and the
 * last task of `send` waits until every put is complete, so the inputs are free when the epoch ends. */
#include "kernels/kernels.h"

#include <inttypes.h>
#include <stdlib.h>

#include "core/check.h"
#include "kernels/gate.h"
#include "kernels/gather.h"
#include "kernels/rail_gather.h"
#include "kernels/reference.h"
#include "kernels/tile_order.h"

struct ag_params {
    struct gather_params gather;
    uint64_t panels;
    uint64_t tile_m, tile_n, group;
    uint32_t order, inter, fan_out;
};

static const struct option ag_options[] = {
    GATHER_OPTIONS("A"),
    {"panels", OPTION_COUNT, offsetof(struct ag_params, panels), "1", 1, 64, "1|2|4",
     "pieces along k in which a chunk is copied and waited for"},
    {"tile_m", OPTION_COUNT, offsetof(struct ag_params, tile_m), "128", 8, 1024, NULL, "rows of an output tile"},
    {"tile_n", OPTION_COUNT, offsetof(struct ag_params, tile_n), "256", 8, 1024, NULL, "columns of an output tile"},
    {"group", OPTION_COUNT, offsetof(struct ag_params, group), "4", 1, 1024, "4|8|16",
     "row tiles of a supergroup, whose columns are visited together"},
    {"order", OPTION_CHOICE, offsetof(struct ag_params, order), "arrival", 0, 0, "local|arrival|rank",
     "owners one by one from the own rank outwards; group by group as they arrive; or 0, 1, 2 ..."},
    {"inter", OPTION_CHOICE, offsetof(struct ag_params, inter), "ring", 0, 0, RAIL_CHOICES,
     "how chunks travel between nodes"},
    {"fan_out", OPTION_CHOICE, offsetof(struct ag_params, fan_out), "node", 0, 0, "node|each",
     "within the node by multicast, where the machine has it; or by a store to each rank"},
    GATHER_LAST_OPTIONS("A"),
    {NULL, 0, 0, NULL, 0, 0, NULL, NULL},
};

struct ag_gemm {
    struct world world;
    struct problem problem;
    struct tile_grid grid;
    struct gate gate;
    struct rail_gather rail;
    uint64_t chunk_rows, chunks_max; /* of one owner */
    uint64_t panels, panel_k;
    uint32_t depth;
    uint32_t fan_out; /* RANK_NODE, RANK_EACH */
    bool barrier;     /* unfused */

    uint32_t a, b, c;            /* buffers */
    uint32_t ready, arrived, go; /* flags */
    struct gather_queues queues;
};

static uint64_t owner_rows(const struct ag_gemm *g, uint32_t owner)
{
    return part_size(g->problem.m, world_ranks(g->world), owner);
}

static uint64_t owner_chunks(const void *layout, uint32_t owner)
{
    const struct ag_gemm *g = layout;

    return ceil_div(owner_rows(g, owner), g->chunk_rows);
}

static uint32_t ready_flag(const struct ag_gemm *g, uint32_t owner, uint64_t panel, uint64_t chunk)
{
    return g->ready + (uint32_t)((owner * g->panels + panel) * g->chunks_max + chunk);
}

static uint32_t arrived_flag(const struct ag_gemm *g, uint32_t owner, uint64_t chunk)
{
    return g->arrived + (uint32_t)(world_node(g->world, owner) * g->chunks_max + chunk);
}

static struct operand rows_of_a(const struct ag_gemm *g, uint32_t rank, uint64_t row)
{
    return (struct operand){rank, g->a, row * g->problem.k, g->problem.k};
}

/* First row of a chunk, and its number of rows. */
static uint64_t chunk_row(const struct ag_gemm *g, uint32_t owner, uint64_t chunk, uint64_t *rows_out)
{
    uint64_t begin = chunk * g->chunk_rows;

    *rows_out = min_u64(g->chunk_rows, owner_rows(g, owner) - begin);
    return part_begin(g->problem.m, world_ranks(g->world), owner) + begin;
}

/* ---- gather: the node's credit, own chunks (if the node has peers), then arrivals, in panels ---- */

static uint64_t own_copies(const struct ag_gemm *g, uint32_t rank)
{
    return g->world.gpus_per_node > 1 ? owner_chunks(g, rank) * g->panels : 0;
}

static uint64_t gather_length(const struct ag_gemm *g, uint32_t rank)
{
    return gate_node_tasks(&g->gate) + own_copies(g, rank) + rail_gather_arrivals(&g->rail, rank) * g->panels;
}

static void copy_task(const struct ag_gemm *g, uint32_t rank, uint64_t i, struct task *t)
{
    uint64_t own = own_copies(g, rank), panel = i % g->panels, row, first_k = panel * g->panel_k;
    struct rail_item item = {.owner = rank, .chunk = i / g->panels};

    t->op = OP_COPY;
    if (i >= own) {
        rail_gather_arrival(&g->rail, rank, (i - own) / g->panels, &item);
        task_wait(t, arrived_flag(g, item.owner, item.chunk), 1, FLAG_TOTAL);
    }
    gate_wait_node(&g->gate, t, g->depth, WAIT_ENTRY);
    row = chunk_row(g, item.owner, item.chunk, &t->m);
    t->n = min_u64(g->panel_k, g->problem.k - first_k);
    t->a = rows_of_a(g, rank, row);
    t->a.offset += first_k;
    task_store_to(t, (struct operand){g->fan_out, g->a, t->a.offset, t->a.ld});
    task_signal(t, RANK_NODE, ready_flag(g, item.owner, panel, item.chunk), 1);
}

static void gather_task(const struct ag_gemm *g, uint32_t rank, uint64_t i, struct task *t)
{
    if (i < gate_node_tasks(&g->gate))
        gate_node_task(&g->gate, rank, t);
    else
        copy_task(g, rank, i - gate_node_tasks(&g->gate), t);
}

/* ---- send: credits, puts, and their completion ---- */

static uint64_t send_length(const struct ag_gemm *g, uint32_t rank)
{
    return gate_rail_tasks(&g->gate) + rail_gather_sends(&g->rail, rank) + 1;
}

static void send_task(const struct ag_gemm *g, uint32_t rank, uint64_t i, struct task *t)
{
    uint64_t opens = gate_rail_tasks(&g->gate), sends = rail_gather_sends(&g->rail, rank), row;
    struct rail_item item;

    if (i < opens) {
        gate_rail_task(&g->gate, rank, i, t);
        return;
    }
    if (i - opens == sends) {
        t->op = OP_NOP;
        gate_wait_sent(&g->gate, t);
        return;
    }
    rail_gather_send(&g->rail, rank, i - opens, &item);
    t->op = OP_PUT;
    if (item.forwarded)
        task_wait(t, arrived_flag(g, item.owner, item.chunk), 1, FLAG_TOTAL);
    gate_wait_rail(&g->gate, t, world_node(g->world, item.to), g->depth);
    row = chunk_row(g, item.owner, item.chunk, &t->m);
    t->n = g->problem.k;
    t->a = rows_of_a(g, rank, row);
    task_store_to(t, rows_of_a(g, item.to, row));
    task_signal(t, item.to, arrived_flag(g, item.owner, item.chunk), 1);
    task_signal(t, rank, g->gate.sent, 1);
}

/* ---- compute: the barrier of the unfused form, the tiles ---- */

static void barrier_task(const struct ag_gemm *g, uint32_t rank, struct task *t)
{
    t->op = OP_NOP;
    task_wait(t, g->ready, g->arrived - g->ready, FLAG_TOTAL); /* all chunks of all owners */
    task_signal(t, rank, g->go, 1);
}

/* Segment tables: one per owner and row tile, a segment per panel. */
static uint32_t row_table(const struct ag_gemm *g, const struct tile *tile)
{
    uint64_t row = tile->row - part_begin(g->problem.m, world_ranks(g->world), tile->owner);
    uint64_t tables = ceil_div(ceil_div(g->problem.m, world_ranks(g->world)), g->grid.tile_m);

    return (uint32_t)(tile->owner * tables + row / g->grid.tile_m);
}

/* The chunks that hold rows [row, row + rows) of an owner's shard. */
static void wait_for_rows(const struct ag_gemm *g, uint32_t owner, uint64_t panel, uint64_t row, uint64_t rows,
                          struct wait *out)
{
    uint64_t first = row / g->chunk_rows, last = (row + rows - 1) / g->chunk_rows;

    *out = (struct wait){
        .flag = ready_flag(g, owner, panel, first), .count = (uint32_t)(last - first + 1), .value = FLAG_TOTAL};
}

static void tile_task(const struct ag_gemm *g, uint32_t rank, uint64_t i, struct task *t)
{
    struct tile tile;
    struct wait wait;

    tile_grid_at(&g->grid, rank, i, &tile);
    t->op = OP_GEMM;
    t->m = tile.rows;
    t->n = tile.cols;
    t->k = g->problem.k;
    t->a = rows_of_a(g, rank, tile.row);
    t->b = (struct operand){rank, g->b, tile.col * g->problem.k, g->problem.k};
    task_store_to(t, (struct operand){rank, g->c, tile.row * g->problem.n + tile.col, g->problem.n});
    if (g->barrier) {
        task_wait(t, g->go, 1, FLAG_TOTAL);
    } else if (tile.owner != rank && g->panels > 1) {
        t->segment_table = row_table(g, &tile);
        t->segment_count = (uint32_t)g->panels;
    } else if (tile.owner != rank) {
        wait_for_rows(g, tile.owner, 0, tile.row - part_begin(g->problem.m, world_ranks(g->world), tile.owner),
                      tile.rows, &wait);
        task_wait_as(t, wait);
    }
}

static void compute_task(const struct ag_gemm *g, uint32_t rank, uint64_t i, struct task *t)
{
    if (i < g->barrier)
        barrier_task(g, rank, t);
    else
        tile_task(g, rank, i - g->barrier, t);
}

/* ---- the program ---- */

static uint64_t ag_queue_length(const struct program *p, uint32_t rank, uint32_t queue)
{
    const struct ag_gemm *g = p->state;

    if (queue == g->queues.compute)
        return g->barrier + tile_grid_tiles(&g->grid);
    return queue == g->queues.copy ? gather_length(g, rank) : send_length(g, rank);
}

static void ag_task(const struct program *p, uint32_t rank, uint32_t queue, uint64_t index, struct task *t)
{
    const struct ag_gemm *g = p->state;

    if (queue == g->queues.compute)
        compute_task(g, rank, index, t);
    else if (queue == g->queues.copy)
        gather_task(g, rank, index, t);
    else
        send_task(g, rank, index, t);
}

static uint64_t ag_flag_total(const struct program *p, uint32_t rank, uint32_t flag)
{
    const struct ag_gemm *g = p->state;
    uint32_t owner;
    uint64_t total;

    if (gate_flag_total(&g->gate, rank, flag, &total))
        return total;
    if (flag >= g->go)
        return g->barrier;
    if (flag == g->gate.sent)
        return gate_rail_tasks(&g->gate) + rail_gather_sends(&g->rail, rank);
    if (flag >= g->arrived) { /* put here by the rail, but for the own node's */
        owner = world_rank(g->world, (uint32_t)((flag - g->arrived) / g->chunks_max), world_gpu(g->world, rank));
        return owner != rank && (flag - g->arrived) % g->chunks_max < owner_chunks(g, owner);
    }
    owner = (uint32_t)((flag - g->ready) / (g->panels * g->chunks_max));
    if (world_same_node(g->world, owner, rank) && g->world.gpus_per_node == 1)
        return 0; /* nobody to copy the own chunks to */
    return (flag - g->ready) % g->chunks_max < owner_chunks(g, owner);
}

static uint32_t ag_io(const struct program *p, uint32_t rank, struct io_slice out[PROGRAM_IO_MAX])
{
    const struct ag_gemm *g = p->state;
    uint64_t row = part_begin(g->problem.m, world_ranks(g->world), rank);

    out[0] = (struct io_slice){IO_INPUT, g->a, row, owner_rows(g, rank), g->problem.k, TENSOR_A, row, 0};
    out[1] = (struct io_slice){IO_INPUT, g->b, 0, g->problem.n, g->problem.k, TENSOR_B, rank * g->problem.n, 0};
    out[2] = (struct io_slice){IO_OUTPUT, g->c, 0, g->problem.m, g->problem.n, TENSOR_C, 0, rank * g->problem.n};
    return 3;
}

static uint32_t ag_segment_table_size(const struct program *p, uint32_t rank, uint32_t table)
{
    const struct ag_gemm *g = p->state;

    (void)rank;
    (void)table;
    return (uint32_t)g->panels;
}

static void ag_segment(const struct program *p, uint32_t rank, uint32_t table, uint32_t index, struct segment *out)
{
    const struct ag_gemm *g = p->state;
    uint64_t tables = ceil_div(ceil_div(g->problem.m, world_ranks(g->world)), g->grid.tile_m);
    uint32_t owner = (uint32_t)(table / tables);
    uint64_t row = table % tables * g->grid.tile_m;

    (void)rank;
    out->a_offset = out->b_offset = index * g->panel_k;
    out->k = min_u64(g->panel_k, g->problem.k - out->a_offset);
    wait_for_rows(g, owner, index, row, min_u64(g->grid.tile_m, owner_rows(g, owner) - row), &out->wait);
}

static void ag_fini(struct program *p)
{
    free(p->state);
}

static const struct program_ops ag_program_ops = {
    .queue_length = ag_queue_length,
    .task = ag_task,
    .flag_total = ag_flag_total,
    .io = ag_io,
    .segment_table_size = ag_segment_table_size,
    .segment = ag_segment,
    .fini = ag_fini,
};

static void plan_chunks(struct ag_gemm *g, const struct ag_params *params)
{
    uint64_t shard = ceil_div(g->problem.m, world_ranks(g->world));
    uint64_t rows = max_u64(1, params->gather.chunk_bytes / (g->problem.k * 2));

    if (rows < params->tile_m) /* whole chunks per tile where that is near */
        rows = ceil_div(params->tile_m, ceil_div(params->tile_m, rows));
    else
        rows = rows / params->tile_m * params->tile_m;
    g->chunk_rows = min_u64(rows, shard);
    g->chunks_max = ceil_div(shard, g->chunk_rows);
    g->panel_k = ceil_div(ceil_div(g->problem.k, params->panels), 64) * 64; /* whole k steps */
    g->panels = ceil_div(g->problem.k, g->panel_k);
}

static enum status check_sizes(const struct ag_gemm *g, const struct ag_params *params, const struct machine *machine,
                               struct complaint *c)
{
    uint64_t flags = world_ranks(g->world) * g->panels * g->chunks_max;

    if (flags > PROGRAM_FLAGS_MAX / 2)
        return complain(c, "chunk", "chunks of %" PRIu64 " rows need %" PRIu64 " flags a rank", g->chunk_rows, flags);
    return gather_check_crews(&params->gather, g->world, machine, c);
}

static void add_buffers_and_flags(struct ag_gemm *g, struct program *p)
{
    const struct problem *s = &g->problem;
    uint32_t ranks = world_ranks(g->world);

    g->a = program_add_buffer(p, (struct buffer){"A", DTYPE_BF16, s->m, s->k, g->depth});
    g->b = program_add_buffer(p, (struct buffer){"B", DTYPE_BF16, s->n, s->k, 1});
    g->c = program_add_buffer(p, (struct buffer){"C", DTYPE_BF16, s->m, s->n, 1});
    gate_init(&g->gate, p, true);
    g->ready = program_add_flags(p, "ready", ranks * g->panels * g->chunks_max);
    g->arrived = program_add_flags(p, "arrived", g->world.nodes * g->chunks_max);
    g->go = program_add_flags(p, "go", g->barrier);
}

static enum status ag_emit(const struct problem *problem, struct world world, const struct machine *machine,
                           enum form form, const void *params_in, struct program *p, struct complaint *c)
{
    static const enum tile_order orders[] = {ORDER_OWNER, ORDER_STAGE, ORDER_RANK};
    const struct ag_params *params = params_in;
    struct ag_gemm *g = calloc(1, sizeof *g);
    enum status st;

    if (!g)
        return ST_MEMORY;
    *p = (struct program){.kernel = "ag_gemm",
                          .variant = form == FORM_FUSED ? "fused" : "unfused",
                          .world = world,
                          .ops = &ag_program_ops,
                          .state = g};
    g->world = world;
    g->problem = *problem;
    g->depth = (uint32_t)params->gather.depth;
    g->fan_out = params->fan_out ? RANK_EACH : RANK_NODE;
    g->barrier = form == FORM_UNFUSED;
    plan_chunks(g, params);
    g->grid = (struct tile_grid){.world = world,
                                 .m = problem->m,
                                 .n = problem->n,
                                 .tile_m = params->tile_m,
                                 .tile_n = params->tile_n,
                                 .group = params->group,
                                 .order = orders[params->order]};
    tile_grid_init(&g->grid);
    g->rail = (struct rail_gather){world, params->inter, owner_chunks, g};
    st = check_sizes(g, params, machine, c);
    if (st < 0) {
        program_fini(p);
        return st;
    }
    add_buffers_and_flags(g, p);
    gather_add_crews(&params->gather, world, g->barrier, (uint32_t)machine->gpu.sms, "gather", p, &g->queues);
    return ST_OK;
}

static struct problem ag_global(const struct problem *problem, struct world world)
{
    return (struct problem){.m = problem->m, .n = problem->n * world_ranks(world), .k = problem->k};
}

const struct kernel ag_gemm_kernel = {
    .name = "ag_gemm",
    .title = "AllGather + GEMM: C_r = all-gather(A) x B_r^T",
    .shape = "C_r[m, n] per rank; A[m, k] sharded by rows, m/ranks each; B_r[n, k]",
    .family = &problem_gemm,
    .collective = COLLECTIVE_ALL_GATHER,
    .options = ag_options,
    .params_size = sizeof(struct ag_params),
    .emit = ag_emit,
    .global = ag_global,
    .reference = reference_gemm,
};
