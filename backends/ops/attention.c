#include "backends/ops/attention.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "backends/ops/blas.h"

static uint64_t scratch_floats(const struct task *t)
{
    return 2 * t->m * t->n + 2 * ATTENTION_KEYS * t->n + t->m * ATTENTION_KEYS + 2 * t->m;
}

uint64_t attention_scratch_bytes(const struct task *task)
{
    return scratch_floats(task) * sizeof(float);
}

void attention_fini(struct attention_state *s)
{
    free(s->q);
    *s = (struct attention_state){.room = 0};
}

void attention_begin(struct attention_state *s, const struct task *t)
{
    uint64_t needed = scratch_floats(t);

    if (needed > s->room) {
        free(s->q);
        s->q = malloc(needed * sizeof *s->q);
        assert(s->q); /* promised by tile_scratch_bytes() */
        s->room = needed;
    }
    if (needed == 0)
        return;
    s->keys = s->q + t->m * t->n;
    s->values = s->keys + ATTENTION_KEYS * t->n;
    s->weights = s->values + ATTENTION_KEYS * t->n;
    s->result = s->weights + t->m * ATTENTION_KEYS;
    s->highest = s->result + t->m * t->n;
    s->sum = s->highest + t->m;
    memset(s->result, 0, t->m * t->n * sizeof *s->result);
    for (uint64_t i = 0; i < t->m; i++) {
        s->highest[i] = -INFINITY;
        s->sum[i] = 0;
    }
}

/* weights[m, count] = scaled scores of the block's keys; minus infinity where the mask hides a key. */
static void score(struct attention_state *s, const struct task *t, uint64_t first_position, uint64_t count)
{
    float scale = 1 / sqrtf((float)t->n);

    memset(s->weights, 0, t->m * count * sizeof *s->weights);
    blas_add_product(t->m, count, t->n, s->q, s->keys, s->weights);
    for (uint64_t i = 0; i < t->m; i++)
        for (uint64_t j = 0; j < count; j++) {
            bool hidden = t->attention.causal && first_position + j > t->attention.position + i;
            float *x = &s->weights[i * count + j];

            *x = hidden ? -INFINITY : *x * scale;
        }
}

/* Turns a query's scores into weights below its new maximum, and scales what it has so far to that. */
static void normalise(struct attention_state *s, const struct task *t, uint64_t i, uint64_t count)
{
    float *x = s->weights + i * count, *result = s->result + i * t->n, highest = s->highest[i], scale;

    for (uint64_t j = 0; j < count; j++)
        highest = fmaxf(highest, x[j]);
    if (highest == -INFINITY) { /* this query has seen no key yet */
        memset(x, 0, count * sizeof *x);
        return;
    }
    scale = expf(s->highest[i] - highest); /* 0 where there was none */
    s->sum[i] *= scale;
    for (uint64_t d = 0; d < t->n; d++)
        result[d] *= scale;
    for (uint64_t j = 0; j < count; j++) {
        x[j] = expf(x[j] - highest);
        s->sum[i] += x[j];
    }
    s->highest[i] = highest;
}

static void load_block(struct attention_state *s, const struct task *t, const struct matrix *keys,
                       const struct matrix *values, uint64_t first, uint64_t count)
{
    float row[1024];

    assert(t->n <= 1024);
    for (uint64_t j = 0; j < count; j++) {
        matrix_load_row(keys, first + j, 0, t->n, s->keys + j * t->n);
        matrix_load_row(values, first + j, 0, t->n, row);
        for (uint64_t d = 0; d < t->n; d++)
            s->values[d * count + j] = row[d];
    }
}

void attention_step(struct attention_state *s, const struct task *t, const struct segment *segment,
                    const struct matrix *q, const struct matrix *keys, const struct matrix *values)
{
    if (t->m == 0 || t->n == 0)
        return;
    for (uint64_t i = 0; i < t->m; i++)
        matrix_load_row(q, i, 0, t->n, s->q + i * t->n);
    for (uint64_t first = 0; first < segment->k; first += ATTENTION_KEYS) {
        uint64_t count = min_u64(ATTENTION_KEYS, segment->k - first);

        load_block(s, t, keys, values, first, count);
        score(s, t, segment->position + first, count);
        for (uint64_t i = 0; i < t->m; i++)
            normalise(s, t, i, count);
        blas_add_product(t->m, t->n, count, s->weights, s->values, s->result);
    }
}

/* result' = result * w + before * (1 - w) with the shares that the two log-sum-exps give. */
static float merge(struct attention_state *s, const struct task *t, uint64_t i, float lse, const struct matrix *before,
                   const struct matrix *lse_at)
{
    float lse_before, highest, ours, theirs, *result = s->result + i * t->n, row[1024];

    matrix_load_row(lse_at, i, 0, 1, &lse_before);
    matrix_load_row(before, i, 0, t->n, row);
    highest = fmaxf(lse, lse_before);
    if (highest == -INFINITY)
        return lse;
    ours = expf(lse - highest);
    theirs = expf(lse_before - highest);
    for (uint64_t d = 0; d < t->n; d++)
        result[d] = (result[d] * ours + row[d] * theirs) / (ours + theirs);
    return highest + logf(ours + theirs);
}

void attention_finish(struct attention_state *s, const struct task *t, const struct matrix *before,
                      const struct matrix *lse_at)
{
    for (uint64_t i = 0; i < t->m; i++) {
        float lse = s->sum[i] > 0 ? s->highest[i] + logf(s->sum[i]) : -INFINITY;

        for (uint64_t d = 0; d < t->n && s->sum[i] > 0; d++)
            s->result[i * t->n + d] /= s->sum[i];
        if (before)
            lse = merge(s, t, i, lse, before, lse_at);
        if (t->attention.leaves)
            matrix_store_row(lse_at, i, 0, 1, &lse);
    }
}

const float *attention_row(const struct attention_state *s, const struct task *t, uint64_t row)
{
    return s->result + row * t->n;
}
