/* Of moe_dispatch_ffn_combine: the rows come as in baseline_moe.c; cuBLAS multiplies them expert by expert with gates
 * and ups, a kernel activates, cuBLAS multiplies with the projections down; the results go back as the rows came, and a
 * kernel adds up those of each token with their weights.
 *
 *   sums      gates and ups, in the groups in which their weights stand (core/program.h, EPILOGUE_SWIGLU); in bf16,
 *             which holds what checked inputs sum up to: eighths below 32
 *   expert    the own experts' results, and behind them what has come back, in the order of the outbox
 *   returns   results that go back, source by source */
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
    const struct baseline_layer *x = &b->layer;
    const struct moe_problem *s = problem_of(b);
    uint64_t token = part_begin(s->tokens, b->ranks, rank), tokens = part_size(s->tokens, b->ranks, rank);
    uint64_t expert = part_begin(s->experts, b->ranks, rank), experts = part_size(s->experts, b->ranks, rank);

    out[0] = (struct io_slice){IO_INPUT, b->experts.tokens, 0, tokens, s->hidden, TENSOR_A, token, 0};
    out[1] = (struct io_slice){IO_INPUT, x->scores, 0, tokens, s->top_k, TENSOR_WEIGHTS, token, 0};
    out[2] = (struct io_slice){
        IO_INPUT, x->gate_up, 0, experts * 2 * s->inter, s->hidden, TENSOR_GATE_UP, expert * 2 * s->inter, 0};
    out[3] = (struct io_slice){IO_INPUT, x->down, 0, experts * s->hidden, s->inter, TENSOR_DOWN, expert * s->hidden, 0};
    out[4] = (struct io_slice){IO_OUTPUT, x->result, 0, tokens, s->hidden, TENSOR_C, token, 0};
    return 5;
}

static const struct program_ops ops = {.io = io};

static void add_program(struct baseline_rig *b, enum baseline which)
{
    struct baseline_layer *x = &b->layer;
    const struct moe_problem *s = problem_of(b);
    uint64_t experts = ceil_div(s->experts, b->ranks), rows, shard, outgoing;

    (void)which;
    baseline_start_program(b, &ops);
    baseline_add_dispatch(b);
    rows = b->experts.capacity;
    shard = b->experts.shard;
    outgoing = b->experts.outgoing;
    x->back_index = baseline_add(b, "back_index", DTYPE_I32, rows, 1);
    x->sum_index = baseline_add(b, "sum_index", DTYPE_I32, shard, s->top_k);
    x->scores = baseline_add(b, "scores", DTYPE_F32, shard, s->top_k);
    x->gate_up = baseline_add(b, "gate_up", DTYPE_BF16, experts * 2 * s->inter, s->hidden);
    x->down = baseline_add(b, "down", DTYPE_BF16, experts * s->hidden, s->inter);
    x->sums = baseline_add(b, "sums", DTYPE_BF16, rows, 2 * s->inter);
    x->active = baseline_add(b, "active", DTYPE_BF16, rows, s->inter);
    x->expert = baseline_add(b, "expert", DTYPE_BF16, rows + outgoing, s->hidden);
    x->returns = baseline_add(b, "returns", DTYPE_BF16, outgoing > 0 ? rows : 0, s->hidden);
    x->result = baseline_add(b, "Y", DTYPE_BF16, shard, s->hidden);
}

static enum status begin(struct rig *r, uint64_t epoch)
{
    struct baseline_rig *b = (struct baseline_rig *)r;

    TRY(baseline_begin_dispatch(r, epoch));
    for (uint32_t i = 0; i < b->ranks; i++) {
        TRY(baseline_write_list(b, i, b->layer.back_index, b->experts.routing.back_index));
        TRY(baseline_write_list(b, i, b->layer.sum_index, b->experts.routing.sum_index));
    }
    return ST_OK;
}

/* ---- an epoch ---- */

static enum status activate(struct baseline_rig *b, uint32_t rank)
{
    struct gpu_activation a = {.out = (uintptr_t)baseline_at(b, rank, b->layer.active, 0),
                               .sums = (uintptr_t)baseline_at(b, rank, b->layer.sums, 0),
                               .rows = b->experts.routing.kept[rank],
                               .cols = problem_of(b)->inter};

    b->calls++;
    TRY_CUDA(&b->rig, cudaSetDevice(b->rig.ranks[rank].device->index));
    TRY_CUDA(&b->rig, gpu_activation_launch(&a, b->rig.ranks[rank].device->stream));
    return ST_OK;
}

static enum status compute(struct baseline_rig *b, uint32_t rank)
{
    const struct baseline_layer *x = &b->layer;

    TRY(baseline_multiply_experts(b, rank, b->experts.rows, x->gate_up, x->sums));
    TRY(activate(b, rank));
    return baseline_multiply_experts(b, rank, x->active, x->down, x->expert);
}

static enum status pack_returns(struct baseline_rig *b)
{
    for (uint32_t here = 0; here < b->ranks; here++) {
        uint64_t rows = 0;

        for (uint32_t from = 0; from < b->ranks; from++)
            rows += b->experts.routing.sent[from * b->ranks + here];
        TRY(baseline_pick(b, here, b->layer.expert, b->layer.back_index, rows, b->layer.returns));
    }
    return ST_OK;
}

static enum status exchange_back(struct baseline_rig *b)
{
    struct nccl_rank ranks[NCCL_RANKS_MAX];
    uint64_t counts[NCCL_RANKS_MAX * NCCL_RANKS_MAX];

    for (uint32_t i = 0; i < b->ranks; i++) {
        ranks[i] = baseline_nccl_rank(b, i, b->layer.returns, 0, b->layer.expert, b->experts.capacity);
        for (uint32_t j = 0; j < b->ranks; j++)
            counts[i * b->ranks + j] = b->experts.routing.sent[j * b->ranks + i] * problem_of(b)->hidden;
    }
    return baseline_nccl_called(b, nccl_exchange(&b->nccl, ranks, counts));
}

static enum status combine(struct baseline_rig *b, uint32_t rank)
{
    const struct baseline_layer *x = &b->layer;
    const struct moe_problem *s = problem_of(b);
    struct gpu_combination c = {.out = (uintptr_t)baseline_at(b, rank, x->result, 0),
                                .from = (uintptr_t)baseline_at(b, rank, x->expert, 0),
                                .index = (uintptr_t)baseline_at(b, rank, x->sum_index, 0),
                                .weight = (uintptr_t)baseline_at(b, rank, x->scores, 0),
                                .rows = part_size(s->tokens, b->ranks, rank),
                                .cols = s->hidden,
                                .terms = s->top_k};

    b->calls++;
    TRY_CUDA(&b->rig, cudaSetDevice(b->rig.ranks[rank].device->index));
    TRY_CUDA(&b->rig, gpu_combination_launch(&c, b->rig.ranks[rank].device->stream));
    return ST_OK;
}

static enum status enqueue(struct rig *r)
{
    struct baseline_rig *b = (struct baseline_rig *)r;

    TRY(baseline_dispatch(b));
    for (uint32_t i = 0; i < b->ranks; i++)
        TRY(compute(b, i));
    if (b->ranks > 1) {
        TRY(pack_returns(b));
        TRY(exchange_back(b));
    }
    for (uint32_t i = 0; i < b->ranks; i++)
        TRY(combine(b, i));
    return ST_OK;
}

static enum status exchange_both(struct rig *r)
{
    TRY(baseline_exchange(r));
    return exchange_back((struct baseline_rig *)r);
}

const struct baseline_kind baseline_layer = {
    .family = &problem_moe_ffn,
    .detail = "expanded rows",
    .add_program = add_program,
    .begin = begin,
    .enqueue = enqueue,
    .collect = exchange_both,
};
