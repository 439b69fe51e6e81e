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

static uint32_t add(struct baseline_rig *b, const char *name, enum dtype dtype, uint64_t rows, uint64_t cols)
{
    return program_add_buffer(&b->program, (struct buffer){name, dtype, rows, cols, 1});
}

static void add_program(struct baseline_rig *b, enum baseline which)
{
    struct baseline_experts *x = &b->experts;
    const struct moe_problem *s = problem_of(b);
    bool travels = b->ranks > 1;

    (void)which;
    x->capacity = b->job.kernel->global(b->job.problem, b->job.world).m / b->ranks;
    x->shard = ceil_div(s->tokens, b->ranks);
    x->outgoing = travels ? x->shard * s->top_k : 0;
    baseline_start_program(b, &ops);
    x->send_index = add(b, "send_index", DTYPE_I32, x->outgoing, 1);
    x->row_index = add(b, "row_index", DTYPE_I32, x->capacity, 1);
    x->tokens = add(b, "tokens", DTYPE_BF16, x->shard + (travels ? x->capacity : 0), s->hidden);
    x->outbox = add(b, "outbox", DTYPE_BF16, x->outgoing, s->hidden);
    x->rows = add(b, "rows", DTYPE_BF16, x->capacity, s->hidden);
    x->weights = add(b, "W", DTYPE_BF16, ceil_div(s->experts, b->ranks) * s->inter, s->hidden);
    x->result = add(b, "C", DTYPE_BF16, x->capacity, s->inter);
}

/* ---- before an epoch ---- */

/* An index list of a rank's window, from the host. */
static enum status write_list(struct baseline_rig *b, uint32_t rank, uint32_t buffer, const int32_t *list)
{
    TRY_CUDA(&b->rig, cudaMemcpyAsync(baseline_at(b, rank, buffer, 0), list, buffer_bytes(&b->program.buffers[buffer]),
                                      cudaMemcpyHostToDevice, b->rig.ranks[rank].device->stream));
    return ST_OK;
}

static enum status begin(struct rig *r, uint64_t epoch)
{
    struct baseline_rig *b = (struct baseline_rig *)r;
    struct baseline_experts *x = &b->experts;

    TRY(baseline_route(b, epoch));
    for (uint32_t i = 0; i < b->ranks; i++) {
        TRY_CUDA(r, cudaSetDevice(r->ranks[i].device->index));
        TRY(write_list(b, i, x->send_index, x->routing.send_index + i * x->outgoing));
        TRY(write_list(b, i, x->row_index, x->routing.row_index + i * x->capacity));
    }
    return ST_OK;
}

/* ---- an epoch ---- */

/* Row i of `to` is the row of `tokens` that index value i names. */
static enum status pick(struct baseline_rig *b, uint32_t rank, uint32_t index, uint64_t rows, uint32_t to)
{
    struct gpu_pick p = {.out = (uintptr_t)baseline_at(b, rank, to, 0),
                         .from = (uintptr_t)baseline_at(b, rank, b->experts.tokens, 0),
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
    for (uint32_t from = 0; from < b->ranks; from++) {
        uint64_t rows = 0;

        for (uint32_t to = 0; to < b->ranks; to++)
            rows += b->experts.routing.sent[from * b->ranks + to];
        TRY(pick(b, from, b->experts.send_index, rows, b->experts.outbox));
    }
    return ST_OK;
}

static enum status exchange(struct rig *r)
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

static enum status multiply_experts(struct baseline_rig *b, uint32_t rank)
{
    const struct baseline_experts *x = &b->experts;
    const struct moe_problem *s = problem_of(b);
    uint64_t first = part_begin(s->experts, b->ranks, rank), row = 0;

    for (uint64_t e = first; e < part_begin(s->experts, b->ranks, rank + 1); e++) {
        struct baseline_product p = {.m = x->routing.expert_rows[e],
                                     .n = s->inter,
                                     .k = s->hidden,
                                     .x = baseline_at(b, rank, x->rows, row),
                                     .w = baseline_at(b, rank, x->weights, (e - first) * s->inter),
                                     .out = baseline_at(b, rank, x->result, row)};

        TRY(baseline_compute(b, rank, &p));
        row += p.m;
    }
    return ST_OK;
}

static enum status enqueue(struct rig *r)
{
    struct baseline_rig *b = (struct baseline_rig *)r;
    struct baseline_experts *x = &b->experts;

    if (b->ranks > 1) {
        TRY(pack(b));
        TRY(exchange(r));
    }
    for (uint32_t i = 0; i < b->ranks; i++) {
        TRY(pick(b, i, x->row_index, x->routing.kept[i], x->rows));
        r->ranks[i].dropped += x->routing.dropped[i];
    }
    for (uint32_t i = 0; i < b->ranks; i++)
        TRY(multiply_experts(b, i));
    return ST_OK;
}

const struct baseline_kind baseline_moe = {
    .family = &problem_moe,
    .detail = "expanded rows",
    .add_program = add_program,
    .begin = begin,
    .enqueue = enqueue,
    .collect = exchange,
};
