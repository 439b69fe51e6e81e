/* OP_ROUTE by the consumers: count, scan, place (core/route.h), as backends/ops/route.c does one by one.
 *
 * Each warp has a run of tokens.  It takes 32 at a time, a lane a token, each with a mask of the experts that the
 * token chose; transposed, each lane has an expert with a mask of tokens, so that places follow from counting
 * bits, in order. */
#ifndef BACKENDS_CUDA_ROUTE_CUH
#define BACKENDS_CUDA_ROUTE_CUH

#include "backends/cuda/plain.cuh"
#include "core/route.h"

struct router {
    const gpu_route &route;
    const int32_t *table;
    uint32_t warp, lane;
    uint32_t first_expert, experts; /* the own ones */
    uint32_t *counts;               /* [warp][expert]: how many, then how many before the warp's */
    uint32_t *begin, *entry;        /* [expert and one more]: first row, first entry */
    uint32_t *ready;                /* [entry] */
    uint32_t *place;                /* [token] */
    uint32_t kept_end;              /* pairs from this one on are dropped: token * top_k + choice */
};

#define NOTHING_DROPPED UINT32_MAX

PTX uint32_t part_first(uint32_t total, uint32_t parts, uint32_t i)
{
    return total / parts * i + (uint32_t)((uint64_t)(total % parts) * i / parts);
}

PTX uint32_t *control_words(const site &s, uint32_t view)
{
    return (uint32_t *)view_address(s, s.program->views[view], 0, 0);
}

PTX void consumers_meet(void)
{
    asm volatile("bar.sync 1, %0;" ::"n"(CONSUMERS) : "memory");
}

PTX router router_of(const site &s, const gpu_route &g, uint32_t thread)
{
    uint32_t ranks = g.nodes * g.gpus, first = part_first(g.experts, ranks, g.rank);
    uint32_t experts = part_first(g.experts, ranks, g.rank + 1) - first;
    uint32_t *counts = (uint32_t *)g.scratch, *begin = counts + GPU_ROUTE_WARPS * (experts + 1);

    return {g,
            (const int32_t *)control_words(s, g.table),
            thread / 32,
            thread % 32,
            first,
            experts,
            counts,
            begin,
            begin + experts + 1,
            begin + 2 * (experts + 1),
            begin + 2 * (experts + 1) + g.list_rows,
            NOTHING_DROPPED};
}

/* ---- choices ---- */

/* Choices j .. j + 3 of a token; -1 where there are no more. */
PTX int4 choices_at(const router &x, uint32_t token, uint32_t j)
{
    const int32_t *row = x.table + (uint64_t)token * x.route.top_k;

    if (x.route.top_k % 4 == 0)
        return *(const int4 *)(row + j);
    return {row[j], j + 1 < x.route.top_k ? row[j + 1] : -1, j + 2 < x.route.top_k ? row[j + 2] : -1,
            j + 3 < x.route.top_k ? row[j + 3] : -1};
}

/* By number from `first` on, modulo 32. */
PTX uint32_t bit_of(int32_t expert, uint32_t first, uint32_t count)
{
    uint32_t i = (uint32_t)expert - first;

    return i < count ? 1u << i % 32 : 0;
}

#define ROUTE_BATCH 4 /* tokens of a lane at a time, so that as many loads are under way */
#define NO_TOKEN UINT32_MAX

struct batch {
    uint32_t token[ROUTE_BATCH];
    uint32_t mask[ROUTE_BATCH]; /* of experts it chose */
};

/* Which of experts [first, first + count) the batch's tokens chose, by pairs that are kept. */
PTX void find_masks(const router &x, batch &k, uint32_t first, uint32_t count)
{
#pragma unroll
    for (int b = 0; b < ROUTE_BATCH; b++)
        k.mask[b] = 0;
    for (uint32_t j = 0; j < x.route.top_k; j += 4) {
        int4 c[ROUTE_BATCH];

#pragma unroll
        for (int b = 0; b < ROUTE_BATCH; b++)
            c[b] = k.token[b] == NO_TOKEN ? int4{-1, -1, -1, -1} : choices_at(x, k.token[b], j);
#pragma unroll
        for (int b = 0; b < ROUTE_BATCH; b++) {
            uint32_t pair = k.token[b] * x.route.top_k + j;
            uint32_t kept = pair < x.kept_end ? x.kept_end - pair : 0;

            k.mask[b] |= kept > 0 ? bit_of(c[b].x, first, count) : 0;
            k.mask[b] |= kept > 1 ? bit_of(c[b].y, first, count) : 0;
            k.mask[b] |= kept > 2 ? bit_of(c[b].z, first, count) : 0;
            k.mask[b] |= kept > 3 ? bit_of(c[b].w, first, count) : 0;
        }
    }
}

/* Bit j of lane i becomes bit i of lane j. */
PTX uint32_t transpose(uint32_t mask, uint32_t lane)
{
    uint32_t low = 0x0000ffff;

#pragma unroll
    for (uint32_t step = 16; step > 0; step >>= 1, low ^= low << step) {
        uint32_t other = __shfl_xor_sync(ALL_LANES, mask, step);

        mask = lane & step ? (mask & ~low) | (other & ~low) >> step : (mask & low) | (other & low) << step;
    }
    return mask;
}

/* Of this lane and all before it. */
PTX uint32_t sum_up(uint32_t value, uint32_t lane)
{
#pragma unroll
    for (uint32_t step = 1; step < 32; step <<= 1) {
        uint32_t before = __shfl_up_sync(ALL_LANES, value, step);

        value += lane >= step ? before : 0;
    }
    return value;
}

/* ---- who goes to a node ---- */

/* The tokens of a rank that chose an expert of a node, in order: the i-th token's number among them stands in
 * out[i], or, listed, those tokens in out[0] and on.  By one warp; returns how many. */
PTX uint32_t number_goers(const router &x, uint32_t rank, uint32_t node, bool listed, uint32_t *out)
{
    const gpu_route &g = x.route;
    uint32_t ranks = g.nodes * g.gpus, begin = part_first(g.tokens, ranks, rank);
    uint32_t size = part_first(g.tokens, ranks, rank + 1) - begin, count = 0;
    uint32_t first = part_first(g.experts, ranks, node * g.gpus);
    uint32_t experts = part_first(g.experts, ranks, (node + 1) * g.gpus) - first;

    for (uint32_t base = 0; base < size; base += 32 * ROUTE_BATCH) {
        batch k;

#pragma unroll
        for (int b = 0; b < ROUTE_BATCH; b++)
            k.token[b] = base + b * 32 + x.lane < size ? begin + base + b * 32 + x.lane : NO_TOKEN;
        find_masks(x, k, first, experts);
#pragma unroll
        for (int b = 0; b < ROUTE_BATCH; b++) {
            uint32_t goers = __ballot_sync(ALL_LANES, k.mask[b] != 0);
            uint32_t number = count + __popc(goers & ((1u << x.lane) - 1));

            if (k.mask[b] != 0)
                out[listed ? number : k.token[b] - begin] = listed ? k.token[b] - begin : number;
            count += __popc(goers);
        }
    }
    return count;
}

PTX void route_sends(const site &s, const router &x)
{
    const gpu_route &g = x.route;

    for (uint32_t node = x.warp; node < g.nodes; node += GPU_ROUTE_WARPS) {
        uint32_t *index = control_words(s, g.index) + (uint64_t)node * g.slot_rows, count = 0;

        if (node != g.rank / g.gpus)
            count = number_goers(x, g.rank, node, true, index);
        if (x.lane == 0)
            control_words(s, g.counts)[node] = count;
    }
}

PTX void place_arrivals(const router &x)
{
    const gpu_route &g = x.route;
    uint32_t ranks = g.nodes * g.gpus, own = g.rank / g.gpus;

    for (uint32_t rank = x.warp; rank < ranks; rank += GPU_ROUTE_WARPS)
        if (rank / g.gpus != own)
            number_goers(x, rank, own, false, x.place + part_first(g.tokens, ranks, rank));
}

/* ---- the walk: tokens in the order in which they can be here, dealt out to the warps in runs ---- */

struct walk_run {
    uint32_t first, end;
};

PTX uint32_t longest_shard(const gpu_route &g)
{
    return (g.tokens + g.nodes * g.gpus - 1) / (g.nodes * g.gpus);
}

PTX walk_run run_of(const router &x)
{
    uint32_t all = longest_shard(x.route) * x.route.nodes * x.route.gpus;
    uint32_t each = (all + GPU_ROUTE_WARPS - 1) / GPU_ROUTE_WARPS, first = min(x.warp * each, all);

    return {first, min(first + each, all)};
}

struct walker {
    uint32_t token; /* or NO_TOKEN: that rank's shard is shorter */
    uint32_t step;  /* when it can be here */
    uint32_t gpu, node;
};

PTX walker walker_at(const gpu_route &g, uint32_t at)
{
    uint32_t shard = longest_shard(g), ranks = g.nodes * g.gpus;
    uint32_t gpu = at % g.gpus, place = at / g.gpus % shard, back = at / g.gpus / shard;
    uint32_t node = (g.rank / g.gpus + g.nodes - back) % g.nodes, from = node * g.gpus + gpu;
    uint32_t token = part_first(g.tokens, ranks, from) + place;

    return {token < part_first(g.tokens, ranks, from + 1) ? token : NO_TOKEN,
            back == 0 ? 0 : back * shard + place, gpu, node};
}

PTX void walk_batch(const router &x, const walk_run &run, uint32_t at, uint32_t group, batch &k)
{
#pragma unroll
    for (int b = 0; b < ROUTE_BATCH; b++) {
        uint32_t mine = at + b * 32 + x.lane;

        k.token[b] = mine < run.end ? walker_at(x.route, mine).token : NO_TOKEN;
    }
    find_masks(x, k, x.first_expert + group, min(x.experts - group, 32));
}

/* ---- count, scan ---- */

PTX void count_rows(const router &x)
{
    walk_run run = run_of(x);

    for (uint32_t group = 0; group < x.experts; group += 32) {
        uint32_t count = 0;

        for (uint32_t at = run.first; at < run.end; at += 32 * ROUTE_BATCH) {
            batch k;

            walk_batch(x, run, at, group, k);
#pragma unroll
            for (int b = 0; b < ROUTE_BATCH; b++)
                count += __popc(transpose(k.mask[b], x.lane));
        }
        if (group + x.lane < x.experts)
            x.counts[x.warp * x.experts + group + x.lane] = count;
    }
}

/* Makes counts[warp][expert] the rows of the expert before the warp's; returns how many it has in all. */
PTX uint32_t sum_warps(const router &x, uint32_t expert)
{
    uint32_t sum = 0;

    for (uint32_t w = 0; w < GPU_ROUTE_WARPS; w++) {
        uint32_t *count = &x.counts[w * x.experts + expert], before = sum;

        sum += *count;
        *count = before;
    }
    return sum;
}

/* By one warp. */
PTX void scan_rows(const router &x)
{
    uint32_t rows = 0, entries = 0;

    for (uint32_t group = 0; group < x.experts; group += 32) {
        bool mine = group + x.lane < x.experts;
        uint32_t count = mine ? sum_warps(x, group + x.lane) : 0;
        uint32_t tiles = (count + x.route.tile_rows - 1) / x.route.tile_rows;
        uint32_t row = rows + sum_up(count, x.lane), entry = entries + sum_up(tiles, x.lane);

        if (mine) {
            x.begin[group + x.lane] = row - count;
            x.entry[group + x.lane] = entry - tiles;
        }
        rows = __shfl_sync(ALL_LANES, row, 31);
        entries = __shfl_sync(ALL_LANES, entry, 31);
    }
    if (x.lane == 0) {
        x.begin[x.experts] = rows;
        x.entry[x.experts] = entries;
    }
}

PTX void count_and_scan(const router &x)
{
    count_rows(x);
    consumers_meet();
    if (x.warp == 0)
        scan_rows(x);
    consumers_meet();
}

/* ---- what there is no room for ---- */

PTX uint32_t own_pairs(const router &x, uint32_t token)
{
    uint32_t count = 0;

    for (uint32_t j = 0; token < x.route.tokens && j < x.route.top_k; j++)
        count += (uint32_t)x.table[(uint64_t)token * x.route.top_k + j] - x.first_expert < x.experts;
    return count;
}

/* The choice that is the token's own pair number `number`. */
PTX uint32_t choice_of(const router &x, uint32_t token, uint32_t number)
{
    uint32_t j = 0;

    for (;; j++)
        if ((uint32_t)x.table[(uint64_t)token * x.route.top_k + j] - x.first_expert < x.experts && number-- == 0)
            return j;
}

/* Pairs count in the order of tokens and of choices.  Every warp finds it for itself: drops are rare. */
PTX uint32_t find_kept_end(const router &x)
{
    uint32_t before = 0;

    for (uint32_t first = 0;; first += 32) {
        uint32_t token = first + x.lane, own = own_pairs(x, token), sum = before + sum_up(own, x.lane);
        uint32_t over = __ballot_sync(ALL_LANES, sum > x.route.capacity), end = 0;

        before = __shfl_sync(ALL_LANES, sum, 31);
        if (over == 0)
            continue;
        if (x.lane == __ffs(over) - 1)
            end = token * x.route.top_k + choice_of(x, token, x.route.capacity - (sum - own));
        return __shfl_sync(ALL_LANES, end, __ffs(over) - 1);
    }
}

PTX void drop_rows(router &x, uint32_t thread)
{
    uint32_t rows = x.begin[x.experts];

    if (rows <= x.route.capacity)
        return;
    x.kept_end = find_kept_end(x);
    if (thread == 0)
        atomicAdd((unsigned long long *)x.route.dropped, (unsigned long long)(rows - x.route.capacity));
    consumers_meet(); /* all have read what is counted anew */
    count_and_scan(x);
}

/* ---- place ---- */

/* What the index says of a token: its row among the node's stacked copies of the held buffer. */
PTX uint32_t held_row(const router &x, const walker &w)
{
    const gpu_route &g = x.route;
    uint32_t ranks = g.nodes * g.gpus, slot = (w.gpu * g.nodes + w.node) * g.slot_rows;

    if (w.token == NO_TOKEN)
        return 0;
    if (w.node != g.rank / g.gpus)
        return slot + x.place[w.token];
    return slot + w.token - part_first(g.tokens, ranks, w.node * g.gpus + w.gpu);
}

struct expert_rows {
    uint32_t begin, entry, count; /* of the lane's expert */
    uint32_t next;                /* rows placed, of those of it */
};

/* Lanes are experts; tokens stand behind the bits of their masks. */
PTX void place_tokens(const router &x, const walker &w, uint32_t mask, uint32_t *index, expert_rows &e)
{
    uint32_t row = held_row(x, w), tile = x.route.tile_rows;

    while (__any_sync(ALL_LANES, mask != 0)) {
        uint32_t from = mask ? __ffs(mask) - 1 : 0;
        uint32_t value = __shfl_sync(ALL_LANES, row, from), step = __shfl_sync(ALL_LANES, w.step, from);

        if (mask == 0)
            continue;
        index[e.begin + e.next] = value;
        if (e.next % tile == tile - 1 || e.next == e.count - 1)
            x.ready[e.entry + e.next / tile] = step;
        e.next++;
        mask &= mask - 1;
    }
}

PTX void place_rows(const site &s, const router &x)
{
    uint32_t *index = control_words(s, x.route.index);
    walk_run run = run_of(x);

    for (uint32_t group = 0; group < x.experts; group += 32) {
        uint32_t mine = min(group + x.lane, x.experts - 1);
        expert_rows e = {x.begin[mine], x.entry[mine], x.begin[mine + 1] - x.begin[mine],
                         x.counts[x.warp * x.experts + mine]};

        for (uint32_t at = run.first; at < run.end; at += 32 * ROUTE_BATCH) {
            batch k;

            walk_batch(x, run, at, group, k);
            for (int b = 0; b < ROUTE_BATCH; b++) {
                walker w = walker_at(x.route, min(at + b * 32 + x.lane, run.end - 1));

                place_tokens(x, w, transpose(k.mask[b], x.lane), index, e);
            }
        }
    }
}

/* ---- the work list: by readiness, then by row ---- */

PTX uint32_t expert_of_entry(const router &x, uint32_t i)
{
    uint32_t low = 0, high = x.experts;

    while (high - low > 1) {
        uint32_t middle = (low + high) / 2;

        if (x.entry[middle] <= i)
            low = middle;
        else
            high = middle;
    }
    return low;
}

PTX uint32_t entries_before(const router &x, uint32_t i, uint32_t entries)
{
    uint32_t ready = x.ready[i], count = 0;

    for (uint32_t k = 0; k < entries; k++)
        count += x.ready[k] < ready || (x.ready[k] == ready && k < i);
    return count;
}

PTX void write_list(const site &s, const router &x, uint32_t thread)
{
    uint32_t *list = control_words(s, x.route.list), entries = x.entry[x.experts], tile = x.route.tile_rows;

    if (entries > x.route.list_rows)
        __trap();
    for (uint32_t i = thread; i < x.route.list_rows; i += CONSUMERS) {
        uint32_t to = 3 * i, group = 0, first = 0, rows = 0;

        if (i < entries) {
            to = 3 * entries_before(x, i, entries);
            group = expert_of_entry(x, i);
            first = x.begin[group] + (i - x.entry[group]) * tile;
            rows = min(tile, x.begin[group + 1] - first);
        }
        list[to] = group;
        list[to + 1] = first;
        list[to + 2] = rows;
    }
}

PTX void route_receipts(const site &s, router &x, uint32_t thread)
{
    place_arrivals(x);
    count_and_scan(x);
    drop_rows(x, thread);
    place_rows(s, x);
    consumers_meet();
    write_list(s, x, thread);
}

/* All consumers; what is written is for others to read once they have met again. */
PTX void route_task(const site &s, const gpu_task &t, uint32_t thread)
{
    const gpu_route &g = s.program->routes[t.k];
    router x = router_of(s, g, thread);

    if (g.kind == ROUTE_SEND)
        route_sends(s, x);
    else
        route_receipts(s, x, thread);
}

#endif
