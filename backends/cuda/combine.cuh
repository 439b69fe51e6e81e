/* OP_COMBINE_ROWS by the consumers: a warp a row; f32 sums in the order of the terms, one rounding.
 */
#ifndef BACKENDS_CUDA_COMBINE_CUH
#define BACKENDS_CUDA_COMBINE_CUH

#include "backends/cuda/indexed.cuh"
#include "backends/cuda/plain.cuh"

struct term {
    uint64_t from; /* address of a row; 0: none */
    float weight;
};

PTX term term_at(const site &s, const gpu_task &t, uint32_t row, uint32_t i)
{
    const gpu_matrix w = task_selects(s, t)[INDEX_WEIGHTS].matrix;
    int32_t value = __ldcg((const int32_t *)index_address(s, t, row, i));
    float weight = 1;

    if (value == INDEX_DROPPED)
        return {0, 0};
    if (w.view != GPU_NO_VIEW)
        weight = load_element(matrix_of(s, w.view, w.row + row, w.col + i), 0);
    return {source_address(s, t, (uint32_t)value), weight};
}

/* ---- 16 bytes at a time: each lane finds out about a term ---- */

#define COMBINE_BATCH 8 /* terms under way */

PTX void add_term(float (&sum)[VECTOR], const uint4 &v, float weight)
{
    const uint32_t pairs[4] = {v.x, v.y, v.z, v.w};

#pragma unroll
    for (int i = 0; i < 4; i++) {
        sum[2 * i] = fmaf(weight, pair_low(pairs[i]), sum[2 * i]);
        sum[2 * i + 1] = fmaf(weight, pair_high(pairs[i]), sum[2 * i + 1]);
    }
}

/* Vector `at` of the terms from `first` on; the lanes stay together. */
PTX void add_terms(float (&sum)[VECTOR], const term &mine, uint32_t first, uint32_t at, bool inside)
{
    uint4 v[COMBINE_BATCH];

#pragma unroll
    for (int j = 0; j < COMBINE_BATCH; j++) {
        uint64_t from = __shfl_sync(ALL_LANES, mine.from, (first + j) % 32);

        v[j] = from != 0 && inside ? __ldcg((const uint4 *)from + at) : uint4{0, 0, 0, 0};
    }
#pragma unroll
    for (int j = 0; j < COMBINE_BATCH; j++) {
        float weight = __shfl_sync(ALL_LANES, mine.weight, (first + j) % 32);

        add_term(sum, v[j], weight);
    }
}

PTX void combine_row(const site &s, const gpu_task &t, const matrix &to, uint32_t row, uint32_t lane)
{
    uint32_t terms = index_rows(s, t).terms;
    term mine = lane < terms ? term_at(s, t, row, lane) : term{0, 0};
    uint32_t vectors = t.n / VECTOR;

    for (uint32_t base = 0; base < vectors; base += 32) {
        float sum[VECTOR] = {};
        bool inside = base + lane < vectors;

        for (uint32_t first = 0; first < terms; first += COMBINE_BATCH)
            add_terms(sum, mine, first, base + lane, inside);
        if (inside)
            *(uint4 *)vector_address(to, {row, (base + lane) * VECTOR}) = {
                pair_of(sum[0], sum[1]), pair_of(sum[2], sum[3]), pair_of(sum[4], sum[5]), pair_of(sum[6], sum[7])};
    }
}

/* ---- element by element ---- */

PTX void combine_row_plain(const site &s, const gpu_task &t, const matrix &to, uint32_t row, uint32_t lane)
{
    uint32_t terms = index_rows(s, t).terms;
    bool is_wide = s.program->views[task_selects(s, t)[INDEX_SOURCES].matrix.view].is_wide != 0;

    for (uint32_t col = lane; col < t.n; col += 32) {
        float sum = 0;

        for (uint32_t i = 0; i < terms; i++) {
            term x = term_at(s, t, row, i);

            if (x.from != 0)
                sum = fmaf(x.weight, load_element({x.from, 0, is_wide}, col), sum);
        }
        store_element(to, row * to.ld + col, sum);
    }
}

PTX void combine_task(const site &s, const gpu_task &t, uint32_t thread)
{
    const matrix to = matrix_at(s, task_target(s, t, 0));

    for (uint32_t row = thread / 32; row < t.m; row += CONSUMERS / 32)
        if (t.kind == GPU_COMBINE)
            combine_row(s, t, to, row, thread % 32);
        else
            combine_row_plain(s, t, to, row, thread % 32);
}

#endif
