/* Layout of the programs of gemm_rs and gemm_ar: buffers, flags and their totals, queues and crews. */
#include "kernels/gemm_reduce.h"

#include <inttypes.h>
#include <stdlib.h>

#include "core/check.h"

uint64_t gemm_reduce_chunk_count(const struct gemm_reduce *g, uint32_t owner)
{
    return ceil_div(tile_grid_owner_tiles(&g->grid, owner), g->chunk_tiles);
}

uint64_t gemm_reduce_chunk_size(const struct gemm_reduce *g, uint32_t owner, uint64_t chunk)
{
    uint64_t tiles = tile_grid_owner_tiles(&g->grid, owner), first = chunk * g->chunk_tiles;

    return first < tiles ? min_u64(g->chunk_tiles, tiles - first) : 0;
}

static uint64_t share_chunks(const void *layout, uint32_t owner)
{
    return gemm_reduce_chunk_count(layout, owner);
}

static uint64_t publish_tiles(const void *layout, uint32_t owner)
{
    const struct gemm_reduce *g = layout;

    return tile_grid_owner_tiles(&g->grid, owner);
}

/* ---- flag totals ---- */

/* The rank on my rail in node `node`. */
static uint32_t rail_mate(const struct gemm_reduce *g, uint32_t rank, uint64_t node)
{
    return world_rank(g->world, (uint32_t)node, world_gpu(g->world, rank));
}

uint32_t gemm_reduce_kept(const struct gemm_reduce *g, uint32_t rank, uint32_t i)
{
    return g->replicate ? rail_mate(g, rank, i) : rank;
}

uint64_t gemm_reduce_kept_row(const struct gemm_reduce *g, uint32_t rank, uint32_t owner)
{
    uint64_t row = 0;

    for (uint32_t i = 0; i < g->kept && gemm_reduce_kept(g, rank, i) != owner; i++)
        row += part_size(g->problem.m, world_ranks(g->world), gemm_reduce_kept(g, rank, i));
    return row;
}

/* `i` is [kept][chunk][node]. */
static uint64_t landed_total(const struct gemm_reduce *g, uint32_t rank, uint64_t i)
{
    uint64_t chunk = i / g->world.nodes;
    uint32_t owner = gemm_reduce_kept(g, rank, (uint32_t)(chunk / g->chunks));
    uint64_t tiles = gemm_reduce_chunk_size(g, owner, chunk % g->chunks);

    return i % g->world.nodes == world_node(g->world, rank) ? tiles : tiles > 0;
}

/* A chunk of an owner on another node: `i` is [node][chunk]. */
static uint64_t foreign_chunk(const struct gemm_reduce *g, uint32_t rank, uint64_t i)
{
    uint32_t owner = rail_mate(g, rank, i / g->chunks);

    return owner == rank ? 0 : gemm_reduce_chunk_size(g, owner, i % g->chunks);
}

/* Puts by this rank: credits, node sums and, in an all-reduce, final tiles. */
static uint64_t sent_total(const struct gemm_reduce *g, uint32_t rank)
{
    uint64_t puts = gate_rail_tasks(&g->gate);

    if (g->all_reduce)
        puts += rail_gather_sends(&g->share, rank);

    for (uint32_t node = 0; node < g->world.nodes; node++)
        if (g->replicate)
            puts += (g->world.nodes - 1) * gemm_reduce_chunk_count(g, rail_mate(g, rank, node));
        else if (node != world_node(g->world, rank))
            puts += gemm_reduce_chunk_count(g, rail_mate(g, rank, node));
    return puts;
}

static uint64_t flag_total(const struct program *p, uint32_t rank, uint32_t flag)
{
    const struct gemm_reduce *g = p->state;
    const struct flag_group *group = program_flag_group(p, flag);
    uint64_t i = flag - group->first, total, tile;

    if (gate_flag_total(&g->gate, rank, flag, &total))
        return total;
    if (group->first == g->tile_in) {
        tile = i / g->sources;
        return tile % g->slots < tile_grid_owner_tiles(&g->grid, rail_mate(g, rank, tile / g->slots));
    }
    if (group->first == g->summed)
        return foreign_chunk(g, rank, i);
    if (group->first == g->landed)
        return landed_total(g, rank, i);
    if (flag == g->gate.sent)
        return sent_total(g, rank);
    if (g->all_reduce && group->first == g->shared)
        return gemm_reduce_chunk_size(g, rank, i);
    if (g->all_reduce && group->first == g->arrived)
        return foreign_chunk(g, rank, i) > 0;
    if (g->all_reduce && group->first == g->done)
        return tile_grid_owner_tiles(&g->grid, (uint32_t)i);
    return group->first == g->go ? 1 : tile_grid_tiles(&g->grid); /* go, computed */
}

/* ---- inputs and outputs ---- */

static uint32_t io(const struct program *p, uint32_t rank, struct io_slice out[PROGRAM_IO_MAX])
{
    const struct gemm_reduce *g = p->state;
    const struct problem *s = &g->problem;
    uint64_t ranks = world_ranks(g->world);

    out[0] = (struct io_slice){IO_INPUT, g->a, 0, s->m, s->k, TENSOR_A, 0, rank * s->k};
    out[1] = (struct io_slice){IO_INPUT, g->b, 0, s->n, s->k, TENSOR_B, 0, rank * s->k};
    if (g->all_reduce) {
        out[2] = (struct io_slice){IO_OUTPUT, g->c, 0, s->m, s->n, TENSOR_C, 0, 0};
        return 3;
    }
    for (uint32_t i = 0; i < g->kept; i++) {
        uint32_t owner = gemm_reduce_kept(g, rank, i);

        out[2 + i] =
            (struct io_slice){IO_OUTPUT, g->c,     gemm_reduce_kept_row(g, rank, owner), part_size(s->m, ranks, owner),
                              s->n,      TENSOR_C, part_begin(s->m, ranks, owner),       0};
    }
    return 2 + g->kept;
}

static void fini(struct program *p)
{
    free(p->state);
}

static const struct program_ops program_ops = {
    .queue_length = gemm_reduce_queue_length,
    .task = gemm_reduce_task,
    .flag_total = flag_total,
    .io = io,
    .fini = fini,
};

/* ---- emission ---- */

static uint32_t add_tiles(const struct gemm_reduce *g, struct program *p, const char *name, uint64_t tiles,
                          uint32_t depth)
{
    return program_add_buffer(p, (struct buffer){name, DTYPE_BF16, tiles * g->grid.tile_m, g->grid.tile_n, depth});
}

static void add_buffers(struct gemm_reduce *g, struct program *p)
{
    const struct problem *s = &g->problem;
    uint64_t nodes = g->world.nodes, ranks = world_ranks(g->world);
    uint64_t rows = g->all_reduce ? s->m : g->kept * ceil_div(s->m, ranks);

    g->a = program_add_buffer(p, (struct buffer){"A", DTYPE_BF16, s->m, s->k, 1});
    g->b = program_add_buffer(p, (struct buffer){"B", DTYPE_BF16, s->n, s->k, 1});
    g->c = program_add_buffer(p, (struct buffer){"C", DTYPE_BF16, rows, s->n, 1});
    if (g->sources)
        g->inbox = add_tiles(g, p, "inbox", g->sources * nodes * g->slots, g->depth);
    if (g->unfused)
        g->partial = add_tiles(g, p, "partial", ranks * g->slots, 1);
    if (nodes > 1) {
        g->outbox = g->replicate ? 0 : add_tiles(g, p, "outbox", nodes * g->slots, 1);
        g->landing = add_tiles(g, p, "landing", g->kept * nodes * g->slots, g->depth);
    }
    if (nodes > 1 && g->all_reduce) {
        g->result = add_tiles(g, p, "result", g->slots, 1);
        g->gathered = add_tiles(g, p, "gathered", nodes * g->slots, 1);
    }
}

static void add_flags(struct gemm_reduce *g, struct program *p)
{
    uint64_t nodes = g->world.nodes;
    bool several = nodes > 1;

    /* An all-reduce ends with data of every rank, so with two copies of the receive buffers a sender of
     * epoch e + 2 knows that everybody is done with epoch e. */
    gate_init(&g->gate, p, !g->all_reduce || g->depth == 1);
    g->tile_in = program_add_flags(p, "tile_in", nodes * g->slots * g->sources);
    g->summed = program_add_flags(p, "summed", several && !g->replicate ? nodes * g->chunks : 0);
    g->landed = program_add_flags(p, "landed", several ? g->kept * nodes * g->chunks : 0);
    if (g->all_reduce) {
        g->shared = program_add_flags(p, "shared", several ? g->chunks : 0);
        g->arrived = program_add_flags(p, "arrived", several ? nodes * g->chunks : 0);
        g->done = program_add_flags(p, "done", world_ranks(g->world));
    }
    g->computed = program_add_flags(p, "computed", g->unfused);
    g->go = program_add_flags(p, "go", g->unfused);
}

static void add_queues(struct gemm_reduce *g, struct program *p)
{
    bool several = g->world.nodes > 1;

    g->compute_queue = program_add_queue(p, "compute");
    g->scatter_queue = g->unfused ? program_add_queue(p, "scatter") : NO_QUEUE;
    g->reduce_queue = g->crew_form ? program_add_queue(p, "reduce") : NO_QUEUE;
    g->send_queue = several ? program_add_queue(p, "send") : NO_QUEUE;
    g->combine_queue = several ? program_add_queue(p, "combine") : NO_QUEUE;
    g->share_queue = several && g->all_reduce ? program_add_queue(p, "share") : NO_QUEUE;
    g->publish_queue = several && g->all_reduce ? program_add_queue(p, "publish") : NO_QUEUE;
}

/* Adds a crew that drains those of the queues that exist; none if none does.  Returns its workers. */
static uint32_t add_crew(struct program *p, const char *name, uint64_t workers, const uint32_t *queues,
                         uint32_t queue_count)
{
    uint32_t crew = UINT32_MAX;

    for (uint32_t i = 0; i < queue_count; i++) {
        if (queues[i] == NO_QUEUE)
            continue;
        if (crew == UINT32_MAX)
            crew = program_add_crew(p, name, (uint32_t)workers);
        program_crew_drains(p, crew, queues[i]);
    }
    return crew == UINT32_MAX ? 0 : (uint32_t)workers;
}

static enum status add_crews(struct gemm_reduce *g, struct program *p, const struct reduce_params *params,
                             const struct machine *machine, struct complaint *c)
{
    uint32_t every[] = {g->compute_queue, g->scatter_queue, g->reduce_queue, g->combine_queue, g->publish_queue};
    uint32_t reduce[] = {g->reduce_queue, g->combine_queue};
    bool apart = g->in_place && g->all_reduce; /* adding goes on to the end, publishing must not wait for it */
    uint64_t used = 0;

    used += add_crew(p, "send", params->send_sms, &g->send_queue, 1);
    used += add_crew(p, "share", params->send_sms, &g->share_queue, 1);
    if (!g->unfused) {
        used += add_crew(p, "reduce", params->reduce_sms, reduce, apart ? 1 : 2);
        used += apart ? add_crew(p, "combine", params->comm_sms, &g->combine_queue, 1) : 0;
        used += add_crew(p, "publish", params->comm_sms, &g->publish_queue, 1);
    }
    if (used >= machine->gpu.sms)
        return complain(c, "reduce_sms",
                        "%" PRIu64 " workers for sending, reducing and publishing leave nothing to "
                        "compute on: %s has %" PRIu64 " SMs",
                        used, machine->gpu.model, machine->gpu.sms);
    add_crew(p, g->unfused ? "all" : "compute", machine->gpu.sms - used, every, g->unfused || params->join ? 5 : 1);
    return ST_OK;
}

static void init(struct gemm_reduce *g, const struct reduce_params *params)
{
    static const enum tile_order orders[] = {ORDER_ALL, ORDER_OWNER, ORDER_RANK};

    g->grid = (struct tile_grid){.world = g->world,
                                 .m = g->problem.m,
                                 .n = g->problem.n,
                                 .tile_m = params->tile_m,
                                 .tile_n = params->tile_n,
                                 .group = params->group,
                                 .order = orders[params->order],
                                 .own_last = true};
    tile_grid_init(&g->grid);
    g->depth = (uint32_t)params->depth;
    g->crew_form = g->unfused || params->form != REDUCE_EPILOGUE;
    g->in_place = !g->unfused && params->form == REDUCE_SWITCH;
    g->sources = g->world.gpus_per_node - !g->crew_form;
    g->slots = tile_grid_owner_tiles_max(&g->grid);
    g->chunk_tiles = max_u64(1, params->chunk_bytes / (params->tile_m * params->tile_n * 2));
    g->chunk_tiles = min_u64(g->chunk_tiles, g->slots);
    g->chunks = ceil_div(g->slots, g->chunk_tiles);
    g->share = (struct rail_gather){g->world, params->inter, share_chunks, g};
    g->publish = (struct rail_gather){g->world, params->inter, publish_tiles, g};
}

static enum status check_sizes(const struct gemm_reduce *g, struct complaint *c)
{
    uint64_t flags = g->world.nodes * (g->slots * g->sources + (2 + g->kept) * g->chunks);

    if (g->kept + 2 > PROGRAM_IO_MAX)
        return complain(c, "replicate",
                        "rows of %" PRIu32 " nodes on every rank are more outputs than a program has; "
                        "expected at most %d nodes",
                        g->kept, PROGRAM_IO_MAX - 2);
    if (flags > PROGRAM_FLAGS_MAX / 2)
        return complain(c, "tile_m", "tiles of %" PRIu64 " x %" PRIu64 " need %" PRIu64 " flags a rank", g->grid.tile_m,
                        g->grid.tile_n, flags);
    return ST_OK;
}

enum status gemm_reduce_emit(bool all_reduce, const struct problem *problem, struct world world,
                             const struct machine *machine, enum form form, const struct reduce_params *params,
                             struct program *p, struct complaint *c)
{
    struct gemm_reduce *g = calloc(1, sizeof *g);
    enum status st;

    if (!g)
        return ST_MEMORY;
    *p = (struct program){.kernel = all_reduce ? "gemm_ar" : "gemm_rs",
                          .variant = form == FORM_FUSED ? "fused" : "unfused",
                          .world = world,
                          .ops = &program_ops,
                          .state = g};
    g->world = world;
    g->problem = *problem;
    g->all_reduce = all_reduce;
    g->unfused = form == FORM_UNFUSED;
    g->replicate = params->replicate && world.nodes > 1;
    g->kept = g->replicate ? world.nodes : 1;
    init(g, params);
    st = check_sizes(g, c);
    if (st < 0) {
        program_fini(p);
        return st;
    }
    add_buffers(g, p);
    add_flags(g, p);
    add_queues(g, p);
    st = add_crews(g, p, params, machine, c);
    if (st < 0)
        program_fini(p);
    return st;
}

struct problem gemm_reduce_global(const struct problem *problem, struct world world)
{
    return (struct problem){.m = problem->m, .n = problem->n, .k = problem->k * world_ranks(world)};
}
