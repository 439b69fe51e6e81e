/* An attention's result: merged with what a task before has left; out by way of the storer, or, where a
 * tile is cut short, by the consumers themselves.
 *
 * What is f32 comes and goes through staging, in boxes of 32 columns, of which a thread has 8 bytes here
 * and there. */
#ifndef BACKENDS_CUDA_ATTENTION_RESULT_CUH
#define BACKENDS_CUDA_ATTENTION_RESULT_CUH

#include "backends/cuda/attention_fetch.cuh"
#include "backends/cuda/attention_weights.cuh"

#define ROWS_COLS 32 /* of a box in f32 */

PTX uint32_t first_row_of_warp(const consumer &c)
{
    return c.group * 64 + c.warp * 16;
}

/* Columns 2 i and 2 i + 1 of a row of the warp. */
PTX float2 *staged_pair(const site &s, const consumer &c, uint32_t row, uint32_t i)
{
    uint32_t box = i / (ROWS_COLS / 2), chunk = i % (ROWS_COLS / 2) / 2 ^ (row & 7);
    char *at = s.memory + STAGING_AT + c.group * STAGING_BYTES + box * STAGING_BOX_BYTES;

    return (float2 *)(at + (c.warp * 16 + row) * 128 + chunk * 16) + i % 2;
}

/* This thread's pair number i, as the matrix units deal them, for every second row number i ^ 4: rows 2 i and
 * 2 i + 1 have the same columns in the same banks. */
PTX float2 *own_pair(const site &s, const consumer &c, int i)
{
    return staged_pair(s, c, c.lane / 4 + 8 * (i & 1), (i / 2 * 4 + c.lane % 4) ^ (c.lane & 4) * 2);
}

/* Numbers i and i + 4 in order, or back. */
PTX void order_pairs(const consumer &c, float2 &x, float2 &y)
{
    bool swapped = (c.lane & 4) != 0;
    float2 first = swapped ? y : x;

    y = swapped ? x : y;
    x = first;
}

/* ---- from the task before ---- */

PTX bool continues(const gpu_task &t)
{
    return t.addends > 2;
}

/* Of this thread's queries. */
PTX void load_log_sums(const consumer &c, const gpu_task &t, const feed_matrix &from, float (&log_sum)[2])
{
#pragma unroll
    for (int h = 0; h < 2; h++) {
        uint32_t row = first_row_of_warp(c) + c.lane / 4 + 8 * h;

        if (row < t.m)
            log_sum[h] = __ldcg((const float *)from.address + (uint64_t)row * from.ld);
    }
}

/* It is as good as a block whose weights, relative to the log-sum-exp, sum to 1.  Returns what the result
 * is to be multiplied by, and its share in `share`. */
PTX float merge_sums(float log_sum, float &highest, float &sum, float &share)
{
    float before = fmaxf(log_sum * LOG2_E, LOWEST), top = fmaxf(before, highest);
    float by = power_of_2(highest - top);

    share = log_sum == MINUS_INFINITY ? 0 : power_of_2(before - top);
    highest = top;
    sum = sum * by + share;
    return by;
}

PTX float inverse(float sum)
{
    return sum > 0 ? __fdividef(1, sum) : 0;
}

PTX void add_pair(float *sum, float by, const float2 &v, float share)
{
    sum[0] = sum[0] * by + v.x * share;
    sum[1] = sum[1] * by + v.y * share;
}

/* The storer has brought it into staging meanwhile. */
template <int D> PTX void merge_before(const site &s, consumer &c, const float (&log_sum)[2], attending<D> &a)
{
    float by[2], share[2];

#pragma unroll
    for (int h = 0; h < 2; h++) {
        a.sum[h] = quad_sum(a.sum[h]);
        by[h] = merge_sums(log_sum[h], a.highest[h], a.sum[h], share[h]);

        float over = inverse(a.sum[h]);

        by[h] *= over;
        share[h] *= over;
    }
    await_barrier_consumer(s, barrier_at(s, BARRIER_ADDEND + c.group), take_turn(c, TURN_ADDEND));
#pragma unroll
    for (int n = 0; n < D / 8; n++) {
        int i = n / 4 * 8 + n % 4;
        float2 x = *own_pair(s, c, i), y = *own_pair(s, c, i + 4);

        order_pairs(c, x, y);
        add_pair(a.result + 2 * i, by[i & 1], x, share[i & 1]);
        add_pair(a.result + 2 * i + 8, by[i & 1], y, share[i & 1]);
    }
    __syncwarp(); /* before others of the warp write there */
}

template <int D> PTX void divide(attending<D> &a)
{
    float by[2];

#pragma unroll
    for (int h = 0; h < 2; h++) {
        a.sum[h] = quad_sum(a.sum[h]);
        by[h] = inverse(a.sum[h]);
    }
#pragma unroll
    for (int i = 0; i < D / 2; i++)
        a.result[i] *= by[i / 2 & 1];
}

/* ---- to memory ---- */

template <int D> PTX void stage_narrow(const site &s, const consumer &c, const attending<D> &a)
{
#pragma unroll
    for (int i = 0; i < D / 8; i += 2) {
        uint32_t r[4];

#pragma unroll
        for (int k = 0; k < 4; k++)
            r[k] = pair_of(a.result[4 * i + 2 * k], a.result[4 * i + 2 * k + 1]);
        matrix_store_x4(staging_address(s, c, i), r);
    }
}

template <int D> PTX void stage_wide(const site &s, const consumer &c, const attending<D> &a)
{
#pragma unroll
    for (int n = 0; n < D / 8; n++) {
        int i = n / 4 * 8 + n % 4;
        float2 x = {a.result[2 * i], a.result[2 * i + 1]}, y = {a.result[2 * i + 8], a.result[2 * i + 9]};

        order_pairs(c, x, y);
        *own_pair(s, c, i) = x;
        *own_pair(s, c, i + 4) = y;
    }
}

/* To columns [col, col + 64). */
PTX void store_rows(const site &s, const consumer &c, const gpu_task &t, const feed_matrix &to, uint32_t col)
{
    uint32_t first = first_row_of_warp(c), rows = t.m > first ? min(t.m - first, 16u) : 0;

    for (uint32_t i = 0; i < rows; i++) {
        uint64_t at = (uint64_t)(first + i) * to.ld + col + 2 * c.lane;
        float2 v = *staged_pair(s, c, i, col / 2 + c.lane);

        if (to.is_wide)
            *(float2 *)((float *)to.address + at) = v;
        else
            *(uint32_t *)((unsigned short *)to.address + at) = pair_of(v.x, v.y);
    }
}

/* What has been staged, by its warp. */
template <int D> PTX void store_by_rows(const site &s, const consumer &c, const gpu_task &t, const attention_feed &f)
{
    __syncwarp();
    for (uint32_t i = 0; i < t.targets; i++)
        for (uint32_t col = 0; col < D; col += 64)
            store_rows(s, c, t, i == 0 ? f.result : feed_matrix_of(s, task_target(s, t, i)), col);
}

template <int D>
PTX void store_log_sums(const consumer &c, const gpu_task &t, const feed_matrix &to, const attending<D> &a)
{
#pragma unroll
    for (int h = 0; h < 2; h++) {
        uint32_t row = first_row_of_warp(c) + c.lane / 4 + 8 * h;

        if (row < t.m && c.lane % 4 == 0)
            ((float *)to.address)[(uint64_t)row * to.ld] = (a.highest[h] + __log2f(a.sum[h])) * LN_2;
    }
}

template <int D>
PTX void finish(const site &s, consumer &c, const gpu_task &t, const attention_feed &f, attending<D> &a)
{
    if (t.kind == GPU_ATTENTION && !f.result.is_wide)
        stage_narrow(s, c, a);
    else
        stage_wide(s, c, a);
    if (t.kind == GPU_ATTENTION)
        fence_proxy_shared();
    else
        store_by_rows<D>(s, c, t, f);
    if (f.leaves)
        store_log_sums(c, t, f.lse, a);
    arrive_staged(s, c); /* the storer has the fence for all */
}

#endif
