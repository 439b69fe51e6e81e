/* Tasks, waits and flags as people read them: what `mkernel show --program` and hang reports print.
 *
 * Every function writes at most out_bytes including the final 0; text that does not fit ends in "...". */
#ifndef CORE_PROGRAM_PRINT_H
#define CORE_PROGRAM_PRINT_H

#include <stddef.h>
#include <stdint.h>

#include "core/program.h"

#define PROGRAM_TASK_TEXT_BYTES 1024 /* enough for every task that kernels emit */

/* "ready[17]" */
void program_print_flag(const struct program *p, uint32_t flag, char *out, size_t out_bytes);

/* "ready[3..5] >= total, lag 1, late" */
void program_print_wait(const struct program *p, const struct wait *w, char *out, size_t out_bytes);

/* One line: "gemm #402  C[128..255, 0..255] = A[0..127, 0..511] x B[0..255, 0..511]  wait ready[3] >= total
 * signal rank 5 arrived[17] += 1".  A buffer of another rank is written "rank 5 C[...]", NODE "node C[...]". */
void program_print_task(const struct program *p, uint32_t rank, uint32_t queue, uint64_t index, const struct task *t,
                        char *out, size_t out_bytes);

#endif
