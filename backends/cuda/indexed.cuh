/* Rows that an index list names: of gathers, combines and GEMMs. */
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

/* What such a task has behind its selection. */
enum { INDEX_LIST = 1, INDEX_ROWS, INDEX_FLAGS, INDEX_WEIGHTS, INDEX_SOURCES };

PTX gpu_rows index_rows(const site &s, const gpu_task &t)
{
    return task_selects(s, t)[INDEX_ROWS].rows;
}

/* Of the index value of the task's `row`th row and `term`th term. */
PTX uint64_t index_address(const site &s, const gpu_task &t, uint32_t row, uint32_t term)
{
    const gpu_matrix m = task_selects(s, t)[INDEX_LIST].matrix;

    return view_address(s, s.program->views[m.view], m.row + t.down + row, m.col + term);
}

/* Of the row that an index value names. */
PTX uint64_t source_address(const site &s, const gpu_task &t, uint32_t value)
{
    uint32_t rows = index_rows(s, t).source_rows;
    const gpu_matrix m = task_selects(s, t)[INDEX_SOURCES + value / rows].matrix;

    return view_address(s, s.program->views[m.view], m.row + value % rows, m.col);
}

/* Where the rows of A stand, of the GEMM in a slot of the ring: the fetcher tells the loader. */
PTX uint64_t *row_addresses(const site &s, uint32_t slot)
{
    return (uint64_t *)(s.memory + ROWS_AT) + slot * GPU_TILE_M;
}

#endif
