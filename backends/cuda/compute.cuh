/* The consumers: two warpgroups, each with 64 rows of the tile in registers. */
#ifndef BACKENDS_CUDA_COMPUTE_CUH
#define BACKENDS_CUDA_COMPUTE_CUH

#include "backends/cuda/attention.cuh"
#include "backends/cuda/combine.cuh"
#include "backends/cuda/load.cuh"
#include "backends/cuda/record.cuh"
#include "backends/cuda/route.cuh"
#include "backends/cuda/wgmma.cuh"

/* ---- the main loop: one group of products stays in flight ---- */

PTX void multiply_stage(const site &s, const consumer &c, float (&d)[128], uint32_t stage, bool fresh)
{
    uint32_t at = s.shared + stage * STAGE_BYTES;
    uint64_t a = wgmma_operand(at + c.group * (OPERAND_BYTES / 2));
    uint64_t b = wgmma_operand(at + OPERAND_BYTES);

    wgmma_fence();
    if (fresh)
        wgmma_start(d, a, b);
    else
        wgmma_add(d, a, b);
    wgmma_add(d, a + 2, b + 2); /* 16 columns are 32 bytes, in units of 16 */
    wgmma_add(d, a + 4, b + 4);
    wgmma_add(d, a + 6, b + 6);
    wgmma_commit();
}

/* Rows by index have been written by the generic proxy. */
template <bool BY_INDEX> PTX void await_stage(const site &s, uint32_t stage, uint32_t phase, uint32_t by_index)
{
    if (BY_INDEX)
        barrier_await_fence_unless(barrier_at(s, BARRIER_STAGE_FULL + stage), phase, s.shared + ENDED_AT, by_index);
    else
        await_barrier_consumer(s, barrier_at(s, BARRIER_STAGE_FULL + stage), phase);
}

/* The first block starts the sums afresh; it stands apart because ptxas gives up overlapping
 * products when that is decided at run time. */
template <bool BY_INDEX>
PTX void multiply(const site &s, consumer &c, float (&d)[128], uint32_t blocks, uint32_t by_index)
{
    uint32_t stage = c.stages % 4, phase = c.stages / 4, last = stage;

    await_stage<BY_INDEX>(s, stage, phase, by_index);
    multiply_stage(s, c, d, stage, true);
    stage_advance(stage, phase);
    for (uint32_t i = 1; i < blocks; i++) {
        await_stage<BY_INDEX>(s, stage, phase, by_index);
        multiply_stage(s, c, d, stage, false);
        wgmma_wait<1>();
        barrier_arrive_one(barrier_at(s, BARRIER_STAGE_EMPTY + last));
        last = stage;
        stage_advance(stage, phase);
    }
    wgmma_wait<0>();
    /* Nothing that uses the sums may move above the wait. */
#pragma unroll
    for (int i = 0; i < 128; i++)
        asm volatile("" : "+f"(d[i])::"memory");
    barrier_arrive_one(barrier_at(s, BARRIER_STAGE_EMPTY + last));
    c.stages = stage + 4 * phase;
}

/* ---- the epilogue through staging ---- */

PTX void add_staged(const site &s, const consumer &c, float (&d)[128])
{
#pragma unroll
    for (int i = 0; i < 32; i += 2) {
        uint32_t r[4];

        matrix_load_x4(staging_address(s, c, i), r);
#pragma unroll
        for (int k = 0; k < 4; k++) {
            d[4 * i + 2 * k] += pair_low(r[k]);
            d[4 * i + 2 * k + 1] += pair_high(r[k]);
        }
    }
}

PTX void stage(const site &s, const consumer &c, const float (&d)[128])
{
#pragma unroll
    for (int i = 0; i < 32; i += 2) {
        uint32_t r[4];

#pragma unroll
        for (int k = 0; k < 4; k++)
            r[k] = pair_of(d[4 * i + 2 * k], d[4 * i + 2 * k + 1]);
        matrix_store_x4(staging_address(s, c, i), r);
    }
}

PTX void finish(const site &s, consumer &c, const gpu_task &t, float (&d)[128])
{
    await_staging(s, c);
    for (uint32_t i = 0; i < t.addends; i++) {
        if (i > 0)
            arrive_staged(s, c);
        await_barrier_consumer(s, barrier_at(s, BARRIER_ADDEND + c.group), take_turn(c, TURN_ADDEND));
        add_staged(s, c, d);
    }
    stage(s, c, d);
    fence_proxy_shared();
    arrive_staged(s, c);
}

/* ---- the epilogue by rows: through staging, 16 rows a warp, so that those of another tile stay ---- */

PTX uint4 staged_vector(const site &s, const consumer &c, uint32_t row, uint32_t vector)
{
    const char *at = s.memory + STAGING_AT + c.group * STAGING_BYTES + (vector >> 3) * STAGING_BOX_BYTES;

    return *(const uint4 *)(at + row * 128 + (((vector & 7) ^ (row & 7)) << 4));
}

PTX void store_staged_rows(const site &s, const consumer &c, const gpu_task &t, const matrix &to)
{
    for (uint32_t row = c.warp * 16; row < c.warp * 16 + 16; row++) {
        uint32_t y = c.group * 64 + row;

        if (y < t.m && c.lane * VECTOR < t.n)
            *(uint4 *)vector_address(to, {y, c.lane * VECTOR}) = staged_vector(s, c, row, c.lane);
    }
}

PTX void finish_rows(const site &s, consumer &c, const gpu_task &t, const float (&d)[128])
{
    await_staging(s, c);
    stage(s, c, d);
    __syncwarp();
    for (uint32_t i = 0; i < t.targets; i++)
        store_staged_rows(s, c, t, matrix_at(s, task_target(s, t, i)));
    fence_proxy();
    arrive_staged(s, c);
}

/* ---- the epilogue by elements: 128 columns at a time through staging, 16 rows a warp ---- */

#define HALF_COLS (GPU_TILE_N / 2)

template <int HALF> PTX void finish_half(const site &s, const consumer &c, const gpu_task &t, const float (&d)[128])
{
    float *mine = (float *)(s.memory + STAGING_AT + c.group * STAGING_BYTES) + c.warp * 16 * HALF_COLS;
    uint32_t row = c.group * 64 + c.warp * 16;

#pragma unroll
    for (int i = 0; i < 64; i++)
        mine[(c.lane / 4 + (i & 2) * 4) * HALF_COLS + c.lane % 4 * 2 + i / 4 * 8 + (i & 1)] = d[64 * HALF + i];
    __syncwarp();
    for (uint32_t i = c.lane; i < 16 * HALF_COLS; i += 32) {
        uint32_t y = row + i / HALF_COLS, x = HALF * HALF_COLS + i % HALF_COLS;

        if (y < t.m && x < t.n)
            store_to_all(s, t, y, x, add_addends(s, t, y, x, mine[i]));
    }
    __syncwarp();
}

PTX void finish_direct(const site &s, consumer &c, const gpu_task &t, const float (&d)[128])
{
    await_staging(s, c);
    finish_half<0>(s, c, t, d);
    finish_half<1>(s, c, t, d);
    fence_proxy();
    arrive_staged(s, c);
}

/* Columns [8 i, 8 i + 8) of the result from the gate's and the up projection's sums beside each other. */
PTX void activate(float (&d)[128])
{
#pragma unroll
    for (int i = 0; i < 64; i++)
        d[i] = swiglu(d[i / 4 * 8 + i % 4], d[i / 4 * 8 + 4 + i % 4]);
}

/* Dynamic work alone has an epilogue; with attention beside it no rows by index come through the stages. */
template <bool BY_INDEX, bool DYNAMIC> PTX void multiply_tile(const site &s, consumer &c, const gpu_task &t)
{
    float d[128];

    multiply<BY_INDEX>(s, c, d, t.k, t.by_index);
    if (DYNAMIC && t.epilogue == EPILOGUE_SWIGLU)
        activate(d);
    if (t.kind == GPU_GEMM)
        finish(s, c, t, d);
    else if (t.kind == GPU_GEMM_ROWS)
        finish_rows(s, c, t, d);
    else
        finish_direct(s, c, t, d);
}

/* ---- the role ---- */

/* They have written the results themselves. */
PTX bool consumers_signal(const gpu_task &t)
{
    return t.kind == GPU_GEMM_ROWS || t.kind == GPU_GEMM_DIRECT || t.kind == GPU_GEMM_PLAIN ||
           t.kind == GPU_COPY_PLAIN || t.kind == GPU_REDUCE || t.kind == GPU_REDUCE_PLAIN || t.kind == GPU_ROUTE ||
           t.kind == GPU_GATHER_PLAIN || is_combine(t);
}

/* What kernels without dynamic work do not have. */
PTX void consume_dynamic(const site &s, const gpu_task &t, uint32_t thread)
{
    if (t.kind == GPU_GATHER_PLAIN)
        gather_plain(s, t, thread);
    else if (is_combine(t))
        combine_task(s, t, thread);
    else if (t.kind == GPU_ROUTE)
        route_task(s, t, thread);
}

/* Called, for its registers and the products' would not fit together. */
template <bool DYNAMIC>
static __device__ __noinline__ void consume_plain(const site s, const gpu_task &t, uint32_t thread)
{
    if (t.kind == GPU_REDUCE)
        reduce_task(s, t, thread);
    else if (t.kind == GPU_GEMM_PLAIN || t.kind == GPU_COPY_PLAIN || t.kind == GPU_REDUCE_PLAIN)
        plain_task<DYNAMIC>(s, t, thread);
    else if (DYNAMIC)
        consume_dynamic(s, t, thread);
}

template <bool ATTENDS, bool DYNAMIC> PTX void consume(const site &s, consumer &c, const gpu_task &t, uint32_t slot)
{
    if (uses_tiles(t))
        multiply_tile<DYNAMIC && !ATTENDS, DYNAMIC>(s, c, t);
    else if (ATTENDS && is_attention(t))
        attend(s, c, t, slot);
    else
        consume_plain<DYNAMIC>(s, t, c.thread);
    if (consumers_signal(t) && !someone_left(s))
        signal_plain(s, t, c.thread);
}

template <bool ATTENDS, bool DYNAMIC> PTX void run_consumer(const site &s)
{
    consumer c = {};
    ring r = {0, 0};

    for (;;) {
        consumer_identify(c);
        await_barrier_consumer(s, barrier_at(s, BARRIER_TASK_FULL + r.slot), r.phase);
        const gpu_task &t = ring_task(s, r);

        if (t.kind == GPU_END || someone_left(s))
            return;
        record_consumers_begin(s, t, c.thread);
        consume<ATTENDS, DYNAMIC>(s, c, t, r.slot);
        record_consumers_end(s, t, c.thread);
        __syncwarp();
        barrier_arrive_one(barrier_at(s, BARRIER_TASK_EMPTY + r.slot));
        ring_advance(s, r);
    }
}

#endif
