/* Contests: contestants take turns at the same work, and the median of all samples counts.
 *
 * The card is limited by its power: whoever runs after a pause is faster.  So each contestant gets
 * a pause, warms up, and is timed run by run with device events, in rotated order.  Inputs are
 * dense noise.  Host launch cost is excluded for all alike. */
#ifndef TESTS_DEVICE_BENCH_CONTEST_H
#define TESTS_DEVICE_BENCH_CONTEST_H

#include <cuda_runtime_api.h>

#include "backends/cuda/cublas.h"
#include "backends/cuda/cuda.h"
#include "backends/cuda/rig.h"
#include "core/kernel.h"

#define WARMUPS 3
#define RUNS 12
#define TURNS 3
#define SAMPLES (RUNS * TURNS)
#define CONTESTANTS_MAX 8

struct contestant {
    const char *name;
    struct program program;
    struct problem problem; /* of the program, or of the product cuBLAS computes */
    struct job job;
    struct cuda_options options;
    struct rig rig;
    struct cublas *blas; /* else the rig runs */
    uint64_t groups;     /* cuBLAS: products of m, n, k each; rows of a in `rows`, or NULL: m each, in
                            one call */
    const uint64_t *rows;
    void *a, *b, *c;
    float ms[SAMPLES];
    uint32_t count;
};

struct contest {
    const char *bench;
    char shape[80];
    double flop;
    struct contestant *all[CONTESTANTS_MAX];
    uint32_t count;
    cudaEvent_t begin, end;
};

/* Ends the benchmark otherwise. */
void must(bool ok, const char *what, const char *why);
void must_cuda(cudaError_t error, const char *what);

struct contestant *contest_enter(struct contest *c, const char *name, struct problem problem);
/* Builds the rig of x->program; inputs are noise. */
void contest_prepare(struct contestant *x, const struct kernel *kernel, const char *options);
struct contestant *contest_enter_kernel(struct contest *c, const char *name, const struct kernel *k, const char *params,
                                        enum form form, struct world world, struct problem problem);
/* `groups` products of problem.m, n, k on operands of its own; see struct contestant for `rows`, of
 * which problem.m is then the sum. */
struct contestant *contest_enter_cublas(struct contest *c, const char *name, struct cublas *blas,
                                        struct problem problem, uint64_t groups, const uint64_t *rows);
float contest_run_once(struct contest *c, struct contestant *x);
float contest_median(const struct contestant *x);
/* On the operands of ours, which stand in buffers BENCH_A, BENCH_B, BENCH_C: every bit? */
void contest_compare(struct contest *c, struct contestant *ours, struct contestant *theirs);
/* Times all, prints all, and forgets them; contest_leave() only forgets. */
void contest_hold(struct contest *c);
void contest_leave(struct contest *c);

/* A kernel for programs that no kernel emits: `global` is the problem itself. */
extern const struct kernel bench_kernel;

/* ---- bench_moe.c ---- */

void bench_groups_all(struct contest *c, struct cublas *blas);
void bench_moe_all(struct contest *c);

#endif
