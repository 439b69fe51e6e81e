/* OP_GATHER_ROWS by the consumers: a warp a row, its bytes as they are. */
#ifndef BACKENDS_CUDA_GATHER_CUH
#define BACKENDS_CUDA_GATHER_CUH

#include "backends/cuda/plain.cuh"

PTX bool is_gather(const gpu_task &t)
{
    return t.kind == GPU_GATHER || t.kind == GPU_GATHER_PLAIN;
}

/* Of the first value of the task's index list. */
PTX uint64_t index_address(const site &s, const gpu_task &t)
{
    const gpu_matrix m = task_selects(s, t)[1].matrix;

    return view_address(s, s.program->views[m.view], m.row + t.down, m.col);
}

/* Of the row that an index value names. */
PTX uint64_t source_address(const site &s, const gpu_task &t, uint32_t value)
{
    const gpu_matrix m = task_addends(s, t)[value / t.b_row].matrix;

    return view_address(s, s.program->views[m.view], m.row + value % t.b_row, m.col);
}

#define GATHER_BATCH 7 /* vectors of a lane under way at a time: a row of 7168 bf16 is four times as many */

PTX void move_row(uint64_t to, uint64_t from, uint32_t vectors, uint32_t lane)
{
    for (uint32_t first = lane; first < vectors; first += GATHER_BATCH * 32) {
        uint4 v[GATHER_BATCH];

#pragma unroll
        for (int b = 0; b < GATHER_BATCH; b++)
            if (first + b * 32 < vectors)
                v[b] = __ldcg((const uint4 *)from + first + b * 32);
#pragma unroll
        for (int b = 0; b < GATHER_BATCH; b++)
            if (first + b * 32 < vectors)
                ((uint4 *)to)[first + b * 32] = v[b];
    }
}

PTX void move_row_plain(const matrix &to, uint64_t from, uint32_t row, uint32_t n, uint32_t lane)
{
    const matrix source = {from, 0, to.is_wide};

    for (uint32_t i = lane; i < n; i += 32)
        store_element(to, row * to.ld + i, load_element(source, i));
}

/* Where a warp's next 32 rows are, a lane finds out for each. */
PTX void gather_rows(const site &s, const gpu_task &t, uint32_t thread)
{
    const matrix to = matrix_at(s, task_target(s, t, 0));
    uint32_t warp = thread / 32, lane = thread % 32, element = to.is_wide ? 4 : 2;
    uint64_t index = index_address(s, t);

    for (uint32_t first = warp; first < t.m; first += CONSUMERS) {
        uint32_t mine = first + lane * (CONSUMERS / 32);
        uint64_t from = 0;

        if (mine < t.m)
            from = source_address(s, t, __ldcg((const uint32_t *)index + mine));
        for (uint32_t i = 0; i < 32 && first + i * (CONSUMERS / 32) < t.m; i++) {
            uint32_t row = first + i * (CONSUMERS / 32);
            uint64_t source = __shfl_sync(ALL_LANES, from, i);

            if (t.kind == GPU_GATHER)
                move_row(to.address + row * to.ld * element, source, t.n * element / 16, lane);
            else
                move_row_plain(to, source, row, t.n, lane);
        }
    }
}

#endif
