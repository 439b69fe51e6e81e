/* The loader's part of an attention: queries once, then keys and values block by block, segment by
 * segment, values one block behind the keys, which is the order in which consumers hand panels
 * back. */
#ifndef BACKENDS_CUDA_ATTENTION_LOAD_CUH
#define BACKENDS_CUDA_ATTENTION_LOAD_CUH

#include "backends/cuda/site.cuh"

struct attention_loader {
    panel_ring keys, values;
    uint32_t queries; /* loaded so far */
};

struct attention_maps {
    const void *keys, *values;
    uint32_t panels;
};

/* Each warpgroup's rows into its own staging, in boxes as results have. */
PTX void load_queries(const site &s, attention_loader &l, const gpu_matrix &q, uint32_t panels)
{
    const void *map = view_store_map(s, s.program->views[q.view]);
    uint32_t full = barrier_at(s, BARRIER_QUERIES_FULL);

    await_barrier(s, barrier_at(s, BARRIER_QUERIES_EMPTY), (l.queries++ & 1) ^ 1);
    barrier_expect(full, 2 * panels * STAGING_BOX_BYTES);
    for (uint32_t i = 0; i < 2 * panels; i++) {
        uint32_t group = i / panels, panel = i % panels;

        tensor_load(s.shared + STAGING_AT + group * STAGING_BYTES +
                        (QUERIES_BOX + panel) * STAGING_BOX_BYTES,
                    map, q.col + panel * 64, q.row + group * 64, full);
    }
}

PTX void load_panels(const site &s, const void *map, uint32_t row, uint32_t col, uint32_t panels,
                     uint32_t to, uint32_t full)
{
    barrier_expect(full, panels * PANEL_BYTES);
    for (uint32_t i = 0; i < panels; i++)
        tensor_load(to + i * PANEL_BYTES, map, col + i * 64, row, full);
}

/* The keys that some query sees; `position` is the first one's. */
PTX uint32_t keys_seen(const gpu_task &t, const gpu_segment &g, uint32_t position)
{
    if (position == GPU_UNMASKED)
        return g.k;
    return g.position < position + t.m ? min(g.k, position + t.m - g.position) : 0;
}

PTX void load_keys(const site &s, attention_loader &l, const attention_maps &maps,
                   const gpu_task &t, uint32_t row, const key_block &block)
{
    uint32_t full = barrier_at(s, BARRIER_KEYS_FULL + panel_of(l.keys));

    await_barrier(s, barrier_at(s, BARRIER_KEYS_EMPTY + panel_of(l.keys)), panel_phase(l.keys) ^ 1);
    *key_block_at(s, l.keys) = block;
    load_panels(s, maps.keys, row, t.a_col, maps.panels, s.shared + panel_of(l.keys) * PANEL_BYTES, full);
    panels_advance(l.keys, maps.panels);
}

PTX void load_values(const site &s, attention_loader &l, const attention_maps &maps,
                     const gpu_task &t, uint32_t row, uint32_t keys)
{
    uint32_t full = barrier_at(s, BARRIER_VALUES_FULL + panel_of(l.values));

    await_barrier(s, barrier_at(s, BARRIER_VALUES_EMPTY + panel_of(l.values)), panel_phase(l.values) ^ 1);
    *value_count_at(s, l.values) = keys;
    load_panels(s, maps.values, row, t.b_col, maps.panels,
                s.shared + VALUES_AT + panel_of(l.values) * PANEL_BYTES, full);
    panels_advance(l.values, maps.panels);
}

/* So many keys of a segment. */
PTX void load_segment(const site &s, attention_loader &l, const attention_maps &maps,
                      const gpu_task &t, const gpu_segment &g, uint32_t keys, uint32_t position)
{
    uint32_t first = 0;

    for (; first < keys; first += GPU_KEYS) {
        uint32_t ahead =
            position == GPU_UNMASKED ? KEYS_FAR_BEHIND : g.position + first - position;

        load_keys(s, l, maps, t, t.a_row + (uint32_t)g.a_add + first,
                  {min(keys - first, GPU_KEYS), ahead});
        if (first > 0)
            load_values(s, l, maps, t, t.b_row + (uint32_t)g.b_add + first - GPU_KEYS, GPU_KEYS);
    }
    load_values(s, l, maps, t, t.b_row + (uint32_t)g.b_add + first - GPU_KEYS,
                keys - (first - GPU_KEYS));
}

PTX void load_attention(const site &s, attention_loader &l, const gpu_task &t)
{
    attention_maps maps = {view_load_map(s, s.program->views[t.a_view]),
                           view_load_map(s, s.program->views[t.b_view]), t.n / 64};
    const gpu_matrix q = task_addends(s, t)->matrix;
    bool any = false;

    panels_align(l.keys, maps.panels);
    panels_align(l.values, maps.panels);
    fence_proxy(); /* behind the acquired flags may be ordinary stores */
    load_queries(s, l, q, maps.panels);
    for (uint32_t i = 0; i < t.segment_count; i++) {
        const gpu_segment &g = s.program->segments[t.segments + i];
        uint32_t keys = keys_seen(t, g, q.more);

        if (keys == 0)
            continue;
        await_flags(s, g.wait, GPU_LOAD, t, i);
        fence_proxy();
        load_segment(s, l, maps, t, g, keys, q.more);
        any = true;
    }
    if (any)
        return;
    /* No query sees a key: a block of none. */
    load_keys(s, l, maps, t, t.a_row, {0, KEYS_FAR_BEHIND});
    load_values(s, l, maps, t, t.b_row, 0);
}

#endif
