/* Of moe_dispatch_gemm: each rank puts a row for each (token, expert) pair of another rank in order, NCCL exchanges
 * them, each rank puts what has come, and its own tokens, in the order of its experts, and cuBLAS multiplies expert by
 * expert.
 *
 *   tokens    the own tokens, and behind them what has come, source by source
 *   outbox    what goes, destination by destination
 *   rows      the own experts' rows, expert by expert, as the kernel orders them
 *
 * The host knows the routing: it writes the index lists before the epoch, and nobody exchanges sizes. */
#include "backends/cuda/baseline.h"

#include "core/check.h"
#include "core/kernel.h"

static const struct moe_problem *problem_of(const struct baseline_rig *b)
{
    return &b->job.problem->moe;
}

/* ---- the program: memory, inputs and outputs ---- */

static uint32_t io(const struct program *p, uint32_t rank, struct io_slice out[PROGRAM_IO_MAX])
{
    const struct baseline_rig *b = p->state;
    const struct baseline_experts *x = &b->experts;
    const struct moe_problem *s = problem_of(b);
    uint64_t token = part_begin(s->tokens, b->ranks, rank), tokens = part_size(s->tokens, b->ranks, rank);
    uint64_t expert = part_begin(s->experts, b->ranks, rank), experts = part_size(s->experts, b->ranks, rank);

    out[0] = (struct io_slice){IO_INPUT, x->tokens, 0, tokens, s->hidden, TENSOR_A, token, 0};
    out[1] = (struct io_slice){IO_INPUT, x->weights, 0, experts * s->inter, s->hidden, TENSOR_B, expert * s->inter, 0};
    out[2] = (struct io_slice){IO_OUTPUT, x->result, 0, x->capacity, s->inter, TENSOR_C, rank * x->capacity, 0};
    return 3;
}

static const struct program_ops ops = {.io = io};

void baseline_add_dispatch(struct baseline_rig *b)
{
    struct baseline_experts *x = &b->experts;
    const struct moe_problem *s = problem_of(b);
    bool travels = b->ranks > 1;

    x->capacity = moe_capacity_rows(s, b->job.world);
    x->shard = ceil_div(s->tokens, b->ranks);
    x->outgoing = travels ? x->shard * s->top_k : 0;
    x->send_index = baseline_add(b, "send_index", DTYPE_I32, x->outgoing, 1);
    x->row_index = baseline_add(b, "row_index", DTYPE_I32, x->capacity, 1);
    x->tokens = baseline_add(b, "tokens", DTYPE_BF16, x->shard + (travels ? x->capacity : 0), s->hidden);
    x->outbox = baseline_add(b, "outbox", DTYPE_BF16, x->outgoing, s->hidden);
    x->rows = baseline_add(b, "rows", DTYPE_BF16, x->capacity, s->hidden);
}

static void add_program(struct baseline_rig *b, enum baseline which)
{
    const struct moe_problem *s = problem_of(b);

    (void)which;
    baseline_start_program(b, &ops);
    baseline_add_dispatch(b);
    b->experts.weights = baseline_add(b, "W", DTYPE_BF16, ceil_div(s->experts, b->ranks) * s->inter, s->hidden);
    b->experts.result = baseline_add(b, "C", DTYPE_BF16, b->experts.capacity, s->inter);
}

/* ---- before an epoch ---- */

enum status baseline_write_list(struct baseline_rig *b, uint32_t rank, uint32_t buffer, const int32_t *lists)
{
    uint64_t count = buffer_elements(&b->program.buffers[buffer]);

    TRY_CUDA(&b->rig, cudaSetDevice(b->rig.ranks[rank].device->index));
    TRY_CUDA(&b->rig, cudaMemcpyAsync(baseline_at(b, rank, buffer, 0), lists + rank * count, count * sizeof *lists,
                                      cudaMemcpyHostToDevice, b->rig.ranks[rank].device->stream));
    return ST_OK;
}

enum status baseline_begin_dispatch(struct rig *r, uint64_t epoch)
{
    struct baseline_rig *b = (struct baseline_rig *)r;
    struct baseline_experts *x = &b->experts;

    TRY(baseline_route(b, epoch));
    for (uint32_t i = 0; i < b->ranks; i++) {
        TRY(baseline_write_list(b, i, x->send_index, x->routing.send_index));
        TRY(baseline_write_list(b, i, x->row_index, x->routing.row_index));
    }
    return ST_OK;
}

/* ---- an epoch ---- */

enum status baseline_pick(struct baseline_rig *b, uint32_t rank, uint32_t from, uint32_t index, uint64_t rows,
                          uint32_t to)
{
    struct gpu_pick p = {.out = (uintptr_t)baseline_at(b, rank, to, 0),
                         .from = (uintptr_t)baseline_at(b, rank, from, 0),
                         .index = (uintptr_t)baseline_at(b, rank, index, 0),
                         .rows = rows,
                         .row_bytes = problem_of(b)->hidden * sizeof(uint16_t)};

    b->calls++;
    TRY_CUDA(&b->rig, cudaSetDevice(b->rig.ranks[rank].device->index));
    TRY_CUDA(&b->rig, gpu_pick_launch(&p, b->rig.ranks[rank].device->stream));
    return ST_OK;
}

static enum status pack(struct baseline_rig *b)
{
    const struct baseline_experts *x = &b->experts;

    for (uint32_t from = 0; from < b->ranks; from++) {
        uint64_t rows = 0;

        for (uint32_t to = 0; to < b->ranks; to++)
            rows += x->routing.sent[from * b->ranks + to];
        TRY(baseline_pick(b, from, x->tokens, x->send_index, rows, x->outbox));
    }
    return ST_OK;
}

enum status baseline_exchange(struct rig *r)
{
    struct baseline_rig *b = (struct baseline_rig *)r;
    struct nccl_rank ranks[NCCL_RANKS_MAX];
    uint64_t counts[NCCL_RANKS_MAX * NCCL_RANKS_MAX];

    for (uint32_t i = 0; i < b->ranks; i++)
        ranks[i] = baseline_nccl_rank(b, i, b->experts.outbox, 0, b->experts.tokens, b->experts.shard);
    for (uint32_t i = 0; i < b->ranks * b->ranks; i++)
        counts[i] = b->experts.routing.sent[i] * problem_of(b)->hidden;
    return baseline_nccl_called(b, nccl_exchange(&b->nccl, ranks, counts));
}

enum status baseline_dispatch(struct baseline_rig *b)
{
    const struct baseline_experts *x = &b->experts;

    if (b->ranks > 1) {
        TRY(pack(b));
        TRY(baseline_exchange(&b->rig));
    }
    for (uint32_t i = 0; i < b->ranks; i++) {
        TRY(baseline_pick(b, i, x->tokens, x->row_index, x->routing.kept[i], x->rows));
        b->rig.ranks[i].dropped += x->routing.dropped[i];
    }
    return ST_OK;
}

enum status baseline_multiply_experts(struct baseline_rig *b, uint32_t rank, uint32_t rows, uint32_t weights,
                                      uint32_t out)
{
    const struct moe_problem *s = problem_of(b);
    uint64_t first = part_begin(s->experts, b->ranks, rank), row = 0;
    uint64_t n = b->program.buffers[out].cols, k = b->program.buffers[rows].cols;

    for (uint64_t e = first; e < part_begin(s->experts, b->ranks, rank + 1); e++) {
        struct baseline_product p = {.m = b->experts.routing.expert_rows[e],
                                     .n = n,
                                     .k = k,
                                     .x = baseline_at(b, rank, rows, row),
                                     .w = baseline_at(b, rank, weights, (e - first) * n),
                                     .out = baseline_at(b, rank, out, row)};

        TRY(baseline_compute(b, rank, &p));
        row += p.m;
    }
    return ST_OK;
}

static enum status enqueue(struct rig *r)
{
    struct baseline_rig *b = (struct baseline_rig *)r;
    const struct baseline_experts *x = &b->experts;

    TRY(baseline_dispatch(b));
    for (uint32_t i = 0; i < b->ranks; i++)
        TRY(baseline_multiply_experts(b, i, x->rows, x->weights, x->result));
    return ST_OK;
}

const struct baseline_kind baseline_moe = {
    .family = &problem_moe,
    .detail = "expanded rows",
    .add_program = add_program,
    .begin = baseline_begin_dispatch,
    .enqueue = enqueue,
    .collect = baseline_exchange,
};
