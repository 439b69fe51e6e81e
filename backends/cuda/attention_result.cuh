/* An attention's result: merged with what a task before has left; out as a tile of bf16 by way of the
 * storer, or, where it is f32, left to a task to come, or a tile cut short, by the consumers themselves.
 *
 * A thread has 8 bytes here and there of two rows.  What stands row-major in memory goes through
 * staging, so that a warp moves rows in one piece. */
#ifndef BACKENDS_CUDA_ATTENTION_RESULT_CUH
#define BACKENDS_CUDA_ATTENTION_RESULT_CUH

#include "backends/cuda/attention_fetch.cuh"
#include "backends/cuda/attention_weights.cuh"

/* ---- rows in staging: a warp's 16, of 64 columns in f32, in the place of the rows of its result ---- */

#define ROWS_COLS 64

PTX uint32_t first_row_of_warp(const consumer &c)
{
    return c.group * 64 + c.warp * 16;
}

/* Columns 2 i and 2 i + 1: one half of a row in each of two boxes.  Units of 16 bytes are swapped from row to
 * row, against bank conflicts. */
PTX float2 *staged_pair(const site &s, const consumer &c, uint32_t row, uint32_t i)
{
    uint32_t box = i / 16, unit = i % 16 / 2 ^ (row & 3) << 1;
    char *at = s.memory + STAGING_AT + c.group * STAGING_BYTES + box * STAGING_BOX_BYTES;

    return (float2 *)(at + (c.warp * 16 + row) * 128 + unit * 16) + i % 2;
}
static_assert(QUERIES_BOX >= 2, "the queries stay");

/* This thread's pair number i of 16, as the matrix units deal them. */
PTX float2 *own_pair(const site &s, const consumer &c, int i)
{
    return staged_pair(s, c, c.lane / 4 + 8 * (i & 1), i / 2 * 4 + c.lane % 4);
}

/* ---- from the task before ---- */

PTX bool continues(const gpu_task &t)
{
    return t.addends > 2;
}

/* What it has left, 64 columns at a time, as they stand in memory: each lane two columns of all rows of its
 * warp. */
struct rows_before {
    float2 pairs[16];
    float log_sum[2]; /* of this thread's queries */
};

PTX void load_rows(const consumer &c, const gpu_task &t, const feed_matrix &from, uint32_t col, rows_before &b)
{
    uint32_t first = first_row_of_warp(c);
    uint64_t address = from.address;

    asm volatile("" : "+l"(address)); /* or the rows' addresses are kept, for which there are no registers */

    const float *at = (const float *)address + (uint64_t)first * from.ld + col + 2 * c.lane;

#pragma unroll
    for (int i = 0; i < 16; i++, at += from.ld)
        b.pairs[i] = first + i < t.m ? __ldcg((const float2 *)at) : float2{0, 0};
}

PTX void load_log_sums(const consumer &c, const gpu_task &t, const feed_matrix &from, rows_before &b)
{
#pragma unroll
    for (int h = 0; h < 2; h++) {
        uint32_t row = first_row_of_warp(c) + c.lane / 4 + 8 * h;

        b.log_sum[h] = MINUS_INFINITY;
        if (row < t.m)
            b.log_sum[h] = __ldcg((const float *)from.address + (uint64_t)row * from.ld);
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
    sum = sum * by + (thread_index() % 4 == 0 ? share : 0); /* one of four that are added later */
    return by;
}

template <int D>
PTX void merge_before(const site &s, const consumer &c, const gpu_task &t, const feed_matrix &from, rows_before &b,
                      attending<D> &a)
{
    float by[2], share[2];

#pragma unroll
    for (int h = 0; h < 2; h++)
        by[h] = merge_sums(b.log_sum[h], a.highest[h], a.sum[h], share[h]);
#pragma unroll
    for (int first = 0; first < D / 2; first += ROWS_COLS / 2) {
#pragma unroll
        for (int i = 0; i < 16; i++)
            *staged_pair(s, c, i, c.lane) = b.pairs[i];
        if (first + ROWS_COLS / 2 < D / 2)
            load_rows(c, t, from, 2 * first + ROWS_COLS, b);
        __syncwarp();
#pragma unroll
        for (int i = 0; i < 16; i++) {
            float2 v = *own_pair(s, c, i);
            float *mine = a.result + first + 2 * i;

            mine[0] = mine[0] * by[i & 1] + v.x * share[i & 1];
            mine[1] = mine[1] * by[i & 1] + v.y * share[i & 1];
        }
        __syncwarp();
    }
}

/* ---- to memory ---- */

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

/* To columns [col, col + 64). */
PTX void store_rows(const site &s, const consumer &c, const gpu_task &t, const feed_matrix &to, uint32_t col)
{
    uint32_t first = first_row_of_warp(c), rows = t.m > first ? min(t.m - first, 16u) : 0;

#pragma unroll
    for (uint32_t i = 0; i < 16; i++) {
        uint64_t at = (uint64_t)(first + i) * to.ld + col + 2 * c.lane;
        float2 v = *staged_pair(s, c, i, c.lane);

        if (i >= rows)
            continue;
        if (to.is_wide)
            *(float2 *)((float *)to.address + at) = v;
        else
            *(uint32_t *)((unsigned short *)to.address + at) = pair_of(v.x, v.y);
    }
}

template <int D>
PTX void store_by_rows(const site &s, const consumer &c, const gpu_task &t, const attention_feed &f,
                       const attending<D> &a)
{
#pragma unroll
    for (int first = 0; first < D / 2; first += ROWS_COLS / 2) {
#pragma unroll
        for (int i = 0; i < 16; i++)
            *own_pair(s, c, i) = {a.result[first + 2 * i], a.result[first + 2 * i + 1]};
        __syncwarp();
        for (uint32_t i = 0; i < t.targets; i++)
            store_rows(s, c, t, i == 0 ? f.result : feed_matrix_of(s, task_target(s, t, i)), 2 * first);
        __syncwarp();
    }
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
    divide(a);
    if (t.kind == GPU_ATTENTION) {
        stage_result(s, c, a);
    } else { /* the storer has the fence for all */
        store_by_rows(s, c, t, f, a);
        if (t.addends > 1 && f.leaves)
            store_log_sums(c, t, f.lse, a);
    }
    arrive_staged(s, c);
}

#endif
