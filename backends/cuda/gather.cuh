/* OP_GATHER_ROWS.  Rows in steps of 16 bytes go through slots as a copy's do: the loader's lanes
 * find out where 32 rows are and each loads its own; others the consumers move, a warp a row. */
#ifndef BACKENDS_CUDA_GATHER_CUH
#define BACKENDS_CUDA_GATHER_CUH

#include "backends/cuda/copy.cuh"
#include "backends/cuda/indexed.cuh"
#include "backends/cuda/plain.cuh"

/* ---- the loader's warp ---- */

/* A piece is a part of a row, or as many rows as divide 32. */
PTX copy_shape gather_shape_of(const site &s, const gpu_task &t)
{
    const gpu_view &v = s.program->views[task_target(s, t, 0).view];
    copy_shape c = cut(0, 0, t.m, t.n * (v.is_wide ? 4 : 2));

    if (c.rows_per_piece > 1)
        set_rows_per_piece(c, 1u << (31 - __clz(min(c.rows_per_piece, 32))));
    return c;
}

/* `from`: of the lane's row, of those of 32 that the piece's are among. */
PTX void load_gathered(const site &s, const piece &p, uint32_t number, uint64_t from, uint32_t lane)
{
    uint32_t slot = number % COPY_SLOTS, row = lane - p.row % 32;

    if (lane == 0)
        open_slot(s, number, p.rows * p.bytes);
    __syncwarp();
    if (row < p.rows)
        bulk_load(s.shared + slot * COPY_SLOT_BYTES + row * p.bytes, from + p.at_bytes, p.bytes,
                  barrier_at(s, BARRIER_COPIED + slot));
}

/* `copied`: lane 0's. */
PTX void gather(const site &s, uint32_t &copied, const gpu_task &t, uint32_t lane)
{
    gpu_record *ran = lane == 0 ? record_begin(s, t, GPU_RAN) : nullptr;
    copy_shape c = gather_shape_of(s, t);
    uint32_t first = __shfl_sync(ALL_LANES, copied, 0);
    uint64_t index = index_address(s, t, 0, 0), from = 0;

    if (lane == 0)
        find_copy_targets(s, t);
    fence_proxy();
    for (uint32_t i = 0; i < c.pieces + COPY_AHEAD; i++) {
        piece p = piece_at(c, i);

        if (i >= COPY_AHEAD && lane == 0)
            store_piece(s, c, i - COPY_AHEAD, first + i - COPY_AHEAD, 1);
        if (i >= c.pieces)
            continue;
        if (p.row % 32 == 0 && p.at_bytes == 0 && p.row + lane < t.m)
            from = source_address(s, t, __ldcg((const uint32_t *)index + p.row + lane));
        load_gathered(s, p, first + i, from, lane);
    }
    copied = first + c.pieces;
    if (lane == 0) {
        end_copy(s, t);
        record_end(ran);
    }
}

/* ---- the consumers ---- */

PTX void move_row(const matrix &to, uint64_t from, uint32_t row, uint32_t n, uint32_t lane)
{
    const matrix source = {from, 0, to.is_wide};

    for (uint32_t i = lane; i < n; i += 32)
        store_element(to, row * to.ld + i, load_element(source, i));
}

PTX void gather_plain(const site &s, const gpu_task &t, uint32_t thread)
{
    const matrix to = matrix_at(s, task_target(s, t, 0));
    const uint32_t *index = (const uint32_t *)index_address(s, t, 0, 0);

    for (uint32_t row = thread / 32; row < t.m; row += CONSUMERS / 32)
        move_row(to, source_address(s, t, __ldcg(index + row)), row, t.n, thread % 32);
}

#endif
