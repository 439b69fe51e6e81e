/* The pulls of a receiving route (core/route.h): each row that its list mentions, once, in the order of first
 * mentions.  Row k of entry `number` is mention number * tile_rows + k; the lowest of each row has been found
 * while the list was written. */
#ifndef BACKENDS_CUDA_ROUTE_PULLS_CUH
#define BACKENDS_CUDA_ROUTE_PULLS_CUH

#include "backends/cuda/route_walk.cuh"

#define NO_MENTION UINT32_MAX

PTX void clear_mentions(const router &x, uint32_t thread)
{
    for (uint32_t i = thread; i < held_rows(x.route); i += CONSUMERS)
        x.mention[i] = NO_MENTION;
    for (uint32_t i = thread; i < GPU_ROUTE_FIRSTS(x.route.list_rows * x.route.tile_rows); i += CONSUMERS)
        x.firsts[i] = 0;
}

/* Calls take(row, mention) for each row of the stack that is mentioned; by all consumers. */
template <class Take> PTX void each_mentioned(const router &x, uint32_t thread, Take take)
{
    uint32_t rows = held_rows(x.route);

    for (uint32_t base = thread; base < rows; base += CONSUMERS * ROUTE_BATCH) {
        uint32_t mention[ROUTE_BATCH];

#pragma unroll
        for (int b = 0; b < ROUTE_BATCH; b++)
            mention[b] = base + b * CONSUMERS < rows ? __ldcg(&x.mention[base + b * CONSUMERS]) : NO_MENTION;
#pragma unroll
        for (int b = 0; b < ROUTE_BATCH; b++)
            if (mention[b] != NO_MENTION)
                take(base + b * CONSUMERS, mention[b]);
    }
}

/* By one warp. */
PTX void scan_firsts(const site &s, const router &x)
{
    uint32_t words = GPU_ROUTE_FIRSTS(own_entries(x) * x.route.tile_rows), before = 0;

    for (uint32_t first = 0; first < words; first += 32) {
        uint32_t i = first + x.lane, count = i < words ? __popc(__ldcg(&x.firsts[i])) : 0;
        uint32_t sum = before + sum_up(count, x.lane);

        if (i < words)
            x.firsts_before[i] = sum - count;
        before = __shfl_sync(ALL_LANES, sum, 31);
    }
    if (x.lane == 0)
        *control_words(s, x.route.pull_count) = before;
}

PTX void rename_rows(const site &s, const router &x, uint32_t number)
{
    const uint32_t *entry = control_words(s, x.route.list) + 3 * number;
    uint32_t *index = control_words(s, x.route.index) + entry[1], rows = entry[2];

    for (uint32_t base = x.lane; base < rows; base += 32 * ROUTE_BATCH) {
        uint32_t value[ROUTE_BATCH];

#pragma unroll
        for (int b = 0; b < ROUTE_BATCH; b++)
            value[b] = x.pull[index[min(base + b * 32, rows - 1)]];
#pragma unroll
        for (int b = 0; b < ROUTE_BATCH; b++)
            if (base + b * 32 < rows)
                index[base + b * 32] = value[b];
    }
}

/* Of the list and the index as they have been written. */
PTX void list_pulls(const site &s, const router &x, uint32_t thread)
{
    uint32_t *pulls = control_words(s, x.route.pulls);

    each_mentioned(x, thread,
                   [&](uint32_t, uint32_t mention) { atomicOr(&x.firsts[mention / 32], 1u << mention % 32); });
    consumers_meet();
    if (x.warp == 0)
        scan_firsts(s, x);
    consumers_meet();
    each_mentioned(x, thread, [&](uint32_t row, uint32_t mention) {
        uint32_t before = __ldcg(&x.firsts[mention / 32]) & ((1u << mention % 32) - 1);
        uint32_t place = x.firsts_before[mention / 32] + __popc(before);

        pulls[place] = row;
        x.pull[row] = place;
    });
    consumers_meet();
    for (uint32_t i = x.warp; i < own_entries(x); i += GPU_ROUTE_WARPS)
        rename_rows(s, x, i);
}

#endif
