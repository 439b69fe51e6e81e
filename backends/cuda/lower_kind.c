/* Which way a task is run: the fastest that its shape and alignment allow. */
#include "backends/cuda/lower_task.h"

#define STORE_COLS 64 /* that go out at a time */

/* As bf16, or with `wide` as f32. */
static bool is_mapped(const struct lowered *out, const struct gpu_matrix *m, bool wide)
{
    const struct gpu_view *v = lower_view(out, m->view);

    return v->maps != NO_VIEW && (v->is_wide != 0) == wide;
}

/* Blocks of 64 columns may only reach past a segment's end where the matrix ends too. */
static bool blocks_fit(const struct lowered *out, const struct gpu_matrix *m, uint64_t add, uint64_t k)
{
    uint64_t ld = lower_view(out, m->view)->ld, end = m->col + add + k;

    return (k % GPU_TILE_K == 0 && end <= ld) || end == ld;
}

static bool loads_by_map(const struct lowered *out, const struct gpu_matrix *m, uint64_t add, uint64_t k)
{
    return is_mapped(out, m, false) && blocks_fit(out, m, add, k);
}

/* Rows by index are copied 16 bytes at a time, and zeros put behind them.  Where there is attention, its queries stand in
 * the place of their addresses. */
static bool loads_by_index(const struct lowering *l)
{
    const struct operand *a = &l->task->a;
    const struct program *p = l->out->program;

    return !l->out->attends && p->buffers[a->buffer].dtype == DTYPE_BF16 && a->offset % 8 == 0 && a->ld % 8 == 0 &&
           lower_copy_bytes(p, a->buffer) % 16 == 0;
}

static bool loads_tiles(const struct lowering *l, const struct gpu_matrix *a, const struct gpu_matrix *b)
{
    const struct task *t = l->task;
    uint64_t blocks = 0;

    for (uint32_t i = 0; i < program_step_count(t); i++) {
        struct segment s;
        struct operand ignored;

        program_step(l->out->program, l->rank, t, i, &s, &ignored, &ignored);
        if (!(t->by_index ? loads_by_index(l) : loads_by_map(l->out, a, s.a_offset, s.k)) ||
            !loads_by_map(l->out, b, s.b_offset, s.k))
            return false;
        blocks += ceil_div(s.k, GPU_TILE_K);
    }
    return blocks > 0;
}

/* A whole tile goes out unless the matrix itself ends where the task's part does; of an attention
 * as many columns as it has.  How many rows of a dynamic task there are turns out on the device. */
static bool tile_fits(struct lowering *l, const struct operand *o, uint32_t owner, bool wide)
{
    const struct task *t = l->task;
    struct gpu_matrix m;
    uint64_t rows;

    if (lower_place(l, o, owner, 0, &m) != ST_OK || !is_mapped(l->out, &m, wide))
        return false;
    rows = lower_view_rows(l->out, o->buffer, lower_view(l->out, m.view)->ld);
    return (t->m == GPU_TILE_M || t->select.mode != SELECT_ALL || m.row + t->m == rows) &&
           (t->n % STORE_COLS == 0 || m.col + t->n == lower_view(l->out, m.view)->ld);
}

bool lower_stores_by_map(struct lowering *l, bool wide)
{
    const struct task *t = l->task;

    if (t->out_count == 0)
        return false;
    for (uint32_t i = 0; i < t->out_count; i++) {
        uint32_t first, count = program_target_ranks(l->out->program, l->rank, t->out[i].rank, &first);

        for (uint32_t k = 0; k < count; k++)
            if (!tile_fits(l, &t->out[i], first + k, wide))
                return false;
    }
    return true;
}

static bool adds_by_map(struct lowering *l)
{
    const struct task *t = l->task;
    struct gpu_matrix m;

    for (uint32_t i = 0; i < t->addend_count; i++) {
        struct operand o = program_addend(l->out->program, l->rank, t, i);

        if (lower_place(l, &o, o.rank, 0, &m) != ST_OK || !is_mapped(l->out, &m, false))
            return false;
    }
    return true;
}

/* Rows of both in steps of 16 bytes. */
static bool in_vectors(const struct lowering *l, const struct operand *o)
{
    const struct buffer *b = &l->out->program->buffers[o->buffer];
    uint64_t bytes = dtype_bytes(b->dtype);
    bool one_row = l->task->m == 1 && l->task->select.mode == SELECT_ALL && !task_indexes(l->task);

    return b->dtype == l->out->program->buffers[l->task->out[0].buffer].dtype && o->offset * bytes % 16 == 0 &&
           (o->ld * bytes % 16 == 0 || one_row) && l->task->n * bytes % 16 == 0 &&
           lower_copy_bytes(l->out->program, o->buffer) % 16 == 0;
}

static bool all_in_vectors(const struct lowering *l)
{
    const struct task *t = l->task;

    for (uint32_t i = 0; i < t->out_count; i++)
        if (!in_vectors(l, &t->out[i]))
            return false;
    for (uint32_t i = 0; i < t->addend_count; i++) {
        struct operand o = program_addend(l->out->program, l->rank, t, i);

        if (!in_vectors(l, &o))
            return false;
    }
    return t->op == OP_GEMM || (t->op != OP_COPY && !task_indexes(t)) || in_vectors(l, &t->a);
}

static bool is_bf16(const struct lowering *l)
{
    return l->out->program->buffers[l->task->out[0].buffer].dtype == DTYPE_BF16;
}

static bool stores_by_rows(const struct lowering *l)
{
    const struct task *t = l->task;

    return t->out_count > 0 && t->addend_count == 0 && all_in_vectors(l) && is_bf16(l);
}

enum gpu_kind lower_gemm_kind(struct lowering *l, const struct gpu_matrix *a, const struct gpu_matrix *b)
{
    /* Gate and up of eight columns are in one thread's registers; of fewer they are not. */
    bool lanes_differ = l->task->epilogue != EPILOGUE_NONE && (l->task->n % SWIGLU_GROUP != 0 || !stores_by_rows(l));

    if (!loads_tiles(l, a, b) || lanes_differ)
        return GPU_GEMM_PLAIN;
    if (lower_stores_by_map(l, false) && adds_by_map(l) && (l->task->select.mode == SELECT_ALL || stores_by_rows(l)))
        return GPU_GEMM;
    return stores_by_rows(l) ? GPU_GEMM_ROWS : GPU_GEMM_DIRECT;
}

enum gpu_kind lower_move_kind(const struct lowering *l)
{
    bool vectors = all_in_vectors(l);

    if (l->task->op == OP_COPY)
        return vectors ? GPU_COPY : GPU_COPY_PLAIN;
    if (l->task->op == OP_GATHER_ROWS)
        return vectors ? GPU_GATHER : GPU_GATHER_PLAIN;
    if (l->task->op == OP_COMBINE_ROWS)
        return vectors && is_bf16(l) && l->task->combine.terms <= GPU_COMBINE_TERMS ? GPU_COMBINE : GPU_COMBINE_PLAIN;
    return vectors && is_bf16(l) ? GPU_REDUCE : GPU_REDUCE_PLAIN;
}
