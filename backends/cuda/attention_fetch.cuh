/* The fetcher's part of an attention: everything that has to be looked up in global memory or waited
 * for, so that the loader only moves: a late block of keys is not made up for. */
#ifndef BACKENDS_CUDA_ATTENTION_FETCH_CUH
#define BACKENDS_CUDA_ATTENTION_FETCH_CUH

#include "backends/cuda/flags.cuh"

struct attention_fetcher {
    run_ring runs;
    uint32_t queries; /* loaded so far, by whomever */
    bool follows;     /* the task before was an attention too */
};

PTX feed_matrix feed_matrix_of(const site &s, const gpu_matrix &m)
{
    const gpu_view &v = s.program->views[m.view];

    return {view_address(s, v, m.row, m.col), (uint32_t)v.ld, v.is_wide};
}

/* What a lane looks up. */
enum { LOOK_QUERIES, LOOK_KEYS, LOOK_VALUES, LOOK_LOG_SUMS, LOOK_RESULT };

/* Where to find and leave what.  The lanes share the work, and stay together: two trips to memory for all. */
PTX void look_up(const site &s, const gpu_task &t, attention_feed &f, uint32_t lane)
{
    const gpu_link *addend = task_addends(s, t), *target = task_targets(s, t);
    bool hands_on = t.addends > 1;
    gpu_matrix m = (lane == LOOK_RESULT ? target : addend + (lane == LOOK_LOG_SUMS && hands_on))->matrix;
    uint32_t view = lane == LOOK_KEYS ? t.a_view : lane == LOOK_VALUES ? t.b_view : m.view;
    const gpu_view &v = s.program->views[view];
    const void *map = view_load_map(s, v), *store_map = view_store_map(s, v);
    feed_matrix place = {view_address(s, v, m.row, m.col), (uint32_t)v.ld, v.is_wide};

    if (lane == LOOK_QUERIES) {
        f.queries = store_map; /* a warpgroup's box */
        f.row = m.row;
        f.col = m.col;
    } else if (lane == LOOK_KEYS) {
        f.keys = map;
    } else if (lane == LOOK_VALUES) {
        f.values = map;
    } else if (lane == LOOK_LOG_SUMS) {
        f.lse = place;
        f.leaves = hands_on && m.more;
    } else if (lane == LOOK_RESULT) {
        f.result = place;
    }
    __syncwarp();
}

/* In boxes as results have. */
PTX void load_queries(const site &s, const attention_feed &f, uint32_t panels, uint32_t number)
{
    uint32_t full = barrier_at(s, BARRIER_QUERIES_FULL);

    await_barrier(s, barrier_at(s, BARRIER_QUERIES_EMPTY), (number & 1) ^ 1);
    barrier_expect(full, 2 * panels * STAGING_BOX_BYTES);
    for (uint32_t i = 0; i < 2 * panels; i++) {
        uint32_t group = i / panels, panel = i % panels;

        tensor_load(s.shared + QUERIES_AT + group * QUERIES_APART + panel * STAGING_BOX_BYTES, f.queries,
                    f.col + panel * 64, f.row + group * 64, full);
    }
}

/* Before the task is published.  Behind another attention its queries' place is free as soon as that has
 * taken its own; behind other tasks only the loader knows. */
PTX void feed_task(const site &s, attention_fetcher &a, const gpu_task &t, uint32_t slot, uint32_t lane)
{
    attention_feed &f = feed_at(s, slot);

    look_up(s, t, f, lane);
    if (lane == 0) {
        f.queries_loaded = a.follows;
        if (a.follows) {
            fence_proxy(); /* behind the acquired flags may be ordinary stores */
            load_queries(s, f, t.n / 64, a.queries);
        }
    }
    a.queries++;
}

/* The keys that some query sees; `position` is the first one's. */
PTX uint32_t keys_seen(const gpu_task &t, const gpu_segment &g, uint32_t position)
{
    if (position == GPU_UNMASKED)
        return g.k;
    return g.position < position + t.m ? min(g.k, position + t.m - g.position) : 0;
}

PTX void feed_run(const site &s, run_ring &r, const key_run &run)
{
    await_barrier(s, barrier_at(s, BARRIER_RUN_EMPTY + r.number % KEY_RUNS), run_phase(r) ^ 1);
    run_at(s, r) = run;
    barrier_arrive(barrier_at(s, BARRIER_RUN_FULL + r.number % KEY_RUNS));
    r.number++;
}

/* Behind the task, by one thread. */
PTX void feed_runs(const site &s, run_ring &r, const gpu_task &t)
{
    uint32_t position = task_addends(s, t)->matrix.more;
    bool any = false;

    for (uint32_t i = 0; i < t.segment_count; i++) {
        const gpu_segment &g = s.program->segments[t.segments + i];
        uint32_t keys = keys_seen(t, g, position);

        if (keys == 0)
            continue;
        await_flags(s, g.wait, GPU_LOAD, t, i);
        feed_run(s, r,
                 {keys, position == GPU_UNMASKED ? KEYS_FAR_BEHIND : g.position - position, t.a_row + (uint32_t)g.a_add,
                  t.b_row + (uint32_t)g.b_add});
        any = true;
    }
    if (!any)
        feed_run(s, r, {0, KEYS_FAR_BEHIND, t.a_row, t.b_row});
}

#endif
