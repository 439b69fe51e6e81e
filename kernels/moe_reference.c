#include "kernels/moe_reference.h"

#include <assert.h>
#include <stdlib.h>

#include "core/check.h"
#include "core/route.h"
#include "kernels/moe_routing.h"

#define SUM_MAX 256 /* what bf16 holds exactly, in any order of adding */

struct pair {
    uint64_t expert, distance, place, gpu, token;
};

static int compare_u64(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

static int by_row(const void *a, const void *b)
{
    const struct pair *x = a, *y = b;
    int order = compare_u64(x->expert, y->expert);

    if (order == 0)
        order = compare_u64(x->distance, y->distance);
    if (order == 0)
        order = compare_u64(x->place, y->place);
    return order ? order : compare_u64(x->gpu, y->gpu);
}

static void *allocate(uint64_t count, size_t size)
{
    void *p = calloc(count + 1, size);

    assert(p); /* promised by check_memory_bytes() */
    return p;
}

static struct pair pair_of(const struct moe_problem *p, uint32_t rank, uint64_t token, uint64_t expert)
{
    uint32_t nodes = p->world.nodes, ranks = world_ranks(p->world);
    uint32_t from = part_of(p->tokens, ranks, token);

    return (struct pair){
        .expert = expert,
        .distance = (world_node(p->world, rank) + nodes - world_node(p->world, from)) % nodes,
        .place = token - part_begin(p->tokens, ranks, from),
        .gpu = world_gpu(p->world, from),
        .token = token,
    };
}

/* The rank's pairs in the order of their rows; returns how many. */
static uint64_t list_pairs(const struct moe_problem *p, uint64_t seed, uint64_t epoch, uint32_t rank, uint64_t room,
                           struct pair *out)
{
    int32_t choices[MOE_TOP_K_MAX];
    uint64_t count = 0;

    for (uint64_t token = 0; token < p->tokens; token++) {
        moe_choices(p, seed, epoch, token, choices);
        for (uint64_t j = 0; j < p->top_k && count < room; j++)
            if (part_of(p->experts, world_ranks(p->world), (uint64_t)choices[j]) == rank)
                out[count++] = pair_of(p, rank, token, (uint64_t)choices[j]);
    }
    qsort(out, count, sizeof *out, by_row);
    return count;
}

static void multiply(const struct problem *g, const int8_t *x, const int8_t *w, uint64_t cols, int16_t *out)
{
    for (uint64_t j = 0; j < cols; j++) {
        int sum = 0, products = 0;

        for (uint64_t k = 0; k < g->k; k++) {
            sum += x[k] * w[j * g->k + k];
            products += x[k] && w[j * g->k + k];
        }
        assert(products <= SUM_MAX);
        out[j] = (int16_t)sum;
    }
}

static void fill_rank(const struct problem *g, uint64_t seed, uint64_t epoch, uint32_t rank, uint64_t first,
                      uint64_t rows, uint64_t col, uint64_t cols, int16_t *out)
{
    uint64_t room = g->m / world_ranks(g->moe.world), expert = UINT64_MAX;
    struct pair *pairs = allocate(room, sizeof *pairs);
    uint64_t count = list_pairs(&g->moe, seed, epoch, rank, room, pairs);
    int8_t *x = allocate(g->k, 1), *w = allocate(cols * g->k, 1);

    for (uint64_t i = 0; i < rows; i++) {
        const struct pair *pair = &pairs[first + i];

        if (first + i >= count) {
            for (uint64_t j = 0; j < cols; j++)
                out[i * cols + j] = CHECK_UNWRITTEN;
            continue;
        }
        for (uint64_t j = 0; pair->expert != expert && j < cols; j++)
            tensor_row(seed, epoch, TENSOR_B, g->k, pair->expert * g->n + col + j, 0, g->k, w + j * g->k);
        expert = pair->expert;
        tensor_row(seed, epoch, TENSOR_A, g->k, pair->token, 0, g->k, x);
        multiply(g, x, w, cols, out + i * cols);
    }
    free(pairs);
    free(x);
    free(w);
}

void reference_moe_dispatch(const struct problem *global, uint64_t seed, uint64_t epoch, uint64_t row, uint64_t rows,
                            uint64_t col, uint64_t cols, int16_t *out)
{
    uint64_t room = global->m / world_ranks(global->moe.world);

    while (rows > 0) {
        uint64_t first = row % room, count = min_u64(rows, room - first);

        fill_rank(global, seed, epoch, (uint32_t)(row / room), first, count, col, cols, out);
        row += count;
        rows -= count;
        out += count * cols;
    }
}
