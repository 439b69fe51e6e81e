/* Programs whose times are single quantities of core/measured/measured.h.  Each fills a zeroed *p, which
 * program_fini() frees. */
#ifndef TESTS_DEVICE_BENCH_LINKS_PROGRAM_H
#define TESTS_DEVICE_BENCH_LINKS_PROGRAM_H

#include "core/program.h"

/* Two ranks of a node take turns at GEMM tiles of one step: each waits for the one before it, the other rank's.  `far`:
 * it is stored to the other rank. */
void bench_tile_hops(struct program *p, uint64_t hops, bool far);
#define BENCH_TILE_BYTES (128 * 256 * 2)

/* So many tasks without work, of one worker. */
void bench_nothing(struct program *p, uint64_t tasks);

/* One worker adds four matrices of so many rows of BENCH_SUM_COLS, a row a task. */
void bench_sums(struct program *p, uint64_t rows);
#define BENCH_SUM_COLS 65536
#define BENCH_SUM_SOURCES 4

#endif
