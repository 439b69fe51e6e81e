/* MoE dispatch + GEMM.  Each token goes to `top_k` experts; rank r holds experts [r * E/W, (r+1) * E/W) and
 * computes C_e[rows, inter] = X[rows, hidden] x W_e[inter, hidden]^T for the tokens that chose expert e.
 * Rank r starts with its tokens [r * T/W, (r+1) * T/W) and with their rows of the routing table, no more: who
 * goes where is found out here, anew each epoch (moe_dispatch.h, which has the queues that bring the rows).
 *
 *   compute   a tile per entry of the work list and column block, once the entry's rows are here; `group` entries
 *             together, column by column
 *   lead      the first gathers, which the computing workers help with before they compute
 *
 * The unfused form is the same program in which compute starts behind a barrier. */
#include "kernels/kernels.h"

#include <stdlib.h>

#include "core/check.h"
#include "kernels/moe_dispatch.h"
#include "kernels/moe_reference.h"
#include "kernels/moe_routing.h"

struct gemm_params {
    struct moe_params moe;
    uint64_t group, lead;
};

static const struct option moe_options[] = {
    MOE_OPTIONS,
    {"tile_n", OPTION_COUNT, MOE_AT(tile_n), "256", 8, 1024, NULL, "columns of an output tile"},
    {"group", OPTION_COUNT, offsetof(struct gemm_params, group), "1", 1, 65536, "1|4|16",
     "entries that are computed together, column by column, so that they share weights in the cache"},
    {"lead", OPTION_COUNT, offsetof(struct gemm_params, lead), "0", 0, 1u << 30, NULL,
     "what everybody gathers before computing, so that nobody waits for the first rows: parts, or, expanded, entries"},
    {"join", OPTION_BOOL, MOE_AT(join), "true", 0, 0, "false|true",
     "gathering workers compute when they have nothing left to gather"},
    {NULL, 0, 0, NULL, 0, 0, NULL, NULL},
};

struct moe_gemm {
    struct moe_dispatch dispatch;
    uint64_t tile_n, columns, group;
    bool barrier; /* unfused */
    uint32_t weights, result, go;
    uint32_t compute_queue;
};

/* ---- compute ---- */

static void barrier_task(const struct moe_gemm *g, uint32_t rank, struct task *t)
{
    t->op = OP_NOP;
    moe_dispatch_wait_all(&g->dispatch, t);
    task_signal(t, rank, g->go, 1);
}

static void tile_task(const struct moe_gemm *g, uint32_t rank, uint64_t i, struct task *t)
{
    const struct moe_dispatch *d = &g->dispatch;
    const struct moe_problem *p = &d->problem;
    uint64_t first = i / (g->group * g->columns) * g->group, rest = i - first * g->columns;
    uint64_t height = min_u64(g->group, d->entries - first);
    uint64_t entry = first + rest % height, col = rest / height * g->tile_n;

    t->op = OP_GEMM;
    t->m = d->tile_m;
    t->n = min_u64(g->tile_n, p->inter - col);
    t->k = p->hidden;
    t->b = moe_rows(rank, g->weights, col, p->hidden);
    t->select = (struct selection){SELECT_ENTRY, d->list, entry, 0, p->inter * p->hidden};
    task_store_to(t, (struct operand){rank, g->result, col, p->inter});
    moe_dispatch_take(d, rank, entry, g->barrier, t);
    if (g->barrier)
        task_wait(t, g->go, 1, FLAG_TOTAL);
}

/* ---- the program ---- */

static uint64_t moe_queue_length(const struct program *p, uint32_t rank, uint32_t queue)
{
    const struct moe_gemm *g = p->state;
    uint64_t length;

    (void)rank;
    if (moe_dispatch_length(&g->dispatch, queue, &length))
        return length;
    return g->barrier + g->dispatch.entries * g->columns;
}

static void moe_task(const struct program *p, uint32_t rank, uint32_t queue, uint64_t index, struct task *t)
{
    const struct moe_gemm *g = p->state;

    if (moe_dispatch_task(&g->dispatch, rank, queue, index, t))
        return;
    if (index < g->barrier)
        barrier_task(g, rank, t);
    else
        tile_task(g, rank, index - g->barrier, t);
}

static uint64_t moe_flag_total(const struct program *p, uint32_t rank, uint32_t flag)
{
    const struct moe_gemm *g = p->state;
    uint64_t total;

    return moe_dispatch_total(&g->dispatch, rank, flag, &total) ? total : 1;
}

static uint32_t moe_io(const struct program *p, uint32_t rank, struct io_slice out[PROGRAM_IO_MAX])
{
    const struct moe_gemm *g = p->state;
    const struct moe_dispatch *d = &g->dispatch;
    const struct moe_problem *s = &d->problem;
    uint64_t expert = route_expert_begin(&d->receive, rank);
    uint32_t count = moe_dispatch_inputs(d, rank, out);

    out[count++] =
        (struct io_slice){IO_INPUT, g->weights,        0, route_expert_count(&d->receive, rank) * s->inter, s->hidden,
                          TENSOR_B, expert * s->inter, 0};
    out[count++] = (struct io_slice){IO_OUTPUT, g->result, 0, d->capacity, s->inter, TENSOR_C, rank * d->capacity, 0};
    return count;
}

static void moe_fini(struct program *p)
{
    free(p->state);
}

static const struct program_ops moe_program_ops = {
    .queue_length = moe_queue_length,
    .task = moe_task,
    .flag_total = moe_flag_total,
    .io = moe_io,
    .fini = moe_fini,
};

static void add_compute(struct moe_gemm *g, struct program *p)
{
    const struct moe_problem *s = &g->dispatch.problem;
    uint64_t experts = ceil_div(s->experts, world_ranks(p->world));

    g->weights = program_add_buffer(p, (struct buffer){"W", DTYPE_BF16, experts * s->inter, s->hidden, 1});
    g->result = program_add_buffer(p, (struct buffer){"C", DTYPE_BF16, g->dispatch.capacity, s->inter, 1});
    g->go = program_add_flags(p, "go", g->barrier);
    g->compute_queue = program_add_queue(p, "compute");
}

static void add_crews(struct moe_gemm *g, struct program *p, const struct moe_params *params, uint32_t sms)
{
    const struct moe_dispatch *d = &g->dispatch;
    uint32_t sending = p->world.nodes > 1 ? (uint32_t)params->send_sms : 0;
    uint32_t comm = (uint32_t)params->comm_sms, crew;

    if (sending)
        program_crew_drains(p, program_add_crew(p, "send", sending), d->send_queue);
    program_crew_drains(p, program_add_crew(p, "relay", 1), d->relay_queue);
    crew = program_add_crew(p, g->barrier ? "all" : "comm", g->barrier ? sms - sending - 1 : comm);
    program_crew_drains(p, crew, d->control_queue);
    program_crew_drains(p, crew, d->pack_queue);
    if (d->lead > 0)
        program_crew_drains(p, crew, d->lead_queue);
    program_crew_drains(p, crew, d->gather_queue);
    if (g->barrier || params->join)
        program_crew_drains(p, crew, g->compute_queue);
    if (g->barrier)
        return;
    crew = program_add_crew(p, "compute", sms - sending - 1 - comm);
    if (d->lead > 0)
        program_crew_drains(p, crew, d->lead_queue);
    program_crew_drains(p, crew, g->compute_queue);
}

static enum status moe_emit(const struct problem *problem, struct world world, const struct machine *machine,
                            enum form form, const void *params_in, struct program *p, struct complaint *c)
{
    const struct gemm_params *gemm = params_in;
    const struct moe_params *params = &gemm->moe;
    struct moe_gemm *g = calloc(1, sizeof *g);
    enum status st;

    if (!g)
        return ST_MEMORY;
    *p = (struct program){.kernel = "moe_dispatch_gemm",
                          .variant = form == FORM_FUSED ? "fused" : "unfused",
                          .world = world,
                          .ops = &moe_program_ops,
                          .state = g};
    g->dispatch.world = world;
    g->dispatch.problem = problem->moe;
    g->barrier = form == FORM_UNFUSED;
    g->tile_n = params->tile_n;
    g->group = gemm->group;
    g->dispatch.lead = g->barrier ? 0 : gemm->lead; /* behind a barrier everybody gathers all */
    g->columns = ceil_div(problem->moe.inter, g->tile_n);
    moe_dispatch_plan(&g->dispatch, params);
    g->dispatch.pulls_beside = moe_pulls_in_place(&g->dispatch, g->dispatch.entries * g->columns);
    st = moe_dispatch_check(&g->dispatch, params, machine, 0, c);
    if (st < 0) {
        program_fini(p);
        return st;
    }
    moe_dispatch_add(&g->dispatch, p);
    add_compute(g, p);
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
    .params_size = sizeof(struct gemm_params),
    .emit = moe_emit,
    .global = moe_global,
    .reference = reference_moe_dispatch,
    .control = moe_control,
    .traffic = moe_traffic,
};
