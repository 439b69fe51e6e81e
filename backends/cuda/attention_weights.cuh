/* What a consumer's thread keeps of an attention, and how scores become weights.
 *
 * Weights are powers of 2 relative to a score of the row that was the highest at some time, and so are
 * the sums and the result (Milakov and Gimelshein, Online normalizer calculation for softmax, 2018).
 * Any such score does as long as nothing overflows, since floating point rounds large numbers no worse
 * than small ones.  So nobody looks for a maximum: weights that have grown show in their sum, and only
 * then is the reference raised and the block weighed again, from scores that are still there. */
#ifndef BACKENDS_CUDA_ATTENTION_WEIGHTS_CUH
#define BACKENDS_CUDA_ATTENTION_WEIGHTS_CUH

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
    float highest[2];                               /* scaled score that weights are relative to */
    float sum[2];                                   /* of this thread's weights */
};

/* Scores are scaled by the root of D and to powers of 2. */
template <int D> PTX constexpr float score_scale(void)
{
    return D == 128 ? LOG2_E * 0.0883883476f : LOG2_E * 0.125f;
}

PTX uint32_t first_query_of_warp(void)
{
    return (thread_index() / 32 - CONSUMER_WARP) * 16;
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

/* Of a block; the lanes agree. */
template <int D> PTX void mask(const key_block &block, attending<D> &a)
{
    int32_t keys = (int32_t)block.keys - 1, ahead = (int32_t)block.ahead;
    int32_t row = (int32_t)first_query_of_warp();

    if (min(keys, row - ahead) >= GPU_KEYS - 1)
        return;

    uint32_t lane = thread_index() % 32;
    int32_t last[2] = {min(keys, row + (int32_t)lane / 4 - ahead), min(keys, row + (int32_t)lane / 4 + 8 - ahead)};

#pragma unroll
    for (int i = 0; i < GPU_KEYS / 2; i++)
        if ((int32_t)(i / 4 * 8 + (i & 1) + lane % 4 * 2) > last[i / 2 & 1])
            a.scores[i] = MINUS_INFINITY;
}

/* To the rows' highest score so far; what is relative to the old reference follows. */
template <int D> PTX void raise(attending<D> &a)
{
    float top[2] = {a.scores[0], a.scores[2]}, shrink[2];

#pragma unroll
    for (int i = 0; i < GPU_KEYS / 2; i++)
        top[i / 2 & 1] = fmaxf(top[i / 2 & 1], a.scores[i]);
#pragma unroll
    for (int h = 0; h < 2; h++) {
        top[h] = fmaxf(quad_max(top[h]) * score_scale<D>(), a.highest[h]);
        shrink[h] = power_of_2(a.highest[h] - top[h]);
        a.highest[h] = top[h];
        a.sum[h] *= shrink[h];
    }
#pragma unroll
    for (int i = 0; i < D / 2; i++)
        a.result[i] *= shrink[i / 2 & 1];
}

/* Scores become weights; returns this thread's sums of them. */
template <int D> PTX float2 weigh_scores(attending<D> &a)
{
    float sum[2] = {0, 0};

#pragma unroll
    for (int i = 0; i < GPU_KEYS / 4; i++) {
        int h = i & 1;
        float x = power_of_2(fmaf(a.scores[2 * i], score_scale<D>(), -a.highest[h]));
        float y = power_of_2(fmaf(a.scores[2 * i + 1], score_scale<D>(), -a.highest[h]));

        sum[h] += x;
        sum[h] += y;
        a.weights[i] = pair_of(x, y);
    }
    return {sum[0], sum[1]};
}

template <int D> PTX void add_sums(const float2 &sum, attending<D> &a)
{
    a.sum[0] += sum.x;
    a.sum[1] += sum.y;
}

/* Of a block behind which the reference has just been raised. */
template <int D> PTX void weigh(attending<D> &a)
{
    add_sums(weigh_scores(a), a);
}

#define SUM_MAX 65536.0f /* of a thread's weights in a block: far from overflow, yet seldom reached */

/* No products are under way: a new reference changes the result. */
template <int D> PTX void weigh_or_raise(attending<D> &a)
{
    float2 sum = weigh_scores(a);

    if (__any_sync(ALL_LANES, !(sum.x <= SUM_MAX && sum.y <= SUM_MAX))) { /* NaN is not, either */
        raise(a);
        sum = weigh_scores(a);
    }
    add_sums(sum, a);
}

#endif
