/* OP_ROUTE by the consumers: count, scan, place (core/route.h), as backends/ops/route.c does one by
 * one. */
#ifndef BACKENDS_CUDA_ROUTE_CUH
#define BACKENDS_CUDA_ROUTE_CUH

#include "backends/cuda/route_pulls.cuh"

/* ---- what is sent, and what has come ---- */

PTX void route_sends(const site &s, const router &x)
{
    const gpu_route &g = x.route;
    uint32_t own = g.rank / g.gpus, *counts = control_words(s, g.counts);

    for (uint32_t node = x.warp; node < g.nodes; node += GPU_ROUTE_WARPS) {
        uint32_t *index = control_words(s, g.index), slot = node * g.slot_rows, count;
        uint32_t *back = g.returns ? control_words(s, g.back) + node : NULL;

        if (node == own && !back) {
            counts[node] = 0;
            continue;
        }
        count = each_token(x, g.rank, node, [&](uint32_t i, bool goes, uint32_t number) {
            uint32_t row = slot + (node == own ? i : number);

            if (goes && node != own)
                index[row] = i;
            if (back)
                back[i * g.nodes] = goes ? row : (uint32_t)INDEX_DROPPED;
        });
        counts[node] = node == own ? 0 : count;
    }
}

/* Also, for the way back, how many rows each slot holds. */
PTX void place_arrivals(const site &s, const router &x)
{
    const gpu_route &g = x.route;
    uint32_t ranks = g.nodes * g.gpus, own = g.rank / g.gpus;

    for (uint32_t rank = x.warp; rank < ranks; rank += GPU_ROUTE_WARPS) {
        uint32_t *place = x.place + share_begin(x, x.tokens, rank), count = share_size(x, x.tokens, rank);

        if (rank / g.gpus != own)
            count = each_token(x, rank, own, [&](uint32_t i, bool, uint32_t number) { place[i] = number; });
        if (g.returns && rank % g.gpus == g.rank % g.gpus)
            control_words(s, g.counts)[rank / g.gpus] = count;
    }
}

/* ---- count, scan ---- */

PTX void count_rows(const router &x)
{
    walk_run run = run_of(x);
    expert_group e;

    for (uint32_t first = 0; first < x.experts; first += e.count) {
        uint32_t count = 0;

        e = group_at(x, first);
        for (uint32_t at = run.first; at < run.end; at += 32 * ROUTE_BATCH) {
            batch k;

            walk_batch(x, run, at, e, k);
#pragma unroll
            for (int b = 0; b < ROUTE_BATCH; b++)
                count += __popc(transpose(k.mask[b], x.lane));
        }
        if (x.lane < e.count)
            x.counts[x.warp * x.experts + first + x.lane] = count;
    }
}

/* Makes counts[warp][expert] the rows of the expert before the warp's; returns how many it has in
 * all. */
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

struct expert_range {
    uint32_t first, count;
};

PTX uint32_t pairs_of(const router &x, uint32_t token, const expert_range &e)
{
    uint32_t count = 0;

    for (uint32_t j = 0; token < x.route.tokens && j < x.route.top_k; j++)
        count += (uint32_t)x.table[(uint64_t)token * x.route.top_k + j] - e.first < e.count;
    return count;
}

/* The choice that is the token's pair number `number` with these experts. */
PTX uint32_t choice_of(const router &x, uint32_t token, const expert_range &e, uint32_t number)
{
    uint32_t j = 0;

    for (;; j++)
        if ((uint32_t)x.table[(uint64_t)token * x.route.top_k + j] - e.first < e.count && number-- == 0)
            return j;
}

/* The first pair, in the order of tokens and of choices, that a rank has no room for; by one warp.
 */
PTX uint32_t find_kept_end(const router &x, const expert_range &e)
{
    uint32_t before = 0;

    for (uint32_t first = 0;; first += 32) {
        uint32_t token = first + x.lane, own = pairs_of(x, token, e), sum = before + sum_up(own, x.lane);
        uint32_t over = __ballot_sync(ALL_LANES, sum > x.route.capacity), end = 0;

        before = __shfl_sync(ALL_LANES, sum, 31);
        if (over == 0)
            continue;
        if (x.lane == __ffs(over) - 1)
            end = token * x.route.top_k + choice_of(x, token, e, x.route.capacity - (sum - own));
        return __shfl_sync(ALL_LANES, end, __ffs(over) - 1);
    }
}

PTX uint32_t rows_of_rank(const router &x, uint32_t rank)
{
    return x.begin[first_expert_of(x, rank + 1)] - x.begin[first_expert_of(x, rank)];
}

PTX void find_drops(const router &x, uint32_t rank)
{
    expert_range e = {x.first_expert + first_expert_of(x, rank),
                      first_expert_of(x, rank + 1) - first_expert_of(x, rank)};
    uint32_t rows = rows_of_rank(x, rank), end = NOTHING_DROPPED;

    if (rows > x.route.capacity)
        end = find_kept_end(x, e);
    if (x.lane == 0)
        x.kept_ends[rank] = end;
    if (x.lane == 0 && end != NOTHING_DROPPED && x.first_rank + rank == x.route.rank)
        atomicAdd((unsigned long long *)x.route.dropped, (unsigned long long)(rows - x.route.capacity));
}

PTX void drop_rows(router &x)
{
    for (uint32_t rank = 0; rank < x.ranks; rank++)
        x.drops |= rows_of_rank(x, rank) > x.route.capacity;
    if (!x.drops)
        return;
    for (uint32_t rank = x.warp; rank < x.ranks; rank += GPU_ROUTE_WARPS)
        find_drops(x, rank);
    consumers_meet(); /* before what they have read is counted anew */
    count_and_scan(x);
}

/* ---- place ---- */

/* Its row in the held buffer, and that among the node's stacked copies. */
PTX uint32_t held_row(const router &x, const walker &w)
{
    const gpu_route &g = x.route;
    uint32_t slot = w.node * g.slot_rows;

    if (w.node != g.rank / g.gpus)
        return slot + x.place[w.token];
    return slot + w.token - share_begin(x, x.tokens, w.node * g.gpus + w.gpu);
}

PTX uint32_t stacked_row(const router &x, const walker &w)
{
    return w.token == NO_TOKEN ? 0 : w.gpu * x.route.nodes * x.route.slot_rows + held_row(x, w);
}

/* An expert's rows as a lane places them. */
struct expert_rows {
    uint32_t number; /* of the expert, in the table */
    uint32_t entry, count, next;
    uint32_t now, in_entry; /* the entry of the next row, and the row's place there */
    uint32_t own_slot;      /* the first slot of the own rank's; experts of other ranks: NOT_OWN */
};

#define NOT_OWN UINT32_MAX

/* Row `k` of an expert whose entries begin at `entry`, in a room of whole tiles for each entry. */
PTX uint32_t slot_of(const router &x, uint32_t entry, uint32_t k)
{
    return entry * x.route.tile_rows + k;
}

PTX expert_rows rows_of_expert(const router &x, uint32_t expert)
{
    uint32_t own = x.route.rank - x.first_rank, first = x.counts[x.warp * x.experts + expert], in_entry;
    bool is_own = expert - first_expert_of(x, own) < first_expert_of(x, own + 1) - first_expert_of(x, own);
    uint32_t now = x.entry[expert] + divide(x.tile, first, &in_entry);

    return {x.first_expert + expert,
            x.entry[expert],
            x.begin[expert + 1] - x.begin[expert],
            first,
            now,
            in_entry,
            is_own ? slot_of(x, x.entry[first_expert_of(x, own)], 0) : NOT_OWN};
}

/* For the way back: the pair of a token held here, for the time being by its slot. */
PTX void note_pair(const site &s, const router &x, uint32_t at, uint32_t expert, uint32_t slot)
{
    walker w = walker_at(x, at);
    uint32_t j = 0;

    if (w.gpu != x.route.rank % x.route.gpus)
        return;
    while ((uint32_t)x.table[(uint64_t)w.token * x.route.top_k + j] != expert)
        j++;
    control_words(s, x.route.back)[held_row(x, w) * x.route.top_k + j] = slot;
}

/* 32 tokens of the walk from `at` on; lanes are experts, tokens stand behind the bits of their
 * masks. */
PTX void place_tokens(const site &s, const router &x, uint32_t at, uint32_t end, uint32_t mask, expert_rows &e)
{
    walker w = walker_at(x, min(at + x.lane, end - 1));
    uint32_t row = stacked_row(x, w), tile = x.route.tile_rows;

    while (__any_sync(ALL_LANES, mask != 0)) {
        uint32_t from = mask ? __ffs(mask) - 1 : 0;
        uint32_t value = __shfl_sync(ALL_LANES, row, from), step = __shfl_sync(ALL_LANES, w.step, from);
        uint32_t slot = slot_of(x, e.entry, e.next);

        if (mask == 0)
            continue;
        if (e.own_slot != NOT_OWN)
            x.value[slot - e.own_slot] = value;
        if (e.in_entry == tile - 1 || e.next == e.count - 1)
            x.ready[e.now] = step;
        if (x.route.returns)
            note_pair(s, x, at + from, e.number, slot);
        e.next++;
        e.now += e.in_entry == tile - 1;
        e.in_entry = e.in_entry == tile - 1 ? 0 : e.in_entry + 1;
        mask &= mask - 1;
    }
}

PTX void place_rows(const site &s, const router &x)
{
    walk_run run = run_of(x);
    expert_group g;

    for (uint32_t first = 0; first < x.experts; first += g.count) {
        expert_rows e = rows_of_expert(x, min(first + x.lane, x.experts - 1));

        g = group_at(x, first);
        for (uint32_t at = run.first; at < run.end; at += 32 * ROUTE_BATCH) {
            batch k;

            walk_batch(x, run, at, g, k);
            for (int b = 0; b < ROUTE_BATCH; b++)
                if (at + b * 32 < run.end)
                    place_tokens(s, x, at + b * 32, run.end, transpose(k.mask[b], x.lane), e);
        }
    }
}

/* ---- the work lists: by readiness, then by row; a warp an entry ---- */

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

/* How many of entries [first, end) come before entry i. */
PTX uint32_t entries_before(const router &x, uint32_t i, uint32_t first, uint32_t end)
{
    uint32_t ready = x.ready[i], count = 0;

    for (uint32_t k = first + x.lane; k < end; k += 32)
        count += x.ready[k] < ready || (x.ready[k] == ready && k < i);
    return __reduce_add_sync(ALL_LANES, count);
}

struct listed {
    uint32_t group, at, rows; /* of the list */
};

/* The own entry, the `number`th of the list; `slot`: its first one, of the own rank's. */
PTX void write_entry(const site &s, const router &x, uint32_t number, const listed &e, uint32_t slot)
{
    uint32_t *list = control_words(s, x.route.list) + 3 * number, *index = control_words(s, x.route.index);

    if (number >= x.route.list_rows)
        __trap();
    if (x.lane == 0) {
        list[0] = e.group;
        list[1] = e.at;
        list[2] = e.rows;
    }
    for (uint32_t base = x.lane; base < e.rows; base += 32 * ROUTE_BATCH) {
        uint32_t value[ROUTE_BATCH];

#pragma unroll
        for (int b = 0; b < ROUTE_BATCH; b++)
            value[b] = x.value[slot + min(base + b * 32, e.rows - 1)];
#pragma unroll
        for (int b = 0; b < ROUTE_BATCH; b++) {
            uint32_t k = base + b * 32;

            if (k < e.rows)
                index[e.at + k] = value[b];
            if (k < e.rows && x.route.lists_pulls)
                atomicMin(&x.mention[value[b]], number * x.route.tile_rows + k);
        }
    }
}

PTX void list_entry(const site &s, const router &x, uint32_t i)
{
    uint32_t tile = x.route.tile_rows, expert = expert_of_entry(x, i), rank = rank_of_expert(x, expert);
    uint32_t first_expert = first_expert_of(x, rank), first = x.entry[first_expert];
    uint32_t number = entries_before(x, i, first, x.entry[first_expert_of(x, rank + 1)]);
    uint32_t row = x.begin[expert] + (i - x.entry[expert]) * tile;
    listed e = {expert - first_expert, x.route.aligned ? number * tile : row - x.begin[first_expert],
                min(tile, x.begin[expert + 1] - row)};

    if (x.lane == 0)
        x.stands[i] = rank * x.route.stack_rows + e.at;
    if (x.first_rank + rank == x.route.rank)
        write_entry(s, x, number, e, (i - first) * tile);
}

PTX void write_lists(const site &s, const router &x, uint32_t thread)
{
    uint32_t *list = control_words(s, x.route.list);

    for (uint32_t i = x.warp; i < x.entry[x.experts]; i += GPU_ROUTE_WARPS)
        list_entry(s, x, i);
    for (uint32_t i = 3 * own_entries(x) + thread; i < 3 * x.route.list_rows; i += CONSUMERS)
        list[i] = 0;
}

/* ---- the way back ---- */

PTX uint32_t back_words(const gpu_route &g)
{
    return g.nodes * g.slot_rows * g.top_k;
}

PTX void clear_back(const site &s, const router &x, uint32_t thread)
{
    uint32_t *back = control_words(s, x.route.back);

    for (uint32_t i = thread; i < back_words(x.route); i += CONSUMERS)
        back[i] = (uint32_t)INDEX_DROPPED;
}

PTX void settle_back(const site &s, const router &x, uint32_t thread)
{
    uint32_t *back = control_words(s, x.route.back), tile = x.route.tile_rows;

    for (uint32_t i = thread; i < back_words(x.route); i += CONSUMERS)
        if (back[i] != (uint32_t)INDEX_DROPPED)
            back[i] = x.stands[back[i] / tile] + back[i] % tile;
}

/* ---- all of it ---- */

PTX void route_receipts(const site &s, router &x, uint32_t thread)
{
    if (x.route.returns)
        clear_back(s, x, thread);
    if (x.route.lists_pulls)
        clear_mentions(x, thread);
    place_arrivals(s, x);
    count_and_scan(x);
    drop_rows(x);
    place_rows(s, x);
    consumers_meet();
    write_lists(s, x, thread);
    consumers_meet();
    if (x.route.returns)
        settle_back(s, x, thread);
    if (x.route.lists_pulls)
        list_pulls(s, x, thread);
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
