/* What a worker's time is worth on the machine: pure functions, whole picoseconds. */
#ifndef BACKENDS_SIM_COST_H
#define BACKENDS_SIM_COST_H

#include <stdbool.h>
#include <stdint.h>

#include "core/machine/machine.h"
#include "core/program.h"

/* Fixed part of a task.  `fetched`: it was popped and decoded while the one before ran, and had not
 * to wait.  `streaming`: a copy right behind a copy. */
uint64_t cost_start(const struct machine *m, enum op op, bool fetched, bool streaming);

/* What of it is left when flows add the link's latency, which copies were measured with. */
uint64_t cost_before_flows(const struct machine *m, uint64_t fixed_ps);

/* Main loop of a tile of rows x cols over k.  The tensor cores work in whole tiles and steps, of
 * `step_ps` each. */
uint64_t cost_gemm(const struct machine *m, uint64_t step_ps, uint64_t rows, uint64_t cols, uint64_t k);

/* One segment of a task's main loop; `step_ps` is of a GEMM. */
uint64_t cost_segment(const struct machine *m, uint64_t step_ps, const struct task *t, uint64_t k);

/* What a task's epilogue takes beside the fixed part. */
uint64_t cost_epilogue(const struct machine *m, const struct task *t);

/* From a task's end to its result in memory, which the worker does not wait for. */
uint64_t cost_flush(const struct machine *m, enum op op);

/* Taking up addends of so many bytes. */
uint64_t cost_addends(const struct machine *m, const struct task *t, uint64_t bytes);

uint64_t cost_bytes(uint64_t bytes, double rate);

#endif
