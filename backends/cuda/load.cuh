/* The loader: one thread that feeds the stages of GEMMs and does the bulk copies. */
#ifndef BACKENDS_CUDA_LOAD_CUH
#define BACKENDS_CUDA_LOAD_CUH

#include "backends/cuda/attention_load.cuh"

struct loader {
    uint32_t stage, phase; /* of the ring of stages */
    uint32_t copied;       /* pieces loaded into copy slots so far */
    attention_loader attention;
    uint32_t panels; /* how the stages are in use: as stages or slots (0), or as rings of panels, so
                        many a block */
};

PTX void stage_advance(uint32_t &stage, uint32_t &phase)
{
    if (++stage == STAGES) {
        stage = 0;
        phase ^= 1;
    }
}

/* ---- GEMM ---- */

struct operand_maps {
    const void *a, *b;
    uint32_t a_row, b_row;
};

PTX void load_blocks(const site &s, loader &l, const operand_maps &o, uint32_t a_col,
                     uint32_t b_col, uint32_t blocks)
{
    for (uint32_t i = 0; i < blocks; i++) {
        uint32_t full = barrier_at(s, BARRIER_STAGE_FULL + l.stage);
        uint32_t to = s.shared + l.stage * STAGE_BYTES;

        await_barrier(s, barrier_at(s, BARRIER_STAGE_EMPTY + l.stage), l.phase ^ 1);
        barrier_expect(full, STAGE_BYTES);
        tensor_load(to, o.a, a_col, o.a_row, full);
        tensor_load(to + OPERAND_BYTES, o.b, b_col, o.b_row, full);
        tensor_load(to + 2 * OPERAND_BYTES, o.b, b_col, o.b_row + GPU_TILE_N / 2, full);
        a_col += GPU_TILE_K;
        b_col += GPU_TILE_K;
        stage_advance(l.stage, l.phase);
    }
}

PTX void load_gemm(const site &s, loader &l, const gpu_task &t)
{
    operand_maps o = {view_load_map(s, s.program->views[t.a_view]),
                      view_load_map(s, s.program->views[t.b_view]), t.a_row, t.b_row};

    if (t.segment_count == 0) {
        fence_proxy(); /* behind the acquired flags may be ordinary stores */
        load_blocks(s, l, o, t.a_col, t.b_col, t.k);
        return;
    }
    for (uint32_t i = 0; i < t.segment_count; i++) {
        const gpu_segment &g = s.program->segments[t.segments + i];

        await_flags(s, g.wait, GPU_LOAD, t, i);
        fence_proxy();
        load_blocks(s, l, o, t.a_col + (uint32_t)g.a_add, t.b_col + (uint32_t)g.b_add,
                    (g.k + GPU_TILE_K - 1) / GPU_TILE_K);
    }
}

/* ---- copies: pieces of whole rows, or parts of one row, through slots; loads run ahead of stores
 * ---- */

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

PTX copy_shape copy_shape_of(const site &s, const gpu_task &t)
{
    const gpu_view &v = s.program->views[t.a_view];
    uint32_t element = v.is_wide ? 4 : 2;
    copy_shape c = {
        view_address(s, v, t.a_row, t.a_col), v.ld * element, t.m, t.n * element, 1, 1, 0};

    if (c.width_bytes > COPY_SLOT_BYTES)
        c.pieces_per_row = (c.width_bytes + COPY_SLOT_BYTES - 1) / COPY_SLOT_BYTES;
    else
        c.rows_per_piece = COPY_SLOT_BYTES / c.width_bytes;
    c.pieces = (c.rows + c.rows_per_piece - 1) / c.rows_per_piece * c.pieces_per_row;
    return c;
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

PTX void load_piece(const site &s, loader &l, const copy_shape &c, uint32_t i)
{
    uint32_t slot = l.copied % COPY_SLOTS, barrier = barrier_at(s, BARRIER_COPIED + slot);
    piece p = piece_at(c, i);

    bulk_wait_read<COPY_SLOTS - COPY_AHEAD - 1>(); /* the slot's last store has read it */
    barrier_expect(barrier, p.rows * p.bytes);
    for (uint32_t r = 0; r < p.rows; r++)
        bulk_load(s.shared + slot * COPY_SLOT_BYTES + r * p.bytes,
                  c.from + (p.row + r) * c.row_bytes + p.at_bytes, p.bytes, barrier);
    l.copied++;
}

/* `number`: of the piece, as counted by loader.copied. */
PTX void store_piece(const site &s, const copy_shape &c, uint32_t i, uint32_t number,
                     uint32_t targets)
{
    const copy_target *to = (const copy_target *)(s.memory + COPY_TARGETS_AT);
    uint32_t slot = number % COPY_SLOTS;
    piece p = piece_at(c, i);

    await_barrier(s, barrier_at(s, BARRIER_COPIED + slot), number / COPY_SLOTS & 1);
    for (uint32_t k = 0; k < targets; k++)
        for (uint32_t r = 0; r < p.rows; r++)
            bulk_store(to[k].address + (p.row + r) * to[k].row_bytes + p.at_bytes,
                       s.shared + slot * COPY_SLOT_BYTES + r * p.bytes, p.bytes);
    bulk_commit();
}

PTX void await_stages(const site &s, const loader &l)
{
    uint32_t stage = l.stage, phase = l.phase;

    for (uint32_t i = 0; i < STAGES; i++) {
        await_barrier(s, barrier_at(s, BARRIER_STAGE_EMPTY + stage), phase ^ 1);
        stage_advance(stage, phase);
    }
}

PTX void copy(const site &s, loader &l, const gpu_task &t)
{
    copy_shape c = copy_shape_of(s, t);
    uint32_t first = l.copied;

    find_copy_targets(s, t);
    await_stages(s, l);
    fence_proxy();
    for (uint32_t i = 0; i < c.pieces + COPY_AHEAD; i++) {
        if (i >= COPY_AHEAD)
            store_piece(s, c, i - COPY_AHEAD, first + i - COPY_AHEAD, t.targets);
        if (i < c.pieces)
            load_piece(s, l, c, i);
    }
    bulk_wait_all();
    fence_proxy();
    signal_all(s, t);
}

/* ---- the role ---- */

PTX void use_as(const site &s, loader &l, const ring &r, uint32_t panels)
{
    if (l.panels == panels)
        return;
    load_late_values(s, l.attention);
    ring_await_others(s, r);
    l.panels = panels;
}

PTX void load_task(const site &s, loader &l, const gpu_task &t, const ring &r)
{
    if (is_attention(t)) {
        use_as(s, l, r, t.n / 64);
        load_attention(s, l.attention, t, r.slot);
        return;
    }
    load_late_values(s, l.attention);
    if (uses_tiles(t)) {
        use_as(s, l, r, 0);
        load_gemm(s, l, t);
    } else if (t.kind == GPU_COPY) {
        use_as(s, l, r, 0);
        copy(s, l, t);
    }
}

PTX void run_loader(const site &s)
{
    loader l = {};
    ring r = {0, 0};

    for (;;) {
        uint32_t full = barrier_at(s, BARRIER_TASK_FULL + r.slot);

        if (!barrier_test(full, r.phase))
            load_late_values(s, l.attention);
        await_barrier(s, full, r.phase);
        const gpu_task &t = ring_task(s, r);

        if (t.kind == GPU_END)
            break;
        load_task(s, l, t, r);
        ring_free(s, r);
    }
    load_late_values(s, l.attention);
}

#endif
