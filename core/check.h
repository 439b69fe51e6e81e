/* Checks of real data.  A kernel says how its results are checked: within a bound (struct bounded_check), or
 * exactly.
 *
 * Exact checks: inputs are sparse +-1 with a density that keeps every sum, partial or final, in
 * any order, an integer of magnitude <= 256: every f32 accumulation and every bf16 rounding point
 * is then exact and results compare bit for bit, however the work was split.
 *
 * tensor_value() is a pure function: a backend writes inputs and the reference recomputes them. */
#ifndef CORE_CHECK_H
#define CORE_CHECK_H

#include <stddef.h>
#include <stdint.h>

#include "core/backend.h"
#include "core/program.h"

/* Global tensors: of GEMMs; of attention (core/attention.h); of routing (core/route.h); of experts: weights of a
 * token's choices, gate and up projections, down projections. */
enum {
    TENSOR_A,
    TENSOR_B,
    TENSOR_C,
    TENSOR_Q,
    TENSOR_KV,
    TENSOR_O,
    TENSOR_ROUTING,
    TENSOR_WEIGHTS,
    TENSOR_GATE_UP,
    TENSOR_DOWN,
};

/* Element (row, col) of tensor A[m, k] or B[n, k]: -1, 0 or 1.  `depth` is the global reduction
 * length (k of kernel->global()), from which the density follows. */
int tensor_value(uint64_t seed, uint64_t epoch, uint32_t tensor, uint64_t depth, uint64_t row, uint64_t col);

/* Elements (row, col) to (row, col + count - 1): the same values, much faster. */
void tensor_row(uint64_t seed, uint64_t epoch, uint32_t tensor, uint64_t depth, uint64_t row, uint64_t col,
                uint64_t count, int8_t *out);

/* Upper bound of what check_outputs() allocates, all ranks together; UINT64_MAX when it does not
 * fit 64 bits. */
uint64_t check_memory_bytes(const struct job *job);

/* `window` is the rank's window, laid out as program_buffer_offset() says. */

/* In the place of an expected value: no row was routed here, and nothing may have been written. */
#define CHECK_UNWRITTEN INT16_MIN

/* What `begin` of `epoch` does: writes the rank's inputs; or those in control buffers alone, which stand at
 * the window's head. */
void check_write_inputs(const struct job *job, uint32_t rank, uint64_t epoch, void *window);

void check_write_control(const struct job *job, uint32_t rank, uint64_t epoch, void *window);

/* Fills every buffer, all copies, with NaN (negative numbers in control buffers): nothing read before it was
 * written survives.  Or control buffers alone. */
void check_poison(const struct job *job, void *window);
void check_poison_control(const struct job *job, void *window);

struct check_report {
    uint64_t checked, wrong;
    char first[200]; /* the first wrong element, for people */
};

/* What `end` of `epoch` does: compares the rank's outputs with the reference, then poisons them.
 * Adds to *report.  Thread-safe for different ranks. */
void check_outputs(const struct job *job, uint32_t rank, uint64_t epoch, void *window, struct check_report *report);

#endif
