#include "backends/ops/tile_ops.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "backends/ops/attention.h"
#include "backends/ops/blas.h"
#include "backends/ops/element.h"

#define GEMM_DEPTH 256 /* k of one BLAS call: bounds the scratch, whatever a segment's k */
#define MOVE_RUN 512   /* elements that COPY and REDUCE keep in f32 at a time */

/* f32, row-major, without gaps. */
struct scratch {
    float *a, *b, *sum; /* [m, GEMM_DEPTH], [n', GEMM_DEPTH], [m, n']; n': columns of the sums */
    uint64_t a_size, b_size, sum_size;
    struct attention_state attention;
};

struct scratch *scratch_create(void)
{
    struct scratch *s = calloc(1, sizeof *s);

    assert(s);
    return s;
}

void scratch_destroy(struct scratch *s)
{
    if (!s)
        return;
    free(s->a);
    free(s->b);
    free(s->sum);
    attention_fini(&s->attention);
    free(s);
}

static void reserve(float **array, uint64_t *size, uint64_t needed)
{
    if (needed <= *size)
        return;
    free(*array);
    *array = malloc(needed * sizeof **array);
    assert(*array); /* promised by tile_scratch_bytes() */
    *size = needed;
}

/* Columns of a GEMM's sums, which an epilogue may turn into fewer. */
static uint64_t sum_cols(const struct task *task)
{
    return step_extent_b(task, &(struct segment){.k = 0}).rows;
}

uint64_t tile_scratch_bytes(const struct task *task)
{
    if (task->op == OP_ATTENTION)
        return attention_scratch_bytes(task);
    if (task->op != OP_GEMM)
        return 0;
    return (task->m * sum_cols(task) + (task->m + sum_cols(task)) * GEMM_DEPTH) * sizeof(float);
}

/* Operands inside the node may be anyone's; only the target of a put lies outside. */
static struct matrix locate(const struct memory *m, uint32_t rank, uint64_t epoch, const struct operand *o,
                            uint64_t rows, uint64_t cols)
{
    assert(world_same_node(m->program->world, rank, o->rank));
    return matrix_locate(m, o->rank, epoch, o, rows, cols);
}

/* ---- GEMM ---- */

static void gemm_begin(struct scratch *s, const struct task *task)
{
    uint64_t cols = sum_cols(task);

    reserve(&s->a, &s->a_size, task->m * GEMM_DEPTH);
    reserve(&s->b, &s->b_size, cols * GEMM_DEPTH);
    reserve(&s->sum, &s->sum_size, task->m * cols);
    if (task->m > 0 && cols > 0)
        memset(s->sum, 0, task->m * cols * sizeof *s->sum);
}

static void load_block(const struct matrix *x, uint64_t rows, uint64_t col, uint64_t cols, float *out)
{
    for (uint64_t i = 0; i < rows; i++)
        matrix_load_row(x, i, col, cols, out + i * cols);
}

/* Rows of `a`, which stand at a_at or where the index list says. */
static void load_a(const struct memory *m, uint32_t rank, uint64_t epoch, const struct task *task,
                   const struct operand *a_at, uint64_t col, uint64_t cols, float *out)
{
    if (!task->by_index) {
        struct matrix a = locate(m, rank, epoch, a_at, task->m, col + cols);

        load_block(&a, task->m, col, cols, out);
        return;
    }
    for (uint64_t i = 0; i < task->m; i++) {
        struct matrix row = tile_indexed_row(m, rank, epoch, task, i);

        matrix_load_row(&row, 0, col, cols, out + i * cols);
    }
}

static void gemm_step(struct scratch *s, const struct memory *m, uint32_t rank, uint64_t epoch, const struct task *task,
                      uint32_t step)
{
    uint64_t cols = sum_cols(task);
    struct segment segment;
    struct operand a_at, b_at;

    assert(!task->by_index || task->segment_table == NO_TABLE);
    if (task->m == 0 || task->n == 0)
        return;
    program_step(m->program, rank, task, step, &segment, &a_at, &b_at);
    struct matrix b = locate(m, rank, epoch, &b_at, cols, segment.k);

    for (uint64_t k = 0; k < segment.k; k += GEMM_DEPTH) {
        uint64_t depth = min_u64(GEMM_DEPTH, segment.k - k);

        load_a(m, rank, epoch, task, &a_at, k, depth, s->a);
        load_block(&b, cols, k, depth, s->b);
        blas_add_product(task->m, cols, depth, s->a, s->b, s->sum);
    }
}

/* Row i of the result to every rank that every target means. */
static void store_row(const struct memory *m, uint32_t rank, uint64_t epoch, const struct task *task, uint64_t row,
                      uint64_t col, uint64_t count, const float *values)
{
    for (uint32_t i = 0; i < task->out_count; i++) {
        uint32_t first, targets = program_target_ranks(m->program, rank, task->out[i].rank, &first);

        assert(world_same_node(m->program->world, rank, first));
        for (uint32_t t = 0; t < targets; t++) {
            struct matrix out = matrix_locate(m, first + t, epoch, &task->out[i], task->m, task->n);

            matrix_store_row(&out, row, col, count, values);
        }
    }
}

/* A row of sums, gate and up, becomes a row of results in its own place: they are never ahead of what is read. */
static void swiglu(const struct task *task, float *row)
{
    for (uint64_t group = 0; group < task->n; group += SWIGLU_GROUP) {
        uint64_t width = min_u64(SWIGLU_GROUP, task->n - group);

        for (uint64_t c = 0; c < width; c++) {
            float gate = row[2 * group + c], up = row[2 * group + width + c];

            row[group + c] = gate / (1 + expf(-gate)) * up;
        }
    }
}

static void gemm_finish(struct scratch *s, const struct memory *m, uint32_t rank, uint64_t epoch,
                        const struct task *task)
{
    assert(task->epilogue == EPILOGUE_NONE || task->addend_count == 0);
    for (uint32_t a = 0; a < task->addend_count; a++) {
        struct operand at = program_addend(m->program, rank, task, a);
        struct matrix addend = locate(m, rank, epoch, &at, task->m, task->n);

        for (uint64_t i = 0; i < task->m; i++)
            matrix_add_row(&addend, i, 0, task->n, s->sum + i * task->n);
    }
    for (uint64_t i = 0; i < task->m; i++) {
        float *row = s->sum + i * sum_cols(task);

        if (task->epilogue == EPILOGUE_SWIGLU)
            swiglu(task, row);
        store_row(m, rank, epoch, task, i, 0, task->n, row);
    }
}

/* ---- ATTENTION ---- */

static void attend(struct scratch *s, const struct memory *m, uint32_t rank, uint64_t epoch, const struct task *task,
                   uint32_t step)
{
    struct segment segment;
    struct operand keys_at, values_at;
    struct matrix keys, values, q;

    program_step(m->program, rank, task, step, &segment, &keys_at, &values_at);
    q = locate(m, rank, epoch, &task->attention.q, task->m, task->n);
    keys = locate(m, rank, epoch, &keys_at, segment.k, task->n);
    values = locate(m, rank, epoch, &values_at, segment.k, task->n);
    attention_step(&s->attention, task, &segment, &q, &keys, &values);
}

static void attend_finish(struct scratch *s, const struct memory *m, uint32_t rank, uint64_t epoch,
                          const struct task *task)
{
    struct matrix before = {.ld = 0}, lse = {.ld = 0};

    if (task->addend_count || task->attention.leaves)
        lse = locate(m, rank, epoch, &task->attention.lse, task->m, 1);
    if (task->addend_count)
        before = locate(m, rank, epoch, &task->addend, task->m, task->n);
    attention_finish(&s->attention, task, task->addend_count ? &before : NULL, &lse);
    for (uint64_t i = 0; i < task->m; i++)
        store_row(m, rank, epoch, task, i, 0, task->n, attention_row(&s->attention, task, i));
}

/* ---- what has a main loop ---- */

void tile_begin(struct scratch *s, const struct task *task)
{
    if (task->op == OP_ATTENTION)
        attention_begin(&s->attention, task);
    else
        gemm_begin(s, task);
}

void tile_step(struct scratch *s, const struct memory *m, uint32_t rank, uint64_t epoch, const struct task *task,
               uint32_t step)
{
    if (task->op == OP_ATTENTION)
        attend(s, m, rank, epoch, task, step);
    else
        gemm_step(s, m, rank, epoch, task, step);
}

void tile_finish(struct scratch *s, const struct memory *m, uint32_t rank, uint64_t epoch, const struct task *task)
{
    if (task->op == OP_ATTENTION)
        attend_finish(s, m, rank, epoch, task);
    else
        gemm_finish(s, m, rank, epoch, task);
}

/* ---- the other ops ---- */

static void reduce(const struct memory *m, uint32_t rank, uint64_t epoch, const struct task *task)
{
    float sum[MOVE_RUN];

    for (uint64_t i = 0; i < task->m; i++)
        for (uint64_t j = 0; j < task->n; j += MOVE_RUN) {
            uint64_t count = min_u64(MOVE_RUN, task->n - j);

            memset(sum, 0, sizeof sum);
            for (uint32_t a = 0; a < task->addend_count; a++) {
                struct operand at = program_addend(m->program, rank, task, a);
                struct matrix addend = locate(m, rank, epoch, &at, task->m, task->n);

                matrix_add_row(&addend, i, j, count, sum);
            }
            store_row(m, rank, epoch, task, i, j, count, sum);
        }
}

/* Values of one type travel as bytes, so that NaNs keep their payload; others are converted. */
static void copy_matrix(const struct matrix *from, const struct matrix *to, uint64_t rows, uint64_t cols)
{
    float values[MOVE_RUN];

    if (from->base == to->base && rows > 0 && cols > 0) {
        assert(from->dtype == to->dtype && (from->ld == to->ld || rows == 1));
        return; /* bytes onto themselves: a rank's own share of RANK_NODE */
    }
    for (uint64_t i = 0; i < rows; i++) {
        if (from->dtype == to->dtype) {
            memcpy(matrix_row(to, i), matrix_row(from, i), cols * dtype_bytes(from->dtype));
            continue;
        }
        for (uint64_t j = 0; j < cols; j += MOVE_RUN) {
            uint64_t count = min_u64(MOVE_RUN, cols - j);

            matrix_load_row(from, i, j, count, values);
            matrix_store_row(to, i, j, count, values);
        }
    }
}

static void copy(const struct memory *m, uint32_t rank, uint64_t epoch, const struct task *task)
{
    struct matrix from = locate(m, rank, epoch, &task->a, task->m, task->n);

    for (uint32_t i = 0; i < task->out_count; i++) {
        uint32_t first, targets = program_target_ranks(m->program, rank, task->out[i].rank, &first);

        assert(world_same_node(m->program->world, rank, first));
        for (uint32_t t = 0; t < targets; t++) {
            struct matrix to = matrix_locate(m, first + t, epoch, &task->out[i], task->m, task->n);

            copy_matrix(&from, &to, task->m, task->n);
        }
    }
}

static void put(const struct memory *m, uint32_t rank, uint64_t epoch, const struct task *task)
{
    uint64_t elements = task->m * task->n;

    if (elements == 0)
        return; /* a bare signal */
    assert(task->out_count == 1 && task->out[0].rank != RANK_NODE);
    struct matrix from = locate(m, rank, epoch, &task->a, 1, elements);
    struct matrix to = matrix_locate(m, task->out[0].rank, epoch, &task->out[0], 1, elements);

    assert(from.dtype == to.dtype && from.base != to.base);
    copy_matrix(&from, &to, 1, elements);
}

void tile_move(struct scratch *s, const struct memory *m, uint32_t rank, uint64_t epoch, const struct task *task)
{
    (void)s;
    switch (task->op) {
    case OP_COPY: copy(m, rank, epoch, task); return;
    case OP_REDUCE: reduce(m, rank, epoch, task); return;
    case OP_PUT: put(m, rank, epoch, task); return;
    case OP_GATHER_ROWS: tile_gather(m, rank, epoch, task); return;
    case OP_COMBINE_ROWS: tile_combine(m, rank, epoch, task); return;
    case OP_NOP:
    case OP_GEMM:
    case OP_ATTENTION:
    case OP_ROUTE: break;
    }
    assert(!"the others do not move data");
}
