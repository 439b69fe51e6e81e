/* The loader's part of an attention: queries once, then keys and values block by block.  Values follow
 * their keys one block behind, also from task to task: that is the order in which consumers hand
 * panels back. */
#ifndef BACKENDS_CUDA_ATTENTION_LOAD_CUH
#define BACKENDS_CUDA_ATTENTION_LOAD_CUH

#include "backends/cuda/attention_fetch.cuh"

/* Values that are still to be loaded. */
struct late_values {
    const void *map;
    uint32_t row, col;
    uint32_t panels; /* 0: none */
};

struct attention_loader {
    panel_ring keys, values;
    run_ring runs;
    uint32_t queries; /* loaded so far */
    late_values late;
};

PTX void load_panels(const site &s, const void *map, uint32_t row, uint32_t col, uint32_t panels, uint32_t to,
                     uint32_t full)
{
    barrier_expect(full, panels * PANEL_BYTES);
    for (uint32_t i = 0; i < panels; i++)
        tensor_load(to + i * PANEL_BYTES, map, col + i * 64, row, full);
}

PTX void load_late_values(const site &s, attention_loader &l)
{
    const late_values v = l.late;
    uint32_t at = panel_of(l.values);

    if (v.panels == 0)
        return;
    await_barrier(s, barrier_at(s, BARRIER_VALUES_EMPTY + at), panel_phase(l.values) ^ 1);
    load_panels(s, v.map, v.row, v.col, v.panels, s.shared + VALUES_AT + at * PANEL_BYTES,
                barrier_at(s, BARRIER_VALUES_FULL + at));
    panels_advance(l.values, v.panels);
    l.late.panels = 0;
}

PTX void load_keys(const site &s, attention_loader &l, const void *map, uint32_t row, uint32_t col, uint32_t panels,
                   const key_block &block)
{
    uint32_t at = panel_of(l.keys);

    await_barrier(s, barrier_at(s, BARRIER_KEYS_EMPTY + at), panel_phase(l.keys) ^ 1);
    *key_block_at(s, l.keys) = block;
    load_panels(s, map, row, col, panels, s.shared + at * PANEL_BYTES, barrier_at(s, BARRIER_KEYS_FULL + at));
    panels_advance(l.keys, panels);
}

PTX bool late_values_fit(const site &s, const attention_loader &l)
{
    return barrier_test(barrier_at(s, BARRIER_VALUES_EMPTY + panel_of(l.values)), panel_phase(l.values) ^ 1);
}

/* Before the loader waits for something that may take long, what can be loaded is. */
PTX key_run take_run(const site &s, attention_loader &l)
{
    uint32_t full = barrier_at(s, BARRIER_RUN_FULL + l.runs.number % KEY_RUNS);
    key_run run;

    if (!barrier_test(full, run_phase(l.runs)) || late_values_fit(s, l))
        load_late_values(s, l);
    await_barrier(s, full, run_phase(l.runs));
    run = run_at(s, l.runs);
    barrier_arrive(barrier_at(s, BARRIER_RUN_EMPTY + l.runs.number % KEY_RUNS));
    l.runs.number++;
    fence_proxy(); /* behind the acquired flags may be ordinary stores */
    return run;
}

/* Returns how many blocks it has been. */
PTX uint32_t load_run(const site &s, attention_loader &l, const attention_feed &f, const gpu_task &t)
{
    key_run run = take_run(s, l);
    uint32_t first = 0, blocks = 0, panels = t.n / 64;

    do {
        uint32_t keys = min(run.keys - first, GPU_KEYS);
        uint32_t ahead = run.ahead == KEYS_FAR_BEHIND ? KEYS_FAR_BEHIND : run.ahead + first;

        load_keys(s, l, f.keys, run.key_row + first, t.a_col, panels, {keys, ahead});
        load_late_values(s, l);
        l.late = {f.values, run.value_row + first, t.b_col, panels};
        first += GPU_KEYS;
        blocks++;
    } while (first < run.keys);
    return blocks;
}

PTX void load_attention(const site &s, attention_loader &l, const gpu_task &t, uint32_t slot)
{
    const attention_feed f = feed_at(s, slot);

    panels_align(l.keys, t.n / 64);
    if (l.late.panels == 0)
        panels_align(l.values, t.n / 64);
    if (!f.queries_loaded) {
        fence_proxy(); /* behind the acquired flags may be ordinary stores */
        load_queries(s, f, t.n / 64, l.queries);
    }
    l.queries++;
    for (uint32_t blocks = 0; blocks < t.k;)
        blocks += load_run(s, l, f, t);
}

#endif
