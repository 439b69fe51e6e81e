/* How a route walks through tokens (core/route.h).
 *
 * Each warp has a run of tokens.  It takes 32 at a time, a lane a token, each with a mask of the
 * experts that the token chose; transposed, each lane has an expert with a mask of tokens, so that
 * places follow from counting bits, in order. */
#ifndef BACKENDS_CUDA_ROUTE_WALK_CUH
#define BACKENDS_CUDA_ROUTE_WALK_CUH

#include "backends/cuda/plain.cuh"
#include "core/route.h"

/* Divides without a division, which the walk would spend most of its time on: `guess` is 2^32 / by or less, so
 * that a quotient below 2^31 is too low by one at most. */
struct divisor {
    uint32_t by, guess;
};

PTX divisor divisor_of(uint32_t by)
{
    return {by, UINT32_MAX / by};
}

PTX uint32_t divide(const divisor &d, uint32_t n, uint32_t *rest_out)
{
    uint32_t q = __umulhi(n, d.guess), rest = n - q * d.by;
    bool more = rest >= d.by;

    *rest_out = more ? rest - d.by : rest;
    return q + more;
}

/* So many items shared out to the ranks, as part_begin() says. */
struct shares {
    uint32_t each, rest;
};

/* A receiving route follows the own rank, or, where it says what goes back, its whole node:
 * experts, rows and entries are first numbered through all that it follows. */
struct router {
    const gpu_route &route;
    const int32_t *table;
    uint32_t warp, lane;
    uint32_t node;                           /* the own one */
    divisor ranks_in_all, gpus, shard, tile; /* the longest shard; rows of an entry */
    shares tokens, all_experts;
    uint32_t first_rank, ranks;     /* that are followed */
    uint32_t first_expert, experts; /* theirs */
    uint32_t *counts;               /* [warp][expert]: how many, then how many before the warp's */
    uint32_t *begin, *entry;        /* [expert and one more]: first row, first entry */
    uint32_t *kept_ends;            /* [rank]: pairs from this one on are dropped: token * top_k + choice */
    uint32_t *ready;                /* [entry] */
    uint32_t *stands;               /* [entry]: its first row among the stacked results */
    uint32_t *place;                /* [token] */
    uint32_t *value;                /* [slot]: of the own rank's, see slot_of() */
    uint32_t *mention;              /* [row of the stack]: its first one, see list_pulls() */
    uint32_t *pull;                 /* [the same]: its place among the pulls */
    uint32_t *firsts;               /* [mention / 32]: a bit for each first one */
    uint32_t *firsts_before;        /* [the same]: how many there are before these */
    bool drops;                     /* some pairs; kept_ends says which */
};

#define NOTHING_DROPPED UINT32_MAX

PTX uint32_t share_begin(const router &x, const shares &h, uint32_t rank)
{
    uint32_t rest;

    return h.each * rank + divide(x.ranks_in_all, h.rest * rank, &rest);
}

PTX uint32_t share_size(const router &x, const shares &h, uint32_t rank)
{
    return share_begin(x, h, rank + 1) - share_begin(x, h, rank);
}

/* Of the stack: those that all ranks of the node hold. */
PTX uint32_t held_rows(const gpu_route &g)
{
    return g.gpus * g.nodes * g.slot_rows;
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
    uint32_t all = g.nodes * g.gpus, *words = (uint32_t *)g.scratch;
    router x = {g, (const int32_t *)control_words(s, g.table), thread / 32, thread % 32, g.rank / g.gpus};

    x.ranks_in_all = divisor_of(all);
    x.gpus = divisor_of(g.gpus);
    x.shard = divisor_of((g.tokens + all - 1) / all);
    x.tile = divisor_of(g.tile_rows);
    x.tokens = {g.tokens / all, g.tokens % all};
    x.all_experts = {g.experts / all, g.experts % all};
    x.first_rank = g.returns ? g.rank / g.gpus * g.gpus : g.rank;
    x.ranks = g.returns ? g.gpus : 1;
    x.first_expert = share_begin(x, x.all_experts, x.first_rank);
    x.experts = share_begin(x, x.all_experts, x.first_rank + x.ranks) - x.first_expert;
    x.counts = words;
    x.begin = x.counts + GPU_ROUTE_WARPS * x.experts;
    x.entry = x.begin + x.experts + 1;
    x.kept_ends = x.entry + x.experts + 1;
    x.ready = x.kept_ends + x.ranks;
    x.stands = x.ready + x.ranks * g.list_rows;
    x.place = x.stands + x.ranks * g.list_rows;
    x.value = x.place + g.tokens;
    x.mention = x.value + (uint64_t)g.list_rows * g.tile_rows;
    x.pull = x.mention + held_rows(g);
    x.firsts = x.pull + held_rows(g);
    x.firsts_before = x.firsts + GPU_ROUTE_FIRSTS(g.list_rows * g.tile_rows);
    return x;
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

/* Which of experts [first, first + count) the batch's tokens chose, by pairs before kept_end. */
PTX void find_masks(const router &x, batch &k, uint32_t first, uint32_t count, uint32_t kept_end)
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
            uint32_t kept = pair < kept_end ? kept_end - pair : 0;

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

/* Calls take(i, goes, number) for the i-th token of a rank: whether it chose an expert of the node,
 * and how many before it did.  By one warp; returns how many do. */
template <class Take> PTX uint32_t each_token(const router &x, uint32_t rank, uint32_t node, Take take)
{
    const gpu_route &g = x.route;
    uint32_t begin = share_begin(x, x.tokens, rank), size = share_size(x, x.tokens, rank), count = 0;
    uint32_t first = share_begin(x, x.all_experts, node * g.gpus);
    uint32_t experts = share_begin(x, x.all_experts, (node + 1) * g.gpus) - first;

    for (uint32_t base = 0; base < size; base += 32 * ROUTE_BATCH) {
        batch k;

#pragma unroll
        for (int b = 0; b < ROUTE_BATCH; b++)
            k.token[b] = base + b * 32 + x.lane < size ? begin + base + b * 32 + x.lane : NO_TOKEN;
        find_masks(x, k, first, experts, NOTHING_DROPPED);
#pragma unroll
        for (int b = 0; b < ROUTE_BATCH; b++) {
            uint32_t goers = __ballot_sync(ALL_LANES, k.mask[b] != 0);

            if (k.token[b] != NO_TOKEN)
                take(k.token[b] - begin, k.mask[b] != 0, count + __popc(goers & ((1u << x.lane) - 1)));
            count += __popc(goers);
        }
    }
    return count;
}

/* ---- the walk: tokens in the order in which they can be here, dealt out to the warps in runs ----
 */

struct walk_run {
    uint32_t first, end;
};

PTX walk_run run_of(const router &x)
{
    uint32_t all = x.shard.by * x.ranks_in_all.by;
    uint32_t each = (all + GPU_ROUTE_WARPS - 1) / GPU_ROUTE_WARPS, first = min(x.warp * each, all);

    return {first, min(first + each, all)};
}

struct walker {
    uint32_t token; /* or NO_TOKEN: that rank's shard is shorter */
    uint32_t step;  /* when it can be here */
    uint32_t gpu, node;
};

PTX walker walker_at(const router &x, uint32_t at)
{
    const gpu_route &g = x.route;
    uint32_t gpu, place, back = divide(x.shard, divide(x.gpus, at, &gpu), &place);
    uint32_t node = x.node >= back ? x.node - back : x.node + g.nodes - back;
    uint32_t from = node * g.gpus + gpu, token = share_begin(x, x.tokens, from) + place;

    return {token < share_begin(x, x.tokens, from + 1) ? token : NO_TOKEN, back == 0 ? 0 : back * x.shard.by + place,
            gpu, node};
}

/* Experts that are looked at together: those of one rank where pairs are dropped, at most 32. */
struct expert_group {
    uint32_t first, count; /* of those that are followed */
    uint32_t kept_end;
};

/* Of the followed experts, where a rank's begin; `rank` may be the one behind the last. */
PTX uint32_t first_expert_of(const router &x, uint32_t rank)
{
    return share_begin(x, x.all_experts, x.first_rank + rank) - x.first_expert;
}

/* Of the own rank's experts. */
PTX uint32_t own_entries(const router &x)
{
    uint32_t own = x.route.rank - x.first_rank;

    return x.entry[first_expert_of(x, own + 1)] - x.entry[first_expert_of(x, own)];
}

/* The rank, of those that are followed. */
PTX uint32_t rank_of_expert(const router &x, uint32_t expert)
{
    uint32_t rank = 0;

    while (first_expert_of(x, rank + 1) <= expert)
        rank++;
    return rank;
}

PTX expert_group group_at(const router &x, uint32_t first)
{
    uint32_t rank = rank_of_expert(x, first);

    if (!x.drops)
        return {first, min(x.experts - first, 32), NOTHING_DROPPED};
    return {first, min(first_expert_of(x, rank + 1) - first, 32), x.kept_ends[rank]};
}

PTX void walk_batch(const router &x, const walk_run &run, uint32_t at, const expert_group &e, batch &k)
{
#pragma unroll
    for (int b = 0; b < ROUTE_BATCH; b++) {
        uint32_t mine = at + b * 32 + x.lane;

        k.token[b] = mine < run.end ? walker_at(x, mine).token : NO_TOKEN;
    }
    find_masks(x, k, x.first_expert + e.first, e.count, e.kept_end);
}

#endif
