/* What each op does to memory: the one implementation for backends that run on the host.
 *
 * Window bytes are read and written only here, by plain loads and stores (so ThreadSanitizer sees
 * every access); OpenBLAS, single-threaded, works on private scratch. */
#ifndef BACKENDS_OPS_TILE_OPS_H
#define BACKENDS_OPS_TILE_OPS_H

#include <stdint.h>

#include "core/program.h"

struct scratch; /* one per thread */

struct scratch *scratch_create(void);
void scratch_destroy(struct scratch *s);

/* What a scratch grows to for this task. */
uint64_t tile_scratch_bytes(const struct task *task);

struct memory {
    const struct program *program;
    uint8_t *const *windows; /* by rank */
};

/* GEMM and ATTENTION in stages, so that a backend can wait between them: begin, one call a step, finish
 * (addends and stores).  `task` is as program_task() gave it to `rank` in `epoch`. */
void tile_begin(struct scratch *s, const struct task *task);
void tile_step(struct scratch *s, const struct memory *m, uint32_t rank, uint64_t epoch, const struct task *task,
               uint32_t step);
void tile_finish(struct scratch *s, const struct memory *m, uint32_t rank, uint64_t epoch, const struct task *task);

/* GATHER_ROWS and COMBINE_ROWS: gather.c. */
void tile_gather(const struct memory *m, uint32_t rank, uint64_t epoch, const struct task *task);
void tile_combine(const struct memory *m, uint32_t rank, uint64_t epoch, const struct task *task);

/* COPY, REDUCE, GATHER_ROWS, COMBINE_ROWS and the data of PUT. */
void tile_move(struct scratch *s, const struct memory *m, uint32_t rank, uint64_t epoch, const struct task *task);

#endif
