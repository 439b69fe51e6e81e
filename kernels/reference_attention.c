/* Attention once more: for each query all scores, their softmax, the weighted sum of values, in double.
 *
 * Inputs (all exact in bf16).  Queries and keys are +-1/2 and +-1, so a score before scaling is a sum of
 * quarters and exact in f32.  Values are +-1/2 and +-1 with a sign that KEYS_PER_SIGN consecutive positions of
 * a column share and that changes with the epoch: keys left out, used twice or taken from an earlier epoch move
 * the result by far more than rounding can (docs/attention-bound.md derives both). */
#include "kernels/reference.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "core/attention.h"
#include "core/check.h"

#define KEYS_PER_SIGN 16

static uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
    x = (x ^ x >> 27) * 0x94d049bb133111eb;
    return x ^ x >> 31;
}

static uint64_t key_of(uint64_t seed, uint64_t epoch, uint64_t side, uint64_t head, uint64_t position)
{
    return mix(mix(mix(mix(mix(seed + 0x9e3779b97f4a7c15) ^ epoch) + side) ^ head) + position);
}

static float half_or_one(uint64_t hash)
{
    return (hash >> 40 & 1 ? 1.0f : 0.5f) * (hash >> 41 & 1 ? 1.0f : -1.0f);
}

static void fill_row(uint64_t seed, uint64_t epoch, const struct attention_place *at, uint64_t col, uint64_t count,
                     float *out)
{
    uint64_t row = key_of(seed, epoch, at->side, at->head, at->position);
    uint64_t group = key_of(seed, epoch, at->side + 8, at->head, at->position / KEYS_PER_SIGN);

    for (uint64_t j = 0; j < count; j++) {
        out[j] = half_or_one(mix(row + col + j));
        if (at->side == SIDE_VALUES)
            out[j] = copysignf(out[j], half_or_one(mix(group + col + j)));
    }
}

static void input(const struct problem *global, uint64_t seed, uint64_t epoch, uint32_t tensor, uint64_t row,
                  uint64_t col, uint64_t count, float *out)
{
    const struct attention_problem *a = &global->attention;
    struct attention_place at = tensor == TENSOR_Q ? attention_query_at(a, row) : attention_key_at(a, row);

    fill_row(seed, epoch, &at, col, count, out);
}

/* The keys and values of one head. */
struct head {
    uint64_t number;      /* UINT64_MAX: none yet */
    float *keys, *values; /* [seq, head_dim] */
    double *weights;      /* [seq] */
};

static void fill_head(const struct attention_problem *a, uint64_t seed, uint64_t epoch, uint64_t number, struct head *h)
{
    if (h->number == number)
        return;
    h->number = number;
    for (uint64_t i = 0; i < a->seq; i++) {
        struct attention_place key = {SIDE_KEYS, number, i, 1}, value = {SIDE_VALUES, number, i, 1};

        fill_row(seed, epoch, &key, 0, a->head_dim, h->keys + i * a->head_dim);
        fill_row(seed, epoch, &value, 0, a->head_dim, h->values + i * a->head_dim);
    }
}

/* Weights of the first `count` keys, which sum to 1. */
static void weigh(const struct attention_problem *a, const float *query, uint64_t count, struct head *h)
{
    double highest = -INFINITY, sum = 0;

    for (uint64_t j = 0; j < count; j++) {
        double score = 0;

        for (uint64_t d = 0; d < a->head_dim; d++)
            score += (double)query[d] * (double)h->keys[j * a->head_dim + d];
        h->weights[j] = score / sqrt((double)a->head_dim);
        highest = fmax(highest, h->weights[j]);
    }
    for (uint64_t j = 0; j < count; j++)
        sum += h->weights[j] = exp(h->weights[j] - highest);
    for (uint64_t j = 0; j < count; j++)
        h->weights[j] /= sum;
}

/* docs/attention-bound.md; `magnitude` is the weighted sum of |value|. */
static double tolerance(const struct attention_problem *a, uint64_t count, double result, double magnitude)
{
    double bf16 = 1.0 / 256, f32 = 1.0 / 16777216; /* unit roundoffs: half of a step below 1 */

    return bf16 * (fabs(result) + magnitude) * 1.01 +
           f32 * (3.0 * (double)count + 16.0 * (double)a->stripes + 128) * magnitude;
}

static void attend(const struct attention_problem *a, const float *query, uint64_t count, struct head *h, uint64_t col,
                   uint64_t cols, struct expected *out)
{
    weigh(a, query, count, h);
    for (uint64_t d = 0; d < cols; d++) {
        double result = 0, magnitude = 0;

        for (uint64_t j = 0; j < count; j++) {
            double share = h->weights[j] * (double)h->values[j * a->head_dim + col + d];

            result += share;
            magnitude += fabs(share);
        }
        out[d] = (struct expected){(float)result, (float)tolerance(a, count, result, magnitude)};
    }
}

static uint64_t memory_bytes(const struct problem *global)
{
    const struct attention_problem *a = &global->attention;

    return a->seq * (2 * a->head_dim * sizeof(float) + sizeof(double)) + a->head_dim * sizeof(float);
}

static void expected(const struct problem *global, uint64_t seed, uint64_t epoch, uint64_t row, uint64_t rows,
                     uint64_t col, uint64_t cols, struct expected *out)
{
    const struct attention_problem *a = &global->attention;
    float *query = malloc(a->head_dim * sizeof *query);
    struct head h = {.number = UINT64_MAX,
                     .keys = malloc(a->seq * a->head_dim * sizeof(float)),
                     .values = malloc(a->seq * a->head_dim * sizeof(float)),
                     .weights = malloc(a->seq * sizeof(double))};

    assert(query && h.keys && h.values && h.weights); /* promised by check_memory_bytes() */
    for (uint64_t i = 0; i < rows; i++) {
        struct attention_place at = attention_query_at(a, row + i);

        fill_head(a, seed, epoch, attention_key_head(a, at.head), &h);
        fill_row(seed, epoch, &at, 0, a->head_dim, query);
        attend(a, query, attention_keys_seen(a, at.position), &h, col, cols, out + i * cols);
    }
    free(query);
    free(h.keys);
    free(h.values);
    free(h.weights);
}

const struct bounded_check reference_attention = {
    .input = input,
    .expected = expected,
    .memory_bytes = memory_bytes,
};
