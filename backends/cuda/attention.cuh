/* The consumers' part of an attention: each warpgroup has 64 queries, in registers, and meets the
 * keys in blocks, keeping for each query a running maximum, sum and result (Milakov and Gimelshein,
 * Online normalizer calculation for softmax, 2018; Dao, FlashAttention-2, 2023).
 *
 * While the weights of a block are computed, the products of the block before with its values are
 * under way, and then this block's; so the matrix units work during most of the exponentials, and
 * the other warpgroup fills in. */
#ifndef BACKENDS_CUDA_ATTENTION_CUH
#define BACKENDS_CUDA_ATTENTION_CUH

#include "backends/cuda/attention_fetch.cuh"
#include "backends/cuda/attention_wgmma.cuh"
#include "backends/cuda/consumer.cuh"

#define MINUS_INFINITY __int_as_float(0xff800000)
#define LOWEST (-1e30f) /* in the place of minus infinity, where a difference is taken */
#define LOG2_E 1.44269504f
#define LN_2 0.693147181f

/* A thread has two queries: rows lane / 4 and lane / 4 + 8 of its warp's 16, of every 8 columns two.
 */
template <int D> struct attending {
    float scores[GPU_KEYS / 2], result[D / 2];
    uint32_t weights[GPU_KEYS / 4], queries[D / 4]; /* pairs of bf16 */
    float highest[2]; /* scaled score that weights are relative to */
    float sum[2];     /* of this thread's weights */
    float shrink[2];  /* what the result is to be multiplied by */
    bool shrinks;
};

/* Scores are scaled by the root of D and to powers of 2. */
template <int D> PTX constexpr float score_scale(void)
{
    return D == 128 ? LOG2_E * 0.0883883476f : LOG2_E * 0.125f;
}

/* Nothing that uses the registers may move above the wait that precedes this. */
template <int N> PTX void hold(float (&x)[N])
{
#pragma unroll
    for (int i = 0; i < N; i++)
        asm volatile("" : "+f"(x[i])::"memory");
}

PTX uint32_t first_query_of_warp(void)
{
    return (thread_index() / 32 - CONSUMER_WARP) * 16;
}

/* ---- queries ---- */

template <int D> PTX void load_queries(const site &s, consumer &c, attending<D> &a)
{
    await_barrier_consumer(s, barrier_at(s, BARRIER_QUERIES_FULL), take_turn(c, TURN_QUERIES));
#pragma unroll
    for (int i = 0; i < D / 16; i++) {
        uint32_t r[4];

        matrix_load_x4(staging_address(s, c, QUERIES_BOX * 8 + 2 * i), r);
#pragma unroll
        for (int k = 0; k < 4; k++)
            a.queries[4 * i + k] = r[k];
    }
}

/* ---- products ---- */

/* Once the next block of keys has arrived. */
template <int D> PTX void multiply_keys(const site &s, const consumer &c, attending<D> &a)
{
    uint32_t at = panel_of(c.keys);
    uint64_t keys = wgmma_operand(s.shared + at * PANEL_BYTES);

    await_barrier_consumer(s, barrier_at(s, BARRIER_KEYS_FULL + at), panel_phase(c.keys));
    wgmma_fence();
    wgmma_keys_start(a.scores, a.queries, keys);
#pragma unroll
    for (int i = 1; i < D / 16; i++) /* 16 columns are 32 bytes, in units of 16 */
        wgmma_keys_add(a.scores, a.queries + 4 * i, keys + i / 4 * (PANEL_BYTES / 16) + i % 4 * 2);
    wgmma_commit();
}

/* Rows behind the keys belong to somebody else; a weight of 0 does not help against a NaN there.  So
 * every warp writes zeros over all of them, and need not wait for another. */
template <int D> PTX void clear_tail(const site &s, const panel_ring &values, uint32_t keys)
{
    uint4 *at = (uint4 *)(s.memory + VALUES_AT + panel_of(values) * PANEL_BYTES);

    for (uint32_t panel = 0; panel < D / 64; panel++)
        for (uint32_t i = keys * 8 + thread_index() % 32; i < GPU_KEYS * 8; i += 32)
            at[panel * (PANEL_BYTES / 16) + i] = {0, 0, 0, 0};
    fence_proxy_shared();
    __syncwarp();
}

/* Once the values of the block have arrived. */
template <int D> PTX void multiply_values(const site &s, const panel_ring &values, attending<D> &a)
{
    uint32_t at = panel_of(values), keys;
    uint64_t operand = wgmma_operand_rows(s.shared + VALUES_AT + at * PANEL_BYTES, PANEL_BYTES);

    await_barrier_consumer(s, barrier_at(s, BARRIER_VALUES_FULL + at), panel_phase(values));
    keys = *value_count_at(s, values);
    if (keys < GPU_KEYS)
        clear_tail<D>(s, values, keys);
    wgmma_fence();
#pragma unroll
    for (int i = 0; i < GPU_KEYS / 16; i++) /* 16 rows of 128 bytes, in units of 16 */
        wgmma_values_add(a.result, a.weights + 4 * i, operand + i * 128);
    wgmma_commit();
}

/* ---- weights ---- */

/* Of a block; the lanes agree. */
template <int D> PTX void mask(const key_block &block, attending<D> &a)
{
    int32_t keys = (int32_t)block.keys - 1, ahead = (int32_t)block.ahead;
    int32_t row = (int32_t)first_query_of_warp();

    if (min(keys, row - ahead) >= GPU_KEYS - 1)
        return;

    uint32_t lane = thread_index() % 32;
    int32_t last[2] = {min(keys, row + (int32_t)lane / 4 - ahead),
                       min(keys, row + (int32_t)lane / 4 + 8 - ahead)};

#pragma unroll
    for (int i = 0; i < GPU_KEYS / 2; i++)
        if ((int32_t)(i / 4 * 8 + (i & 1) + lane % 4 * 2) > last[i / 2 & 1])
            a.scores[i] = MINUS_INFINITY;
}

PTX float quad_max(float x)
{
    x = fmaxf(x, __shfl_xor_sync(ALL_LANES, x, 1));
    return fmaxf(x, __shfl_xor_sync(ALL_LANES, x, 2));
}

PTX float quad_sum(float x)
{
    x += __shfl_xor_sync(ALL_LANES, x, 1);
    return x + __shfl_xor_sync(ALL_LANES, x, 2);
}

PTX float power_of_2(float x)
{
    float r;

    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
    return r;
}

#define GROWTH_BITS 8 /* of weights, before everything is made relative to a new maximum */

template <int D> PTX void raise(attending<D> &a)
{
    float top[2] = {a.scores[0], a.scores[2]}, other[2] = {a.scores[1], a.scores[3]};

#pragma unroll
    for (int i = 4; i < GPU_KEYS / 2; i += 4) {
        top[0] = fmaxf(top[0], a.scores[i]);
        other[0] = fmaxf(other[0], a.scores[i + 1]);
        top[1] = fmaxf(top[1], a.scores[i + 2]);
        other[1] = fmaxf(other[1], a.scores[i + 3]);
    }
#pragma unroll
    for (int h = 0; h < 2; h++)
        top[h] = quad_max(fmaxf(top[h], other[h])) * score_scale<D>();
    a.shrinks = __any_sync(ALL_LANES, top[0] - a.highest[0] > GROWTH_BITS ||
                                          top[1] - a.highest[1] > GROWTH_BITS);
    if (!a.shrinks)
        return;
#pragma unroll
    for (int h = 0; h < 2; h++) {
        top[h] = fmaxf(top[h], a.highest[h]);
        a.shrink[h] = power_of_2(a.highest[h] - top[h]);
        a.highest[h] = top[h];
        a.sum[h] *= a.shrink[h];
    }
}

/* Scores become weights. */
template <int D> PTX void weigh(attending<D> &a)
{
    float sum[2] = {0, 0};

    raise(a);
#pragma unroll
    for (int i = 0; i < GPU_KEYS / 2; i++) {
        int h = i / 2 & 1;

        a.scores[i] = power_of_2(fmaf(a.scores[i], score_scale<D>(), -a.highest[h]));
        sum[h] += a.scores[i];
    }
    a.sum[0] += sum[0];
    a.sum[1] += sum[1];
}

/* Scores are there: they become weights, and the keys' panels are handed back. */
template <int D> PTX void take_keys(const site &s, consumer &c, attending<D> &a)
{
    mask(*key_block_at(s, c.keys), a);
    barrier_arrive_one(barrier_at(s, BARRIER_KEYS_EMPTY + panel_of(c.keys)));
    panels_advance(c.keys, D / 64);
    weigh(a);
}

PTX void release_values(const site &s, const panel_ring &values)
{
    barrier_arrive_one(barrier_at(s, BARRIER_VALUES_EMPTY + panel_of(values)));
}

/* The products that used the last weights and the result are over. */
template <int D> PTX void settle(attending<D> &a)
{
    if (a.shrinks) {
#pragma unroll
        for (int i = 0; i < D / 2; i++)
            a.result[i] *= a.shrink[i / 2 & 1];
    }
#pragma unroll
    for (int i = 0; i < GPU_KEYS / 4; i++)
        a.weights[i] = pair_of(a.scores[2 * i], a.scores[2 * i + 1]);
}

/* ---- where it begins and ends ---- */

template <int D> PTX void start_afresh(attending<D> &a)
{
#pragma unroll
    for (int i = 0; i < D / 2; i++)
        a.result[i] = 0;
#pragma unroll
    for (int h = 0; h < 2; h++) {
        a.highest[h] = LOWEST;
        a.sum[h] = 0;
    }
}

/* What the task before left is as good as one block whose weights, relative to the log-sum-exp, sum
 * to 1. */
template <int D>
PTX void take_up(const consumer &c, const gpu_task &t, const attention_feed &f, attending<D> &a)
{
#pragma unroll
    for (int h = 0; h < 2; h++) {
        uint32_t row = c.group * 64 + c.warp * 16 + c.lane / 4 + 8 * h;
        const float *before = (const float *)f.before.address + (uint64_t)row * f.before.ld;
        float log_sum;

        if (row >= t.m)
            continue;
        log_sum = __ldcg((const float *)f.lse.address + (uint64_t)row * f.lse.ld);
        a.highest[h] = fmaxf(log_sum * LOG2_E, LOWEST);
        a.sum[h] = c.lane % 4 == 0 && log_sum != MINUS_INFINITY;
#pragma unroll
        for (int i = 0; i < D / 8; i++) {
            float2 v = __ldcg((const float2 *)(before + 8 * i) + c.lane % 4);

            a.result[4 * i + 2 * h] = v.x;
            a.result[4 * i + 2 * h + 1] = v.y;
        }
    }
}

template <int D>
PTX void begin(const site &s, const consumer &c, const gpu_task &t, uint32_t slot, attending<D> &a)
{
    start_afresh(a);
    if (t.addends > 2)
        take_up(c, t, feed_at(s, slot), a);
}

template <int D> PTX void divide(attending<D> &a)
{
    float by[2];

#pragma unroll
    for (int h = 0; h < 2; h++) {
        a.sum[h] = quad_sum(a.sum[h]);
        by[h] = a.sum[h] > 0 ? 1 / a.sum[h] : 0;
    }
#pragma unroll
    for (int i = 0; i < D / 2; i++)
        a.result[i] *= by[i / 2 & 1];
}

template <int D> PTX void stage_result(const site &s, const consumer &c, const attending<D> &a)
{
#pragma unroll
    for (int i = 0; i < D / 8; i += 2) {
        uint32_t r[4];

#pragma unroll
        for (int k = 0; k < 4; k++)
            r[k] = pair_of(a.result[4 * i + 2 * k], a.result[4 * i + 2 * k + 1]);
        matrix_store_x4(staging_address(s, c, i), r);
    }
    fence_proxy_shared();
}

template <int D>
PTX void store_rows(const feed_matrix &to, const consumer &c, const gpu_task &t,
                    const attending<D> &a)
{
#pragma unroll
    for (int h = 0; h < 2; h++) {
        uint32_t row = c.group * 64 + c.warp * 16 + c.lane / 4 + 8 * h;

        if (row >= t.m)
            continue;
#pragma unroll
        for (int i = 0; i < D / 8; i++) {
            uint64_t at = (uint64_t)row * to.ld + 8 * i + c.lane % 4 * 2;
            float x = a.result[4 * i + 2 * h], y = a.result[4 * i + 2 * h + 1];

            if (to.is_wide)
                *(float2 *)((float *)to.address + at) = {x, y};
            else
                *(uint32_t *)((unsigned short *)to.address + at) = pair_of(x, y);
        }
    }
}

template <int D>
PTX void store_direct(const site &s, const consumer &c, const gpu_task &t, const attention_feed &f,
                      const attending<D> &a)
{
    for (uint32_t i = 0; i < t.targets; i++)
        store_rows(i == 0 ? f.result : feed_matrix_of(s, task_target(s, t, i)), c, t, a);
    if (t.addends < 2 || !f.leaves || c.lane % 4 != 0)
        return;
#pragma unroll
    for (int h = 0; h < 2; h++) {
        uint32_t row = c.group * 64 + c.warp * 16 + c.lane / 4 + 8 * h;

        if (row < t.m)
            ((float *)f.lse.address)[(uint64_t)row * f.lse.ld] =
                (a.highest[h] + __log2f(a.sum[h])) * LN_2;
    }
}

template <int D>
PTX void finish(const site &s, consumer &c, const gpu_task &t, uint32_t slot, attending<D> &a)
{
    divide(a);
    await_staging(s, c);
    if (t.kind == GPU_ATTENTION)
        stage_result(s, c, a);
    else
        store_direct(s, c, t, feed_at(s, slot), a); /* the storer has the fence for all */
    arrive_staged(s, c);
}

/* ---- all of it ---- */

template <int D>
PTX void attend_blocks(const site &s, consumer &c, const gpu_task &t, uint32_t slot)
{
    uint32_t blocks = __reduce_max_sync(ALL_LANES, t.k);
    attending<D> a;

    panels_align(c.keys, D / 64);
    load_queries(s, c, a);
    multiply_keys(s, c, a);
    begin(s, c, t, slot, a);
    wgmma_wait<0>();
    hold(a.scores);
    barrier_arrive_one(barrier_at(s, BARRIER_QUERIES_EMPTY));
    take_keys(s, c, a);
    settle(a);
    while (--blocks > 0) {
        multiply_keys(s, c, a);
        multiply_values(s, panels_before(c.keys, D / 64), a);
        wgmma_wait<1>();
        hold(a.scores);
        take_keys(s, c, a);
        hold(a.scores);
        wgmma_wait<0>();
        hold(a.result);
        release_values(s, panels_before(panels_before(c.keys, D / 64), D / 64));
        settle(a);
    }
    multiply_values(s, panels_before(c.keys, D / 64), a);
    wgmma_wait<0>();
    hold(a.result);
    release_values(s, panels_before(c.keys, D / 64));
    consumer_identify(c);
    finish(s, c, t, slot, a);
}

PTX void attend(const site &s, consumer &c, const gpu_task &t, uint32_t slot)
{
    if (t.n == 128)
        attend_blocks<128>(s, c, t, slot);
    else
        attend_blocks<64>(s, c, t, slot);
}

#endif
