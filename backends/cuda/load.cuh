/* The loader: feeds the stages of GEMMs and does the bulk copies. */
#ifndef BACKENDS_CUDA_LOAD_CUH
#define BACKENDS_CUDA_LOAD_CUH

#include "backends/cuda/attention_load.cuh"
#include "backends/cuda/gather.cuh"

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

PTX void load_blocks(const site &s, loader &l, const operand_maps &o, uint32_t a_col, uint32_t b_col, uint32_t blocks)
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
    operand_maps o = {view_load_map(s, s.program->views[t.a_view]), view_load_map(s, s.program->views[t.b_view]),
                      t.a_row, t.b_row};

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

/* ---- GEMMs that read the rows of A by index: by the whole warp ----
 *
 * 16 bytes a lane and copy, four rows by all lanes, swizzled as a tensor map would.  These copies belong to the
 * generic proxy, so the consumers fence before their products read them. */

#define COPIES_AHEAD 8 /* rows of a lane whose addresses are at hand */

/* `bytes` of each row from `at` on; what a block has beyond them is 0.  WHOLE: there is nothing beyond. */
template <bool WHOLE> PTX void copy_rows(const uint64_t *rows, uint32_t to, uint32_t at, uint32_t bytes, uint32_t lane)
{
    uint32_t first = lane / 8, part = lane % 8 * 16, mine = bytes > part ? min(bytes - part, 16) : 0;
    uint32_t even = to + first * 128 + (part ^ first * 16), odd = even ^ 64;

#pragma unroll
    for (int base = 0; base < GPU_TILE_M; base += 4 * COPIES_AHEAD) {
        uint64_t from[COPIES_AHEAD];

#pragma unroll
        for (int i = 0; i < COPIES_AHEAD; i++)
            from[i] = rows[first + base + 4 * i] + (at + part);
#pragma unroll
        for (int i = 0; i < COPIES_AHEAD; i++) {
            uint32_t place = (i % 2 ? odd : even) + (base + 4 * i) * 128;

            if (WHOLE)
                async_copy(place, from[i]);
            else
                async_copy_part(place, from[i], mine);
        }
    }
}

PTX void load_b(const site &s, const loader &l, const operand_maps &o, uint32_t col)
{
    uint32_t full = barrier_at(s, BARRIER_STAGE_FULL + l.stage), to = s.shared + l.stage * STAGE_BYTES;

    barrier_expect_more_one(full, 2 * OPERAND_BYTES);
    tensor_load_one(to + OPERAND_BYTES, o.b, col, o.b_row, full);
    tensor_load_one(to + 2 * OPERAND_BYTES, o.b, col, o.b_row + GPU_TILE_N / 2, full);
}

/* `rows`: addresses, in shared memory.  The last arrival is that of one lane, once all copies have begun. */
PTX void load_block_by_index(const site &s, const loader &l, const uint64_t *rows, uint32_t at, uint32_t bytes,
                             uint32_t lane)
{
    uint32_t full = barrier_at(s, BARRIER_STAGE_FULL + l.stage), to = s.shared + l.stage * STAGE_BYTES;

    if (bytes >= GPU_TILE_K * 2)
        copy_rows<true>(rows, to, at, bytes, lane);
    else
        copy_rows<false>(rows, to, at, bytes, lane);
    async_arrive(full);
    __syncwarp();
    barrier_arrive_one(full);
}

/* Where the ring of stages is, lane 0 knows. */
PTX void load_gemm_by_index(const site &s, loader &l, const gpu_task &t, uint32_t slot, uint32_t lane)
{
    operand_maps o = {nullptr, view_load_map(s, s.program->views[t.b_view]), 0, t.b_row};

    l.stage = __shfl_sync(ALL_LANES, l.stage, 0);
    l.phase = __shfl_sync(ALL_LANES, l.phase, 0);
    fence_proxy(); /* behind the acquired flags may be ordinary stores */
    __syncwarp();
    for (uint32_t at = 0; at < t.a_col; at += GPU_TILE_K) {
        await_barrier_warp(s, barrier_at(s, BARRIER_STAGE_EMPTY + l.stage), l.phase ^ 1);
        load_b(s, l, o, t.b_col + at);
        load_block_by_index(s, l, row_addresses(s, slot), at * 2, (t.a_col - at) * 2, lane);
        stage_advance(l.stage, l.phase);
    }
}

/* ---- copies ---- */

/* They borrow the stages. */
PTX void await_stages(const site &s, const loader &l)
{
    uint32_t stage = l.stage, phase = l.phase;

    for (uint32_t i = 0; i < STAGES; i++) {
        await_barrier(s, barrier_at(s, BARRIER_STAGE_EMPTY + stage), phase ^ 1);
        stage_advance(stage, phase);
    }
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

PTX void load_copy(const site &s, loader &l, const gpu_task &t)
{
    await_stages(s, l);
    if (t.kind == GPU_COPY)
        copy(s, l.copied, t);
}

PTX bool uses_stages(const gpu_task &t)
{
    return uses_tiles(t) || t.kind == GPU_COPY || t.kind == GPU_GATHER;
}

/* By one thread; of a gather it only makes room. */
PTX void load_staged(const site &s, loader &l, const gpu_task &t)
{
    if (uses_tiles(t))
        load_gemm(s, l, t);
    else
        load_copy(s, l, t);
}

/* The same, in kernels that have attention. */
PTX void load_attending(const site &s, loader &l, const gpu_task &t, const ring &r)
{
    if (is_attention(t)) {
        use_as(s, l, r, t.n / 64);
        load_attention(s, l.attention, t, r.slot);
        return;
    }
    load_late_values(s, l.attention);
    if (!uses_stages(t))
        return;
    use_as(s, l, r, 0);
    load_staged(s, l, t);
}

PTX void run_attending_loader(const site &s)
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
        load_attending(s, l, t, r);
        ring_free(s, r);
    }
    load_late_values(s, l.attention);
}

/* Where rows are read by index, which takes all lanes. */
template <bool ATTENDS> PTX void run_loader(const site &s, uint32_t lane)
{
    loader l = {};
    ring r = {0, 0};

    for (;;) {
        uint32_t full = barrier_at(s, BARRIER_TASK_FULL + r.slot);

        if (ATTENDS && lane == 0 && !barrier_test(full, r.phase))
            load_late_values(s, l.attention);
        __syncwarp();
        await_barrier_warp(s, full, r.phase);
        const gpu_task &t = ring_task(s, r);

        if (t.kind == GPU_END)
            break;
        if (!ATTENDS && uses_tiles(t) && t.by_index)
            load_gemm_by_index(s, l, t, r.slot, lane);
        else if (lane == 0 && ATTENDS)
            load_attending(s, l, t, r);
        else if (lane == 0 && uses_stages(t))
            load_staged(s, l, t);
        __syncwarp();
        if (t.kind == GPU_GATHER)
            gather(s, l.copied, t, lane);
        __syncwarp();
        if (lane == 0)
            barrier_arrive(barrier_at(s, BARRIER_TASK_EMPTY + r.slot));
        ring_advance(s, r);
    }
    if (lane == 0 && ATTENDS)
        load_late_values(s, l.attention);
}

#endif
