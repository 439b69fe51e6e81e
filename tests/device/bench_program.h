/* Programs that only benchmarks need.  Each fills a zeroed *p, which program_fini() frees. */
#ifndef TESTS_DEVICE_BENCH_PROGRAM_H
#define TESTS_DEVICE_BENCH_PROGRAM_H

#include <stdbool.h>

#include "core/problem.h"
#include "core/program.h"

enum { BENCH_A, BENCH_B, BENCH_C }; /* buffers of the GEMM */

/* C[m, n] = A[m, k] x B[n, k]^T on every rank of a node, in supergroups of `group` row tiles.
 * `flags`: every tile waits for two flags, which the epoch before has raised, and raises one. */
void bench_gemm(struct program *p, uint32_t ranks, const struct problem *problem, uint64_t group, bool flags);

/* What two ranks do in turn, each once the other's before it is done: tasks of one node without work; puts of `bytes`,
 * bare ones of 0; GEMM tiles of one step of one node, stored here or to the other rank. */
enum bench_hop { HOP_TASK, HOP_PUT, HOP_TILE, HOP_FAR_TILE };
void bench_hops(struct program *p, uint64_t hops, enum bench_hop kind, uint64_t bytes);
#define BENCH_TILE_BYTES (128 * 256 * 2)

/* So many tasks without work, of one worker. */
void bench_nothing(struct program *p, uint64_t tasks);

/* One worker adds four matrices of so many rows of BENCH_SUM_COLS, a row a task. */
void bench_sums(struct program *p, uint64_t rows);
#define BENCH_SUM_COLS 65536
#define BENCH_SUM_SOURCES 4

/* Rank 0 issues `puts` bare puts from `workers` workers. */
void bench_puts(struct program *p, uint64_t puts, uint32_t workers);

#endif
