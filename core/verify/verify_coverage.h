/* Between the files of the verifier's coverage step. */
#ifndef CORE_VERIFY_VERIFY_COVERAGE_H
#define CORE_VERIFY_VERIFY_COVERAGE_H

#include "core/verify/verify_state.h"

/* What stands somewhere: an element of a global tensor, or a sum of which some contributions are there. */
struct symbol {
    uint32_t tensor;   /* TENSOR_A, ...; TENSOR_C for sums of products, TENSOR_O for shares of attention */
    uint64_t row, col; /* tensor element at row 0, column 0 of the buffer, modulo 2^64 */
    uint64_t sum;      /* TENSOR_C, TENSOR_O: of contributions */
};

struct tracing;

/* The range [k0, k1) of the global reduction, or of the keys, contributes contribution(k1) - contribution(k0). */
uint64_t verify_contribution(uint64_t k);

/* The one symbol that covers an operand, as the tensor element at its first element; false: parts are missing
 * or do not belong together. */
bool verify_look(const struct tracing *x, const struct operand *o, uint64_t rows, uint64_t cols, struct symbol *out);
const struct problem *verify_global(const struct tracing *x);
const struct program *verify_traced(const struct tracing *x);

/* Attention: what a task's result is; and the sum that `rows` rows of TENSOR_O from `row` on must hold. */
bool verify_attention_result(const struct tracing *x, uint32_t rank, const struct task *t, struct symbol *out);
bool verify_attention_whole(const struct problem *global, uint64_t row, uint64_t rows, uint64_t *sum_out);

#endif
