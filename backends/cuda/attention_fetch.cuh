/* The fetcher's part of an attention: everything that has to be looked up in global memory or waited
 * for, so that the loader only moves: a late block of keys is not made up for. */
#ifndef BACKENDS_CUDA_ATTENTION_FETCH_CUH
#define BACKENDS_CUDA_ATTENTION_FETCH_CUH

#include "backends/cuda/site.cuh"

/* What the task before left stands in memory for long; into the second-level cache with it. */
PTX void prefetch_state(const site &s, const gpu_task &t, uint32_t lane)
{
    const gpu_matrix m = task_addends(s, t)[2].matrix;
    const gpu_view &v = s.program->views[m.view];

    for (uint32_t row = lane; row < t.m; row += 32)
        bulk_prefetch(view_address(s, v, m.row + row, m.col), t.n * 4);
}

/* Before the task is published. */
PTX void feed_task(const site &s, const gpu_task &t, uint32_t slot, uint32_t lane)
{
    attention_feed &f = feed_at(s, slot);

    if (lane == 0) {
        const gpu_matrix q = task_addends(s, t)->matrix;

        f.queries = view_store_map(s, s.program->views[q.view]); /* boxes of a warpgroup's rows */
        f.row = q.row;
        f.col = q.col;
    } else if (lane == 1) {
        f.keys = view_load_map(s, s.program->views[t.a_view]);
    } else if (lane == 2) {
        f.values = view_load_map(s, s.program->views[t.b_view]);
    }
    if (t.addends > 2)
        prefetch_state(s, t, lane);
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
                 {keys, position == GPU_UNMASKED ? KEYS_FAR_BEHIND : g.position - position,
                  t.a_row + (uint32_t)g.a_add, t.b_row + (uint32_t)g.b_add});
        any = true;
    }
    if (!any)
        feed_run(s, r, {0, KEYS_FAR_BEHIND, t.a_row, t.b_row});
}

#endif
