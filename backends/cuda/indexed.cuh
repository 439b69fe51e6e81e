/* What gathers and combines share: rows that an index list names. */
#ifndef BACKENDS_CUDA_INDEXED_CUH
#define BACKENDS_CUDA_INDEXED_CUH

#include "backends/cuda/site.cuh"

PTX bool is_gather(const gpu_task &t)
{
    return t.kind == GPU_GATHER || t.kind == GPU_GATHER_PLAIN;
}

PTX bool is_combine(const gpu_task &t)
{
    return t.kind == GPU_COMBINE || t.kind == GPU_COMBINE_PLAIN;
}

/* Of the index value of the task's `row`th row and `term`th term. */
PTX uint64_t index_address(const site &s, const gpu_task &t, uint32_t row, uint32_t term)
{
    const gpu_matrix m = task_selects(s, t)[1].matrix;

    return view_address(s, s.program->views[m.view], m.row + t.down + row, m.col + term);
}

/* Of the row that an index value names. */
PTX uint64_t source_address(const site &s, const gpu_task &t, uint32_t value)
{
    const gpu_matrix m = task_addends(s, t)[value / t.b_row].matrix;

    return view_address(s, s.program->views[m.view], m.row + value % t.b_row, m.col);
}

#endif
