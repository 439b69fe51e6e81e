/* MoE dispatch + GEMM.  Each token goes to `top_k` experts; rank r holds experts [r * E/W, (r+1) * E/W) and
 * computes C_e[rows, inter] = X[rows, hidden] x W_e[inter, hidden]^T for the tokens that chose expert e.
 * Rank r starts with its tokens [r * T/W, (r+1) * T/W) and with their rows of the routing table, no more: who
 * goes where is found out here, anew each epoch.
 *
 *   control   ranks tell each other their rows of the table (rails by put, nodes by copy); two routes
 *             (core/route.h) turn it into lists: what to send, what comes and where it stands
 *   pack      per other node: gathers the own tokens that go there, each once, chunk by chunk
 *   send      puts chunks to the own rail; each raises landed[node, chunk].  A chunk holds as many rows as
 *             there are: traffic between nodes is what the routing asks for, and no more
 *   relay     says to the node what has landed: ready[gpu, node, chunk]
 *   gather    per part of a work-list entry: pulls its rows from wherever in the node they are, waiting row
 *             by row for the chunk a row is in
 *   compute   a tile per entry and column block, once the entry's rows are here
 *
 * Entries stand in the order in which their rows can be there, so experts start on the node's own tokens.  The
 * unfused form is the same program in which compute starts behind a barrier.
 *
 * Peers pull from `held`; each pull counts in `pulled`, and the epoch's last task waits for all of them and for
 * all puts.  Work lists and counts say how much there is; queues are as long as the capacity allows, and what
 * is empty only signals.
 *
 * There are no credits.  A rank ends an epoch only when it has heard from its whole rail (`told`) and its whole
 * node (`pulled`), so they have begun that epoch and are done with the one before; what others write here has two
 * copies or more, and is written again two epochs later at the earliest. */
#include "kernels/kernels.h"

#include <inttypes.h>
#include <stdlib.h>

#include "core/check.h"
#include "kernels/moe_dispatch.h"
#include "kernels/moe_reference.h"
#include "kernels/moe_routing.h"

struct moe_params {
    uint64_t comm_sms, send_sms;
    uint64_t chunk_bytes, gather_rows;
    uint64_t tile_m, tile_n;
    uint64_t depth;
    bool     join;
};

static const struct option moe_options[] = {
    {"comm_sms", OPTION_COUNT, offsetof(struct moe_params, comm_sms), "16", 1, 1024, "4|8|16|24|32|48",
     "workers that route, pack and gather rows"},
    {"send_sms", OPTION_COUNT, offsetof(struct moe_params, send_sms), "1", 1, 64, "1|2|4",
     "workers that issue puts to other nodes (none with one node)"},
    {"chunk", OPTION_SIZE, offsetof(struct moe_params, chunk_bytes), "512KiB", 1, 1ull << 32,
     "128KiB|256KiB|512KiB|1MiB|2MiB|4MiB",
     "bytes of tokens per put, rounded to whole rows"},
    {"gather_rows", OPTION_COUNT, offsetof(struct moe_params, gather_rows), "32", 1, 1024, "16|32|64|128",
     "rows that one task gathers, at most those of a tile"},
    {"tile_m", OPTION_COUNT, offsetof(struct moe_params, tile_m), "128", 8, 1024, NULL,
     "rows of an output tile, and of a work-list entry"},
    {"tile_n", OPTION_COUNT, offsetof(struct moe_params, tile_n), "256", 8, 1024, NULL,
     "columns of an output tile"},
    {"depth", OPTION_COUNT, offsetof(struct moe_params, depth), "2", 2, 8, NULL,
     "copies of what other ranks write, used in turn by epochs"},
    {"join", OPTION_BOOL, offsetof(struct moe_params, join), "true", 0, 0, "false|true",
     "gathering workers compute when they have nothing left to gather"},
    {NULL, 0, 0, NULL, 0, 0, NULL, NULL},
};

/* ---- the program ---- */

static uint32_t moe_io(const struct program *p, uint32_t rank, struct io_slice out[PROGRAM_IO_MAX])
{
    const struct moe_dispatch *g = p->state;
    const struct moe_problem *s = &g->problem;
    uint32_t ranks = world_ranks(g->world);
    uint64_t first = part_begin(s->tokens, ranks, rank), tokens = part_size(s->tokens, ranks, rank);
    uint64_t expert = route_expert_begin(&g->receive, rank);

    out[0] = (struct io_slice){IO_INPUT, g->table, first, tokens, s->top_k, TENSOR_ROUTING, first, 0};
    out[1] = (struct io_slice){IO_INPUT, g->held, world_node(g->world, rank) * g->slot_rows, tokens,
                               s->hidden, TENSOR_A, first, 0};
    out[2] = (struct io_slice){IO_INPUT, g->weights, 0, route_expert_count(&g->receive, rank) * s->inter,
                               s->hidden, TENSOR_B, expert * s->inter, 0};
    out[3] = (struct io_slice){IO_OUTPUT, g->result, 0, g->capacity, s->inter,
                               TENSOR_C, rank * g->capacity, 0};
    return 4;
}

static void moe_fini(struct program *p)
{
    free(p->state);
}

static const struct program_ops moe_program_ops = {
    .queue_length = moe_dispatch_queue_length,
    .task = moe_dispatch_task,
    .flag_total = moe_dispatch_flag_total,
    .io = moe_io,
    .fini = moe_fini,
};

static void plan_sizes(struct moe_dispatch *g, const struct moe_params *params)
{
    const struct moe_problem *p = &g->problem;
    uint32_t ranks = world_ranks(g->world);

    g->depth = (uint32_t)params->depth;
    g->shard = ceil_div(p->tokens, ranks);
    g->chunk_rows = min_u64(g->shard, max_u64(1, params->chunk_bytes / (p->hidden * 2)));
    g->chunks = ceil_div(g->shard, g->chunk_rows);
    g->slot_rows = g->chunks * g->chunk_rows;
    g->capacity = moe_capacity_rows(p, g->world);
    g->tile_m = params->tile_m;
    g->tile_n = params->tile_n;
    g->columns = ceil_div(p->inter, g->tile_n);
    g->gather_rows = min_u64(params->gather_rows, g->tile_m);
    g->parts = ceil_div(g->tile_m, g->gather_rows);
    g->entries = route_entries_max(g->capacity, g->tile_m, ceil_div(p->experts, ranks));
}

static enum status check_sizes(const struct moe_dispatch *g, const struct moe_params *params,
                               const struct machine *machine, struct complaint *c)
{
    uint64_t stack = g->world.gpus_per_node * g->world.nodes * g->slot_rows;
    uint64_t workers = params->comm_sms + params->send_sms + 1;

    if (workers >= machine->gpu.sms)
        return complain(c, "comm_sms",
                        "%" PRIu64 " workers for tokens and puts leave nothing to compute on: %s has "
                        "%" PRIu64 " SMs",
                        workers, machine->gpu.model, machine->gpu.sms);
    if (stack > INT32_MAX || g->capacity > INT32_MAX)
        return complain(c, "tokens", "%" PRIu64 " rows in a node do not fit 32-bit index lists", stack);
    if (stack / g->chunk_rows + g->entries > PROGRAM_FLAGS_MAX / 2)
        return complain(c, "chunk", "chunks of %" PRIu64 " rows need too many flags", g->chunk_rows);
    return ST_OK;
}

static uint32_t add_control(struct program *p, const char *name, uint64_t rows, uint64_t cols, uint32_t depth)
{
    return program_add_buffer(p, (struct buffer){name, DTYPE_I32, rows, cols, depth});
}

static void add_buffers(struct moe_dispatch *g, struct program *p)
{
    const struct moe_problem *s = &g->problem;
    uint64_t slots = g->world.nodes * g->slot_rows;
    uint64_t experts = ceil_div(s->experts, world_ranks(g->world));

    g->table = add_control(p, "table", s->tokens, s->top_k, g->depth);
    g->counts = add_control(p, "counts", g->world.nodes, 1, 1);
    g->send_index = add_control(p, "send_index", slots, 1, 1);
    g->index = add_control(p, "index", g->capacity, 1, 1);
    g->list = add_control(p, "list", g->entries, 3, 1);
    g->held = program_add_buffer(p, (struct buffer){"held", DTYPE_BF16, slots, s->hidden, g->depth});
    g->outbox = program_add_buffer(p, (struct buffer){"outbox", DTYPE_BF16, g->world.nodes > 1 ? slots : 0,
                                                      s->hidden, 1});
    g->rows = program_add_buffer(p, (struct buffer){"rows", DTYPE_BF16, g->capacity, s->hidden, 1});
    g->weights = program_add_buffer(p, (struct buffer){"W", DTYPE_BF16, experts * s->inter, s->hidden, 1});
    g->result = program_add_buffer(p, (struct buffer){"C", DTYPE_BF16, g->capacity, s->inter, 1});
}

static void add_flags(struct moe_dispatch *g, struct program *p)
{
    uint64_t ranks = world_ranks(g->world);

    gate_init(&g->gate, p, false);
    g->told = program_add_flags(p, "told", g->world.nodes);
    g->known = program_add_flags(p, "known", ranks);
    g->routed = program_add_flags(p, "routed", 2);
    g->packed = program_add_flags(p, "packed", g->world.nodes * g->chunks);
    g->landed = program_add_flags(p, "landed", g->world.nodes * g->chunks);
    g->ready = program_add_flags(p, "ready", g->world.gpus_per_node * g->world.nodes * g->chunks);
    g->gathered = program_add_flags(p, "gathered", g->entries);
    g->pulled = program_add_flags(p, "pulled", g->world.gpus_per_node);
    g->go = program_add_flags(p, "go", 1);
}

static void fill_routes(struct moe_dispatch *g)
{
    g->receive = (struct route){
        .kind = ROUTE_RECEIVE,
        .world = g->world,
        .tokens = g->problem.tokens,
        .experts = g->problem.experts,
        .top_k = g->problem.top_k,
        .slot_rows = g->slot_rows,
        .capacity = g->capacity,
        .tile_rows = g->tile_m,
        .drop = g->problem.overflow == MOE_OVERFLOW_DROP,
        .table = g->table,
        .counts = g->counts,
        .index = g->index,
        .list = g->list,
    };
    g->send = g->receive;
    g->send.kind = ROUTE_SEND;
    g->send.index = g->send_index;
}

static void add_crews(struct moe_dispatch *g, struct program *p, const struct moe_params *params, uint32_t sms)
{
    uint32_t sending = g->world.nodes > 1 ? (uint32_t)params->send_sms : 0;
    uint32_t comm = (uint32_t)params->comm_sms, crew;

    g->control_queue = program_add_queue(p, "control");
    g->pack_queue = program_add_queue(p, "pack");
    g->relay_queue = program_add_queue(p, "relay");
    g->gather_queue = program_add_queue(p, "gather");
    g->compute_queue = program_add_queue(p, "compute");
    g->send_queue = sending ? program_add_queue(p, "send") : UINT32_MAX;
    if (sending)
        program_crew_drains(p, program_add_crew(p, "send", sending), g->send_queue);
    program_crew_drains(p, program_add_crew(p, "relay", 1), g->relay_queue);
    crew = program_add_crew(p, g->barrier ? "all" : "comm", g->barrier ? sms - sending - 1 : comm);
    program_crew_drains(p, crew, g->control_queue);
    program_crew_drains(p, crew, g->pack_queue);
    program_crew_drains(p, crew, g->gather_queue);
    if (g->barrier || params->join)
        program_crew_drains(p, crew, g->compute_queue);
    if (!g->barrier)
        program_crew_drains(p, program_add_crew(p, "compute", sms - sending - 1 - comm),
                            g->compute_queue);
}

static enum status moe_emit(const struct problem *problem, struct world world,
                            const struct machine *machine, enum form form, const void *params_in,
                            struct program *p, struct complaint *c)
{
    const struct moe_params *params = params_in;
    struct moe_dispatch *g = calloc(1, sizeof *g);
    enum status st;

    if (!g)
        return ST_MEMORY;
    *p = (struct program){.kernel = "moe_dispatch_gemm",
                          .variant = form == FORM_FUSED ? "fused" : "unfused",
                          .world = world, .ops = &moe_program_ops, .state = g};
    g->world = world;
    g->problem = problem->moe;
    g->barrier = form == FORM_UNFUSED;
    plan_sizes(g, params);
    st = check_sizes(g, params, machine, c);
    if (st < 0) {
        program_fini(p);
        return st;
    }
    add_buffers(g, p);
    add_flags(g, p);
    fill_routes(g);
    add_crews(g, p, params, (uint32_t)machine->gpu.sms);
    return ST_OK;
}

static struct problem moe_global(const struct problem *problem, struct world world)
{
    struct problem global = {.m = moe_capacity_rows(&problem->moe, world) * world_ranks(world),
                             .n = problem->moe.inter,
                             .k = problem->moe.hidden,
                             .moe = problem->moe};

    global.moe.world = world;
    return global;
}

const struct kernel moe_dispatch_gemm_kernel = {
    .name = "moe_dispatch_gemm",
    .title = "MoE dispatch + GEMM: tokens to their experts, C_e = X_e x W_e^T",
    .shape = "tokens x hidden over all ranks; experts of [inter, hidden], experts/ranks each",
    .family = &problem_moe,
    .collective = COLLECTIVE_ALL_TO_ALL,
    .options = moe_options,
    .params_size = sizeof(struct moe_params),
    .emit = moe_emit,
    .global = moe_global,
    .reference = reference_moe_dispatch,
    .control = moe_control,
    .traffic = moe_traffic,
};
