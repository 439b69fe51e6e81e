/* What fused kernels are compared with, on real devices: cuBLAS with NCCL in sequence, or with copy engines on streams
 * beside it.  The three GEMM kernels have baselines.
 *
 * A baseline is a rig (rig.h) whose epochs are library calls: inputs, checks and times are those of programs.  Its
 * program has buffers, inputs and outputs, but no task:
 *
 *   A [m, k], B [n, k]   operands.  All-gather: A is complete behind the collective, the own rows are input
 *   C                    the result: [m, n], or the own rows of it (reduce-scatter)
 *   P [m, n]             partial sums, with more than one rank (reduce-scatter, all-reduce)
 *   inbox                streams: the own rows as the other ranks computed them, rank + 1's first; two copies
 *
 *   baseline.c           the rig, and the search for the best cut
 *   baseline_buffers.c   buffers, inputs, outputs
 *   baseline_nccl.c      an epoch of NCCL and cuBLAS
 *   baseline_streams.c   an epoch of copies and cuBLAS
 *
 * Ranks that share a device take turns on its stream. */
#ifndef BACKENDS_CUDA_BASELINE_H
#define BACKENDS_CUDA_BASELINE_H

#include "backends/cuda/cublas.h"
#include "backends/cuda/nccl.h"
#include "backends/cuda/rig.h"

/* Rows of other ranks in `others` pieces, own rows of an all-reduce in `own`.  `whole`: one GEMM of all rows, which
 * overlaps with nothing. */
struct baseline_cut {
    bool whole;
    uint32_t others, own;
};

/* A rank's copies, and what they and the GEMMs wait for. */
struct baseline_lane {
    cudaStream_t copies;
    cudaEvent_t piece;    /* computed, or arrived: recorded and waited for in turns */
    cudaEvent_t sent;     /* all that others add */
    cudaEvent_t copied;   /* all of the epoch */
    cudaEvent_t added[2]; /* own rows, by the inbox's copy: peers may store there again */
};

struct baseline_rig {
    struct rig rig; /* first: an epoch gets it alone */
    struct job job;
    struct cuda_options options;
    struct program program;
    uint32_t a, b, c, p, inbox; /* buffers; NO_BUFFER: there is none */
    uint32_t ranks;
    uint64_t calls; /* that the host has made */
    struct cublas blas[DEVICES_MAX];
    struct nccl nccl;
    struct baseline_cut cut;
    struct baseline_lane *lanes; /* streams: by rank */
    cudaEvent_t forked[DEVICES_MAX];
};

/* The backend's entry for baselines.  ST_UNSUPPORTED, with the reason in r->report, where this baseline cannot be:
 * other kernels, several nodes, no library, NCCL with several ranks on a device. */
enum status baseline_measure(const struct job *job, enum baseline which, struct run_result *r);

/* ---- baseline_buffers.c ---- */

void baseline_add_buffers(struct baseline_rig *b, bool inbox);
uint64_t baseline_first_row(const struct baseline_rig *b, uint32_t rank); /* that it owns */
uint64_t baseline_rows(const struct baseline_rig *b, uint32_t rank);
/* Row `row` of a buffer of a rank's, in the copy of this epoch. */
void *baseline_at(const struct baseline_rig *b, uint32_t rank, uint32_t buffer, uint64_t row);
/* Of one rank in another's inbox: as many as any rank owns. */
uint64_t baseline_inbox_rows(const struct baseline_rig *b);

/* ---- baseline_nccl.c, baseline_streams.c ---- */

/* rows [row, row + rows) of A times B, into rows of `out` from out_row on, on the device's stream. */
enum status baseline_multiply(struct baseline_rig *b, uint32_t rank, uint64_t row, uint64_t rows, uint32_t out,
                              uint64_t out_row);

enum status baseline_open_nccl(struct baseline_rig *b);
enum status baseline_enqueue_nccl(struct rig *r);
enum status baseline_enqueue_collective(struct rig *r); /* without the GEMM */

enum status baseline_open_streams(struct baseline_rig *b);
void baseline_close_streams(struct baseline_rig *b);
enum status baseline_enqueue_streams(struct rig *r);

#endif
