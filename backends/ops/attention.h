/* One attention task's arithmetic in f32: a block of keys at a time, with the running maximum, sum and result
 * of each query (Milakov and Gimelshein, Online normalizer calculation for softmax, 2018).
 *
 * Rounding points: scores, weights and sums are f32; the weights are not rounded to bf16; one rounding where
 * the result is stored. */
#ifndef BACKENDS_OPS_ATTENTION_H
#define BACKENDS_OPS_ATTENTION_H

#include <stdint.h>

#include "backends/ops/element.h"

/* Zeroed, then grown by tasks; one per thread. */
struct attention_state {
    float *q, *keys, *values; /* [m, n], [ATTENTION_KEYS, n], [n, ATTENTION_KEYS]: values transposed */
    float *weights, *result;  /* [m, ATTENTION_KEYS], [m, n] */
    float *highest, *sum;     /* [m]: the largest score so far, and the sum of exp(score - highest) */
    uint64_t room;            /* floats behind q, which holds all of them */
};

#define ATTENTION_KEYS 64 /* of a block; bounds the scratch, whatever a segment's length */

uint64_t attention_scratch_bytes(const struct task *task);
void attention_fini(struct attention_state *s);

void attention_begin(struct attention_state *s, const struct task *task);
void attention_step(struct attention_state *s, const struct task *task, const struct segment *segment,
                    const struct matrix *q, const struct matrix *keys, const struct matrix *values);

/* Divides by the sums, merges with what the task before left (`before` and lse; NULL: none), and writes lse
 * if the task leaves it. */
void attention_finish(struct attention_state *s, const struct task *task, const struct matrix *before,
                      const struct matrix *lse);
const float *attention_row(const struct attention_state *s, const struct task *task, uint64_t row);

#endif
