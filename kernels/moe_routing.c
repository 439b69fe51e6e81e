#include "kernels/moe_routing.h"

#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>

#include "core/route.h"

#define BF16_BYTES 2
#define DRAWS_MAX 64 /* then the next free expert is taken: rare experts must not take for ever */

/* splitmix64's finaliser, as in core/check.c. */
static uint64_t scramble(uint64_t x)
{
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

/* One of `experts`, from 32 random bits. */
static uint64_t draw(const struct moe_problem *p, uint64_t experts, uint64_t bits)
{
    uint64_t u = bits & 0xffffffff;

    if (p->routing == MOE_SKEWED)
        u = u * u >> 32;
    return u * experts >> 32;
}

static bool is_chosen(const int32_t *chosen, uint64_t count, uint64_t expert)
{
    for (uint64_t i = 0; i < count; i++)
        if ((uint64_t)chosen[i] == expert)
            return true;
    return false;
}

void moe_choices(const struct moe_problem *p, uint64_t seed, uint64_t epoch, uint64_t token, int32_t *out)
{
    uint64_t key = scramble(scramble(seed + 0x9e3779b97f4a7c15u) ^ scramble(epoch));
    uint64_t experts = p->experts;

    if (p->routing == MOE_HALF)
        experts = max_u64(p->top_k, p->experts / 2);
    if (p->routing != MOE_HOT)
        key = scramble(key + token);
    for (uint64_t i = 0; i < p->top_k; i++) {
        uint64_t expert = 0;

        for (uint32_t tries = 0; tries < DRAWS_MAX; tries++) {
            key = scramble(key + 0x9e3779b97f4a7c15u);
            expert = draw(p, experts, key);
            if (!is_chosen(out, i, expert))
                break;
        }
        while (is_chosen(out, i, expert))
            expert = (expert + 1) % experts;
        out[i] = (int32_t)expert;
    }
}

void moe_control(const struct problem *problem, uint64_t seed, uint64_t epoch, uint64_t row, uint64_t rows,
                 int32_t *out)
{
    for (uint64_t i = 0; i < rows; i++)
        moe_choices(&problem->moe, seed, epoch, row + i, out + i * problem->moe.top_k);
}

/* ---- traffic, counted token by token ---- */

struct tally {
    const struct moe_problem *p;
    struct world world;
    uint64_t *sent_inter, *sent_intra, *got_inter, *got_intra; /* once, by rank, in rows */
    uint64_t *sent_inter_each, *sent_intra_each, *got_inter_each, *got_intra_each;
    uint64_t *expert_rows;
};

static void move(uint64_t *sent, uint64_t *got, uint32_t from, uint32_t to)
{
    sent[from]++;
    got[to]++;
}

/* To every node once, to the rank of the own rail; from there to each rank with an expert once. */
static void tally_token(const struct tally *x, uint64_t token, const int32_t *choices, struct traffic *out)
{
    uint32_t ranks = world_ranks(x->world), from = part_of(x->p->tokens, ranks, token);
    uint32_t to[MOE_TOP_K_MAX];

    for (uint64_t j = 0; j < x->p->top_k; j++) {
        bool new_rank = true, new_node = true, here;
        uint32_t holder;

        to[j] = part_of(x->p->experts, ranks, (uint64_t)choices[j]);
        holder = world_rank(x->world, world_node(x->world, to[j]), world_gpu(x->world, from));
        here = world_same_node(x->world, from, to[j]);
        for (uint64_t i = 0; i < j; i++) {
            new_rank &= to[i] != to[j];
            new_node &= !world_same_node(x->world, to[i], to[j]);
        }
        x->expert_rows[choices[j]]++;
        if (!here && new_node) {
            move(x->sent_inter, x->got_inter, from, holder);
            out->sparse_bytes++;
        }
        if (new_rank && holder != to[j])
            move(x->sent_intra, x->got_intra, holder, to[j]);
        if (!here)
            move(x->sent_inter_each, x->got_inter_each, from, to[j]);
        else if (to[j] != from)
            move(x->sent_intra_each, x->got_intra_each, from, to[j]);
    }
}

static uint64_t most(const struct tally *x, const uint64_t *a, const uint64_t *b)
{
    uint64_t rows = 0;

    for (uint32_t rank = 0; rank < world_ranks(x->world); rank++)
        rows = max_u64(rows, max_u64(a[rank], b[rank]));
    return rows * x->p->hidden * BF16_BYTES;
}

static void tally_rows(const struct tally *x, uint64_t tile_rows, struct traffic *out)
{
    uint32_t ranks = world_ranks(x->world);

    for (uint32_t rank = 0; rank < ranks; rank++) {
        uint64_t rows = 0, tiles = 0;

        for (uint64_t e = part_begin(x->p->experts, ranks, rank); e < part_begin(x->p->experts, ranks, rank + 1u);
             e++) {
            rows += x->expert_rows[e];
            tiles += ceil_div(x->expert_rows[e], tile_rows);
        }
        out->rows_max = max_u64(out->rows_max, rows);
        out->tile_rows_max = max_u64(out->tile_rows_max, tiles * tile_rows);
    }
}

void moe_traffic(const struct problem *problem, struct world world, uint64_t seed, uint64_t epoch, uint64_t tile_rows,
                 struct traffic *out)
{
    const struct moe_problem *p = &problem->moe;
    uint64_t ranks = world_ranks(world), row_bytes = p->hidden * BF16_BYTES;
    uint64_t *counts = calloc(8 * ranks + p->experts, sizeof *counts);
    struct tally x = {p,
                      world,
                      counts,
                      counts + ranks,
                      counts + 2 * ranks,
                      counts + 3 * ranks,
                      counts + 4 * ranks,
                      counts + 5 * ranks,
                      counts + 6 * ranks,
                      counts + 7 * ranks,
                      counts + 8 * ranks};
    int32_t choices[MOE_TOP_K_MAX];

    assert(counts); /* a few words per rank and expert */
    *out = (struct traffic){.dense_bytes = p->tokens * (world.nodes - 1) * row_bytes};
    for (uint64_t token = 0; token < p->tokens; token++) {
        moe_choices(p, seed, epoch, token, choices);
        tally_token(&x, token, choices, out);
    }
    out->sparse_bytes *= row_bytes;
    out->inter_once_max = most(&x, x.sent_inter, x.got_inter);
    out->intra_once_max = most(&x, x.sent_intra, x.got_intra);
    out->inter_each_max = most(&x, x.sent_inter_each, x.got_inter_each);
    out->intra_each_max = most(&x, x.sent_intra_each, x.got_intra_each);
    tally_rows(&x, tile_rows, out);
    free(counts);
}

void moe_ffn_traffic(const struct problem *problem, struct world world, uint64_t seed, uint64_t epoch,
                     uint64_t tile_rows, struct traffic *out)
{
    uint64_t row_bytes = problem->moe.hidden * BF16_BYTES, weight_bytes = problem->moe.top_k * sizeof(float);

    moe_traffic(problem, world, seed, epoch, tile_rows, out);
    out->sparse_bytes = out->sparse_bytes / row_bytes * (2 * row_bytes + weight_bytes);
    out->dense_bytes = out->dense_bytes / row_bytes * (2 * row_bytes + weight_bytes);
}
