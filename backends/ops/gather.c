/* OP_GATHER_ROWS.  Bytes travel as they are: nothing is rounded. */
#include <assert.h>
#include <string.h>

#include "backends/ops/element.h"
#include "backends/ops/route.h"

void tile_gather(const struct memory *m, uint32_t rank, uint64_t epoch, const struct task *task)
{
    const struct operand *out = &task->out[0];
    struct matrix to;

    assert(task->out_count == 1 && world_same_node(m->program->world, rank, out->rank));
    to = matrix_locate(m, out->rank, epoch, out, task->m, task->n);
    for (uint64_t i = 0; i < task->m; i++) {
        struct operand source;
        struct matrix from;

        tile_gather_source(m->program, rank, task, tile_index(m, rank, epoch, task, i), &source);
        assert(world_same_node(m->program->world, rank, source.rank));
        from = matrix_locate(m, source.rank, epoch, &source, 1, task->n);
        assert(from.dtype == to.dtype);
        memcpy(matrix_row(&to, i), from.base, task->n * dtype_bytes(to.dtype));
    }
}
