/* OP_GATHER_ROWS, where bytes travel as they are, and OP_COMBINE_ROWS, which rounds once, at the store. */
#include <assert.h>
#include <string.h>

#include "backends/ops/element.h"
#include "backends/ops/route.h"

/* Row `value` of the source. */
static struct matrix source_row(const struct memory *m, uint32_t rank, uint64_t epoch, const struct task *task,
                                uint64_t value)
{
    struct operand source;

    tile_gather_source(m->program, rank, task, value, &source);
    assert(world_same_node(m->program->world, rank, source.rank));
    return matrix_locate(m, source.rank, epoch, &source, 1, program_index_cols(task));
}

struct matrix tile_indexed_row(const struct memory *m, uint32_t rank, uint64_t epoch, const struct task *task,
                               uint64_t i)
{
    uint64_t value = 0;

    tile_index(m, rank, epoch, task, i, 0, &value);
    return source_row(m, rank, epoch, task, value);
}

static struct matrix only_target(const struct memory *m, uint32_t rank, uint64_t epoch, const struct task *task)
{
    const struct operand *out = &task->out[0];

    assert(task->out_count == 1 && world_same_node(m->program->world, rank, out->rank));
    return matrix_locate(m, out->rank, epoch, out, task->m, task->n);
}

void tile_gather(const struct memory *m, uint32_t rank, uint64_t epoch, const struct task *task)
{
    struct matrix to = only_target(m, rank, epoch, task);

    for (uint64_t i = 0; i < task->m; i++) {
        struct matrix from = tile_indexed_row(m, rank, epoch, task, i);

        assert(from.dtype == to.dtype);
        memcpy(matrix_row(&to, i), from.base, task->n * dtype_bytes(to.dtype));
    }
}

#define COMBINE_RUN 512 /* elements kept in f32 at a time */

static void add_weighted(const struct matrix *row, float weight, uint64_t col, uint64_t count, float *sum)
{
    float values[COMBINE_RUN];

    matrix_load_row(row, 0, col, count, values);
    for (uint64_t i = 0; i < count; i++)
        sum[i] += weight * values[i];
}

static void combine_run(const struct memory *m, uint32_t rank, uint64_t epoch, const struct task *task, uint64_t i,
                        uint64_t col, uint64_t count, float *sum)
{
    const struct combine *c = &task->combine;
    struct matrix weights = {.ld = 0};

    if (c->weighted)
        weights = matrix_locate(m, rank, epoch, &c->weight, task->m, c->terms);
    memset(sum, 0, count * sizeof *sum);
    for (uint64_t j = 0; j < c->terms; j++) {
        struct matrix row;
        uint64_t value;
        float weight = 1;

        if (!tile_index(m, rank, epoch, task, i, j, &value))
            continue;
        if (c->weighted)
            matrix_load_row(&weights, i, j, 1, &weight);
        row = source_row(m, rank, epoch, task, value);
        add_weighted(&row, weight, col, count, sum);
    }
}

void tile_combine(const struct memory *m, uint32_t rank, uint64_t epoch, const struct task *task)
{
    struct matrix to = only_target(m, rank, epoch, task);
    float sum[COMBINE_RUN];

    assert(!task->combine.weighted || task->combine.weight.rank == rank);
    for (uint64_t i = 0; i < task->m; i++)
        for (uint64_t col = 0; col < task->n; col += COMBINE_RUN) {
            uint64_t count = min_u64(COMBINE_RUN, task->n - col);

            combine_run(m, rank, epoch, task, i, col, count, sum);
            matrix_store_row(&to, i, col, count, sum);
        }
}
