#include "core/traffic.h"

static uint64_t bytes_of(const struct program *p, const struct operand *o, uint64_t rows, uint64_t cols)
{
    return rows * cols * dtype_bytes(p->buffers[o->buffer].dtype);
}

static void read_from(uint32_t rank, uint32_t from, uint64_t bytes, traffic_fn *fn, void *arg)
{
    if (from != rank && bytes > 0)
        fn(arg, from, rank, bytes);
}

static void read_node(const struct program *p, uint32_t rank, uint64_t bytes, traffic_fn *fn, void *arg)
{
    uint32_t first, count = program_target_ranks(p, rank, RANK_NODE, &first);

    for (uint32_t i = 0; i < count; i++)
        read_from(rank, first + i, part_size(bytes, count, i), fn, arg);
}

/* Rows of anywhere in the node: nobody knows of whom, so each GPU is taken to have its share. */
static void read_by_index(const struct program *p, uint32_t rank, const struct task *t, traffic_fn *fn, void *arg)
{
    uint64_t bytes = bytes_of(p, &t->a, t->m, program_index_cols(t));

    if (t->a.rank == RANK_NODE)
        read_node(p, rank, bytes, fn, arg);
    else
        read_from(rank, t->a.rank, bytes, fn, arg);
}

static void read_steps(const struct program *p, uint32_t rank, const struct task *t, traffic_fn *fn, void *arg)
{
    for (uint32_t step = 0; step < program_step_count(t); step++) {
        struct segment s;
        struct operand a, b;
        struct extent ea, eb;

        program_step(p, rank, t, step, &s, &a, &b);
        ea = step_extent_a(t, &s);
        eb = step_extent_b(t, &s);
        if (!t->by_index)
            read_from(rank, a.rank, bytes_of(p, &a, ea.rows, ea.cols), fn, arg);
        read_from(rank, b.rank, bytes_of(p, &b, eb.rows, eb.cols), fn, arg);
    }
}

static void read_operands(const struct program *p, uint32_t rank, const struct task *t, traffic_fn *fn, void *arg)
{
    if (op_walks(t->op))
        read_steps(p, rank, t, fn, arg);
    else if (t->op == OP_COPY)
        read_from(rank, t->a.rank, bytes_of(p, &t->a, t->m, t->n), fn, arg);
    if (t->op == OP_GATHER_ROWS || (t->op == OP_GEMM && t->by_index))
        read_by_index(p, rank, t, fn, arg);
    for (uint32_t i = 0; i < t->addend_count; i++)
        read_from(rank, program_addend(p, rank, t, i).rank, bytes_of(p, &t->addend, t->m, t->n), fn, arg);
}

void task_traffic(const struct program *p, uint32_t rank, const struct task *t, traffic_fn *fn, void *arg)
{
    if (t->op == OP_NOP || t->op == OP_ROUTE)
        return;
    read_operands(p, rank, t, fn, arg);
    for (uint32_t i = 0; i < t->out_count; i++) {
        uint32_t first, count = program_target_ranks(p, rank, t->out[i].rank, &first);
        uint64_t bytes = bytes_of(p, &t->out[i], t->m, t->n);

        for (uint32_t to = first; to < first + count; to++)
            if (to != rank && bytes > 0)
                fn(arg, rank, to, bytes);
    }
}
