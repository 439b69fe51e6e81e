/* What the consumers do by ordinary accesses, element by element or 16 bytes at a time: shapes and
 * alignments that the copy engine cannot take, and sums of many sources. */
#ifndef BACKENDS_CUDA_PLAIN_CUH
#define BACKENDS_CUDA_PLAIN_CUH

#include "backends/cuda/indexed.cuh"

struct matrix {
    uint64_t address, ld;
    bool is_wide;
};

PTX matrix matrix_of(const site &s, uint32_t view, uint64_t row, uint64_t col)
{
    const gpu_view &v = s.program->views[view];

    return {view_address(s, v, row, col), v.ld, v.is_wide != 0};
}

PTX matrix matrix_at(const site &s, const gpu_matrix &m)
{
    return matrix_of(s, m.view, m.row, m.col);
}

/* Past the first-level cache, which does not see what others write. */
PTX float load_element(const matrix &x, uint64_t at)
{
    if (x.is_wide)
        return __ldcg((const float *)x.address + at);
    return pair_low(__ldcg((const unsigned short *)x.address + at));
}

PTX void store_element(const matrix &x, uint64_t at, float value)
{
    if (x.is_wide)
        ((float *)x.address)[at] = value;
    else
        ((unsigned short *)x.address)[at] = (unsigned short)pair_of(value, 0);
}

PTX float add_addends(const site &s, const gpu_task &t, uint32_t row, uint32_t col, float sum)
{
    const gpu_link *link = task_addends(s, t);

    for (uint32_t i = 0; i < t.addends; i++) {
        matrix x = matrix_at(s, link[i].matrix);

        sum += load_element(x, row * x.ld + col);
    }
    return sum;
}

PTX void store_to_all(const site &s, const gpu_task &t, uint32_t row, uint32_t col, float value)
{
    for (uint32_t i = 0; i < t.targets; i++) {
        matrix x = matrix_at(s, task_target(s, t, i));

        store_element(x, row * x.ld + col, value);
    }
}

PTX float dot(const matrix &a, const matrix &b, uint32_t row, uint32_t col, uint64_t k, float sum)
{
    for (uint64_t i = 0; i < k; i++)
        sum += load_element(a, row * a.ld + i) * load_element(b, col * b.ld + i);
    return sum;
}

/* The row that an index value names. */
PTX matrix row_by_index(const site &s, const gpu_task &t, uint32_t row)
{
    uint32_t value = __ldcg((const uint32_t *)index_address(s, t, row, 0));
    const gpu_view &v = s.program->views[task_selects(s, t)[INDEX_SOURCES].matrix.view];

    return {source_address(s, t, value), v.ld, v.is_wide != 0};
}

/* DYNAMIC: rows may be read by index, here and below. */
template <bool DYNAMIC> PTX float dot_segments(const site &s, const gpu_task &t, uint32_t row, uint32_t col)
{
    float sum = 0;

    if (DYNAMIC && t.by_index)
        return dot(row_by_index(s, t, row), matrix_of(s, t.b_view, t.b_row, t.b_col), 0, col, t.k, 0);
    if (t.segment_count == 0)
        return dot(matrix_of(s, t.a_view, t.a_row, t.a_col), matrix_of(s, t.b_view, t.b_row, t.b_col), row, col, t.k,
                   0);
    for (uint32_t i = 0; i < t.segment_count; i++) {
        const gpu_segment &g = s.program->segments[t.segments + i];

        sum = dot(matrix_of(s, t.a_view, t.a_row, t.a_col + g.a_add),
                  matrix_of(s, t.b_view, t.b_row, t.b_col + g.b_add), row, col, g.k, sum);
    }
    return sum;
}

PTX float swiglu(float gate, float up)
{
    return __fdividef(gate, 1.0f + __expf(-gate)) * up;
}

/* Gate and up are rows of b in turn (core/program.h). */
template <bool DYNAMIC> PTX float dot_activated(const site &s, const gpu_task &t, uint32_t row, uint32_t col)
{
    uint32_t first = col / SWIGLU_GROUP * SWIGLU_GROUP, gate = 2 * first + col - first;

    return swiglu(dot_segments<DYNAMIC>(s, t, row, gate),
                  dot_segments<DYNAMIC>(s, t, row, gate + min(SWIGLU_GROUP, t.n - first)));
}

/* One element: GEMM, REDUCE (no product) and COPY (no addends either; a payload of NaN may be lost
 * only where the types differ). */
template <bool DYNAMIC> PTX void plain_task(const site &s, const gpu_task &t, uint32_t thread)
{
    for (uint64_t i = thread; i < (uint64_t)t.m * t.n; i += CONSUMERS) {
        uint32_t row = (uint32_t)(i / t.n), col = (uint32_t)(i % t.n);
        float value = 0;

        if (t.kind == GPU_GEMM_PLAIN) {
            value = t.epilogue == EPILOGUE_SWIGLU ? dot_activated<DYNAMIC>(s, t, row, col)
                                                  : dot_segments<DYNAMIC>(s, t, row, col);
        } else if (t.kind == GPU_COPY_PLAIN) {
            matrix a = matrix_of(s, t.a_view, t.a_row, t.a_col);

            value = load_element(a, row * a.ld + col);
        }
        store_to_all(s, t, row, col, add_addends(s, t, row, col, value));
    }
}

/* ---- sums, 8 elements of bf16 at a time ---- */

#define VECTOR 8

PTX void add_vector(float (&sum)[VECTOR], const uint4 &v)
{
    const uint32_t pairs[4] = {v.x, v.y, v.z, v.w};

#pragma unroll
    for (int i = 0; i < 4; i++) {
        sum[2 * i] += pair_low(pairs[i]);
        sum[2 * i + 1] += pair_high(pairs[i]);
    }
}

/* Vectors of a thread in hand at a time, so that as many loads are under way. */
#define BATCH 4

struct vector_place {
    uint32_t row, col;
};

PTX vector_place vector_at(uint32_t i, uint32_t per_row)
{
    return {i / per_row, i % per_row * VECTOR};
}

PTX uint64_t vector_address(const matrix &x, const vector_place &p)
{
    return x.address + (p.row * x.ld + p.col) * 2;
}

PTX void store_sums(const site &s, const gpu_task &t, const float (&sum)[BATCH][VECTOR], uint32_t first, uint32_t count)
{
    for (uint32_t i = 0; i < t.targets; i++) {
        matrix x = matrix_at(s, task_target(s, t, i));

#pragma unroll
        for (int b = 0; b < BATCH; b++) {
            uint32_t at = first + b * CONSUMERS;

            if (at < count)
                *(uint4 *)vector_address(x, vector_at(at, t.n / VECTOR)) = {
                    pair_of(sum[b][0], sum[b][1]), pair_of(sum[b][2], sum[b][3]), pair_of(sum[b][4], sum[b][5]),
                    pair_of(sum[b][6], sum[b][7])};
        }
    }
}

PTX void reduce_batch(const site &s, const gpu_task &t, uint32_t first, uint32_t count)
{
    const gpu_link *addends = task_addends(s, t);
    float sum[BATCH][VECTOR] = {};

    for (uint32_t i = 0; i < t.addends; i++) {
        matrix x = matrix_at(s, addends[i].matrix);
        uint4 v[BATCH];

#pragma unroll
        for (int b = 0; b < BATCH; b++) {
            uint32_t at = min(first + b * CONSUMERS, count - 1);

            v[b] = __ldcg((const uint4 *)vector_address(x, vector_at(at, t.n / VECTOR)));
        }
#pragma unroll
        for (int b = 0; b < BATCH; b++)
            add_vector(sum[b], v[b]);
    }
    store_sums(s, t, sum, first, count);
}

PTX void reduce_task(const site &s, const gpu_task &t, uint32_t thread)
{
    uint32_t count = t.m * (t.n / VECTOR);

    for (uint32_t i = thread; i < count; i += BATCH * CONSUMERS)
        reduce_batch(s, t, i, count);
}

/* Every consumer's ordinary stores before one thread's signals, and before reads by the copy
 * engine. */
PTX void signal_plain(const site &s, const gpu_task &t, uint32_t thread)
{
    fence_proxy();
    asm volatile("bar.sync 1, %0;" ::"n"(CONSUMERS) : "memory");
    if (thread == 0)
        signal_all(s, t);
}

#endif
