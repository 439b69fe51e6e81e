/* Where an attention's result begins and ends: afresh or from what a task before has left; as a tile of
 * bf16 by way of the storer, or element by element. */
#ifndef BACKENDS_CUDA_ATTENTION_RESULT_CUH
#define BACKENDS_CUDA_ATTENTION_RESULT_CUH

#include "backends/cuda/attention_fetch.cuh"
#include "backends/cuda/attention_weights.cuh"

/* What the task before left is as good as one block whose weights, relative to the log-sum-exp, sum
 * to 1. */
template <int D> PTX void take_up(const consumer &c, const gpu_task &t, const attention_feed &f, attending<D> &a)
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

template <int D> PTX void begin(const site &s, const consumer &c, const gpu_task &t, uint32_t slot, attending<D> &a)
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

template <int D> PTX void store_rows(const feed_matrix &to, const consumer &c, const gpu_task &t, const attending<D> &a)
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
            ((float *)f.lse.address)[(uint64_t)row * f.lse.ld] = (a.highest[h] + __log2f(a.sum[h])) * LN_2;
    }
}

template <int D> PTX void finish(const site &s, consumer &c, const gpu_task &t, uint32_t slot, attending<D> &a)
{
    divide(a);
    await_staging(s, c);
    if (t.kind == GPU_ATTENTION)
        stage_result(s, c, a);
    else
        store_direct(s, c, t, feed_at(s, slot), a); /* the storer has the fence for all */
    arrive_staged(s, c);
}

#endif
