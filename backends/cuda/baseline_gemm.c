/* Of GEMM kernels: memory, inputs and outputs, no queue; and an epoch of NCCL and cuBLAS in sequence. */
#include "backends/cuda/baseline.h"

#include "core/check.h"
#include "core/kernel.h"

static bool gathers(const struct baseline_rig *b)
{
    return b->job.kernel->collective == COLLECTIVE_ALL_GATHER;
}

uint64_t baseline_first_row(const struct baseline_rig *b, uint32_t rank)
{
    return part_begin(b->job.problem->m, b->ranks, rank);
}

uint64_t baseline_rows(const struct baseline_rig *b, uint32_t rank)
{
    return part_size(b->job.problem->m, b->ranks, rank);
}

uint64_t baseline_inbox_rows(const struct baseline_rig *b)
{
    return ceil_div(b->job.problem->m, b->ranks);
}

static uint32_t io(const struct program *p, uint32_t rank, struct io_slice out[PROGRAM_IO_MAX])
{
    const struct baseline_rig *b = p->state;
    const struct problem *s = b->job.problem;
    uint64_t row = baseline_first_row(b, rank), rows = baseline_rows(b, rank);

    if (gathers(b)) {
        out[0] = (struct io_slice){IO_INPUT, b->a, row, rows, s->k, TENSOR_A, row, 0};
        out[1] = (struct io_slice){IO_INPUT, b->b, 0, s->n, s->k, TENSOR_B, rank * s->n, 0};
        out[2] = (struct io_slice){IO_OUTPUT, b->c, 0, s->m, s->n, TENSOR_C, 0, rank * s->n};
        return 3;
    }
    out[0] = (struct io_slice){IO_INPUT, b->a, 0, s->m, s->k, TENSOR_A, 0, rank * s->k};
    out[1] = (struct io_slice){IO_INPUT, b->b, 0, s->n, s->k, TENSOR_B, 0, rank * s->k};
    if (b->job.kernel->collective == COLLECTIVE_ALL_REDUCE)
        out[2] = (struct io_slice){IO_OUTPUT, b->c, 0, s->m, s->n, TENSOR_C, 0, 0};
    else
        out[2] = (struct io_slice){IO_OUTPUT, b->c, 0, rows, s->n, TENSOR_C, row, 0};
    return 3;
}

static const struct program_ops ops = {.io = io};

static uint32_t add(struct baseline_rig *b, const char *name, uint64_t rows, uint64_t cols, uint32_t depth)
{
    return program_add_buffer(&b->program, (struct buffer){name, DTYPE_BF16, rows, cols, depth});
}

static void add_program(struct baseline_rig *b, enum baseline which)
{
    const struct problem *s = b->job.problem;
    bool scatters = b->job.kernel->collective == COLLECTIVE_REDUCE_SCATTER;

    baseline_start_program(b, &ops);
    b->p = b->inbox = NO_BUFFER;
    b->a = add(b, "A", s->m, s->k, 1);
    b->b = add(b, "B", s->n, s->k, 1);
    b->c = add(b, "C", scatters ? baseline_inbox_rows(b) : s->m, s->n, 1);
    if (gathers(b) || b->ranks == 1)
        return;
    b->p = add(b, "P", s->m, s->n, 1);
    if (which == BASELINE_STREAMS)
        b->inbox = add(b, "inbox", (b->ranks - 1) * baseline_inbox_rows(b), s->n, 2);
}

/* ---- an epoch ---- */

enum status baseline_multiply(struct baseline_rig *b, uint32_t rank, uint64_t row, uint64_t rows, uint32_t out,
                              uint64_t out_row)
{
    const struct problem *s = b->job.problem;
    struct baseline_product p = {.m = rows,
                                 .n = s->n,
                                 .k = s->k,
                                 .x = baseline_at(b, rank, b->a, row),
                                 .w = baseline_at(b, rank, b->b, 0),
                                 .out = baseline_at(b, rank, out, out_row)};

    return baseline_compute(b, rank, &p);
}

static const char *call_nccl(struct baseline_rig *b, const struct nccl_rank *ranks)
{
    const struct problem *s = b->job.problem;
    uint64_t counts[NCCL_RANKS_MAX];

    for (uint32_t i = 0; i < b->ranks; i++)
        counts[i] = baseline_rows(b, i) * (gathers(b) ? s->k : s->n);
    if (gathers(b))
        return nccl_gather_parts(&b->nccl, ranks, counts);
    if (b->job.kernel->collective == COLLECTIVE_REDUCE_SCATTER)
        return nccl_reduce_parts(&b->nccl, ranks, counts);
    return nccl_reduce_all(&b->nccl, ranks, s->m * s->n);
}

static enum status collect(struct rig *r)
{
    struct baseline_rig *b = (struct baseline_rig *)r;
    struct nccl_rank ranks[NCCL_RANKS_MAX];

    for (uint32_t i = 0; i < b->ranks; i++)
        ranks[i] = gathers(b) ? baseline_nccl_rank(b, i, b->a, baseline_first_row(b, i), b->a, 0)
                              : baseline_nccl_rank(b, i, b->p, 0, b->c, 0);
    return baseline_nccl_called(b, call_nccl(b, ranks));
}

static enum status multiply_all(struct baseline_rig *b, uint32_t out)
{
    for (uint32_t i = 0; i < b->ranks; i++)
        TRY(baseline_multiply(b, i, 0, b->job.problem->m, out, 0));
    return ST_OK;
}

static enum status enqueue(struct rig *r)
{
    struct baseline_rig *b = (struct baseline_rig *)r;

    if (b->ranks == 1)
        return multiply_all(b, b->c);
    if (gathers(b)) {
        TRY(collect(r));
        return multiply_all(b, b->c);
    }
    TRY(multiply_all(b, b->p));
    return collect(r);
}

const struct baseline_kind baseline_gemm = {
    .family = &problem_gemm,
    .detail = "",
    .overlaps = true,
    .add_program = add_program,
    .enqueue = enqueue,
    .collect = collect,
};
