/* MoE dispatch + FFN + combine: a whole feed-forward layer of experts.  Each token goes to `top_k` experts, each of
 * which computes Y_e[rows, hidden] = (silu(X G_e^T) * (X U_e^T)) D_e^T with gate and up projections G_e, U_e[inter,
 * hidden] and the down projection D_e[hidden, inter]; the token gets back the sum of its experts' rows, weighted
 * as the router said.  Rank r starts with its tokens [r * T/W, (r+1) * T/W), their rows of the routing table and
 * their weights, and ends with their results.
 *
 * Tokens come as in moe_dispatch.h, and their weights with them.  Then
 *
 *   compute   a tile of gate and up per entry of the work list and column block, with the SwiGLU epilogue; some
 *             entries later, so that nobody waits, the tiles of its down projection
 *   combine   for each token held here, the own ones and those that came over the own rail: pulls its rows from
 *             wherever in the node they are, waiting row by row for the entry a row is in, and sums them
 *   return    puts the sums of other nodes' tokens back, chunk by chunk: what crosses is one row per token and
 *             node, as on the way out
 *   finish    adds, for each own token, the sums of the nodes that have any, waiting for just these
 *
 * Nothing waits for a whole phase: the first results are summed while the last tokens arrive.  The unfused form is
 * the same program in which compute starts behind a barrier, and combine behind another.
 *
 * Peers pull from `expert`, which counts in `pulled` as pulls from `held` do.  One copy of `returned` is enough: a
 * rank sums nothing for another one before it has heard from it in this epoch. */
#include "kernels/kernels.h"

#include <stdlib.h>

#include "core/check.h"
#include "kernels/moe_ffn.h"
#include "kernels/moe_ffn_reference.h"
#include "kernels/moe_routing.h"

struct ffn_params {
    struct moe_params moe;
    uint64_t combine_rows, ahead;
};

static const struct option ffn_options[] = {
    MOE_OPTIONS,
    {"tile_n", OPTION_COUNT, MOE_AT(tile_n), "256", 16, 1024, NULL,
     "columns of a tile's sums: as many results of the down projection, half as many of gate and up"},
    {"combine_rows", OPTION_COUNT, offsetof(struct ffn_params, combine_rows), "16", 1, 1024, NULL,
     "tokens that one task sums, at most those of a chunk"},
    {"ahead", OPTION_COUNT, offsetof(struct ffn_params, ahead), "8", 1, 65536, NULL,
     "entries whose gate and up tiles come before an entry's down tiles"},
    {"join", OPTION_BOOL, MOE_AT(join), "true", 0, 0, NULL,
     "computing workers combine when they have nothing left to compute"},
    {NULL, 0, 0, NULL, 0, 0, NULL, NULL},
};

/* ---- the program ---- */

static uint32_t ffn_io(const struct program *p, uint32_t rank, struct io_slice out[PROGRAM_IO_MAX])
{
    const struct moe_ffn *g = p->state;
    const struct moe_dispatch *d = &g->dispatch;
    const struct moe_problem *s = &d->problem;
    uint32_t ranks = world_ranks(d->world), count = moe_dispatch_inputs(d, rank, out);
    uint64_t expert = route_expert_begin(&d->receive, rank), experts = route_expert_count(&d->receive, rank);

    out[count++] = (struct io_slice){
        IO_INPUT, g->gate_up, 0, experts * 2 * s->inter, s->hidden, TENSOR_GATE_UP, expert * 2 * s->inter, 0};
    out[count++] =
        (struct io_slice){IO_INPUT, g->down, 0, experts * s->hidden, s->inter, TENSOR_DOWN, expert * s->hidden, 0};
    out[count++] = (struct io_slice){IO_OUTPUT,
                                     g->result,
                                     0,
                                     part_size(s->tokens, ranks, rank),
                                     s->hidden,
                                     TENSOR_C,
                                     part_begin(s->tokens, ranks, rank),
                                     0};
    return count;
}

static void ffn_fini(struct program *p)
{
    free(p->state);
}

static const struct program_ops ffn_program_ops = {
    .queue_length = moe_ffn_queue_length,
    .task = moe_ffn_task,
    .flag_total = moe_ffn_flag_total,
    .io = ffn_io,
    .fini = ffn_fini,
};

static void plan(struct moe_ffn *g, const struct ffn_params *params)
{
    const struct moe_problem *s = &g->dispatch.problem;
    struct moe_dispatch *d = &g->dispatch;

    d->returns = true;
    moe_dispatch_plan(d, &params->moe);
    g->gate_cols = params->moe.tile_n / 2 / SWIGLU_GROUP * SWIGLU_GROUP;
    g->gate_tiles = ceil_div(s->inter, g->gate_cols);
    g->down_cols = params->moe.tile_n;
    g->down_tiles = ceil_div(s->hidden, g->down_cols);
    g->ahead = min_u64(params->ahead, d->entries);
    g->combine_rows = min_u64(params->combine_rows, d->chunk_rows);
    g->chunk_parts = ceil_div(d->chunk_rows, g->combine_rows);
    d->puts_beside = moe_others(d) * d->chunks;
    d->pulls_beside = moe_ffn_combine_tasks(g) + moe_pulls_in_place(d, d->entries * g->gate_tiles);
}

static void add_buffers(struct moe_ffn *g, struct program *p)
{
    const struct moe_dispatch *d = &g->dispatch;
    const struct moe_problem *s = &d->problem;
    uint64_t experts = ceil_div(s->experts, world_ranks(p->world)), rows = d->entries * d->tile_m;
    uint64_t slots = p->world.nodes > 1 ? p->world.nodes * d->slot_rows : 0;

    g->gate_up = program_add_buffer(p, (struct buffer){"gate_up", DTYPE_BF16, experts * 2 * s->inter, s->hidden, 1});
    g->down = program_add_buffer(p, (struct buffer){"down", DTYPE_BF16, experts * s->hidden, s->inter, 1});
    g->active = program_add_buffer(p, (struct buffer){"active", DTYPE_BF16, rows, s->inter, 1});
    g->expert = program_add_buffer(p, (struct buffer){"expert", DTYPE_BF16, rows, s->hidden, 1});
    g->sums = program_add_buffer(p, (struct buffer){"sums", DTYPE_BF16, slots, s->hidden, 1});
    g->returned = program_add_buffer(p, (struct buffer){"returned", DTYPE_BF16, slots, s->hidden, 1});
    g->result = program_add_buffer(p, (struct buffer){"Y", DTYPE_BF16, d->slot_rows, s->hidden, 1});
}

static void add_flags(struct moe_ffn *g, struct program *p)
{
    const struct moe_dispatch *d = &g->dispatch;
    uint64_t chunks = p->world.nodes > 1 ? p->world.nodes * d->chunks : 0;

    g->activated = program_add_flags(p, "activated", d->entries);
    g->computed = program_add_flags(p, "computed", p->world.gpus_per_node * d->entries);
    g->combined = program_add_flags(p, "combined", chunks);
    g->came_back = program_add_flags(p, "came_back", chunks);
    g->go = program_add_flags(p, "go", g->barrier ? 2 : 0);
}

static void add_queues(struct moe_ffn *g, struct program *p)
{
    bool back = p->world.nodes > 1;

    g->compute_queue = program_add_queue(p, "compute");
    g->combine_queue = program_add_queue(p, "combine");
    g->return_queue = back ? program_add_queue(p, "return") : UINT32_MAX;
    g->finish_queue = back ? program_add_queue(p, "finish") : UINT32_MAX;
}

/* Unfused, one crew does all of it, phase after phase. */
static void combine_last(const struct moe_ffn *g, struct program *p, uint32_t crew)
{
    program_crew_drains(p, crew, g->combine_queue);
    if (p->world.nodes > 1)
        program_crew_drains(p, crew, g->finish_queue);
}

static void add_crews(struct moe_ffn *g, struct program *p, const struct ffn_params *params, uint32_t sms)
{
    const struct moe_dispatch *d = &g->dispatch;
    uint32_t sending = p->world.nodes > 1 ? (uint32_t)params->moe.send_sms : 0;
    uint32_t comm = (uint32_t)params->moe.comm_sms, crew;

    if (sending) {
        crew = program_add_crew(p, "send", sending);
        program_crew_drains(p, crew, d->send_queue);
        program_crew_drains(p, crew, g->return_queue);
    }
    program_crew_drains(p, program_add_crew(p, "relay", 1), d->relay_queue);
    crew = program_add_crew(p, g->barrier ? "all" : "comm", g->barrier ? sms - sending - 1 : comm);
    program_crew_drains(p, crew, d->control_queue);
    program_crew_drains(p, crew, d->pack_queue);
    program_crew_drains(p, crew, d->gather_queue);
    if (g->barrier)
        program_crew_drains(p, crew, g->compute_queue);
    combine_last(g, p, crew);
    if (g->barrier)
        return;
    crew = program_add_crew(p, "compute", sms - sending - 1 - comm);
    program_crew_drains(p, crew, g->compute_queue);
    if (params->moe.join)
        combine_last(g, p, crew);
}

static enum status ffn_emit(const struct problem *problem, struct world world, const struct machine *machine,
                            enum form form, const void *params_in, struct program *p, struct complaint *c)
{
    const struct ffn_params *params = params_in;
    struct moe_ffn *g = calloc(1, sizeof *g);
    enum status st;

    if (!g)
        return ST_MEMORY;
    *p = (struct program){.kernel = "moe_dispatch_ffn_combine",
                          .variant = form == FORM_FUSED ? "fused" : "unfused",
                          .world = world,
                          .ops = &ffn_program_ops,
                          .state = g};
    g->dispatch.world = world;
    g->dispatch.problem = problem->moe;
    g->barrier = form == FORM_UNFUSED;
    plan(g, params);
    st = moe_dispatch_check(&g->dispatch, &params->moe, machine, world.gpus_per_node * g->dispatch.entries, c);
    if (st < 0) {
        program_fini(p);
        return st;
    }
    moe_dispatch_add(&g->dispatch, p);
    add_buffers(g, p);
    add_flags(g, p);
    add_queues(g, p);
    add_crews(g, p, params, (uint32_t)machine->gpu.sms);
    return ST_OK;
}

static struct problem ffn_global(const struct problem *problem, struct world world)
{
    struct problem global = {
        .m = problem->moe.tokens, .n = problem->moe.hidden, .k = problem->moe.inter, .moe = problem->moe};

    global.moe.world = world;
    return global;
}

const struct kernel moe_dispatch_ffn_combine_kernel = {
    .name = "moe_dispatch_ffn_combine",
    .title = "MoE dispatch + FFN + combine: tokens to their experts and back",
    .shape = "tokens x hidden over all ranks; experts of gate, up [inter, hidden] and down [hidden, inter]",
    .family = &problem_moe_ffn,
    .collective = COLLECTIVE_ALL_TO_ALL,
    .options = ffn_options,
    .params_size = sizeof(struct ffn_params),
    .emit = ffn_emit,
    .global = ffn_global,
    .bounded = &reference_moe_ffn,
    .control = moe_control,
    .traffic = moe_ffn_traffic,
};
