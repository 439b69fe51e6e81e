/* The program that a baseline's rig is made of: memory, inputs and outputs of a GEMM kernel, no queue. */
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

void *baseline_at(const struct baseline_rig *b, uint32_t rank, uint32_t buffer, uint64_t row)
{
    const struct buffer *x = &b->program.buffers[buffer];

    return b->rig.ranks[rank].window + program_buffer_offset(&b->program, buffer, b->rig.epoch) +
           row * x->cols * dtype_bytes(x->dtype);
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

void baseline_add_buffers(struct baseline_rig *b, bool inbox)
{
    const struct problem *s = b->job.problem;
    bool scatters = b->job.kernel->collective == COLLECTIVE_REDUCE_SCATTER;

    b->program = (struct program){
        .kernel = b->job.kernel->name, .variant = "baseline", .world = b->job.world, .ops = &ops, .state = b};
    b->p = b->inbox = NO_BUFFER;
    b->a = add(b, "A", s->m, s->k, 1);
    b->b = add(b, "B", s->n, s->k, 1);
    b->c = add(b, "C", scatters ? baseline_inbox_rows(b) : s->m, s->n, 1);
    if (gathers(b) || b->ranks == 1)
        return;
    b->p = add(b, "P", s->m, s->n, 1);
    if (inbox)
        b->inbox = add(b, "inbox", (b->ranks - 1) * baseline_inbox_rows(b), s->n, 2);
}
