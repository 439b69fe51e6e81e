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

/* Two ranks signal each other in turn, `hops` times: by bare puts, by puts of `bytes`, or by tasks
 * of one node. */
void bench_hops(struct program *p, uint64_t hops, bool puts, uint64_t bytes);

/* Rank 0 issues `puts` bare puts from `workers` workers. */
void bench_puts(struct program *p, uint64_t puts, uint32_t workers);

#endif
