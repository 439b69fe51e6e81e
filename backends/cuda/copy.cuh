/* Bulk copies by the loader: pieces of whole rows, or parts of one row, through slots; loads run
 * ahead of stores. */
#ifndef BACKENDS_CUDA_COPY_CUH
#define BACKENDS_CUDA_COPY_CUH

#include "backends/cuda/record.cuh"

#define COPY_AHEAD 6

struct copy_target {
    uint64_t address, row_bytes;
};

struct copy_shape {
    uint64_t from, row_bytes; /* of the source */
    uint32_t rows, width_bytes;
    uint32_t rows_per_piece; /* one, if a row is wider than a slot */
    uint32_t pieces_per_row, pieces;
};

struct piece {
    uint32_t row, rows, at_bytes, bytes;
};

PTX piece piece_at(const copy_shape &c, uint32_t i)
{
    if (c.pieces_per_row == 1) {
        uint32_t row = i * c.rows_per_piece;

        return {row, min(c.rows_per_piece, c.rows - row), 0, c.width_bytes};
    }
    uint32_t at = i % c.pieces_per_row * COPY_SLOT_BYTES;

    return {i / c.pieces_per_row, 1, at, min(c.width_bytes - at, COPY_SLOT_BYTES)};
}

PTX void set_rows_per_piece(copy_shape &c, uint32_t rows)
{
    c.rows_per_piece = rows;
    c.pieces = (c.rows + rows - 1) / rows * c.pieces_per_row;
}

PTX copy_shape cut(uint64_t from, uint64_t row_bytes, uint32_t rows, uint32_t width_bytes)
{
    uint32_t parts = (width_bytes + COPY_SLOT_BYTES - 1) / COPY_SLOT_BYTES;
    copy_shape c = {from, row_bytes, rows, width_bytes, 1, parts, 0};

    set_rows_per_piece(c, parts > 1 ? 1 : COPY_SLOT_BYTES / width_bytes);
    return c;
}

PTX copy_shape copy_shape_of(const site &s, const gpu_task &t)
{
    const gpu_view &v = s.program->views[t.a_view];
    uint32_t element = v.is_wide ? 4 : 2;

    return cut(view_address(s, v, t.a_row, t.a_col), v.ld * element, t.m, t.n * element);
}

PTX void find_copy_targets(const site &s, const gpu_task &t)
{
    copy_target *out = (copy_target *)(s.memory + COPY_TARGETS_AT);

    for (uint32_t i = 0; i < t.targets; i++) {
        const gpu_matrix m = task_target(s, t, i);
        const gpu_view &v = s.program->views[m.view];

        out[i] = {view_address(s, v, m.row, m.col), v.ld * (v.is_wide ? 4 : 2)};
    }
}

/* For piece `number`, counted over all copies of the launch. */
PTX void open_slot(const site &s, uint32_t number, uint32_t bytes)
{
    bulk_wait_read<COPY_SLOTS - COPY_AHEAD - 1>(); /* the slot's last store has read it */
    barrier_expect(barrier_at(s, BARRIER_COPIED + number % COPY_SLOTS), bytes);
}

PTX void load_piece(const site &s, const copy_shape &c, uint32_t i, uint32_t number)
{
    uint32_t slot = number % COPY_SLOTS, barrier = barrier_at(s, BARRIER_COPIED + slot);
    piece p = piece_at(c, i);

    open_slot(s, number, p.rows * p.bytes);
    for (uint32_t r = 0; r < p.rows; r++)
        bulk_load(s.shared + slot * COPY_SLOT_BYTES + r * p.bytes, c.from + (p.row + r) * c.row_bytes + p.at_bytes,
                  p.bytes, barrier);
}

PTX void store_piece(const site &s, const copy_shape &c, uint32_t i, uint32_t number, uint32_t targets)
{
    const copy_target *to = (const copy_target *)(s.memory + COPY_TARGETS_AT);
    uint32_t slot = number % COPY_SLOTS;
    piece p = piece_at(c, i);

    await_barrier(s, barrier_at(s, BARRIER_COPIED + slot), number / COPY_SLOTS & 1);
    for (uint32_t k = 0; k < targets; k++) {
        uint32_t rows = to[k].row_bytes == p.bytes ? p.rows : 1; /* at once: there is no gap */

        for (uint32_t r = 0; r < p.rows; r += rows)
            bulk_store(to[k].address + (p.row + r) * to[k].row_bytes + p.at_bytes,
                       s.shared + slot * COPY_SLOT_BYTES + r * p.bytes, rows * p.bytes);
    }
    bulk_commit();
}

PTX void end_copy(const site &s, const gpu_task &t)
{
    bulk_wait_all(); /* behind which stands a proxy fence */
    signal_all(s, t);
}

PTX void copy(const site &s, uint32_t &copied, const gpu_task &t)
{
    gpu_record *ran = record_begin(s, t, GPU_RAN);
    copy_shape c = copy_shape_of(s, t);
    uint32_t first = copied;

    find_copy_targets(s, t);
    fence_proxy();
    for (uint32_t i = 0; i < c.pieces + COPY_AHEAD; i++) {
        if (i >= COPY_AHEAD)
            store_piece(s, c, i - COPY_AHEAD, first + i - COPY_AHEAD, t.targets);
        if (i < c.pieces)
            load_piece(s, c, i, first + i);
    }
    copied = first + c.pieces;
    end_copy(s, t);
    record_end(ran);
}

#endif
