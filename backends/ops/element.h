/* Matrices in windows, and their rows as f32. */
#ifndef BACKENDS_OPS_ELEMENT_H
#define BACKENDS_OPS_ELEMENT_H

#include <stdint.h>

#include "backends/ops/tile_ops.h"

struct matrix {
    enum dtype dtype;
    uint8_t *base;
    uint64_t ld; /* elements */
};

/* Where `o` stands in `owner`'s window (o->rank, or one of the ranks that RANK_NODE means).
 * Asserts that all of [rows, cols] lies inside the epoch's copy of the buffer. */
struct matrix matrix_locate(const struct memory *m, uint32_t owner, uint64_t epoch, const struct operand *o,
                            uint64_t rows, uint64_t cols);

/* The row that the i-th value of a task's index list names, of a GATHER_ROWS or of a GEMM's `a`. */
struct matrix tile_indexed_row(const struct memory *m, uint32_t rank, uint64_t epoch, const struct task *task,
                               uint64_t i);

uint8_t *matrix_row(const struct matrix *x, uint64_t row);

/* One rounding, to nearest even, where the matrix is bf16. */
void matrix_load_row(const struct matrix *x, uint64_t row, uint64_t col, uint64_t count, float *out);
void matrix_add_row(const struct matrix *x, uint64_t row, uint64_t col, uint64_t count, float *sum);
void matrix_store_row(const struct matrix *x, uint64_t row, uint64_t col, uint64_t count, const float *values);

#endif
