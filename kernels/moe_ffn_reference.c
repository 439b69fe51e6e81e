#include "kernels/moe_ffn_reference.h"

#include <assert.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "core/check.h"
#include "core/program.h"
#include "core/route.h"
#include "kernels/moe_routing.h"

#define GATE_TERMS 64  /* expected non-zero weights in a row of gate or up */
#define DOWN_TERMS 16  /* in a row of down: few, so that a row's sum stands out of its rounding errors */
#define GATE_MAX 256.0 /* as docs/ffn-bound.md assumes of a sum */

/* ---- inputs: all exact in bf16, another draw for each element and epoch ---- */

static uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
    x = (x ^ x >> 27) * 0x94d049bb133111eb;
    return x ^ x >> 31;
}

/* +-magnitude with a chance of terms / depth, else 0. */
static float sparse(uint64_t hash, uint64_t terms, uint64_t depth, float magnitude)
{
    if ((hash >> 32) * depth >> 32 >= terms)
        return 0;
    return hash & 1 ? magnitude : -magnitude;
}

static float value_of(uint32_t tensor, const struct moe_problem *p, uint64_t hash)
{
    switch (tensor) {
    case TENSOR_A: return (hash & 1 ? 1.0f : -1.0f) * (hash & 2 ? 1.0f : 0.5f);
    case TENSOR_GATE_UP: return sparse(hash, GATE_TERMS, p->hidden, 0.25f);
    case TENSOR_DOWN: return sparse(hash, DOWN_TERMS, p->inter, 0.5f);
    default: /* TENSOR_WEIGHTS: eighths */ return (float)(1 + (hash & 7)) / 8;
    }
}

static void input(const struct problem *global, uint64_t seed, uint64_t epoch, uint32_t tensor, uint64_t row,
                  uint64_t col, uint64_t count, float *out)
{
    uint64_t key = mix(mix(mix(seed + 0x9e3779b97f4a7c15) ^ epoch) + tensor);

    key = mix(key ^ row);
    for (uint64_t i = 0; i < count; i++)
        out[i] = value_of(tensor, &global->moe, mix(key + (col + i) * 0x9e3779b97f4a7c15));
}

/* ---- one expert and one token ---- */

struct layer {
    const struct problem *global;
    uint64_t seed, epoch;
    float *gate_up, *down; /* [2 * inter, hidden], [hidden, inter]: of the expert in hand */
    float *token;          /* [hidden] */
    double *active;        /* [inter] */
};

static void load_expert(struct layer *l, uint64_t expert)
{
    uint64_t hidden = l->global->moe.hidden, inter = l->global->moe.inter;

    for (uint64_t i = 0; i < 2 * inter; i++)
        input(l->global, l->seed, l->epoch, TENSOR_GATE_UP, expert * 2 * inter + i, 0, hidden, l->gate_up + i * hidden);
    for (uint64_t i = 0; i < hidden; i++)
        input(l->global, l->seed, l->epoch, TENSOR_DOWN, expert * hidden + i, 0, inter, l->down + i * inter);
}

static double product(const float *x, const float *y, uint64_t count)
{
    double sum = 0;

    for (uint64_t i = 0; i < count; i++)
        sum += (double)x[i] * (double)y[i];
    return sum;
}

static void activate(struct layer *l, uint64_t token)
{
    uint64_t hidden = l->global->moe.hidden, inter = l->global->moe.inter;

    input(l->global, l->seed, l->epoch, TENSOR_A, token, 0, hidden, l->token);
    for (uint64_t i = 0; i < inter; i++) {
        uint64_t group = i / SWIGLU_GROUP * SWIGLU_GROUP, width = min_u64(SWIGLU_GROUP, inter - group);
        const float *gate_row = l->gate_up + (2 * group + i - group) * hidden;
        double gate = product(l->token, gate_row, hidden);

        assert(fabs(gate) <= GATE_MAX);
        l->active[i] = gate / (1 + exp(-gate)) * product(l->token, gate_row + width * hidden, hidden);
    }
}

/* ---- sums over experts ---- */

/* What is known of an element: its value so far; of its terms, the weighted sums of magnitudes and of errors. */
struct sum {
    double value, magnitude, error;
};

#define F32_UNIT (1.0 / 16777216) /* unit roundoffs: half of a step below 1 */
#define BF16_UNIT (1.0 / 256)

/* Adds weight times the expert's row for the token in hand. */
static void add_row(const struct layer *l, double weight, uint64_t col, uint64_t cols, struct sum *out)
{
    uint64_t inter = l->global->moe.inter;

    for (uint64_t j = 0; j < cols; j++) {
        const float *down = l->down + (col + j) * inter;
        double value = 0, magnitude = 0;

        for (uint64_t i = 0; i < inter; i++) {
            value += l->active[i] * (double)down[i];
            magnitude += fabs(l->active[i] * (double)down[i]);
        }
        out[j].value += weight * value;
        out[j].magnitude += weight * fabs(value);
        out[j].error +=
            weight * (1.02 * BF16_UNIT * (magnitude + fabs(value)) + 1.02 * F32_UNIT * (double)inter * magnitude);
    }
}

static double tolerance(const struct moe_problem *p, const struct sum *s)
{
    double additions = (double)(p->top_k + p->world.nodes + 2);

    return s->error + 1.02 * BF16_UNIT * (s->magnitude + fabs(s->value)) + F32_UNIT * additions * s->magnitude;
}

/* ---- which choices there is room for ---- */

/* By row and choice: the expert, or -1 where the pair was dropped. */
static void find_kept(const struct problem *global, uint64_t seed, uint64_t epoch, uint64_t row, uint64_t rows,
                      int32_t *out)
{
    const struct moe_problem *p = &global->moe;
    uint32_t ranks = world_ranks(p->world);
    uint64_t room = moe_capacity_rows(p, p->world);
    uint64_t *count = calloc(ranks, sizeof *count);
    int32_t choices[MOE_TOP_K_MAX];

    assert(count);
    for (uint64_t token = 0; token < row + rows; token++) {
        moe_choices(p, seed, epoch, token, choices);
        for (uint64_t j = 0; j < p->top_k; j++) {
            uint32_t rank = part_of(p->experts, ranks, (uint64_t)choices[j]);
            bool kept = count[rank] < room;

            count[rank] += kept;
            if (token >= row)
                out[(token - row) * p->top_k + j] = kept ? choices[j] : -1;
        }
    }
    free(count);
}

/* ---- the check ---- */

static uint64_t memory_bytes(const struct problem *global)
{
    const struct moe_problem *p = &global->moe;
    uint64_t rows = ceil_div(p->tokens, world_ranks(p->world));

    return 3 * p->inter * p->hidden * sizeof(float) + p->hidden * sizeof(float) + p->inter * sizeof(double) +
           rows * (p->hidden * sizeof(struct sum) + p->top_k * sizeof(int32_t)) +
           world_ranks(p->world) * sizeof(uint64_t);
}

static void *allocate(uint64_t count, size_t size)
{
    void *p = calloc(count + 1, size);

    assert(p); /* promised by check_memory_bytes() */
    return p;
}

/* All rows that chose the expert. */
static void add_expert(struct layer *l, uint64_t expert, const int32_t *kept, uint64_t row, uint64_t rows, uint64_t col,
                       uint64_t cols, struct sum *out)
{
    uint64_t top_k = l->global->moe.top_k;
    bool loaded = false;

    for (uint64_t i = 0; i < rows * top_k; i++) {
        float weight;

        if (kept[i] < 0 || (uint64_t)kept[i] != expert)
            continue;
        if (!loaded)
            load_expert(l, expert);
        loaded = true;
        activate(l, row + i / top_k);
        input(l->global, l->seed, l->epoch, TENSOR_WEIGHTS, row + i / top_k, i % top_k, 1, &weight);
        add_row(l, (double)weight, col, cols, out + i / top_k * cols);
    }
}

static void expected(const struct problem *global, uint64_t seed, uint64_t epoch, uint64_t row, uint64_t rows,
                     uint64_t col, uint64_t cols, struct expected *out)
{
    const struct moe_problem *p = &global->moe;
    struct layer l = {.global = global, .seed = seed, .epoch = epoch};
    struct sum *sums = allocate(rows * cols, sizeof *sums);
    int32_t *kept = allocate(rows * p->top_k, sizeof *kept);

    l.gate_up = allocate(2 * p->inter * p->hidden, sizeof *l.gate_up);
    l.down = allocate(p->inter * p->hidden, sizeof *l.down);
    l.token = allocate(p->hidden, sizeof *l.token);
    l.active = allocate(p->inter, sizeof *l.active);
    find_kept(global, seed, epoch, row, rows, kept);
    for (uint64_t expert = 0; expert < p->experts; expert++)
        add_expert(&l, expert, kept, row, rows, col, cols, sums);
    for (uint64_t i = 0; i < rows * cols; i++)
        out[i] = (struct expected){(float)sums[i].value, (float)tolerance(p, &sums[i])};
    free(sums);
    free(kept);
    free(l.gate_up);
    free(l.down);
    free(l.token);
    free(l.active);
}

const struct bounded_check reference_moe_ffn = {
    .input = input,
    .expected = expected,
    .memory_bytes = memory_bytes,
};
